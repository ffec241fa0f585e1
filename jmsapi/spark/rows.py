"""From JMS messages to columns. What cannot be decoded is said in the row, and costs only what it is part of."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import jmsapi
from jmsapi import (
    BytesMessage,
    Destination,
    MapMessage,
    Message,
    MessageEOFException,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    Topic,
    WireMessage,
)
from jmsapi.errors import JMSError
from jmsapi.spark.variant import encode_variant, java_type

__all__ = [
    "COLUMNS",
    "COUNT",
    "BodyColumns",
    "RowReader",
    "Taken",
    "UndecodedMessage",
    "body_of",
    "columns_of",
    "micros",
    "sound",
    "taken_of",
]

COLUMNS: Final = (
    "message_id",
    "correlation_id",
    "destination",
    "reply_to",
    "type",
    "delivery_mode",
    "priority",
    "timestamp",
    "expiration",
    "delivery_time",
    "redelivered",
    "delivery_count",
    "properties",
    "property_types",
    "body_type",
    "text",
    "bytes",
    "value",
    "value_types",
    "error",
    "received_at",
    "raw",
)
"""The columns of a message, in order."""
_OVERHEAD: Final = 512
COUNT: Final = "JMSXDeliveryCount"
_OF_BODY: Final = ("body_type", "text", "bytes", "value", "value_types")
_OF_WHOLE: Final = frozenset({"error", "raw"})
"""Columns that tell of all parts of a message."""
_Coded = tuple[dict[str, bytes] | None, dict[str, str] | None]
BodyColumns = tuple[str, str | None, bytes | None, dict[str, bytes] | None, dict[str, str] | None]
_NO_PROPERTIES: Final[tuple[dict[str, str], dict[str, str]]] = ({}, {})
_LAST_MS: Final = 2**63 // 1000 - 1


class Taken(NamedTuple):
    """A message as a claim takes it. Of one that came by a wire its bytes, and nothing that has to be decoded or collected."""

    message_id: str | None
    sent_us: int | None
    """When it was sent, in microseconds since 1970."""
    received_us: int
    delivery_count: int
    how: str | None
    """How to read ``data`` elsewhere; None for a message that came by no wire."""
    data: bytes
    message: Message | None
    """One that came by no wire."""
    size: int
    """Bytes, about."""


class UndecodedMessage(NamedTuple):
    """A message that was kept and of which not even the kind can be decoded, in place of the message."""

    known: Mapping[str, Any]
    """What is known without decoding it, by column."""
    data: bytes
    why: str


def taken_of(one: WireMessage, received_us: int) -> Taken:
    """Take a message.

    Args:
        one: As received.
        received_us: When, in microseconds since 1970.
    Threads: that of the message's session.
    """
    name, sent_ms, count, how, data, message = one
    if name is not None and not name.isascii():
        name = sound(name)
    sent_us = sent_ms * 1000 if sent_ms and -_LAST_MS <= sent_ms <= _LAST_MS else None
    if message is not None:
        return Taken(name, sent_us, received_us, count, None, b"", message, _OVERHEAD + _size(message))
    return Taken(name, sent_us, received_us, count, how, data, None, _OVERHEAD + len(data))


def _size(message: Message) -> int:
    """Return about how many bytes a body takes that came by no wire."""
    if isinstance(message, TextMessage):
        return len(message.text or "")
    if isinstance(message, BytesMessage):
        return message.body_length
    if isinstance(message, MapMessage):
        return sum(len(name) + len(str(message.get_object(name))) for name in message.map_names)
    return 0


def columns_of(
    messages: Iterable[Message | UndecodedMessage], received_us: Sequence[int], names: Collection[str]
) -> dict[str, Sequence[Any]]:
    """Read columns of messages; what is not asked for is not decoded.

    Args:
        messages: As received. Each is read when the one before is done with, so that none need be kept.
        received_us: When each was, in microseconds since 1970.
        names: Some of ``COLUMNS``. With ``error`` or ``raw``, which tell of all parts, all are read.
    Returns:
        The columns by name, those asked for among them; times in microseconds since 1970. ``error`` tells what could not be
        decoded.
    Threads: that of the messages' session, or any, one at a time.
    """
    reader = RowReader(names)
    return {"received_at": received_us, **reader.columns(map(reader.read, messages))}


class RowReader:
    """Reads columns of a message as a row.

    Args:
        names: The columns wanted; see ``columns_of``.
    Threads: that of the messages, one at a time.
    """

    def __init__(self, names: Collection[str]) -> None:
        wanted = set(names) if _OF_WHOLE.isdisjoint(names) else set(COLUMNS)
        parts = [part for part in _HEADERS if part[0] in wanted]
        self._parts = parts
        self._headers = _headers if len(parts) == len(_HEADERS) else _reader_of(tuple(read for _, read in parts))
        self.headers: Final = [name for name, _ in parts]
        """The names of those that are header fields, which are the first columns of a row."""
        self.with_properties: Final = "properties" in wanted or "property_types" in wanted
        self.with_body: Final = not wanted.isdisjoint(_OF_BODY)
        self.with_whole: Final = not wanted.isdisjoint(_OF_WHOLE)

    def read(self, message: Message | UndecodedMessage) -> tuple[Any, ...]:
        """Return a row: header fields, properties, body, and what could not be decoded, as far as wanted."""
        if isinstance(message, UndecodedMessage):
            return _unreadable(message, self.headers, self.with_properties, self.with_body, self.with_whole)
        problems: list[str] = []
        try:
            row: tuple[Any, ...] = self._headers(message)
        except Exception:
            # One by one, to lose no more than what is broken.
            row = tuple(_part(name, read, message, problems) for name, read in self._parts)
        if self.with_properties:
            both: tuple[dict[str, str], dict[str, str]] | None = _part("properties", _properties, message, problems)
            row += both or _NO_PROPERTIES
        if self.with_body:
            row += body_of(message, problems)
        if self.with_whole:
            row += ("; ".join(problems), _wire(message, 0)) if problems else (None, None)
        return row

    def columns(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, Sequence[Any]]:
        """Return rows as columns by name."""
        order = [*self.headers]
        order += ("properties", "property_types") if self.with_properties else ()
        order += _OF_BODY if self.with_body else ()
        order += ("error", "raw") if self.with_whole else ()
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(order)
        return dict(zip(order, columns, strict=True))


def _unreadable(one: UndecodedMessage, headers: Sequence[str], properties: bool, body: bool, whole: bool) -> tuple[Any, ...]:
    """Return the row of a message of which nothing can be decoded: all its bytes, and why."""
    row = tuple([one.known.get(name) for name in headers])
    if properties:
        row += _NO_PROPERTIES
    if body:
        row += (None, None, one.data, None, None)
    return (*row, one.why, one.data) if whole else row


def _reader_of(parts: Sequence[Callable[[Any], Any]]) -> Callable[[Message], tuple[Any, ...]]:
    """Return what reads several parts."""
    if len(parts) == 1:
        [read] = parts
        return lambda message: (read(message),)
    return lambda message: tuple([read(message) for read in parts])


def body_of(message: Message, problems: list[str]) -> BodyColumns:
    """Return the body's columns; of a body that cannot be decoded its bytes, and what is wrong among the problems."""
    before = len(problems)
    body = _body(message, problems)
    if len(problems) > before and body[1] is None and body[2] is None and body[3] is None:
        return body[0], None, _wire(message, 1), None, None
    return body


