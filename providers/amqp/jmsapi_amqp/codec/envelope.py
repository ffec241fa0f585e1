"""A received AMQP message as an envelope whose parts are read when they are first asked for.

Nothing is read at hand-over but the delivery count, which sits in the first bytes. A part that cannot be read raises
``ProviderError(FORMAT)`` from its property, each time; the others still work where they lie before it.

Spec: AMQP 1.0 part 3.2; OASIS "AMQP bindings for JMS".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from jmsapi.spi import EMPTY_PROPERTIES, NON_PERSISTENT, PERSISTENT, Address, Body, BodyValue, MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short, Value
from jmsapi_amqp.codec.encode import JAVA_OBJECT, ORIGIN, OWN_PREFIX, AddressBook
from jmsapi_amqp.codec.ids import correlation_to_text, id_to_text
from jmsapi_amqp.codec.types import AmqpValue, Described, Symbol, Timestamp, UInt, ULong, bad_format, decode_value

__all__ = ["ReceivedEnvelope", "quick_delivery_count"]

_HEADER: Final = 0x70
_DELIVERY_ANNOTATIONS: Final = 0x71
_MESSAGE_ANNOTATIONS: Final = 0x72
_PROPERTIES: Final = 0x73
_APPLICATION: Final = 0x74
_DATA: Final = 0x75
_SEQUENCE: Final = 0x76
_VALUE: Final = 0x77
_FOOTER: Final = 0x78
_NAMES: Final[Mapping[str, int]] = {
    "amqp:header:list": _HEADER,
    "amqp:delivery-annotations:map": _DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": _MESSAGE_ANNOTATIONS,
    "amqp:properties:list": _PROPERTIES,
    "amqp:application-properties:map": _APPLICATION,
    "amqp:data:binary": _DATA,
    "amqp:amqp-sequence:list": _SEQUENCE,
    "amqp:amqp-value:*": _VALUE,
    "amqp:footer:map": _FOOTER,
}
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "application/javascript", "application/ecmascript"})
_LONG_MAX: Final = 2**63 - 1


def quick_delivery_count(raw: bytes, acquirer_tells: bool) -> int:
    """Return how often a message was handed out, this time included, from its first bytes.

    Args:
        raw: The message.
        acquirer_tells: Whether ``first-acquirer=false`` means that somebody had it before (RabbitMQ).
    Returns:
        1 and up; 1 when the header cannot be read, which its properties will then say.
    """
    if raw[:3] != b"\x00\x53\x70":
        return 1
    if raw[3:4] == b"\xc0" and raw[5:6] < b"\x04":
        return 1
    try:
        fields, _ = decode_value(raw, 3)
    except Exception:  # noqa: BLE001 - the envelope's own properties report it, in the thread that reads
        return 1
    if not isinstance(fields, list):
        return 1
    count = fields[4] if len(fields) > 4 else 0
    handed = (count if isinstance(count, int) else 0) + 1
    if handed == 1 and acquirer_tells and len(fields) > 3 and fields[3] is False:
        return 2
    return handed


def _section(raw: bytes, position: int) -> tuple[int, int]:
    """Return the code of the section at ``position`` and where its value begins."""
    if raw[position : position + 2] == b"\x00\x53" and position + 2 < len(raw):
        return raw[position + 2], position + 3
    if raw[position : position + 1] != b"\x00":
        bad_format(f"byte {position} of the message begins no section")
    descriptor, at = decode_value(raw, position + 1)
    if isinstance(descriptor, str):
        descriptor = _NAMES.get(descriptor)
    if not isinstance(descriptor, int):
        bad_format("the message has a section of no known kind")
    return int(descriptor), at


class ReceivedEnvelope:
    """One received message; read only. Safe to read from several threads: reading twice gives the same parts twice."""

    __slots__ = ("_annotations", "_application", "_body", "_book", "_fields", "_header", "_near", "_raw", "_received_ms", "_scanned")

    def __init__(self, raw: bytes, book: AddressBook, near: Address, received_ms: int) -> None:
        """Take the bytes.

        Args:
            raw: The whole message.
            book: The broker's way with addresses.
            near: The destination that the consumer reads from.
            received_ms: When it came, for a message that only says how long it lives.
        """
        self._raw = raw
        self._book = book
        self._near = near
        self._received_ms = received_ms
        self._scanned = False
        self._header: Sequence[AmqpValue] = ()
        self._annotations: Mapping[AmqpValue, AmqpValue] = {}
        self._fields: Sequence[AmqpValue] = ()
        self._application = -1
        self._body = -1

    def _scan(self) -> None:
        """Read all sections before the body but the application properties, whose place alone is noted."""
        raw = self._raw
        position = 0
        end = len(raw)
        while position < end:
            code, at = _section(raw, position)
            if code == _APPLICATION:
                self._application = at
                position = _skip(raw, at)
                continue
            if code in (_DATA, _SEQUENCE, _VALUE):
                self._body = position
                break
            value, position = decode_value(raw, at)
            if code == _HEADER and isinstance(value, list):
                self._header = value
            elif code == _MESSAGE_ANNOTATIONS and isinstance(value, dict):
                self._annotations = value
            elif code == _PROPERTIES and isinstance(value, list):
                self._fields = value
            elif code not in (_DELIVERY_ANNOTATIONS, _FOOTER):
                bad_format(f"section 0x{code:02x} is not of its type")
        self._scanned = True

    def _head(self, index: int) -> AmqpValue:
        if not self._scanned:
            self._scan()
        header = self._header
        return header[index] if index < len(header) else None

    def _field(self, index: int) -> AmqpValue:
        if not self._scanned:
            self._scan()
        fields = self._fields
        return fields[index] if index < len(fields) else None

    def _note(self, name: str) -> AmqpValue:
        if not self._scanned:
            self._scan()
        return self._annotations.get(name)

    def _address(self, index: int, note: str) -> Address | None:
        text = self._field(index)
        if not isinstance(text, str):
            return None
        kind = self._note(note)
        return self._book.from_wire(text, int(kind) if isinstance(kind, int) else None, self._near)

    @property
    def kind(self) -> MessageKind:
        """Which of the six message types: by annotation, else by the kind of body and content type."""
        note = self._note("x-opt-jms-msg-type")
        if isinstance(note, int) and 0 <= note <= 5:
            return MessageKind(note)
        return self._guess()

    def _guess(self) -> MessageKind:
        content_type = self._field(6)
        if self._body < 0:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            return MessageKind.TEXT if _is_text(content_type) else MessageKind.BYTES
        code, at = _section(self._raw, self._body)
        if code == _DATA:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            return MessageKind.TEXT if _is_text(content_type) else MessageKind.BYTES
        if code == _SEQUENCE:
            return MessageKind.STREAM
        value, _ = decode_value(self._raw, at)
        if value is None or isinstance(value, str):
            return MessageKind.TEXT
        if isinstance(value, bytes):
            return MessageKind.BYTES
        if isinstance(value, dict):
            return MessageKind.MAP
        return MessageKind.STREAM if isinstance(value, list) and not isinstance(value, Described) else MessageKind.OBJECT

    @property
    def destination(self) -> Address:
        """Where it was sent; what the consumer reads from when the message does not say."""
        return self._address(2, "x-opt-jms-dest") or self._near

    @property
    def message_id(self) -> str | None:
        """Text that begins with ``ID:``, or None."""
        return id_to_text(self._field(0))

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or 0."""
        value = self._field(9)
        return int(value) if isinstance(value, int) else 0

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or bytes when it is binary on the wire."""
        return correlation_to_text(self._field(5))

    @property
    def reply_to(self) -> Address | None:
        """Where an answer is wanted."""
        return self._address(4, "x-opt-jms-reply-to")

    @property
    def delivery_mode(self) -> int:
        """1 NON_PERSISTENT, 2 PERSISTENT."""
        return PERSISTENT if self._head(0) is True else NON_PERSISTENT

    @property
    def jms_type(self) -> str | None:
        """The subject."""
        value = self._field(3)
        return value if isinstance(value, str) else None

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970; from the time to live when only that is said; 0 never."""
        value = self._field(8)
        if isinstance(value, int) and value:
            return int(value)
        ttl = self._head(2)
        return self._received_ms + int(ttl) if isinstance(ttl, int) and ttl else 0

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970, or 0."""
        value = self._note("x-opt-delivery-time")
        return int(value) if isinstance(value, int) else 0

    @property
    def priority(self) -> int:
        """0 to 9; 4 when not said."""
        value = self._head(1)
        return min(9, int(value)) if isinstance(value, int) else 4

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded; None for other kinds."""
        if self.kind is not MessageKind.OBJECT:
            return None
        value = self._field(6)
        return str(value) if isinstance(value, str) else None

    @property
    def origin(self) -> str | None:
        """Who sent it, when the sender said so."""
        value = self._properties().get(ORIGIN)
        return value if isinstance(value, str) else None

    def _properties(self) -> Mapping[AmqpValue, AmqpValue]:
        if not self._scanned:
            self._scan()
        if self._application < 0:
            return {}
        value, _ = decode_value(self._raw, self._application)
        if not isinstance(value, dict):
            bad_format("the application properties are not a map")
        return value

    @property
    def properties(self) -> Mapping[str, Value]:
        """Typed application properties and the JMSX ones; what has no JMS type is left out."""
        found: dict[str, Value] = {}
        for name, value in self._properties().items():
            if isinstance(name, str) and not name.startswith(OWN_PREFIX):
                kept = _property(value)
                if kept is not None or value is None:
                    found[name] = kept
        group = self._field(10)
        if isinstance(group, str):
            found["JMSXGroupID"] = group
        sequence = self._field(11)
        if isinstance(sequence, int):
            found["JMSXGroupSeq"] = int(sequence) if sequence < 2**31 else int(sequence) - 2**32
        user = self._field(1)
        if isinstance(user, bytes):
            found["JMSXUserID"] = user.decode(errors="replace")
        return found or EMPTY_PROPERTIES

    @property
    def body(self) -> Body:
        """The content, by ``kind``."""
        kind = self.kind
        if self._body < 0:
            return _empty(kind)
        code, at = _section(self._raw, self._body)
        if code == _VALUE:
            value, _ = decode_value(self._raw, at)
            return _from_value(kind, value)
        parts = self._parts(code)
        if code == _SEQUENCE:
            return _from_value(kind, [item for part in parts if isinstance(part, list) for item in part])
        data = b"".join([part for part in parts if isinstance(part, bytes)])
        if kind is MessageKind.TEXT:
            try:
                return data.decode()
            except UnicodeDecodeError:
                bad_format("the body of a text message is not UTF-8")
        if kind in (MessageKind.BYTES, MessageKind.OBJECT):
            return data or _empty(kind)
        if not data:
            return _empty(kind)
        bad_format(f"a {kind.name} message came with a body of bytes")

    def _parts(self, wanted: int) -> list[AmqpValue]:
        """Return the values of the body's sections: data and sequences may come in several."""
        raw = self._raw
        position = self._body
        parts: list[AmqpValue] = []
        while position < len(raw):
            code, at = _section(raw, position)
            value, position = decode_value(raw, at)
            if code == wanted:
                parts.append(value)
        return parts


