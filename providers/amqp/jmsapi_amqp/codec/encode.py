"""An envelope to the bytes of one AMQP message.

Sections in order: header, message annotations, properties, application properties, body. The parts that repeat from
message to message are kept in small caches.

Spec: AMQP 1.0 part 3.2; OASIS "AMQP bindings for JMS" (annotations ``x-opt-jms-*``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Protocol

from jmsapi.spi import PERSISTENT, Address, Body, Envelope, MessageKind
from jmsapi.values import Value
from jmsapi_amqp.codec.ids import correlation_to_wire, id_to_wire
from jmsapi_amqp.codec.types import bad_format
from jmsapi_amqp.codec.writing import (
    SCALARS,
    encode_binary,
    encode_compound,
    encode_symbol,
    encode_text,
    encode_timestamp,
    encode_uint,
    encode_value,
)

__all__ = ["ORIGIN", "OWN_PREFIX", "AddressBook", "encode_message"]

OWN_PREFIX: Final = "JMS_PY_"
ORIGIN: Final = "JMS_PY_from"
"""Who sent it, for no-local: an application property and not an annotation, because it is what STOMP readers of every
broker see under the same name, and what a STOMP sender's header of that name becomes for us."""

JAVA_OBJECT: Final = "application/x-java-serialized-object"
OCTETS: Final = "application/octet-stream"
_MAX_TTL: Final = 0xFFFF_FFFF
_NULL: Final = b"\x40"
_TIME: Final = struct.Struct(">Bq")
_DELIVERY_TIME: Final = encode_symbol("x-opt-delivery-time")
_TYPE: Final = encode_symbol("x-opt-jms-msg-type")
_DEST: Final = encode_symbol("x-opt-jms-dest")
_REPLY: Final = encode_symbol("x-opt-jms-reply-to")
_JAVA_OBJECT_SYMBOL: Final = encode_symbol(JAVA_OBJECT)
_OCTETS_SYMBOL: Final = encode_symbol(OCTETS)


class AddressBook(Protocol):
    """How one broker writes addresses, and what else of a message depends on it."""

    null_body: bytes
    """The body section of a message without a body."""
    sends_user_id: bool
    """Whether the broker takes a user id that the application set."""

    def to_wire(self, address: Address) -> str:
        """Return the address as the broker wants it in ``to``, a source or a target."""
        ...

    def from_wire(self, text: str, kind: int | None, near: Address) -> Address:
        """Return the destination that ``text`` names; ``kind`` is the annotation, ``near`` what the consumer reads from."""
        ...


@lru_cache(maxsize=256)
def _header(durable: bool, priority: int) -> bytes:
    # Priority 4 is written too: RabbitMQ 4.0.5 takes an absent one for 0 (tests/providers/amqp/test_codec.py).
    return b"\x00\x53\x70\xc0\x04\x02" + (b"\x41" if durable else b"\x42") + b"\x50" + priority.to_bytes(1)


def _header_with_ttl(durable: bool, priority: int, ttl: int) -> bytes:
    fields = (b"\x41" if durable else b"\x42") + b"\x50" + priority.to_bytes(1) + encode_uint(ttl)
    return b"\x00\x53\x70" + encode_compound(0xC0, 3, fields)


@lru_cache(maxsize=256)
def _annotation_entries(kind: int, destination: int, reply: int | None) -> tuple[bytes, int]:
    entries = _TYPE + b"\x51" + kind.to_bytes(1) + _DEST + b"\x51" + destination.to_bytes(1)
    if reply is None:
        return entries, 4
    return entries + _REPLY + b"\x51" + reply.to_bytes(1), 6


@lru_cache(maxsize=256)
def _annotations(kind: int, destination: int, reply: int | None) -> bytes:
    entries, count = _annotation_entries(kind, destination, reply)
    return b"\x00\x53\x72" + encode_compound(0xC1, count, entries)


@lru_cache(maxsize=1024)
def _address_text(text: str) -> bytes:
    return encode_text(text)


@lru_cache(maxsize=1024)
def _name(text: str) -> bytes:
    return encode_text(text)


@lru_cache(maxsize=64)
def _content_type(text: str) -> bytes:
    return encode_symbol(text)


def _application_properties(properties: Mapping[str, Value], origin: str | None) -> bytes:
    parts: list[bytes] = []
    for name, value in properties.items():
        if name.startswith("JMSX"):
            continue
        parts.append(_name(name))
        if value is None:
            parts.append(_NULL)
            continue
        scalar = SCALARS.get(type(value))
        parts.append(scalar(value) if scalar is not None else encode_value(value))
    if origin is not None:
        parts.append(_name(ORIGIN))
        parts.append(encode_text(origin))
    return b"\x00\x53\x74" + encode_compound(0xC1, len(parts), b"".join(parts)) if parts else b""