def _wire(message: Message, part: int) -> bytes | None:
    wire = jmsapi.wire_bytes(message)
    return None if wire is None else wire[part]


def _headers(message: Message) -> tuple[Any, ...]:
    """Read what ``_HEADERS`` reads; three times as quick as one by one, and this is most of a row's cost."""
    correlation, reply_to, word = message.jms_correlation_id, message.jms_reply_to, message.jms_type
    timestamp, expiration, due = message.jms_timestamp, message.jms_expiration, message.jms_delivery_time
    return (
        sound(message.jms_message_id),
        sound(_correlation(message) if correlation is None else correlation),
        _place(message.jms_destination),
        None if reply_to is None else _place(reply_to),
        None if word is None else sound(word),
        "persistent" if message.jms_delivery_mode == 2 else "non-persistent",
        message.jms_priority,
        micros(timestamp) if timestamp else None,
        micros(expiration) if expiration else None,
        micros(due) if due else None,
        message.jms_redelivered,
        message.get_int_property(COUNT),
    )


def _part(name: str, read: Callable[[Any], Any], message: Any, problems: list[str]) -> Any:
    """Read one part; note what is wrong.

    Whatever a decoder raises: a message that cannot be read must not stop the queue. The kind of error alone is noted: a text
    may quote what it is about.
    """
    try:
        return read(message)
    except Exception as error:
        problems.append(f"{name}: {type(error).__name__}")
        return None


