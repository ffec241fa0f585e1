"""An envelope to the bytes of one AMQP message.

Sections in order: header, message annotations, properties, application properties, body. The parts that repeat from
message to message are kept in small caches.

Spec: AMQP 1.0 part 3.2; OASIS "AMQP bindings for JMS" (annotations ``x-opt-jms-*``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol

from jmsapi.spi import PERSISTENT, Address, Body, Envelope, MessageKind, ProviderError
from jmsapi.values import Value
from jmsapi_amqp.codec.foreign import ForeignParts, PassesOn
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

__all__ = ["ORIGIN", "OWN_PREFIX", "USER", "AddressBook", "encode_message"]

OWN_PREFIX: Final = "JMS_PY_"
ORIGIN: Final = "JMS_PY_from"
"""Who sent it, for no-local: an application property and not an annotation, because it is what STOMP readers of every
broker see under the same name, and what a STOMP sender's header of that name becomes for us."""

USER: Final = "JMS_PY_user"
"""The sender's user name, where the broker's own field for it is not free."""

JAVA_OBJECT: Final = "application/x-java-serialized-object"
OCTETS: Final = "application/octet-stream"
_MAX_TTL: Final = 0xFFFF_FFFF
_NULL: Final = b"\x40"
_TIME: Final = struct.Struct(">Bq")
_DELIVERY_TIME: Final = encode_symbol("x-opt-delivery-time")
_SENT: Final = encode_symbol("x-opt-jms-sent")
_EXPIRES: Final = encode_symbol("x-opt-jms-expires")
_TYPE: Final = encode_symbol("x-opt-jms-msg-type")
_DEST: Final = encode_symbol("x-opt-jms-dest")
_REPLY: Final = encode_symbol("x-opt-jms-reply-to")
_JAVA_OBJECT_SYMBOL: Final = encode_symbol(JAVA_OBJECT)
_OCTETS_SYMBOL: Final = encode_symbol(OCTETS)
_CONTENT: Final = frozenset({"content-type", "content-encoding"})
"""Properties that show fields of a received message, and go back into these."""
_FIELDS: Final = frozenset({"JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount"})
_NO_MARKS: Final[Mapping[str, str]] = MappingProxyType({})
_TEXT_SYMBOL: Final = encode_symbol("text/plain")


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

    def how_to_read(self, near: Address) -> str:
        """Return what another process needs to read a message of this broker; ``near`` is what the consumer reads from."""
        ...


@lru_cache(maxsize=256)
def _header(durable: bool, priority: int) -> bytes:
    # Priority 4 is written too: RabbitMQ 4.0.5 takes an absent one for 0 (tests/providers/amqp/test_codec.py).
    return b"\x00\x53\x70\xc0\x04\x02" + (b"\x41" if durable else b"\x42") + b"\x50" + priority.to_bytes(1)


def _header_with_ttl(durable: bool, priority: int, ttl: int) -> bytes:
    fields = (b"\x41" if durable else b"\x42") + b"\x50" + priority.to_bytes(1) + encode_uint(ttl)
    return b"\x00\x53\x70" + encode_compound(0xC0, 3, fields)


@lru_cache(maxsize=256)
def _annotation_entries(kind: int | None, destination: int, reply: int | None) -> tuple[bytes, int]:
    entries, count = _DEST + b"\x51" + destination.to_bytes(1), 2
    if kind is not None:
        entries, count = _TYPE + b"\x51" + kind.to_bytes(1) + entries, count + 2
    if reply is not None:
        entries, count = entries + _REPLY + b"\x51" + reply.to_bytes(1), count + 2
    return entries, count


@lru_cache(maxsize=256)
def _annotations(kind: int | None, destination: int, reply: int | None) -> bytes:
    entries, count = _annotation_entries(kind, destination, reply)
    return b"\x00\x53\x72" + encode_compound(0xC1, count, entries)


@lru_cache(maxsize=1024)
def _address_text(text: str) -> bytes:
    return encode_text(text)


@lru_cache(maxsize=1024)
def _name(text: str) -> bytes:
    return encode_text(text)


@lru_cache(maxsize=64)
def _user(name: str) -> bytes:
    return encode_binary(name.encode())


@lru_cache(maxsize=64)
def _content_type(text: str) -> bytes:
    return encode_symbol(text)


def _application_properties(
    properties: Mapping[str, Value], origin: str | None, marks: Mapping[str, str], foreign: ForeignParts | None
) -> bytes:
    parts: list[bytes] = []
    for name, value in properties.items():
        if foreign is not None and name not in _FIELDS:
            if name in _CONTENT and name not in foreign.properties:
                continue
            as_received = foreign.property_as_received(name, value)
            if as_received is not None:
                parts.append(_name(name))
                parts.append(as_received)
                continue
        if name.startswith("JMSX"):
            continue
        parts.append(_name(name))
        if value is None:
            parts.append(_NULL)
            continue
        scalar = SCALARS.get(type(value))
        parts.append(scalar(value) if scalar is not None else encode_value(value))
    for name, text in marks.items():
        parts.append(_name(name))
        parts.append(encode_text(text))
    if origin is not None:
        parts.append(_name(ORIGIN))
        parts.append(encode_text(origin))
    return b"\x00\x53\x74" + encode_compound(0xC1, len(parts), b"".join(parts)) if parts else b""


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise bad_format("a text with half of a surrogate pair has no UTF-8") from None


