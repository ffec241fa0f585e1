"""Header fields: before the send, after it, and on a received message."""

from __future__ import annotations

from typing import Any

import pytest

from jmsapi._core.destination import QueueImpl, TemporaryQueueImpl, TopicImpl
from jmsapi._core.message import stamp
from jmsapi.api import Message, Queue, Topic
from jmsapi.errors import InvalidDestinationException, MessageFormatException
from jmsapi.spi import Address, DestinationKind, MessageKind, PlainEnvelope

FRESH: dict[str, Any] = {
    "jms_message_id": None,
    "jms_timestamp": 0,
    "jms_correlation_id": None,
    "jms_correlation_id_as_bytes": None,
    "jms_reply_to": None,
    "jms_destination": None,
    "jms_delivery_mode": Message.DEFAULT_DELIVERY_MODE,
    "jms_redelivered": False,
    "jms_type": None,
    "jms_expiration": 0,
    "jms_delivery_time": 0,
    "jms_priority": Message.DEFAULT_PRIORITY,
}
OTHER: dict[str, Any] = {
    "jms_message_id": "ID:mine",
    "jms_timestamp": 5,
    "jms_correlation_id": "c",
    "jms_reply_to": QueueImpl("reply"),
    "jms_destination": TopicImpl("t"),
    "jms_delivery_mode": 1,
    "jms_redelivered": True,
    "jms_type": "kind",
    "jms_expiration": 2**40,
    "jms_delivery_time": 2**41,
    "jms_priority": 9,
}
BY_SEND = ("message_id", "timestamp", "destination", "delivery_mode", "expiration", "delivery_time", "priority")


@pytest.fixture
def message(bench: Any, any_kind: MessageKind) -> Any:
    return bench.new(any_kind)


def envelope_with(**parts: Any) -> PlainEnvelope:
    return PlainEnvelope(MessageKind.MESSAGE, Address(DestinationKind.TOPIC, "prices"), **parts)


def test_a_new_message_has_the_defaults(message: Any) -> None:
    assert {name: getattr(message, name) for name in FRESH} == FRESH


@pytest.mark.parametrize("name", OTHER)
def test_each_field_can_be_set_on_a_new_message(message: Any, name: str) -> None:
    setattr(message, name, OTHER[name])
    assert getattr(message, name) == OTHER[name]
    changed = {it for it in FRESH if getattr(message, it) != FRESH[it]}
    assert changed - {"jms_correlation_id_as_bytes"} == ({name, "jms_delivery_time"} if name == "jms_timestamp" else {name})


@pytest.mark.parametrize("name", OTHER)
def test_each_field_can_be_set_on_a_received_message(bench: Any, message: Any, name: str) -> None:
    incoming = bench.pass_on(message)
    setattr(incoming, name, OTHER[name])
    assert getattr(incoming, name) == OTHER[name]


def test_a_received_message_shows_what_the_envelope_holds(bench: Any) -> None:
    incoming = bench.deliver(
        envelope_with(
            message_id="ID:7",
            timestamp=100,
            correlation_id="c",
            reply_to=Address(DestinationKind.QUEUE, "answers"),
            delivery_mode=1,
            jms_type="t",
            expiration=900,
            delivery_time=300,
            priority=8,
        )
    )
    assert incoming.jms_message_id == "ID:7"
    assert incoming.jms_timestamp == 100
    assert incoming.jms_correlation_id == "c"
    assert incoming.jms_reply_to == QueueImpl("answers")
    assert isinstance(incoming.jms_destination, Topic)
    assert incoming.jms_destination == TopicImpl("prices")
    assert incoming.jms_delivery_mode == 1
    assert incoming.jms_type == "t"
    assert incoming.jms_expiration == 900
    assert incoming.jms_delivery_time == 300
    assert incoming.jms_priority == 8
    assert incoming.jms_redelivered is False


@pytest.mark.parametrize(("count", "extra", "redelivered"), [(1, 0, False), (1, 1, True), (2, 0, True), (3, 4, True)])
def test_redelivered_goes_with_the_count(bench: Any, count: int, extra: int, redelivered: bool) -> None:
    incoming = bench.deliver(envelope_with(), count=count, extra_count=extra)
    assert incoming.jms_redelivered is redelivered
    assert incoming.get_int_property("JMSXDeliveryCount") == count + extra


def test_without_a_delivery_time_on_the_wire_it_is_the_timestamp(bench: Any) -> None:
    assert bench.deliver(envelope_with(timestamp=77)).jms_delivery_time == 77


