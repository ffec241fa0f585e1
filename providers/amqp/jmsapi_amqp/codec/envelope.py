"""A received AMQP message as an envelope whose parts are read when they are first asked for.

Nothing is read at hand-over but the delivery count, which sits in the first bytes. A part that cannot be read raises
``ProviderError(FORMAT)`` from its property, each time; the others still work where they lie before it.

Spec: AMQP 1.0 part 3.2; OASIS "AMQP bindings for JMS".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from jmsapi.spi import EMPTY_PROPERTIES, NON_PERSISTENT, PERSISTENT, Address, Body, MessageKind
from jmsapi.values import Byte, Float, Long, Short, Value
from jmsapi_amqp.codec.bodies import body_value, empty_body, is_text, property_value
from jmsapi_amqp.codec.encode import JAVA_OBJECT, ORIGIN, OWN_PREFIX, AddressBook
from jmsapi_amqp.codec.ids import correlation_to_text, id_to_text
from jmsapi_amqp.codec.reading import decode_value
from jmsapi_amqp.codec.sections import (
    APPLICATION,
    BODIES,
    DATA,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    repeated_list,
    repeated_map,
    section,
    skip,
)
from jmsapi_amqp.codec.types import AmqpValue, Described, bad_format

__all__ = ["ReceivedEnvelope"]

_KINDS: Final = tuple(MessageKind(number) for number in range(6))
_PLAIN: Final = frozenset({str, int, bool, float, Long, Byte, Short, Float, type(None)})
"""Types that are a property's as they are."""


class ReceivedEnvelope:
    """One received message; read only. Safe to read from several threads: reading twice gives the same parts twice."""

    __slots__ = (
        "_annotations",
        "_application",
        "_body",
        "_book",
        "_decoded",
        "_fields",
        "_header",
        "_near",
        "_raw",
        "_received_ms",
        "_scanned",
    )

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
        self._decoded: Mapping[AmqpValue, AmqpValue] | None = None

    def _scan(self) -> None:
        """Read all sections before the body but the application properties, whose place alone is noted."""
        try:
            self._scan_sections()
        except IndexError:
            raise bad_format("the message ends inside a section before its body") from None
        self._scanned = True

    def _scan_sections(self) -> None:
        raw = self._raw
        position = 0
        end = len(raw)
        while position < end:
            if raw[position] == 0 and raw[position + 1] == 0x53:
                code = raw[position + 2]
                at = position + 3
            else:
                code, at = section(raw, position)
            if code in BODIES:
                self._body = position
                return
            form = raw[at]
            position = at + 2 + raw[at + 1] if form == 0xC1 or form == 0xC0 else skip(raw, at)
            if position > end:
                raise bad_format("the message ends inside a section before its body")
            if code == PROPERTIES:
                value, _ = decode_value(raw, at)
                if not isinstance(value, list):
                    raise bad_format("the properties section is not a list")
                self._fields = value
            elif code == APPLICATION:
                self._application = at
            elif code == MESSAGE_ANNOTATIONS:
                self._annotations = repeated_map(raw[at:position])
            elif code == HEADER:
                self._header = repeated_list(raw[at:position])

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
        kind = self._annotations.get(note)
        return self._book.from_wire(text, kind if isinstance(kind, int) and 0 <= kind <= 3 else None, self._near)

    @property
    def kind(self) -> MessageKind:
        """Which of the six message types: by annotation, else by the kind of body and content type."""
        note = self._note("x-opt-jms-msg-type")
        if isinstance(note, int) and 0 <= note <= 5:
            return _KINDS[note]
        return self._guess()

    def _guess(self) -> MessageKind:
        content_type = self._field(6)
        if self._body < 0:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            return MessageKind.TEXT if is_text(content_type) else MessageKind.BYTES
        code, at = section(self._raw, self._body)
        if code == DATA:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            return MessageKind.TEXT if is_text(content_type) else MessageKind.BYTES
        if code == SEQUENCE:
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
        found = self._decoded
        if found is None:
            value, _ = decode_value(self._raw, self._application)
            if not isinstance(value, dict):
                raise bad_format("the application properties are not a map")
            self._decoded = found = value
        return found

    @property
    def properties(self) -> Mapping[str, Value]:
        """Typed application properties and the JMSX ones; what has no JMS type is left out."""
        found: dict[str, Value] = {}
        for name, value in self._properties().items():
            if type(name) is str and not name.startswith(OWN_PREFIX):
                if type(value) in _PLAIN:
                    found[name] = cast("Value", value)
                elif (kept := property_value(value)) is not None:
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
            return empty_body(kind)
        code, at = section(self._raw, self._body)
        if code == VALUE:
            value, _ = decode_value(self._raw, at)
            return body_value(kind, value)
        parts = self._parts(code)
        if code == SEQUENCE:
            return body_value(kind, [item for part in parts if isinstance(part, list) for item in part])
        data = b"".join([part for part in parts if isinstance(part, bytes)])
        if kind is MessageKind.TEXT:
            try:
                return data.decode()
            except UnicodeDecodeError:
                raise bad_format("the body of a text message is not UTF-8") from None
        if kind in (MessageKind.BYTES, MessageKind.OBJECT):
            return data or empty_body(kind)
        if not data:
            return empty_body(kind)
        raise bad_format(f"a {kind.name} message came with a body of bytes")

    def plain_body(self) -> AmqpValue:
        """Return the body as AMQP has it: a value, or the bytes of its data; None when there is none."""
        if not self._scanned:
            self._scan()
        if self._body < 0:
            return None
        code, at = section(self._raw, self._body)
        if code == VALUE:
            return decode_value(self._raw, at)[0]
        return b"".join([part for part in self._parts(code) if isinstance(part, bytes)])

    def _parts(self, wanted: int) -> list[AmqpValue]:
        """Return the values of the body's sections: data and sequences may come in several."""
        raw = self._raw
        position = self._body
        parts: list[AmqpValue] = []
        while position < len(raw):
            code, at = section(raw, position)
            value, position = decode_value(raw, at)
            if code == wanted:
                parts.append(value)
        return parts
