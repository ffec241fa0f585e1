"""Messages that somebody else implements: taken over by their getters, filled in by their setters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsapi._core.destination import QueueImpl
from jmsapi._core.message import stamp
from jmsapi.api import BytesMessage, Destination, MapMessage, Message, ObjectMessage, Queue, StreamMessage, TextMessage
from jmsapi.errors import JMSException, MessageEOFException, MessageFormatException, UnsupportedOperationException
from jmsapi.spi import Address, DestinationKind, MessageKind
from jmsapi.values import Byte, Char, Long


class TheirQueue(Queue):
    queue_name = "theirs"

    def __str__(self) -> str:
        return "theirs"


class Unknown(Destination):
    pass


class Foreign:
    """The part of a message that all kinds need; it notes which of its header fields are set."""

    properties: dict[str, Any]
    jms_type: str | None = "t"
    jms_correlation_id: str | None = "c"
    jms_correlation_id_as_bytes: bytes | None = None
    jms_reply_to: Destination | None = None

    def __init__(self) -> None:
        object.__setattr__(self, "set", {})
        object.__setattr__(self, "properties", {})

    def __setattr__(self, name: str, value: Any) -> None:
        self.set[name] = value  # type: ignore[attr-defined]
        object.__setattr__(self, name, value)

    @property
    def property_names(self) -> Iterator[str]:
        return iter(self.properties)

    def get_object_property(self, name: str) -> Any:
        return self.properties[name]


def foreign(interface: type[Any], **members: Any) -> Any:
    """An object of a class that implements an interface, with just the members given."""
    cls = type("Theirs", (Foreign, interface), members)
    cls.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    return cls()


def stream(*values: Any) -> Any:
    class Reader:
        position: int | None = None

        def reset(self) -> None:
            object.__setattr__(self, "position", 0)

        def read_object(self) -> Any:
            assert self.position is not None, "read before reset"
            if self.position == len(values):
                raise MessageEOFException("end")
            object.__setattr__(self, "position", self.position + 1)
            return values[self.position - 1]

    return foreign(StreamMessage, **{name: vars(Reader)[name] for name in ("position", "reset", "read_object")})


def bytes_message(data: bytes, step: int, told: int | None = None) -> Any:
    """Gives at most ``step`` bytes a call, and tells a length of its own."""

    class Reader:
        position: int | None = None
        body_length = len(data) if told is None else told

        def reset(self) -> None:
            object.__setattr__(self, "position", 0)

        def read_bytes(self, value: Any, length: int | None = None) -> int:
            assert self.position is not None, "read before reset"
            part = data[self.position :][: min(step, len(value))]
            value[: len(part)] = part
            object.__setattr__(self, "position", self.position + len(part))
            return len(part) or -1

    return foreign(BytesMessage, **{name: vars(Reader)[name] for name in ("position", "body_length", "reset", "read_bytes")})


ENTRIES = {"a": 1, "b": "x", "c": Char("c"), "d": b"d", "e": None}
CASES: list[tuple[MessageKind, Any, Any]] = [
    (MessageKind.MESSAGE, lambda: foreign(Message), None),
    (MessageKind.TEXT, lambda: foreign(TextMessage, text="grüß"), "grüß"),
    (MessageKind.TEXT, lambda: foreign(TextMessage, text=None), None),
    (MessageKind.MAP, lambda: foreign(MapMessage, map_names=iter(ENTRIES), get_object=lambda self, name: ENTRIES[name]), ENTRIES),
    (MessageKind.STREAM, lambda: stream(1, "x", None, b"b", Long(2)), [1, "x", None, b"b", Long(2)]),
    (MessageKind.OBJECT, lambda: foreign(ObjectMessage, object={"a": (1,)}), b'{"a":{"$tuple":[1]}}'),
    (MessageKind.OBJECT, lambda: foreign(ObjectMessage, object=None), None),
    (MessageKind.BYTES, lambda: bytes_message(b"12345", 99), b"12345"),
    (MessageKind.BYTES, lambda: bytes_message(b"12345", 2), b"12345"),
    (MessageKind.BYTES, lambda: bytes_message(b"", 2), b""),
    (MessageKind.BYTES, lambda: bytes_message(b"123", 2, told=9), b"123"),
]


@pytest.mark.parametrize(("kind", "make", "body"), CASES, ids=lambda it: getattr(it, "name", ""))
def test_each_kind_is_taken_over(bench: Any, kind: MessageKind, make: Any, body: Any) -> None:
    message = make()
    message.properties.update({"s": "x", "b": Byte(1), "JMSXGroupID": "g", "JMSXDeliveryCount": 7, "JMS_Theirs_x": 1, "n": None})
    envelope = bench.freeze(message)
    assert envelope.kind is kind
    assert envelope.body == body
    assert envelope.properties == {"s": "x", "b": Byte(1), "JMSXGroupID": "g", "JMS_Theirs_x": 1, "n": None}
    assert type(envelope.properties["b"]) is Byte
    assert (envelope.jms_type, envelope.correlation_id, envelope.reply_to) == ("t", "c", None)


def test_the_send_sets_its_seven_fields_by_the_setters(bench: Any) -> None:
    message = foreign(TextMessage, text="a")
    envelope = bench.freeze(message, message_id="ID:x", timestamp=1, delivery_mode=1, priority=2, expiration=3, delivery_time=4)
    assert message.set == {}
    there = QueueImpl("here")
    stamp(message, envelope, there)
    assert message.set == {
        "jms_destination": there,
        "jms_message_id": "ID:x",
        "jms_timestamp": 1,
        "jms_delivery_mode": 1,
        "jms_priority": 2,
        "jms_expiration": 3,
        "jms_delivery_time": 4,
    }


@pytest.mark.parametrize(
    ("reply_to", "address"),
    [
        (QueueImpl("q"), Address(DestinationKind.QUEUE, "q")),
        (TheirQueue(), Address(DestinationKind.QUEUE, "theirs")),
        (Unknown(), None),
        (None, None),
    ],
    ids=["ours", "theirs", "of no kind", "none"],
)
def test_a_reply_destination_is_kept_if_it_has_a_name(bench: Any, reply_to: Any, address: Address | None) -> None:
    assert bench.freeze(foreign(Message, jms_reply_to=reply_to)).reply_to == address


def test_a_correlation_id_of_bytes_is_kept(bench: Any) -> None:
    message = foreign(Message, jms_correlation_id=None, jms_correlation_id_as_bytes=b"\xff")
    assert bench.freeze(message).correlation_id == b"\xff"


@pytest.mark.parametrize("error", [UnsupportedOperationException, JMSException])
def test_no_notion_of_byte_ids_is_no_failure(bench: Any, error: type[Exception]) -> None:
    def refuse(self: Any) -> bytes:
        raise error("no such thing")

    message = foreign(Message, jms_correlation_id=None, jms_correlation_id_as_bytes=property(refuse))
    assert bench.freeze(message).correlation_id is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: foreign(TextMessage, text=5),
        lambda: foreign(MapMessage, map_names=iter("a"), get_object=lambda self, name: []),
        lambda: stream(object()),
        lambda: foreign(ObjectMessage, object=object()),
    ],
    ids=["text", "map", "stream", "object"],
)
def test_a_body_that_jms_does_not_know_is_a_format_exception(bench: Any, make: Any) -> None:
    with pytest.raises(MessageFormatException):
        bench.freeze(make())


def test_a_property_that_jms_does_not_know_is_a_format_exception(bench: Any) -> None:
    message = foreign(Message)
    message.properties["x"] = []
    with pytest.raises(MessageFormatException):
        bench.freeze(message)
