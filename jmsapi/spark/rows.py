"""From a JMS message to the values of a row. What cannot be decoded is said in the row, and costs only what it is part of."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

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
)
from jmsapi.errors import JMSError
from jmsapi.spark.variant import encode_variant, java_type

__all__ = ["COLUMNS", "Row", "row_of"]

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
)
"""The columns that are staged, in order."""
_OVERHEAD: Final = 512
_COUNT: Final = "JMSXDeliveryCount"
_Coded = tuple[dict[str, bytes] | None, dict[str, str] | None]
_Body = tuple[str, str | None, bytes | None, dict[str, bytes] | None, dict[str, str] | None]
_LAST_MS: Final = 2**63 // 1000 - 1


class Row(NamedTuple):
    """A message as it is staged."""

    message_id: str | None
    size: int
    """Bytes, about."""
    values: tuple[Any, ...]
    """By ``COLUMNS``; times in microseconds since 1970."""


def row_of(message: Message) -> Row:
    """Read everything of a message.

    Args:
        message: As received.
    Returns:
        Its row; ``error`` tells what could not be decoded.
    Threads: that of the message's session.
    """
    problems: list[str] = []
    try:
        headers: tuple[Any, ...] = _headers(message)
        properties, types = _properties(message)
    except Exception:
        # One by one, to lose no more than what is broken.
        headers = tuple(_part(name, read, message, problems) for name, read in _HEADERS)
        none: tuple[dict[str, str], dict[str, str]] = ({}, {})
        properties, types = _part("properties", _properties, message, problems) or none
    kind, text, data, value, value_types = _body(message, problems)
    values = (
        *headers,
        properties,
        types,
        kind,
        text,
        data,
        value,
        value_types,
        "; ".join(problems) or None,
        time.time_ns() // 1000,
    )
    size = _OVERHEAD + len(text or "") + len(data or b"") + (len(value["value"]) + len(value["metadata"]) if value else 0)
    return Row(headers[0], size, values)


def _headers(message: Message) -> tuple[Any, ...]:
    """Read what ``_HEADERS`` reads; three times as quick as one by one, and this is most of a row's cost."""
    correlation, reply_to, word = message.jms_correlation_id, message.jms_reply_to, message.jms_type
    timestamp, expiration, due = message.jms_timestamp, message.jms_expiration, message.jms_delivery_time
    return (
        _sound(message.jms_message_id),
        _sound(_correlation(message) if correlation is None else correlation),
        _sound(_place(message.jms_destination)),
        None if reply_to is None else _sound(_place(reply_to)),
        None if word is None else _sound(word),
        "persistent" if message.jms_delivery_mode == 2 else "non-persistent",
        message.jms_priority,
        _micros(timestamp) if timestamp else None,
        _micros(expiration) if expiration else None,
        _micros(due) if due else None,
        message.jms_redelivered,
        message.get_int_property(_COUNT),
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


def _micros(milliseconds: int) -> int | None:
    if abs(milliseconds) > _LAST_MS:
        raise ValueError("a time after the year 200000")
    return milliseconds * 1000 if milliseconds else None


def _sound(text: str | None) -> str | None:
    """Return text that can be written as UTF-8: half a surrogate pair becomes the sign for what is not known."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _place(destination: Destination | None) -> str | None:
    if destination is None:
        return None
    return f"{'topic' if isinstance(destination, Topic) else 'queue'}://{destination}"


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
        text = message.get_string_property(name)
        kind = java_type(message.get_object_property(name))
        if text is not None and kind is not None:
            key = _sound(name) or ""
            texts[key], types[key] = _sound(text) or "", kind
    return texts, types


def _body(message: Message, problems: list[str]) -> _Body:
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
    return {"value": value, "metadata": metadata}, {_sound(name) or "": kind for name, kind in types.items() if kind is not None}


def _entries(message: MapMessage) -> _Coded:
    entries = {name: message.get_object(name) for name in message.map_names}
    return _variant(entries, entries)


def _items(message: StreamMessage) -> _Coded:
    found: list[Any] = []
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
    ("message_id", lambda message: _sound(message.jms_message_id)),
    ("correlation_id", lambda message: _sound(_correlation(message))),
    ("destination", lambda message: _sound(_place(message.jms_destination))),
    ("reply_to", lambda message: _sound(_place(message.jms_reply_to))),
    ("type", lambda message: _sound(message.jms_type)),
    ("delivery_mode", lambda message: "persistent" if message.jms_delivery_mode == 2 else "non-persistent"),
    ("priority", lambda message: message.jms_priority),
    ("timestamp", lambda message: _micros(message.jms_timestamp)),
    ("expiration", lambda message: _micros(message.jms_expiration)),
    ("delivery_time", lambda message: _micros(message.jms_delivery_time)),
    ("redelivered", lambda message: message.jms_redelivered),
    ("delivery_count", lambda message: message.get_int_property(_COUNT)),
)
"""The first columns, each with how it is read."""
