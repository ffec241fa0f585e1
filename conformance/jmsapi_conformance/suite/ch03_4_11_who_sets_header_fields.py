"""3.4.11 How header values are set; 3.4.12 Overriding header fields."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from jmsapi import DeliveryMode, Message, Queue, Session, TextMessage
from jmsapi.spi import Delivery, Events, Handle, PlainEnvelope
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import Completions, receive
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._foreign import foreign_message, set_by_others
from jmsapi_conformance.suite._kinds import passed

BY_SEND = (
    *("jms_destination", "jms_delivery_mode", "jms_expiration", "jms_delivery_time", "jms_priority", "jms_message_id"),
    "jms_timestamp",
)
FALSE: dict[str, Callable[[Session, Names], Any]] = {
    "jms_destination": lambda session, names: session.create_queue(names.queue()),
    "jms_delivery_mode": lambda _session, _names: DeliveryMode.NON_PERSISTENT,
    "jms_expiration": lambda _session, _names: 5,
    "jms_delivery_time": lambda _session, _names: 6,
    "jms_priority": lambda _session, _names: 9,
    "jms_message_id": lambda _session, _names: "ID:false",
    "jms_timestamp": lambda _session, _names: 7,
}
IDS = {
    "jms_destination": "3.4.11-1",
    "jms_delivery_mode": "3.4.11-2",
    "jms_expiration": "3.4.11-3",
    "jms_delivery_time": "3.4.11-4",
    "jms_priority": "3.4.11-5",
    "jms_message_id": "3.4.11-6",
    "jms_timestamp": "3.4.11-7",
}


@requirement("B.5.20-1")
@pytest.mark.parametrize("field", [pytest.param(field, marks=requirement(one)) for field, one in IDS.items()])
def test_what_a_client_stores_is_thrown_away_by_the_send(
    session: Session, other_session: Session, queue: Queue, names: Names, field: str
) -> None:
    false = FALSE[field](session, names)
    message = session.create_text_message("text")
    setattr(message, field, false)
    assert getattr(message, field) == false
    received = passed(message, session, queue, other_session)
    assert getattr(message, field) == getattr(received, field) != false


@requirement("3.4.11-8")
def test_the_send_leaves_the_correlation_id(session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.jms_correlation_id = "mine"
    session.create_producer(queue).send(message)
    assert message.jms_correlation_id == "mine"


@requirement("3.4.11-9")
def test_the_send_leaves_the_reply_destination(session: Session, queue: Queue, names: Names) -> None:
    message = session.create_text_message("text")
    message.jms_reply_to = answers = session.create_queue(names.queue())
    session.create_producer(queue).send(message)
    assert message.jms_reply_to == answers


@requirement("3.4.11-10")
def test_the_send_leaves_the_type(session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.jms_type = "mine"
    session.create_producer(queue).send(message)
    assert message.jms_type == "mine"


@requirement("3.4.11-12")
def test_after_a_send_all_its_fields_are_there(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    session.create_producer(queue).send(message, delivery_mode=1, priority=3, time_to_live_ms=60_000)
    received = receive(other_session.create_consumer(queue))
    check_fields(message, received, queue)
    assert (message.jms_delivery_mode, message.jms_priority) == (1, 3)


@requirement("3.4.11-13")
def test_after_an_asynchronous_send_all_its_fields_are_there_at_the_callback(
    session: Session, other_session: Session, queue: Queue
) -> None:
    seen: list[dict[str, object]] = []
    listener = Completions(lambda message: seen.append({field: getattr(message, field) for field in BY_SEND}))
    message = session.create_text_message("text")
    session.create_producer(queue).send(
        message, delivery_mode=1, priority=3, time_to_live_ms=60_000, completion_listener=listener
    )
    listener.wait_for(1)
    received = receive(other_session.create_consumer(queue))
    check_fields(message, received, queue)
    assert seen == [{field: getattr(received, field) for field in BY_SEND}]


def check_fields(message: Message, received: Message, queue: Queue) -> None:
    """The seven fields are filled, and alike on both sides."""
    fields = {field: getattr(message, field) for field in BY_SEND}
    assert fields == {field: getattr(received, field) for field in BY_SEND}
    assert all(fields.values())
    assert fields["jms_destination"] == queue


@requirement("3.4.11-14")
def test_a_message_of_another_implementation_is_filled_in_by_its_setters(
    session: Session, other_session: Session, queue: Queue
) -> None:
    message = foreign_message("text", "theirs")
    received = passed(message, session, queue, other_session)
    assert isinstance(received, TextMessage)
    assert received.text == "theirs"
    assert {field: getattr(received, field) for field in BY_SEND} == set_by_others(message)


@requirement("3.4.11-15")
@pytest.mark.parametrize("delay_ms", [0, pytest.param(50, marks=needs("delivery_delay"))])
def test_the_producers_settings_win_over_those_on_the_message(
    session: Session, other_session: Session, queue: Queue, delay_ms: int
) -> None:
    producer = session.create_producer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    producer.priority = 2
    producer.time_to_live = 60_000
    producer.delivery_delay = delay_ms
    message = session.create_text_message("text")
    message.jms_delivery_mode = DeliveryMode.PERSISTENT
    message.jms_priority = 9
    message.jms_expiration = message.jms_delivery_time = 1
    producer.send(message)
    received = receive(other_session.create_consumer(queue))
    for one in (message, received):
        assert (one.jms_delivery_mode, one.jms_priority) == (DeliveryMode.NON_PERSISTENT, 2)
        assert one.jms_expiration == one.jms_timestamp + 60_000
        assert one.jms_delivery_time == one.jms_timestamp + delay_ms


class Administrator:
    """Stands between provider and library and changes what messages say, as a broker with such a setting does."""

    def __init__(self, events: Events, **changes: Any) -> None:
        self._events = events
        self._changes = changes

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass on changed messages."""
        self._events.on_deliveries(consumer, [one._replace(envelope=self._changed(one.envelope)) for one in deliveries])

    def _changed(self, envelope: Any) -> PlainEnvelope:
        values: dict[str, Any] = {name: getattr(envelope, name, None) for name in PlainEnvelope.__dataclass_fields__}
        plain = PlainEnvelope(**values)
        return replace(plain, **self._changes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


@requirement("3.4.12-2")
def test_a_receiver_sees_the_values_that_an_administrator_put_in_force(
    interceptor: Interceptor, session: Session, queue: Queue
) -> None:
    receiver = interceptor.connect().create_session()
    (held,) = interceptor.providers
    far = 4_102_444_800_000
    administrator = Administrator(held.up, delivery_mode=1, priority=1, expiration=far, delivery_time=far - 1)
    held.up = cast(Events, administrator)
    consumer = receiver.create_consumer(queue)
    session.create_producer(queue).send(session.create_text_message("text"), delivery_mode=2, priority=9, time_to_live_ms=60_000)
    received = receive(consumer)
    assert (received.jms_delivery_mode, received.jms_priority) == (1, 1)
    assert (received.jms_expiration, received.jms_delivery_time) == (far, far - 1)