def micros(milliseconds: int) -> int | None:
    """Return a time in microseconds; None for 0, which means that there is none."""
    if abs(milliseconds) > _LAST_MS:
        raise ValueError("a time after the year 200000")
    return milliseconds * 1000 if milliseconds else None


def sound(text: str | None) -> str | None:
    """Return text that can be written as UTF-8: half a surrogate pair becomes the sign for what is not known."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@functools.lru_cache(maxsize=1024)
def _place(destination: Destination | None) -> str | None:
    if destination is None:
        return None
    return sound(f"{'topic' if isinstance(destination, Topic) else 'queue'}://{destination}")


def _correlation(message: Message) -> str | None:
    text = message.jms_correlation_id
    if text is not None:
        return text
    data = message.jms_correlation_id_as_bytes
    return None if data is None else f"0x{data.hex()}"


def _properties(message: Message) -> tuple[dict[str, str], dict[str, str]]:
    texts: dict[str, str] = {}
    types: dict[str, str] = {}
    for name in message.property_names:
        value = message.get_object_property(name)
        kind = java_type(value)
        text = value if type(value) is str else str(value) if type(value) is int else message.get_string_property(name)
        if text is not None and kind is not None:
            key = sound(name) or ""
            texts[key], types[key] = sound(text) or "", kind
    return texts, types


def _body(message: Message, problems: list[str]) -> BodyColumns:
    if isinstance(message, TextMessage):
        text: str | None = _part("text", _text, message, problems)
        return "text", text, None if text is not None else _raw(message), None, None
    if isinstance(message, BytesMessage):
        return "bytes", None, _part("bytes", _bytes, message, problems), None, None
    if isinstance(message, MapMessage):
        coded: _Coded = _part("value", _entries, message, problems) or (None, None)
        return "map", None, None, coded[0], coded[1]
    if isinstance(message, StreamMessage):
        coded = _part("value", _items, message, problems) or (None, None)
        return "stream", None, None, coded[0], coded[1]
    if isinstance(message, ObjectMessage):
        return "object", None, _part("bytes", _object_bytes, message, problems), None, None
    return "message", None, None, None, None


def _text(message: TextMessage) -> str | None:
    text = message.text
    if text is not None and not text.isascii():
        # Half a surrogate pair is no text that Arrow could hold.
        text.encode()
    return text


def _bytes(message: BytesMessage) -> bytes | None:
    return message.get_body(bytes)


def _raw(message: TextMessage) -> bytes | None:
    """Return the bytes of a text that is no Unicode, as far as they can be had."""
    try:
        text = message.text
    except JMSError:
        return None
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _variant(body: Any, named: dict[str, Any]) -> tuple[dict[str, bytes], dict[str, str]]:
    value, metadata = encode_variant(body)
    types = {name: java_type(one) for name, one in named.items()}
    return {"value": value, "metadata": metadata}, {sound(name) or "": kind for name, kind in types.items() if kind is not None}


def _entries(message: MapMessage) -> _Coded:
    entries = {name: message.get_object(name) for name in message.map_names}
    return _variant(entries, entries)


def _items(message: StreamMessage) -> _Coded:
    found: list[Any] = []
    message.reset()
    while True:
        try:
            found.append(message.read_object())
        except MessageEOFException:
            return _variant(found, {str(number): one for number, one in enumerate(found)})


def _object_bytes(message: ObjectMessage) -> bytes | None:
    """Return the bytes of a foreign object as they came; an object of our own data form as JSON. Nothing is unpickled."""
    try:
        return message.get_body(bytes)
    except JMSError:
        return json.dumps(message.object, ensure_ascii=False).encode()


_HEADERS: Final[tuple[tuple[str, Callable[[Message], Any]], ...]] = (
    ("message_id", lambda message: sound(message.jms_message_id)),
    ("correlation_id", lambda message: sound(_correlation(message))),
    ("destination", lambda message: _place(message.jms_destination)),
    ("reply_to", lambda message: _place(message.jms_reply_to)),
    ("type", lambda message: sound(message.jms_type)),
    ("delivery_mode", lambda message: "persistent" if message.jms_delivery_mode == 2 else "non-persistent"),
    ("priority", lambda message: message.jms_priority),
    ("timestamp", lambda message: micros(message.jms_timestamp)),
    ("expiration", lambda message: micros(message.jms_expiration)),
    ("delivery_time", lambda message: micros(message.jms_delivery_time)),
    ("redelivered", lambda message: message.jms_redelivered),
    ("delivery_count", lambda message: message.get_int_property(COUNT)),
)
"""The first columns, each with how it is read."""
