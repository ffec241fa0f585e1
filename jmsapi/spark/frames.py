"""From messages as their wire brought them to columns, without message objects: reading staged rows takes the time of decoding.

What a message object would show is read from the provider's envelope. Whatever is out of the ordinary is read once more by way
of a message, as ``rows`` reads it, so a row says the same whichever way it was read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.rows import COUNT, BodyColumns, RowReader, UndecodedMessage, body_of, micros, sound
from jmsapi.spark.variant import java_type
from jmsapi.spi import Address, DestinationKind, Envelope, MessageKind
from jmsapi.values import Byte, Long, Short

__all__ = ["KeptFrames", "columns_of_frames"]

_NUMBERS: Final = frozenset({Long, Byte, Short})
"""Types of properties whose text is that of the number."""
_SCHEMES: Final = tuple("topic://" if kind.is_topic else "queue://" for kind in sorted(DestinationKind))
"""How destinations begin, by their kind."""
_Properties = tuple[Mapping[str, str], Mapping[str, str]]


class KeptFrames(NamedTuple):
    """Messages as they are staged, by columns."""

    how: Sequence[str]
    """See ``jmsapi.wire_form``."""
    data: Sequence[bytes]
    delivery_count: Sequence[int]
    received_us: Sequence[int]
    """In microseconds since 1970, as all times here."""
    known: Callable[[int], Mapping[str, Any]]
    """Gives by number what is known of a message without decoding it, by column."""

    def message(self, number: int) -> jmsapi.Message | UndecodedMessage:
        """Return one as an object."""
        data, count, wire = self.data[number], self.delivery_count[number], _reader(self.how[number])
        try:
            message: jmsapi.Message = wire(data, count, self.received_us[number] // 1000)
        except JMSException as error:
            known = {**self.known(number), "delivery_count": count}
            return UndecodedMessage(known, data, f"message: {type(error).__name__}")
        return message


def columns_of_frames(frames: KeptFrames, names: Collection[str]) -> dict[str, Sequence[Any]]:
    """Read columns of staged messages; see ``columns_of``, but for ``received_at``."""
    reader = RowReader(names)
    return reader.columns(_rows(frames, reader))


def _rows(frames: KeptFrames, reader: RowReader) -> Iterator[tuple[Any, ...]]:
    headers = _headers_of(reader.headers)
    with_properties, with_body = reader.with_properties, reader.with_body
    tail = (None, None) if reader.with_whole else ()
    last, wire = "", None
    for number, (how, data, count, received_us) in enumerate(zip(*frames[:4], strict=True)):
        try:
            if wire is None or how is not last:
                last, wire = how, _reader(how)
            envelope = wire.envelope(data, received_us // 1000)
            row = headers(envelope, count) if headers is not None else ()
            if with_properties:
                row += _properties(envelope, count, wire)
            if with_body:
                row += _body(envelope, count, wire)
        except Exception:
            # What cannot be decoded: by way of a message the row says which part it is, and has the others.
            yield reader.read(frames.message(number))
        else:
            yield row + tail


@functools.lru_cache(maxsize=64)
def _reader(how: str) -> Any:
    return jmsapi.wire_reader(how)


def _headers_of(names: Sequence[str]) -> Callable[[Envelope, int], tuple[Any, ...]] | None:
    """Return what reads header fields; None when there are none to read."""
    if not names:
        return None
    if len(names) == len(_HEADERS):
        return _all_headers
    reads = tuple(_HEADERS[name] for name in names)
    return lambda envelope, count: tuple([read(envelope, count) for read in reads])


def _all_headers(envelope: Envelope, count: int) -> tuple[Any, ...]:
    """Read what ``_HEADERS`` reads; twice as quick as one by one."""
    name, correlation, word, reply_to = envelope.message_id, envelope.correlation_id, envelope.jms_type, envelope.reply_to
    timestamp, expiration, due = envelope.timestamp, envelope.expiration, envelope.delivery_time
    sent = micros(timestamp)
    return (
        sound(name),
        None if correlation is None else _correlation(correlation),
        _place(envelope.destination),
        None if reply_to is None else _place(reply_to),
        None if word is None else sound(word),
        "persistent" if envelope.delivery_mode == 2 else "non-persistent",
        envelope.priority,
        sent,
        micros(expiration) if expiration else None,
        micros(due) if due else sent,
        count > 1,
        count,
    )


def _place(address: Address) -> str | None:
    kind, name = address
    if not name:
        return None
    if not name.isascii():
        name.encode()  # else it names nothing
    return _SCHEMES[kind] + name


def _correlation(value: str | bytes) -> str | None:
    if isinstance(value, bytes):
        raise TypeError("a correlation id of bytes has a text of its own")
    return sound(value)


@functools.lru_cache(maxsize=64)
def _only_count(count: int) -> _Properties:
    return {COUNT: str(count)}, {COUNT: "int"}


def _properties(envelope: Envelope, count: int, wire: Any) -> _Properties:
    found = envelope.properties
    if not found:
        return _only_count(count)
    texts: dict[str, str] = {}
    types: dict[str, str] = {}
    message: Any = None
    value: Any
    for name, value in found.items():
        if not name.isascii() or name == COUNT:
            raise ValueError("a name that is not as it stands")
        kind: type[object] = type(cast("object", value))
        if kind is str:
            texts[name], types[name] = (value if value.isascii() else sound(value) or ""), "string"
        elif kind is int or kind in _NUMBERS:
            texts[name], types[name] = str(int(value)), java_type(value) or ""
        elif kind is bool:
            texts[name], types[name] = ("true" if value else "false"), "boolean"
        elif value is not None:
            # Java writes numbers with a fraction in its own way.
            message = message or wire.message(envelope, count)
            texts[name], types[name] = message.get_string_property(name) or "", java_type(message.get_object_property(name)) or ""
    texts[COUNT], types[COUNT] = str(count), "int"
    return texts, types


def _body(envelope: Envelope, count: int, wire: Any) -> BodyColumns:
    kind = envelope.kind
    if kind is MessageKind.TEXT:
        text: Any = envelope.body
        if text is not None and not text.isascii():
            text.encode()  # half a surrogate pair is no text that Arrow could hold
        return "text", text, None, None, None
    if kind is MessageKind.BYTES:
        data: Any = envelope.body
        if data and type(data) is bytes:
            return "bytes", None, data, None, None
    problems: list[str] = []
    columns = body_of(wire.message(envelope, count), problems)
    if problems:
        raise ValueError("a body that cannot be decoded")
    return columns


_HEADERS: Final[Mapping[str, Callable[[Envelope, int], Any]]] = {
    "message_id": lambda envelope, count: sound(envelope.message_id),
    "correlation_id": lambda envelope, count: None if envelope.correlation_id is None else _correlation(envelope.correlation_id),
    "destination": lambda envelope, count: _place(envelope.destination),
    "reply_to": lambda envelope, count: None if envelope.reply_to is None else _place(envelope.reply_to),
    "type": lambda envelope, count: sound(envelope.jms_type),
    "delivery_mode": lambda envelope, count: "persistent" if envelope.delivery_mode == 2 else "non-persistent",
    "priority": lambda envelope, count: envelope.priority,
    "timestamp": lambda envelope, count: micros(envelope.timestamp),
    "expiration": lambda envelope, count: micros(envelope.expiration),
    "delivery_time": lambda envelope, count: micros(envelope.delivery_time or envelope.timestamp),
    "redelivered": lambda envelope, count: count > 1,
    "delivery_count": lambda envelope, count: count,
}
"""The header fields, each with how it is read, in the order of a row."""
