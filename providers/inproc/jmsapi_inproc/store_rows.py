"""A message as a row of the store, and back.

SQLite keeps text, bytes and numbers as they are, so header fields and most bodies have columns of their own. What has types of
its own - properties, Map and Stream bodies - is JSON in which each value that JSON would confuse carries a letter for its type.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from jmsapi.spi import (
    EMPTY_PROPERTIES,
    Address,
    Body,
    BodyValue,
    DestinationKind,
    Envelope,
    ErrorKind,
    MessageKind,
    PlainEnvelope,
    ProviderError,
)
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short, Value

__all__ = ["COLUMNS", "HEAVY", "Place", "Row", "SqlValue", "envelope_of", "place_of_row", "row_of", "weight"]

SqlValue = int | float | str | bytes | None
Row = tuple[SqlValue, ...]

COLUMNS: Final = (
    "key",
    "due",
    "count",
    "expiration",
    "priority",
    "kind",
    "destination",
    "message_id",
    "timestamp",
    "correlation_id",
    "reply_to",
    "delivery_mode",
    "jms_type",
    "delivery_time",
    "content_type",
    "origin",
    "properties",
    "body",
)
HEAVY: Final = 1 << 16
"""A body of so many bytes or characters is kept in memory only while nothing else waits."""

_TAGS: Final[dict[type, str]] = {Byte: "b", Short: "s", Int: "i", Long: "l", Float: "f", Double: "d", Char: "c"}
_MAKE: Final[dict[str, Callable[..., Value]]] = {"b": Byte, "s": Short, "i": Int, "l": Long, "f": Float, "d": Double, "c": Char}
_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
_AS_IT_IS: Final = (MessageKind.TEXT, MessageKind.BYTES, MessageKind.OBJECT, MessageKind.MESSAGE)
_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Place(NamedTuple):
    """A queue or a durable subscription as the file has it."""

    number: int
    topic: bool
    name: str
    client_id: str | None
    subscription: str | None
    shared: bool
    no_local: bool
    selector: str | None
    grouped: bool


def place_of_row(row: Row) -> Place:
    """Return the place of a row: its columns in their order, the number last."""
    topic, name, client_id, subscription, shared, no_local, selector, grouped, number = row
    words = cast("tuple[str, str | None, str | None, str | None]", (name, client_id, subscription, selector))
    return Place(cast("int", number), bool(topic), *words[:3], bool(shared), bool(no_local), words[3], bool(grouped))


def row_of(envelope: Envelope, key: int, due: int | None, count: int) -> Row:
    """Return the row of a message, in the order of ``COLUMNS``.

    Args:
        envelope: The message.
        key: Its place in the store.
        due: When it must be filed, in milliseconds since 1970; None if it is.
        count: How often it was handed out and failed.
    """
    properties, reply_to, kind = envelope.properties, envelope.reply_to, envelope.kind
    body = envelope.body
    if kind not in _AS_IT_IS:
        body = _json(cast("Mapping[str, BodyValue] | Sequence[BodyValue]", body))
    destination = envelope.destination
    return (
        key,
        due,
        count,
        envelope.expiration,
        envelope.priority,
        int(kind),
        f"{int(destination.kind)}{destination.name}",
        envelope.message_id,
        envelope.timestamp,
        envelope.correlation_id,
        None if reply_to is None else f"{int(reply_to.kind)}{reply_to.name}",
        envelope.delivery_mode,
        envelope.jms_type,
        envelope.delivery_time,
        envelope.content_type,
        envelope.origin,
        _json(properties) if properties else None,
        cast("str | bytes | None", body),
    )


def envelope_of(row: Row) -> PlainEnvelope:
    """Return the message of a row.

    Raises:
        ProviderError: FORMAT when the row cannot be one that ``row_of`` made.
    """
    try:
        return _envelope_of(row)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ProviderError(ErrorKind.FORMAT, f"the row {row[0]!r} of the store holds no message: {error}") from error


def _envelope_of(row: Row) -> PlainEnvelope:
    kind = MessageKind(cast("int", row[5]))
    body = cast("Body", row[17])
    if kind not in _AS_IT_IS:
        body = cast("Body", _read(cast("str", body)))
    return PlainEnvelope(
        kind,
        _address(cast("str", row[6])),
        body,
        EMPTY_PROPERTIES if row[16] is None else cast("Mapping[str, Value]", _read(cast("str", row[16]))),
        cast("str | None", row[7]),
        cast("int", row[8]),
        cast("str | bytes | None", row[9]),
        None if row[10] is None else _address(cast("str", row[10])),
        cast("int", row[11]),
        cast("str | None", row[12]),
        cast("int", row[3]),
        cast("int", row[13]),
        cast("int", row[4]),
        cast("str | None", row[14]),
        cast("str | None", row[15]),
    )


def weight(body: object) -> int:
    """Return about how much memory a body takes."""
    return len(body) if isinstance(body, str | bytes) else 0


def _address(text: str) -> Address:
    return Address(DestinationKind(int(text[0])), text[1:])


def _json(values: Mapping[str, BodyValue] | Sequence[BodyValue]) -> str:
    if isinstance(values, Mapping):
        if _PLAIN.issuperset(map(type, values.values())):
            return _encode(values if type(values) is dict else dict(values))
        return _encode({name: _tagged(value) for name, value in values.items()})
    return _encode([_tagged(value) for value in values])


def _tagged(value: BodyValue) -> object:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, bytes):
        return ["x", base64.b64encode(value).decode("ascii")]
    letter = _TAGS[type(value)]
    plain = float(value) if isinstance(value, float) else str(value) if isinstance(value, str) else int(value or 0)
    return [letter, plain]


def _read(text: str) -> Mapping[str, BodyValue] | Sequence[BodyValue]:
    found = json.loads(text)
    if isinstance(found, dict):
        return {name: _untagged(value) for name, value in cast("dict[str, object]", found).items()}
    return [_untagged(value) for value in cast("list[object]", found)]


def _untagged(value: object) -> BodyValue:
    if not isinstance(value, list):
        return cast("BodyValue", value)
    letter, plain = cast("list[object]", value)
    if letter == "x":
        return base64.b64decode(cast("str", plain))
    return _MAKE[cast("str", letter)](plain)
