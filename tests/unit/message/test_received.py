"""Received messages: nothing is decoded before it is read, and nobody's changes reach anybody else."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from jmsapi._core.destination import QueueImpl
from jmsapi._core.message import MessageImpl, stamp
from jmsapi.errors import MessageFormatException
from jmsapi.spi import Delivery, ErrorKind, MessageKind, PlainEnvelope, ProviderError, Tag
from jmsapi.values import Double, Float, Int, Long

PARTS = [name for name in PlainEnvelope.__dataclass_fields__ if name != "kind"]
BODY: dict[MessageKind, Any] = {
    MessageKind.MESSAGE: None,
    MessageKind.TEXT: "t",
    MessageKind.BYTES: b"b",
    MessageKind.MAP: {"a": 1},
    MessageKind.STREAM: [1],
    MessageKind.OBJECT: b"[1]",
}
READ_BODY: dict[MessageKind, Any] = {
    MessageKind.TEXT: lambda it: it.text,
    MessageKind.BYTES: lambda it: it.read_byte(),
    MessageKind.MAP: lambda it: it.get_int("a"),
    MessageKind.STREAM: lambda it: it.read_int(),
    MessageKind.OBJECT: lambda it: it.object,
}


class Watched:
    """An envelope that notes which parts are read."""

    def __init__(self, envelope: PlainEnvelope, broken: str = "") -> None:
        self.kind = envelope.kind
        self._envelope = envelope
        self._broken = broken
        self.read: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.read.append(name)
        if name == self._broken:
            raise ProviderError(ErrorKind.FORMAT, "bad bytes")
        return getattr(self._envelope, name)


@pytest.fixture
def envelope(bench: Any, any_kind: MessageKind) -> Any:
    envelope = bench.freeze(bench.new(any_kind))
    envelope.body = BODY[any_kind]
    envelope.content_type = "application/vnd.jmsapi.object+json" if any_kind is MessageKind.OBJECT else None
    envelope.properties = {"p": 1}
    return envelope


def test_receiving_reads_the_kind_only(bench: Any, envelope: Any) -> None:
    watched = Watched(envelope)
    incoming = bench.deliver(watched, count=3)
    assert (incoming.jms_redelivered, incoming.get_int_property("JMSXDeliveryCount")) == (True, 3)
    incoming.acknowledge()
    assert watched.read == []


def test_reading_a_property_leaves_body_and_headers_alone(bench: Any, envelope: Any) -> None:
    watched = Watched(envelope)
    bench.deliver(watched).get_int_property("p")
    assert watched.read == ["properties"]


@pytest.mark.parametrize("kind", READ_BODY, ids=lambda kind: kind.name)
def test_reading_the_body_leaves_properties_and_headers_alone(bench: Any, kind: MessageKind) -> None:
    watched = Watched(PlainEnvelope(kind, ("q", "q"), BODY[kind], content_type="application/vnd.jmsapi.object+json"))  # type: ignore[arg-type]
    incoming = bench.deliver(watched)
    READ_BODY[kind](incoming)
    assert set(watched.read) <= {"body", "content_type"}


@pytest.mark.parametrize("kind", READ_BODY, ids=lambda kind: kind.name)
def test_a_body_that_cannot_be_decoded_is_reported_by_each_read_of_it(bench: Any, kind: MessageKind) -> None:
    incoming = bench.deliver(Watched(PlainEnvelope(kind, ("q", "q"), BODY[kind], {"p": 1}), broken="body"))  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(MessageFormatException, match="body of the message cannot be decoded: bad bytes") as caught:
            READ_BODY[kind](incoming)
        assert isinstance(caught.value.linked_exception, ProviderError)
    assert incoming.get_int_property("p") == 1
    incoming.clear_body()


def test_properties_that_cannot_be_decoded_are_reported(bench: Any, envelope: Any) -> None:
    incoming = bench.deliver(Watched(envelope, broken="properties"))
    for read in (
        lambda: incoming.get_int_property("p"),
        lambda: incoming.property_exists("p"),
        lambda: list(incoming.property_names),
        lambda: bench.freeze(incoming),
    ):
        with pytest.raises(MessageFormatException):
            read()
    incoming.clear_properties()
    incoming.set_int_property("p", 2)
    assert incoming.get_int_property("p") == 2


@pytest.mark.parametrize(
    ("part", "field"), [("reply_to", "jms_reply_to"), ("correlation_id", "jms_correlation_id"), ("timestamp", "jms_timestamp")]
)
def test_a_header_that_cannot_be_decoded_is_reported(bench: Any, envelope: Any, part: str, field: str) -> None:
    incoming = bench.deliver(Watched(envelope, broken=part))
    with pytest.raises(MessageFormatException, match=part.replace("_", " ")):
        getattr(incoming, field)
    setattr(incoming, field, None if part != "timestamp" else 5)
    getattr(incoming, field)


def test_each_receiver_has_a_message_of_its_own(bench: Any, envelope: Any) -> None:
    before = PlainEnvelope(**{name: getattr(envelope, name) for name in ["kind", *PARTS]})
    changed, untouched = bench.deliver(envelope), bench.deliver(envelope)
    changed.clear_body()
    changed.clear_properties()
    changed.set_int_property("p", 2)
    changed.set_int_property("q", 2)
    changed.jms_type = "changed"
    changed.jms_message_id = "changed"
    changed.jms_redelivered = True
    if changed._kind is MessageKind.MAP:
        changed.set_int("a", 2)
    if changed._kind is MessageKind.STREAM:
        changed.write_int(2)
    assert envelope == before
    assert untouched.get_int_property("p") == 1
    assert (untouched.jms_type, untouched.jms_message_id, untouched.jms_redelivered) == (None, "ID:1", False)
    assert bench.freeze(untouched) == before


def test_a_received_message_can_be_sent_on(bench: Any, envelope: Any) -> None:
    envelope.properties = {"p": 1, "JMSXUserID": "me", "JMSXGroupID": "g", "JMS_AMQP_x": 1}
    incoming = bench.deliver(envelope, count=2)
    again = bench.freeze(incoming, message_id="ID:2")
    assert again.properties == {"p": 1, "JMSXGroupID": "g", "JMS_AMQP_x": 1}
    assert (again.body, again.kind, again.message_id) == (envelope.body, envelope.kind, "ID:2")
    stamp(incoming, again, QueueImpl("there"))
    assert incoming.jms_message_id == "ID:2"
    assert incoming.jms_redelivered is True
    assert incoming.delivery.envelope is envelope


def test_a_received_message_of_a_watched_wire_is_decoded_for_the_send(bench: Any, envelope: Any) -> None:
    again = bench.freeze(bench.deliver(Watched(envelope)))
    assert isinstance(again, PlainEnvelope)
    assert again == envelope


def test_a_message_keeps_its_delivery_for_the_session(bench: Any, envelope: Any) -> None:
    incoming = bench.deliver(envelope)
    assert isinstance(incoming.delivery, Delivery)
    assert isinstance(incoming.delivery.tag, Tag)
    assert bench.new(envelope.kind).delivery is None


def test_messages_are_small(bench: Any, any_kind: MessageKind) -> None:
    message = bench.new(any_kind)
    for name in "abcde":
        message.set_string_property(name, name)
    envelope = bench.freeze(message)
    kept: list[MessageImpl] = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            incoming = bench.deliver(envelope)
            incoming.get_string_property("a")
            kept.append(incoming)
        used = (tracemalloc.get_traced_memory()[0] - before) / 1000
    finally:
        tracemalloc.stop()
    assert used < 512
    assert not hasattr(kept[0], "__dict__")


def test_wrappers_that_a_wire_gives_read_as_plain_numbers_where_those_tell_the_type(bench: Any, envelope: Any) -> None:
    envelope.properties = {"i": Int(5), "d": Double(1.5), "large": 2**40, "l": Long(5), "f": Float(1.5)}
    incoming = bench.deliver(envelope)
    objects = {name: incoming.get_object_property(name) for name in envelope.properties}
    assert objects == envelope.properties
    assert [type(value) for value in objects.values()] == [int, float, Long, Long, Float]
    assert (incoming.get_int_property("i"), incoming.get_double_property("d")) == (5, 1.5)
    assert type(incoming.get_int_property("i")) is int