def _skip(raw: bytes, at: int) -> int:
    """Return the position behind a map without reading it."""
    code = raw[at] if at < len(raw) else 0
    if code == 0xC1 and at + 1 < len(raw):
        end = at + 2 + raw[at + 1]
    elif code == 0xD1 and at + 5 <= len(raw):
        end = at + 5 + int.from_bytes(raw[at + 1 : at + 5])
    else:
        bad_format("the application properties are not a map")
    if end > len(raw):
        bad_format("the message ends inside its application properties")
    return end


def _is_text(content_type: AmqpValue) -> bool:
    if not isinstance(content_type, str):
        return False
    plain = content_type.split(";")[0].strip().lower()
    return plain.startswith("text/") or plain in _TEXT_TYPES or plain.endswith(("+json", "+xml"))


def _empty(kind: MessageKind) -> Body:
    if kind is MessageKind.BYTES:
        return b""
    if kind is MessageKind.MAP:
        return {}
    return [] if kind is MessageKind.STREAM else None


def _property(value: AmqpValue) -> Value:
    """Return a property of a JMS type, or None when it has none."""
    if isinstance(value, UInt | ULong):
        return Long(value) if value <= _LONG_MAX else str(int(value))
    if isinstance(value, Timestamp):
        return Long(value)
    if isinstance(value, Symbol | Char | UUID):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    return None


def _entry(value: AmqpValue) -> BodyValue:
    """Return an entry of a Map or Stream body."""
    if value is None or isinstance(value, bytes | Char | Byte | Short | Float):
        return value
    kept = _property(value)
    if kept is None:
        bad_format(f"an entry of type {type(value).__name__} has no JMS type")
    return kept


def _from_value(kind: MessageKind, value: AmqpValue) -> Body:
    """Return the body that an AMQP value is, read as ``kind``."""
    if kind is MessageKind.MESSAGE:
        return None
    if value is None:
        return _empty(kind)
    if kind is MessageKind.TEXT and isinstance(value, str):
        return str(value)
    if kind is MessageKind.BYTES and isinstance(value, bytes):
        return value
    if kind is MessageKind.MAP and isinstance(value, dict):
        return {str(name): _entry(item) for name, item in value.items()}
    if kind is MessageKind.STREAM and isinstance(value, list):
        return [_entry(item) for item in value]
    if kind is MessageKind.OBJECT and isinstance(value, bytes):
        return value
    bad_format(f"a {kind.name} message came with an AMQP value of type {type(value).__name__}")
