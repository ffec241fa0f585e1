"""A message as a row of the store, and back.

SQLite keeps text, bytes and numbers unchanged, so header fields and most bodies have columns of their own. Properties, Map and
Stream bodies have JMS's types, which JSON would confuse; they are JSON in which such a value carries a letter for its type.
"""

from __future__ import annotations

import base64
import json
import marshal
import struct
import zlib
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
from jmsapi_inproc.write_batch import Row, SqlValue

__all__ = [
    "COLUMNS",
    "HEAVY",
    "QueueRecord",
    "checksum",
    "checksum_change",
    "envelope_of",
    "record_checksum",
    "record_of",
    "row_of",
    "row_of_record",
    "weight",
]

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
"""A body of this many bytes or characters is kept in memory only while nothing else waits."""

_TAGS: Final[dict[type, str]] = {Byte: "b", Short: "s", Int: "i", Long: "l", Float: "f", Double: "d", Char: "c"}
_MAKE: Final[dict[str, Callable[..., Value]]] = {"b": Byte, "s": Short, "i": Int, "l": Long, "f": Float, "d": Double, "c": Char}
_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
_UNCHANGED: Final = (MessageKind.TEXT, MessageKind.BYTES, MessageKind.OBJECT, MessageKind.MESSAGE)
_MARSHAL_VERSION: Final = 2
"""In this version of the format equal values are always equal bytes, in every version of Python."""
_POSITION: Final = struct.Struct("<qqq")
_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class QueueRecord(NamedTuple):
    """A queue or a durable subscription: a row of the table ``place``."""

    number: int
    topic: bool
    name: str
    client_id: str | None
    subscription: str | None
    shared: bool
    no_local: bool
    selector: str | None
    grouped: bool


def record_checksum(values: Row) -> int:
    """Return the checksum of a row of one of the small tables, without its column ``checksum``."""
    return zlib.crc32(marshal.dumps(tuple(values), _MARSHAL_VERSION))


def checksum(row: Row) -> int:
    """Return the checksum of a message: of the first ``len(COLUMNS)`` values of its row.

    Key, due time and count, which change, are in a part of their own, so that ``checksum_change`` needs nothing else.
    """
    content = row[3 : len(COLUMNS)]
    try:
        packed = marshal.dumps(content, _MARSHAL_VERSION)
    except ValueError:
        # Subclasses of the types of SQLite, which it stores as those types.
        packed = marshal.dumps(tuple(map(_plain, content)), _MARSHAL_VERSION)
    return _position_checksum(row[0], row[1], row[2]) ^ zlib.crc32(packed)


def checksum_change(before: tuple[int, int | None, int], after: tuple[int, int | None, int]) -> int:
    """Return what the checksum of a message is XORed with when its key, due time and count change."""
    return _position_checksum(*before) ^ _position_checksum(*after)


def _position_checksum(key: SqlValue, due: SqlValue, count: SqlValue) -> int:
    try:
        return zlib.crc32(_POSITION.pack(key, -1 if due is None else due, count))
    except struct.error:
        # A damaged row may have other values there.
        return 0


def _plain(value: SqlValue) -> SqlValue:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value) if isinstance(value, str) else value


def row_of_record(record: QueueRecord) -> Row:
    """Return the row of a queue or subscription, without its checksum."""
    return (
        record.number,
        int(record.topic),
        record.name,
        record.client_id,
        record.subscription,
        int(record.shared),
        int(record.no_local),
        record.selector,
        int(record.grouped),
    )


def record_of(row: Row) -> QueueRecord:
    """Return the record of a row, whose columns are in the table's order except that the number is last."""
    topic, name, client_id, subscription, shared, no_local, selector, grouped, number = row
    words = cast("tuple[str, str | None, str | None, str | None]", (name, client_id, subscription, selector))
    return QueueRecord(cast("int", number), bool(topic), *words[:3], bool(shared), bool(no_local), words[3], bool(grouped))


def row_of(envelope: Envelope, key: int, due: int | None, count: int) -> Row:
    """Return the row of a message: its values in the order of ``COLUMNS``, and its checksum.

    Args:
        envelope: The message.
        key: Its key in the store.
        due: When it has to be added to its queue, in milliseconds since 1970; None if it is there.
        count: How many deliveries of it have failed.
    """
    properties, reply_to, kind = envelope.properties, envelope.reply_to, envelope.kind
    body = envelope.body
    if kind not in _UNCHANGED:
        body = _json(cast("Mapping[str, BodyValue] | Sequence[BodyValue]", body))
    destination = envelope.destination
    row = (
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
    return (*row, checksum(row))


def envelope_of(row: Row) -> PlainEnvelope:
    """Return the message of a row.

    Raises:
        ProviderError: FORMAT when the row is not as ``row_of`` made it.
    """
    if row[len(COLUMNS)] != checksum(row):
        raise ProviderError(ErrorKind.FORMAT, f"message {row[0]!r} has been changed: its checksum is wrong")
    try:
        return _envelope_of(row)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ProviderError(ErrorKind.FORMAT, f"the row {row[0]!r} of the store holds no message: {error}") from error


def _envelope_of(row: Row) -> PlainEnvelope:
    kind = MessageKind(cast("int", row[5]))
    body = cast("Body", row[17])
    if kind not in _UNCHANGED:
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