def _body(kind: MessageKind, body: Body, content_type: str | None, null_body: bytes) -> bytes:
    if kind is MessageKind.TEXT:
        if body is None:
            return b"\x00\x53\x77\x40"
        if isinstance(body, str):
            return b"\x00\x53\x77" + encode_text(body)
    elif kind is MessageKind.BYTES:
        if body is None or isinstance(body, bytes):
            return b"\x00\x53\x75" + encode_binary(body or b"")
    elif kind is MessageKind.MESSAGE:
        return null_body
    elif kind is MessageKind.OBJECT:
        if body is None:
            return b"\x00\x53\x77\x40"
        if isinstance(body, bytes):
            return b"\x00\x53\x75" + encode_binary(body)
    elif kind is MessageKind.MAP:
        if body is None or isinstance(body, Mapping):
            return b"\x00\x53\x77" + encode_value(dict(body or {}))
    elif body is None or not isinstance(body, str | bytes | Mapping):
        return b"\x00\x53\x77" + encode_value(list(body or ()))
    raise bad_format(f"a {kind.name} message cannot have a body of type {type(body).__name__}")


def encode_message(envelope: Envelope, book: AddressBook, now_ms: int = 0) -> bytes:
    """Write one message.

    Args:
        envelope: What to send.
        book: The broker's way with addresses.
        now_ms: The time, from which a message's remaining life is counted, and a delay when it has no timestamp.
    Returns:
        The whole message.
    Raises:
        ProviderError: FORMAT; a value that AMQP cannot carry.
    """
    destination = envelope.destination
    kind = envelope.kind
    reply = envelope.reply_to
    properties = envelope.properties
    expiration = envelope.expiration
    durable = envelope.delivery_mode == PERSISTENT
    ttl = max(1, expiration - now_ms) if expiration else 0
    if not 0 <= envelope.priority <= 9:
        raise bad_format(f"the priority {envelope.priority} is not 0 to 9")
    head = _header_with_ttl(durable, envelope.priority, ttl) if 0 < ttl <= _MAX_TTL else _header(durable, envelope.priority)

    reply_kind = None if reply is None else int(reply.kind)
    delivery_time = envelope.delivery_time
    # Only a delay goes on the wire: Artemis schedules whatever has the annotation, and what is due now loses its order.
    if delivery_time > (envelope.timestamp or now_ms):
        entries, count = _annotation_entries(kind, destination.kind, reply_kind)
        entries += _DELIVERY_TIME + _TIME.pack(0x81, delivery_time)
        annotations = b"\x00\x53\x72" + encode_compound(0xC1, count + 2, entries)
    else:
        annotations = _annotations(kind, destination.kind, reply_kind)

    message_id = envelope.message_id
    correlation = envelope.correlation_id
    subject = envelope.jms_type
    timestamp = envelope.timestamp
    user = properties.get("JMSXUserID") if properties and book.sends_user_id else None
    fields = [
        _NULL if message_id is None else id_to_wire(message_id),
        encode_binary(user.encode()) if isinstance(user, str) else _NULL,
        _address_text(book.to_wire(destination)),
        _NULL if subject is None else encode_text(subject),
        _NULL if reply is None else _address_text(book.to_wire(reply)),
        _NULL if correlation is None else correlation_to_wire(correlation),
        _NULL,
        _NULL,
        encode_timestamp(expiration) if expiration else _NULL,
        _TIME.pack(0x83, timestamp) if timestamp else _NULL,
    ]
    if kind is MessageKind.BYTES:
        fields[6] = _OCTETS_SYMBOL
    elif kind is MessageKind.OBJECT and envelope.body is not None:
        fields[6] = _JAVA_OBJECT_SYMBOL if envelope.content_type is None else _content_type(envelope.content_type)
    if properties:
        group = properties.get("JMSXGroupID")
        if group is not None:
            fields.append(encode_text(str(group)))
            sequence = properties.get("JMSXGroupSeq")
            # A negative sequence closes a group: it crosses the wire as its 32 bits, as the Java client does it.
            fields.append(_NULL if sequence is None else encode_uint(int(sequence) & 0xFFFF_FFFF))
    origin = envelope.origin if destination.kind.is_topic else None
    return b"".join(
        (
            head,
            annotations,
            b"\x00\x53\x73",
            encode_compound(0xC0, len(fields), b"".join(fields)),
            _application_properties(properties, origin) if properties or origin is not None else b"",
            _body(kind, envelope.body, envelope.content_type, book.null_body),
        )
    )
