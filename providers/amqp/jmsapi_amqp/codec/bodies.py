"""What the values of a received message are in JMS: properties, entries, bodies by kind.

A property or an entry of a type that JMS does not have reads as text: symbols, characters, UUIDs and decimals as Java writes
them, binary properties as hexadecimal digits, lists and maps as JSON. A body that is a single value of another type than text or
binary is that value in an ObjectMessage, in the data form of ``jmsapi.register_class``.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from jmsapi.spi import Body, BodyValue, MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short, Value
from jmsapi_amqp.codec.types import AmqpValue, Described, FloatingDecimal, MapKey, Symbol, Timestamp, UInt, ULong, bad_format
from jmsapi_brokers.charsets import charset_named

__all__ = [
    "OBJECT_DATA",
    "body_value",
    "decoded_text",
    "empty_body",
    "entry_value",
    "fits",
    "is_text",
    "kind_of_value",
    "named",
    "property_value",
]

TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/javascript", "application/ecmascript"})
LONG_MAX: Final = 2**63 - 1
OBJECT_DATA: Final = "application/vnd.jmsapi.object+json"
"""The content type of the data form of objects."""
_TEXT: Final = frozenset({str})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_text(content_type: AmqpValue) -> bool:
    """Whether a content type means text."""
    if not isinstance(content_type, str):
        return False
    plain = content_type.split(";")[0].strip().lower()
    return plain.startswith("text/") or plain in TEXT_TYPES or plain.endswith(("+json", "+xml"))


def decoded_text(data: bytes, content_type: AmqpValue) -> str | None:
    """Return the text that bytes are in the character set that the content type names, UTF-8 when it names none.

    Returns:
        None when they are not, or when the set is not known.
    """
    charset: str | None = "utf-8"
    if isinstance(content_type, str):
        for parameter in content_type.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                charset = charset_named(value)
    try:
        return None if charset is None else data.decode(charset)
    except (UnicodeError, LookupError, ValueError):
        return None


def empty_body(kind: MessageKind) -> Body:
    """Return the body of a message that has none."""
    if kind is MessageKind.BYTES:
        return b""
    if kind is MessageKind.MAP:
        return {}
    return [] if kind is MessageKind.STREAM else None


def property_value(value: AmqpValue) -> Value:
    """Return a property; what has no JMS type as text."""
    if isinstance(value, UInt | ULong):
        return Long(value) if value <= LONG_MAX else str(int(value))
    if isinstance(value, Timestamp):
        return Long(value)
    if isinstance(value, Symbol | Char | UUID | FloatingDecimal):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex().upper()
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: AmqpValue) -> object:
    """Return a value as JSON can have it."""
    if isinstance(value, Described):
        return _plain(value.value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in named(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Timestamp):
        return int(value)
    if value is None or isinstance(value, bool | int | float) or type(value) is str:
        return value
    return property_value(value)


def named(values: Mapping[AmqpValue, AmqpValue]) -> Iterable[tuple[str, AmqpValue]]:
    """Return the entries of a map by names, which differ as the keys do.

    A key that is no text is named by its value as text. If another key is named so, its type stands behind it: ``1 (Long)``.
    """
    if _TEXT.issuperset(map(type, values)):
        return cast("Mapping[str, AmqpValue]", values).items()
    names: dict[AmqpValue, str] = {name: name for name in values if type(name) is str}
    taken = set(names.values())
    for key in values:
        if key in names:
            continue
        value = key.value if isinstance(key, MapKey) else key
        name = _key(value)
        while name in taken:
            name = f"{name} ({type(value).__name__})"
        taken.add(name)
        names[key] = name
    return [(names[key], value) for key, value in values.items()]


def _key(name: AmqpValue) -> str:
    if isinstance(name, str):
        return str(name)
    shown = property_value(name)
    return shown if isinstance(shown, str) else str(_plain(name))


def entry_value(value: AmqpValue) -> BodyValue:
    """Return an entry of a Map or Stream body."""
    if isinstance(value, FloatingDecimal):
        return str(value)
    if value is None or isinstance(value, bytes | Char | Byte | Short | Float):
        return value
    return property_value(value)


def kind_of_value(value: AmqpValue) -> MessageKind:
    """Return which message has a body of one value."""
    if value is None or isinstance(value, str):
        return MessageKind.TEXT
    if isinstance(value, bytes) and not isinstance(value, FloatingDecimal):
        return MessageKind.BYTES
    if isinstance(value, dict):
        return MessageKind.MAP
    return MessageKind.STREAM if isinstance(value, list) else MessageKind.OBJECT


def fits(kind: MessageKind, code: int) -> bool:
    """Whether a body whose value begins with this constructor can be one of the kind that the message names."""
    return kind is MessageKind.MESSAGE or code == 0x40 or code in _CODES[kind]


_CODES: Final = {
    MessageKind.TEXT: frozenset({0xA1, 0xB1, 0xA3, 0xB3, 0x73}),
    MessageKind.BYTES: frozenset({0xA0, 0xB0}),
    MessageKind.OBJECT: frozenset(range(256)) - {0xA1, 0xB1, 0xA3, 0xB3, 0x73, 0x45, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0},
    MessageKind.MAP: frozenset({0xC1, 0xD1}),
    MessageKind.STREAM: frozenset({0x45, 0xC0, 0xD0, 0xE0, 0xF0}),
}
"""Constructors of the values that a body of each kind can be."""


def _data_form(value: AmqpValue) -> object:
    """Return a value in the data form of an ObjectMessage."""
    if isinstance(value, MapKey):
        return _data_form(value.value)
    if isinstance(value, Described):
        return _data_form(value.value)
    if isinstance(value, FloatingDecimal):
        return {"$decimal": str(value)}
    if isinstance(value, UUID):
        return {"$uuid": str(value)}
    if isinstance(value, Timestamp):
        try:
            return {"$datetime": (_EPOCH + timedelta(milliseconds=int(value))).isoformat()}
        except OverflowError:
            return int(value)
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(float(value))}
    if isinstance(value, int) and value > LONG_MAX:
        return {"$int": hex(value)}
    if isinstance(value, dict):
        return {"$dict": [[_data_form(name), _data_form(item)] for name, item in value.items()]}
    if isinstance(value, list):
        return [_data_form(item) for item in value]
    return str(value) if isinstance(value, str) else value


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
        return {name: entry_value(item) for name, item in named(value)}
    if kind is MessageKind.STREAM and isinstance(value, list):
        return [entry_value(item) for item in value]
    if kind is MessageKind.OBJECT:
        if isinstance(value, bytes) and not isinstance(value, FloatingDecimal):
            return value or None  # as an empty data section is: no object
        return json.dumps(_data_form(value), separators=(",", ":")).encode()
    raise bad_format(f"a {kind.name} message came with an AMQP value of type {type(value).__name__}")