def _body(kind: MessageKind, body: Body, null_body: bytes, texts_as_data: bool) -> bytes:
    if kind is MessageKind.TEXT:
        if body is None:
            return b"\x00\x53\x77\x40"
        if isinstance(body, str):
            if texts_as_data:
                return b"\x00\x53\x75" + encode_binary(_utf8(body))
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


def _properties(
    envelope: Envelope,
    kind: MessageKind,
    destination: Address,
    reply: Address | None,
    properties: Mapping[str, Value],
    expiration: int,
    addresses: AddressBook,
    texts_as_data: bool,
    foreign: ForeignParts | None,
) -> bytes:
    """Return the list of the properties section; what the caller has read of the envelope it hands over."""
    message_id = envelope.message_id
    correlation = envelope.correlation_id
    subject = envelope.jms_type
    timestamp = envelope.timestamp
    user = properties.get("JMSXUserID") if properties and addresses.sends_user_id else None
    fields = [
        _NULL if message_id is None else id_to_wire(message_id),
        _user(user) if isinstance(user, str) else _NULL,
        _address_text(addresses.to_wire(destination)),
        _NULL if subject is None else encode_text(subject),
        _NULL if reply is None else _address_text(addresses.to_wire(reply)),
        _NULL if correlation is None else correlation_to_wire(correlation),
        _NULL,
        _NULL,
        encode_timestamp(expiration) if expiration else _NULL,
        _TIME.pack(0x83, timestamp) if timestamp else _NULL,
    ]
    if foreign is not None:
        fields[6] = foreign.content_field(foreign.content_type)
        fields[7] = foreign.content_field(foreign.content_encoding)
    elif kind is MessageKind.BYTES:
        fields[6] = _OCTETS_SYMBOL
    elif texts_as_data and kind is MessageKind.TEXT and envelope.body is not None:
        fields[6] = _TEXT_SYMBOL
    elif kind is MessageKind.OBJECT and envelope.body is not None:
        fields[6] = _JAVA_OBJECT_SYMBOL if envelope.content_type is None else _content_type(envelope.content_type)
    if properties or foreign is not None:
        group, sequence = properties.get("JMSXGroupID"), properties.get("JMSXGroupSeq")
        reply_group = _NULL if foreign is None else foreign.group_field()
        if group is not None or sequence is not None or reply_group is not _NULL:
            fields.append(_NULL if group is None else encode_text(str(group)))
            # A negative sequence closes a group: it crosses the wire as its 32 bits, as the Java client does it.
            fields.append(encode_uint(sequence & 0xFFFF_FFFF) if isinstance(sequence, int) else _NULL)
        if reply_group != _NULL:
            fields.append(reply_group)
    return encode_compound(0xC0, len(fields), b"".join(fields))


def _foreign_parts(envelope: Envelope) -> ForeignParts | None:
    """Return what is passed on of a message that no JMS client has sent, if this is one and its body is the received one."""
    received: object = getattr(envelope, "received", None)
    # Nearly all messages are new; an instance check of a protocol takes as long as a quarter of their encoding.
    if received is None or not isinstance(received, PassesOn):
        return None
    try:
        return received.foreign_parts()
    except ProviderError:
        # What cannot be decoded is not repeated: brokers end the connection for it.
        return None


def encode_message(
    envelope: Envelope,
    addresses: AddressBook,
    now_ms: int = 0,
    *,
    texts_as_data: bool = False,
    marks: Mapping[str, str] = _NO_MARKS,
) -> bytes:
    """Write one message.

    Args:
        envelope: What to send.
        addresses: How the broker writes addresses.
        now_ms: The time, from which a message's remaining life is counted, and a delay when it has no timestamp.
        texts_as_data: Send a text as bytes with a content type, as readers of another protocol of the broker's expect it.
        marks: Properties of this library's own, by which its readers know what the broker does not carry to them.
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
    foreign = _foreign_parts(envelope)
    if not 0 <= envelope.priority <= 9:
        raise bad_format(f"the priority {envelope.priority} is not 0 to 9")
    head = _header_with_ttl(durable, envelope.priority, ttl) if 0 < ttl <= _MAX_TTL else _header(durable, envelope.priority)

    reply_kind = None if reply is None else int(reply.kind)
    # What comes from no JMS client is known by its body here as well, and stays known as such for who passes it on next.
    named_kind = None if foreign is not None and foreign.body else kind
    delivery_time = envelope.delivery_time
    # Only a delay goes on the wire: Artemis schedules whatever has the annotation, and what is due now loses its order.
    if delivery_time > (envelope.timestamp or now_ms):
        entries, count = _annotation_entries(named_kind, destination.kind, reply_kind)
        entries += _DELIVERY_TIME + _TIME.pack(0x81, delivery_time)
        # The scheduler of Classic sets time and expiry anew when it lets a message go.
        entries += _SENT + _TIME.pack(0x81, envelope.timestamp) + _EXPIRES + _TIME.pack(0x81, expiration)
        annotations = b"\x00\x53\x72" + encode_compound(0xC1, count + 6, entries)
    else:
        annotations = _annotations(named_kind, destination.kind, reply_kind)

    origin = envelope.origin if destination.kind.is_topic else None
    return b"".join(
        (
            head,
            annotations,
            b"\x00\x53\x73",
            _properties(envelope, kind, destination, reply, properties, expiration, addresses, texts_as_data, foreign),
            _application_properties(properties, origin, marks, foreign) if properties or marks or origin is not None else b"",
            foreign.body
            if foreign is not None and foreign.body
            else _body(kind, envelope.body, addresses.null_body, texts_as_data),
        )
    )
