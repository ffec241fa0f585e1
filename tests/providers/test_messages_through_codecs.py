"""Any message the API accepts comes back equal, seen through the API's own getters, whatever wire its envelope takes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jmsapi._core.destination import QueueImpl, TopicImpl
from jmsapi._core.message import MessageImpl, create, received, snapshot
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Address, Delivery, DestinationKind, MessageKind, PlainEnvelope, Tag
from jmsapi.values import Byte, Char, Float, Long, Short
from jmsapi_amqp.codec import ReceivedEnvelope, encode_message
from jmsapi_stomp.artemis import ArtemisStomp
from jmsapi_stomp.behaviour import StompBehaviour
from jmsapi_stomp.classic import ClassicStomp
from jmsapi_stomp.codec import StompEnvelope, encode
from jmsapi_stomp.frames import FrameCutter
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitStomp

CODEC = ObjectCodec()
HERE = Address(DestinationKind.QUEUE, "here")
NOW = 1_700_000_000_000
Wire = Callable[[PlainEnvelope], Any]


class Plain:
    """An AMQP broker that takes names as they are."""

    null_body = b""
    sends_user_id = True

    def to_wire(self, address: Address) -> str:
        return address.name

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        return Address(near.kind if kind is None else DestinationKind(kind), text)


def in_process(envelope: PlainEnvelope) -> Any:
    return envelope


def amqp(envelope: PlainEnvelope) -> Any:
    return ReceivedEnvelope(encode_message(envelope, Plain(), NOW), Plain(), HERE, NOW)


def stomp(kind: type[StompBehaviour]) -> Wire:
    dialect = kind(StompOptions(scheme="stomp", host="h"), "1")

    def through(envelope: PlainEnvelope) -> Any:
        data = encode(envelope, dialect, NOW, dialect.start_of_send(envelope.destination))
        (frame,) = FrameCutter(1 << 26).feed(data)
        return StompEnvelope(frame, dialect, HERE)

    return through


WIRES: dict[str, Wire] = {
    "in-process": in_process,
    "amqp": amqp,
    "stomp-artemis": stomp(ArtemisStomp),
    "stomp-classic": stomp(ClassicStomp),
    "stomp-rabbitmq": stomp(RabbitStomp),
}
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "byte": st.integers(-(2**7), 2**7 - 1),
    "short": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": st.none() | TEXT,
}
ENTRY = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    NUMBERS["byte"].map(Byte),
    NUMBERS["short"].map(Short),
    NUMBERS["long"].map(Long),
    NUMBERS["float"].map(Float),
    st.floats(),
    TEXT,
    st.characters(max_codepoint=0xFFFF, categories=["L", "N", "P", "S", "Zs"]).map(Char),
    st.binary(max_size=30),
    st.none(),
)
NAME = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,12}", fullmatch=True).filter(
    lambda name: (
        not name.upper().startswith("JMS")
        and name.upper() not in {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
    )
)
HEADER_TEXT = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
BODIES: dict[MessageKind, st.SearchStrategy[Any]] = {
    MessageKind.MESSAGE: st.none(),
    MessageKind.TEXT: st.none() | TEXT,
    MessageKind.BYTES: st.binary(max_size=200),
    MessageKind.MAP: st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=10), ENTRY, max_size=6),
    MessageKind.STREAM: st.lists(ENTRY, max_size=6),
    MessageKind.OBJECT: st.none() | st.recursive(TEXT | st.integers() | st.floats() | st.binary(), st.lists, max_leaves=6),
}


@st.composite
def messages(draw: st.DrawFn, kind: MessageKind, *, grouped: bool) -> Any:
    """Fill a message through its setters."""
    message: Any = create(kind, CODEC)
    for name, what in draw(st.dictionaries(NAME, st.sampled_from(sorted(NUMBERS)), max_size=6)).items():
        getattr(message, f"set_{what}_property")(name, draw(NUMBERS[what]))
    if grouped and draw(st.booleans()):
        message.set_string_property("JMSXGroupID", draw(st.text("abcü", min_size=1, max_size=5)))
        message.set_int_property("JMSXGroupSeq", draw(st.integers(1, 2**31 - 1)))
    message.jms_type = draw(HEADER_TEXT)
    if draw(st.booleans()):
        message.jms_correlation_id = draw(HEADER_TEXT)
    else:
        message.jms_correlation_id_as_bytes = draw(st.binary(max_size=20))
    message.jms_reply_to = draw(st.sampled_from([None, QueueImpl("answers"), TopicImpl("answers")]))
    fill(message, kind, draw(BODIES[kind]))
    return message


def fill(message: Any, kind: MessageKind, body: Any) -> None:
    if kind is MessageKind.TEXT:
        message.text = body
    elif kind is MessageKind.BYTES:
        message.write_bytes(body)
    elif kind is MessageKind.MAP:
        for name, value in body.items():
            message.set_object(name, value)
    elif kind is MessageKind.STREAM:
        for value in body:
            message.write_object(value)
    elif kind is MessageKind.OBJECT:
        message.object = body


def seen(message: Any, kind: MessageKind) -> str:
    """Everything the application can read, types included."""
    properties = {name: message.get_object_property(name) for name in message.property_names if name != "JMSXDeliveryCount"}
    if kind is MessageKind.STREAM:
        message.reset()
        body: Any = list(values_of(message))
    else:
        body = message.get_body(object)
    header = [
        *(message.jms_type, message.jms_correlation_id, message.jms_correlation_id_as_bytes, message.jms_reply_to),
        *(message.jms_priority, message.jms_delivery_mode, message.jms_timestamp, message.jms_message_id),
        *(message.jms_expiration, message.jms_delivery_time),
    ]
    return repr((type(message).__name__, sorted(properties.items()), body, header))


def values_of(message: Any) -> Any:
    while True:
        try:
            yield message.read_object()
        except EOFError:
            return


def sent(message: MessageImpl) -> PlainEnvelope:
    return snapshot(
        message,
        destination=HERE,
        message_id="ID:1",
        timestamp=NOW,
        delivery_mode=2,
        priority=7,
        expiration=NOW + 60_000,
        delivery_time=NOW,
        origin="me",
    )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", list(MessageKind), ids=lambda kind: kind.name)
def test_a_message_comes_back_as_it_was(kind: MessageKind, wire: str) -> None:
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    # Artemis itself turns the group header we write into the one we read; test_messages_on_brokers.py shows that.
    @given(messages(kind, grouped=wire != "stomp-artemis"))
    def check(message: Any) -> None:
        envelope = sent(message)
        before = received(Delivery(Tag(), envelope, 1), 0, None, CODEC, None)
        after = received(Delivery(Tag(), WIRES[wire](envelope), 1), 0, None, CODEC, None)
        assert seen(after, kind) == seen(before, kind)

    check()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", list(MessageKind), ids=lambda kind: kind.name)
def test_a_received_message_can_be_pickled_whether_or_not_it_has_been_read(kind: MessageKind, wire: str) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(kind, grouped=False), st.integers(0, pickle.HIGHEST_PROTOCOL))
    def check(message: Any, protocol: int) -> None:
        received_one = received(Delivery(Tag(), WIRES[wire](sent(message)), 2), 0, None, CODEC, None)
        unread = pickle.loads(pickle.dumps(received_one, protocol))
        shown = seen(received_one, kind)
        read = pickle.loads(pickle.dumps(received_one, protocol))
        assert seen(unread, kind) == seen(read, kind) == shown
        assert (read.jms_destination, read.jms_redelivered) == (received_one.jms_destination, True)

    check()
