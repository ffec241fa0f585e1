"""What the values of a received message are in JMS: properties, entries, bodies by kind."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from jmsapi.spi import Body, BodyValue, MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short, Value
from jmsapi_amqp.codec.types import AmqpValue, Symbol, Timestamp, UInt, ULong, bad_format

__all__ = ["body_value", "empty_body", "entry_value", "is_text", "property_value"]

TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/javascript", "application/ecmascript"})
LONG_MAX: Final = 2**63 - 1


def is_text(content_type: AmqpValue) -> bool:
    """Whether a content type means text."""
    if not isinstance(content_type, str):
        return False
    plain = content_type.split(";")[0].strip().lower()
    return plain.startswith("text/") or plain in TEXT_TYPES or plain.endswith(("+json", "+xml"))


def empty_body(kind: MessageKind) -> Body:
    """Return the body of a message that has none."""
    if kind is MessageKind.BYTES:
        return b""
    if kind is MessageKind.MAP:
        return {}
    return [] if kind is MessageKind.STREAM else None


def property_value(value: AmqpValue) -> Value:
    """Return a property of a JMS type, or None when it has none."""
    if isinstance(value, UInt | ULong):
        return Long(value) if value <= LONG_MAX else str(int(value))
    if isinstance(value, Timestamp):
        return Long(value)
    if isinstance(value, Symbol | Char | UUID):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    return None


def entry_value(value: AmqpValue) -> BodyValue:
    """Return an entry of a Map or Stream body."""
    if value is None or isinstance(value, bytes | Char | Byte | Short | Float):
        return value
    kept = property_value(value)
    if kept is None:
        raise bad_format(f"an entry of type {type(value).__name__} has no JMS type")
    return kept


def body_value(kind: MessageKind, value: AmqpValue) -> Body:
    """Return the body that an AMQP value is, read as ``kind``."""
    if kind is MessageKind.MESSAGE:
        return None
    if value is None:
        return empty_body(kind)
    if kind is MessageKind.TEXT and isinstance(value, str):
        return str(value)
    if kind is MessageKind.BYTES and isinstance(value, bytes):
        return value
    if kind is MessageKind.MAP and isinstance(value, dict):
        return {str(name): entry_value(item) for name, item in value.items()}
    if kind is MessageKind.STREAM and isinstance(value, list):
        return [entry_value(item) for item in value]
    if kind is MessageKind.OBJECT and isinstance(value, bytes):
        return value
    raise bad_format(f"a {kind.name} message came with an AMQP value of type {type(value).__name__}")