def test_the_send_overwrites_its_fields_and_leaves_the_clients(bench: Any, message: Any) -> None:
    for name, value in OTHER.items():
        setattr(message, name, value)
    sent_to = QueueImpl("here")
    envelope = bench.freeze(message, message_id="ID:9", timestamp=1, delivery_mode=2, priority=0, expiration=3, delivery_time=4)
    stamp(message, envelope, sent_to)
    assert message.jms_destination is sent_to
    assert (message.jms_message_id, message.jms_timestamp, message.jms_delivery_mode) == ("ID:9", 1, 2)
    assert (message.jms_priority, message.jms_expiration, message.jms_delivery_time) == (0, 3, 4)
    assert message.jms_redelivered is True
    assert message.jms_reply_to is OTHER["jms_reply_to"]
    assert (message.jms_correlation_id, message.jms_type) == ("c", "kind")
    incoming = bench.deliver(envelope)
    assert incoming.jms_redelivered is False
    assert incoming.jms_message_id == "ID:9"
    assert incoming.jms_reply_to == OTHER["jms_reply_to"]


def test_a_send_without_id_and_timestamp_clears_those_of_the_send_before(bench: Any, message: Any) -> None:
    stamp(message, bench.freeze(message), QueueImpl("here"))
    stamp(message, bench.freeze(message, message_id=None, timestamp=0), QueueImpl("here"))
    assert message.jms_message_id is None
    assert message.jms_timestamp == 0


def test_what_the_client_sets_between_send_and_stamp_stays(bench: Any, message: Any) -> None:
    envelope = bench.freeze(message)
    message.jms_type = "later"
    stamp(message, envelope, QueueImpl("here"))
    assert message.jms_type == "later"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jms_message_id", 5),
        ("jms_timestamp", "5"),
        ("jms_timestamp", True),
        ("jms_correlation_id", b"c"),
        ("jms_correlation_id", "\ud800"),
        ("jms_correlation_id_as_bytes", "c"),
        ("jms_delivery_mode", "2"),
        ("jms_redelivered", 1),
        ("jms_type", 5),
        ("jms_expiration", 1.5),
        ("jms_priority", "9"),
    ],
)
def test_a_field_refuses_a_value_of_another_type(message: Any, name: str, value: Any) -> None:
    with pytest.raises(MessageFormatException):
        setattr(message, name, value)
    assert getattr(message, name) == FRESH[name]


@pytest.mark.parametrize("name", ["jms_reply_to", "jms_destination"])
def test_a_destination_field_refuses_what_is_none(message: Any, name: str) -> None:
    with pytest.raises(InvalidDestinationException):
        setattr(message, name, "queue")
    setattr(message, name, QueueImpl("q"))
    setattr(message, name, None)
    assert getattr(message, name) is None


def test_reply_to_a_temporary_queue_keeps_the_right_to_delete_it_on_the_senders_side_only(bench: Any) -> None:
    deleted: list[Address] = []

    class Owner:
        def delete_temporary(self, address: Address) -> None:
            deleted.append(address)

    message = bench.new(MessageKind.TEXT)
    message.jms_reply_to = TemporaryQueueImpl("tmp", Owner())
    envelope = bench.freeze(message)
    stamp(message, envelope, QueueImpl("here"))
    message.jms_reply_to.delete()
    assert deleted == [Address(DestinationKind.TEMPORARY_QUEUE, "tmp")]
    incoming = bench.deliver(envelope)
    assert incoming.jms_reply_to == message.jms_reply_to
    with pytest.raises(Exception, match="connection that created it"):
        incoming.jms_reply_to.delete()


def test_a_correlation_id_of_bytes_is_copied_in(bench: Any, message: Any) -> None:
    given = bytearray(b"\x00\xff")
    message.jms_correlation_id_as_bytes = given
    given[0] = 9
    incoming = bench.pass_on(message)
    assert incoming.jms_correlation_id_as_bytes == b"\x00\xff"
    assert type(incoming.jms_correlation_id_as_bytes) is bytes
    assert incoming.jms_correlation_id == "ID:AMQP_BINARY:00FF"


def test_a_correlation_id_of_text_reads_as_its_utf8_bytes(message: Any) -> None:
    message.jms_correlation_id = "grün"
    assert message.jms_correlation_id_as_bytes == "grün".encode()
    message.jms_correlation_id = None
    assert message.jms_correlation_id_as_bytes is None


def test_a_foreign_destination_may_be_the_reply_to(bench: Any, message: Any) -> None:
    class Theirs(Queue):
        queue_name = "theirs"

        def __str__(self) -> str:
            return "theirs"

    message.jms_reply_to = Theirs()
    assert bench.freeze(message).reply_to == Address(DestinationKind.QUEUE, "theirs")


def test_repr_names_the_kind_and_the_id_but_no_content(bench: Any) -> None:
    message = bench.new(MessageKind.TEXT)
    message.text = "secret"
    assert repr(message) == "<TextMessage not sent>"
    assert repr(bench.pass_on(message)) == "<TextMessage ID:1>"
