"""4.6 MessageProducer and 4.6.1 Synchronous send."""

from functools import partial
from typing import Any

import pytest

from jmsapi import (
    DeliveryMode,
    InvalidDestinationException,
    Queue,
    Session,
    Topic,
    UnsupportedOperationException,
)
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import receive, receive_all, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import requirement


@requirement("4.6-1", "9.1.5-1")
def test_a_producer_sends_to_its_destination(session: Session, queue: Queue, topic: Topic, other_session: Session) -> None:
    for destination in (queue, topic):
        consumer = other_session.create_consumer(destination)
        producer = session.create_producer(destination)
        assert producer.destination == destination
        producer.send(session.create_text_message("text"))
        assert receive_text(consumer) == "text"


@requirement("4.6-2")
def test_a_producer_without_destination_is_told_it_with_each_send(
    session: Session, queue: Queue, topic: Topic, other_session: Session
) -> None:
    consumers = [other_session.create_consumer(destination) for destination in (queue, topic)]
    producer = session.create_producer(None)
    assert producer.destination is None
    producer.send(queue, session.create_text_message("to queue"))
    producer.send(topic, session.create_text_message("to topic"))
    assert [receive_text(consumer) for consumer in consumers] == ["to queue", "to topic"]


@requirement("4.6-2", "B.3.3-2")
def test_a_send_must_name_a_destination_exactly_when_its_producer_has_none(session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    anonymous, bound = session.create_producer(None), session.create_producer(queue)
    with pytest.raises(UnsupportedOperationException):
        anonymous.send(message)
    with pytest.raises(UnsupportedOperationException):
        bound.send(queue, message)
    with pytest.raises(InvalidDestinationException):
        anonymous.send(None, message)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


@requirement("4.6-3")
def test_a_new_producer_has_the_defaults_of_the_specification(session: Session, queue: Queue) -> None:
    producer = session.create_producer(queue)
    assert producer.delivery_mode == DeliveryMode.PERSISTENT == 2
    assert producer.priority == 4
    assert producer.time_to_live == 0
    assert producer.delivery_delay == 0
    assert producer.disable_message_id is False
    assert producer.disable_message_timestamp is False


@requirement("4.6-3")
def test_the_defaults_of_a_producer_hold_for_sends_that_do_not_say_otherwise(
    session: Session, queue: Queue, other_session: Session
) -> None:
    producer = session.create_producer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    producer.priority = 7
    producer.time_to_live = 60_000
    producer.send(session.create_text_message("text"))
    received = receive(other_session.create_consumer(queue))
    assert received.jms_delivery_mode == DeliveryMode.NON_PERSISTENT
    assert received.jms_priority == 7
    assert received.jms_expiration == received.jms_timestamp + 60_000


@requirement("4.6-4")
def test_what_a_send_says_holds_for_its_message_only(session: Session, queue: Queue, other_session: Session) -> None:
    producer = session.create_producer(queue)
    consumer = other_session.create_consumer(queue)
    producer.send(
        session.create_text_message("as given"), delivery_mode=DeliveryMode.NON_PERSISTENT, priority=7, time_to_live_ms=60_000
    )
    producer.send(session.create_text_message("as before"))
    # Messages of different modes and priorities may overtake each other.
    found = {text_of(message): message for message in receive_all(consumer, 2)}
    first, second = found["as given"], found["as before"]
    assert (first.jms_delivery_mode, first.jms_priority) == (DeliveryMode.NON_PERSISTENT, 7)
    assert first.jms_expiration > 0
    assert (second.jms_delivery_mode, second.jms_priority, second.jms_expiration) == (DeliveryMode.PERSISTENT, 4, 0)


@requirement("4.6-4")
@pytest.mark.parametrize("anonymous", [False, True])
def test_what_a_send_says_goes_before_what_its_producer_says(
    session: Session, queue: Queue, other_session: Session, anonymous: bool
) -> None:
    producer = session.create_producer(None if anonymous else queue)
    producer.delivery_mode, producer.priority, producer.time_to_live = DeliveryMode.NON_PERSISTENT, 7, 60_000
    send: Any = partial(producer.send, queue) if anonymous else producer.send
    own = {"delivery_mode": DeliveryMode.PERSISTENT, "priority": 2, "time_to_live_ms": 0}
    for text, terms in (("first", {}), ("own", own), ("short", {**own, "time_to_live_ms": 30_000}), ("last", {})):
        send(session.create_text_message(text), **terms)
    assert (producer.delivery_mode, producer.priority, producer.time_to_live) == (DeliveryMode.NON_PERSISTENT, 7, 60_000)
    found = {text_of(message): message for message in receive_all(other_session.create_consumer(queue), 4)}
    seen = {
        text: (one.jms_delivery_mode, one.jms_priority, one.jms_expiration and one.jms_expiration - one.jms_timestamp)
        for text, one in found.items()
    }
    theirs = (DeliveryMode.NON_PERSISTENT, 7, 60_000)
    assert seen == {
        "first": theirs,
        "own": (DeliveryMode.PERSISTENT, 2, 0),
        "short": (DeliveryMode.PERSISTENT, 2, 30_000),
        "last": theirs,
    }


@requirement("4.6.1-1")
@pytest.mark.parametrize("mode", [DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT])
def test_a_message_is_safely_sent_when_send_returns(connect: Connect, queue: Queue, other_session: Session, mode: int) -> None:
    connection = connect()
    session = connection.create_session()
    session.create_producer(queue).send(session.create_text_message("text"), delivery_mode=mode, priority=4, time_to_live_ms=0)
    connection.close()
    assert receive_text(other_session.create_consumer(queue)) == "text"


@requirement("4.4.10.1-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_messages_of_one_session_to_one_destination_are_received_in_sending_order(
    session: Session, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = other_session.create_consumer(destination)
    expected = [str(number) for number in range(1000)]
    send_texts(session, destination, *expected)
    assert receive_texts(consumer, 1000) == expected
