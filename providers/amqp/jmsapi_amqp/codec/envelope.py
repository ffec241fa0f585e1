"""A received AMQP message as an envelope whose parts are read when they are first asked for.

Nothing is read at hand-over but the delivery count, which sits in the first bytes. A part that cannot be read raises
``ProviderError(FORMAT)`` from its property, each time; the others still work where they lie before it.

Spec: AMQP 1.0 part 3.2; OASIS "AMQP bindings for JMS".
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, cast

from jmsapi.spi import EMPTY_PROPERTIES, NON_PERSISTENT, PERSISTENT, Address, Body, MessageKind, ProviderError, WireForm
from jmsapi.values import Byte, Float, Long, Short, Value
from jmsapi_amqp.codec.bodies import (
    OBJECT_DATA,
    body_value,
    decoded_text,
    empty_body,
    fits,
    is_text,
    kind_of_value,
    named,
    property_value,
)
from jmsapi_amqp.codec.encode import JAVA_OBJECT, ORIGIN, OWN_PREFIX, USER, AddressBook
from jmsapi_amqp.codec.foreign import ForeignParts
from jmsapi_amqp.codec.ids import correlation_to_text, id_to_text
from jmsapi_amqp.codec.reading import MOST_ENTRIES, check_entries, decode_value
from jmsapi_amqp.codec.sections import (
    APPLICATION,
    BODIES,
    DATA,
    FOOTER,
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
from jmsapi_amqp.codec.types import AmqpValue, bad_format
from jmsapi_brokers.dead_letters import NOTES, has_expired, notes_of

__all__ = ["KeptEnvelope", "ReceivedEnvelope"]

_GROUP: Final = 10
"""The field of the properties section that names the group; its sequence number follows."""
_KINDS: Final = tuple(MessageKind(number) for number in range(6))
_KIND_NOTE: Final = "x-opt-jms-msg-type"
"""The annotation by which a JMS client says which kind of message it has sent."""
_TEXT_NOTE: Final = 5
"""What JMS clients note on a TextMessage."""
_TEXTS: Final = (b"\xa1", b"\xb1")
"""How a value begins that is a text."""
_PLAIN: Final = frozenset({str, int, bool, float, Long, Byte, Short, Float, type(None)})
"""Types that are a property's as they are."""
_CONTENT_FIELDS: Final = (("content-type", 6), ("content-encoding", 7))
"""What a message of no JMS client says of its body, and the properties that show it, named as over STOMP."""


class ReceivedEnvelope:
    """One received message; read only. Safe to read from several threads: reading twice gives the same parts twice."""

    __slots__ = (
        "_addresses",
        "_annotations",
        "_application",
        "_body",
        "_body_at",
        "_body_code",
        "_decoded",
        "_fields",
        "_fields_at",
        "_header",
        "_kind",
        "_near",
        "_raw",
        "_received_ms",
        "_scanned",
        "_text",
        "_unread",
    )

    _longest_text: ClassVar[int] = 1 << 16
    """Bytes of the longest message whose text is kept when it was read to find the kind: not everybody asks for it."""
    _reads_fields: ClassVar[bool] = True
    """Whether the properties section is read with the others: a message whose section cannot be read has no kind then."""

    def __init__(self, raw: bytes, addresses: AddressBook, near: Address, received_ms: int) -> None:
        """Take the bytes.

        Args:
            raw: The whole message.
            addresses: How the broker writes addresses.
            near: The destination that the consumer reads from.
            received_ms: When it came, for a message that only says how long it lives.
        """
        self._raw = raw
        self._addresses = addresses
        self._near = near
        self._received_ms = received_ms
        self._scanned = False
        self._unread: ProviderError | None = None
        self._header: Sequence[AmqpValue] = ()
        self._annotations: Mapping[AmqpValue, AmqpValue] = {}
        self._fields: Sequence[AmqpValue] | None = ()
        self._fields_at = -1
        self._application = -1
        self._body = self._body_code = self._body_at = -1
        """Where the body begins, what its first section is, and where that section's value begins."""
        self._decoded: Mapping[AmqpValue, AmqpValue] | None = None
        self._kind: MessageKind | None = None
        self._text: str | None = None
        """The body that was read to find the kind, until it is asked for."""

    def _scan(self) -> None:
        """Read all sections before the body but the application properties, whose place alone is noted."""
        if self._unread is not None:
            raise ProviderError(self._unread.kind, self._unread.message)
        if len(self._raw) > MOST_ENTRIES:
            try:
                check_entries(self._raw)
            except ProviderError as error:
                self._unread = error  # to find that out takes time
                raise
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
                self._body, self._body_code, self._body_at = position, code, at
                return
            form = raw[at]
            position = at + 2 + raw[at + 1] if form == 0xC1 or form == 0xC0 else skip(raw, at)
            if position > end:
                raise bad_format("the message ends inside a section before its body")
            if code == PROPERTIES:
                self._fields, self._fields_at = None, at
                if self._reads_fields:
                    self._read_fields()
            elif code == APPLICATION:
                self._application = at
            elif code == MESSAGE_ANNOTATIONS:
                self._annotations = repeated_map(raw[at:position])
            elif code == HEADER:
                self._header = repeated_list(raw[at:position])

    def _read_fields(self) -> Sequence[AmqpValue]:
        value, _ = decode_value(self._raw, self._fields_at)
        if not isinstance(value, list):
            raise bad_format("the properties section is not a list")
        self._fields = value
        return value

    def _head(self, index: int) -> AmqpValue:
        if not self._scanned:
            self._scan()
        header = self._header
        return header[index] if index < len(header) else None

    def _field(self, index: int) -> AmqpValue:
        if not self._scanned:
            self._scan()
        fields = self._fields
        if fields is None:
            fields = self._read_fields()
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
        return self._addresses.from_wire(text, kind if isinstance(kind, int) and 0 <= kind <= 3 else None, self._near)

    @property
    def kind(self) -> MessageKind:
        """Which of the six message types: by annotation if the body is one of that kind, else by the body and content type."""
        kind = self._kind
        if kind is None:
            kind = self._kind = self._find_kind()
        return kind

    def _find_kind(self) -> MessageKind:
        note = self._note(_KIND_NOTE)
        if note == _TEXT_NOTE and self._reads_as_text():
            return MessageKind.TEXT
        if type(note) is not bool and isinstance(note, int) and 0 <= note <= 5 and self._can_be(_KINDS[note]):
            return _KINDS[note]
        return self._guess()

    def _reads_as_text(self) -> bool:
        """Whether the body is a text that is read at once; if so, it is kept for who asks for it next."""
        raw, at = self._raw, self._body_at
        if self._body_code != VALUE or not raw.startswith(_TEXTS, at) or len(raw) > self._longest_text:
            return False
        try:
            self._text = cast("str", decode_value(raw, at)[0])
        except ProviderError:
            return False
        return True

    def _can_be(self, kind: MessageKind) -> bool:
        """Whether the body is one of the kind that the sender names: nobody could read it else."""
        if self._body < 0:
            return True
        raw, code, at = self._raw, self._body_code, self._body_at
        if code == VALUE:
            return at >= len(raw) or (fits(kind, raw[at]) and (kind is not MessageKind.TEXT or self._unreadable_text() is None))
        if code == SEQUENCE:
            return kind in (MessageKind.STREAM, MessageKind.MESSAGE)
        if kind is MessageKind.TEXT:
            return decoded_text(self._data(), self._field(6)) is not None
        return kind not in (MessageKind.MAP, MessageKind.STREAM) or not self._data()

    def _unreadable_text(self) -> bytes | None:
        """Return the bytes of a body that says that it is text and is none in UTF-8; None for any other body."""
        raw, at = self._raw, self._body_at
        if self._body_code != VALUE or not raw.startswith(_TEXTS, at):
            return None
        width = 1 if raw[at] == 0xA1 else 4
        start = at + 1 + width
        data = raw[start : start + int.from_bytes(raw[at + 1 : start])]
        if data.isascii():
            return None
        try:
            decode_value(raw, at)
        except ProviderError:
            return data
        return None

    def _guess(self) -> MessageKind:
        content_type = self._field(6)
        if self._body < 0:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            return MessageKind.TEXT if is_text(content_type) else MessageKind.BYTES
        code = self._body_code
        if code == DATA:
            if content_type == JAVA_OBJECT:
                return MessageKind.OBJECT
            # What is no text in the character set that it names can be had as bytes.
            readable = is_text(content_type) and decoded_text(self._data(), content_type) is not None
            return MessageKind.TEXT if readable else MessageKind.BYTES
        if code == SEQUENCE:
            return MessageKind.STREAM
        if self._unreadable_text() is not None:
            return MessageKind.BYTES
        value, _ = decode_value(self._raw, self._body_at)
        return kind_of_value(value)

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
        """Milliseconds since 1970, or 0; of a delayed message as its sender noted it besides."""
        value = self._note("x-opt-jms-sent")
        if not isinstance(value, int):
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
        """Milliseconds since 1970; from the time to live when the sender gave only that; 0 never. Of a delayed one as noted."""
        noted = self._note("x-opt-jms-expires")
        if isinstance(noted, int):
            found = int(noted)
        elif isinstance(value := self._field(8), int) and value:
            found = int(value)
        else:
            ttl = self._head(2)
            found = self._received_ms + int(ttl) if isinstance(ttl, int) and ttl else 0
        return 0 if found and has_expired(self._annotations) else found

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970, or 0."""
        value = self._note("x-opt-delivery-time")
        return int(value) if isinstance(value, int) else 0

    @property
    def priority(self) -> int:
        """0 to 9; 4 when the sender gave none."""
        value = self._head(1)
        return min(9, int(value)) if isinstance(value, int) else 4

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded; None for other kinds."""
        if self.kind is not MessageKind.OBJECT:
            return None
        at = self._body_at
        if self._body_code == VALUE and self._raw[at : at + 1] not in (b"\xa0", b"\xb0", b"\x40"):
            return OBJECT_DATA
        value = self._field(6)
        return str(value) if isinstance(value, str) else None

    @property
    def origin(self) -> str | None:
        """The client that sent the message, when the message tells."""
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
        """Typed application properties and the JMSX ones; what has no JMS type is shown as text."""
        found: dict[str, Value] = {}
        given = self._properties()
        for name, value in named(given):
            if not name.startswith(OWN_PREFIX):
                found[name] = value if type(value) in _PLAIN else property_value(value)  # type: ignore[assignment]
        fields = self._fields if self._fields is not None else self._read_fields()
        if not isinstance(self._annotations.get(_KIND_NOTE), int):
            for name, index in _CONTENT_FIELDS:
                value = self._field(index)
                if isinstance(value, str):
                    found.setdefault(name, str(value))
        if len(fields) > _GROUP:
            group, sequence = self._field(_GROUP), self._field(_GROUP + 1)
            if isinstance(group, str):
                found["JMSXGroupID"] = group
            if isinstance(sequence, int):
                found["JMSXGroupSeq"] = int(sequence) if sequence < 2**31 else int(sequence) - 2**32
        user = fields[1] if len(fields) > 1 else None
        if isinstance(user, bytes):
            found["JMSXUserID"] = user.decode(errors="replace")
        elif isinstance(mark := given.get(USER), str):
            found["JMSXUserID"] = mark
        if not NOTES.isdisjoint(self._annotations):
            # The broker's word counts, not what a sender wrote under the same name.
            found |= notes_of(self._annotations)
        return found or EMPTY_PROPERTIES

    @property
    def body(self) -> Body:
        """The content, by ``kind``."""
        kind, text = self.kind, self._text
        if text is not None:
            self._text = None
            return text
        if self._body < 0:
            return empty_body(kind)
        code = self._body_code
        if code == VALUE:
            unreadable = self._unreadable_text() if kind is MessageKind.BYTES else None
            return body_value(kind, decode_value(self._raw, self._body_at)[0]) if unreadable is None else unreadable
        parts = self._parts(code)
        if code == SEQUENCE:
            return body_value(kind, [item for part in parts if isinstance(part, list) for item in part])
        data = b"".join([part for part in parts if isinstance(part, bytes)])
        if kind is MessageKind.TEXT:
            text = decoded_text(data, self._field(6))
            if text is None:
                raise bad_format("the body of a text message is no text in the character set of its content type")
            return text
        if kind in (MessageKind.BYTES, MessageKind.OBJECT):
            return data or empty_body(kind)
        if not data:
            return empty_body(kind)
        raise bad_format(f"a {kind.name} message came with a body of bytes")

    @property
    def is_foreign(self) -> bool:
        """Whether no JMS client has sent it, as far as the message tells."""
        note = self._note(_KIND_NOTE)
        return not isinstance(note, int)

    def foreign_parts(self) -> ForeignParts | None:
        """Return what a sender of the same body passes on besides what JMS shows; None for a message of a JMS client."""
        if not self.is_foreign:
            return None
        sections: list[bytes] = []
        raw, position = self._raw, self._body
        while 0 <= position < len(raw):
            code, at = section(raw, position)
            _, end = decode_value(raw, at)
            if code in BODIES or code == FOOTER:
                sections.append(raw[position:end])
            position = end
        shown = {name: (value, property_value(value)) for name, value in named(self._properties())}
        return ForeignParts(self._field(6), self._field(7), self._field(12), shown, b"".join(sections))

    def wire(self) -> tuple[bytes, bytes]:
        """Return the message as it came, and its body: the bytes of its data, else its sections as they are encoded.

        Decodes nothing that may be broken.
        """
        raw = self._raw
        try:
            if not self._scanned:
                self._scan()
            if self._body < 0:
                return raw, b""
            if self._body_code == DATA:
                return raw, b"".join([part for part in self._parts(DATA) if isinstance(part, bytes)])
        except ProviderError:
            return raw, raw if self._body < 0 else raw[self._body :]
        return raw, raw[self._body :]

    def wire_form(self) -> WireForm:
        """Return the message as it came, and how another process reads it; decodes nothing."""
        return WireForm(self._addresses.how_to_read(self._near), self._raw)

    @property
    def body_position(self) -> int:
        """Where the first section of the body begins; -1 when there is none."""
        if not self._scanned:
            self._scan()
        return self._body

    @property
    def has_plain_body(self) -> bool:
        """Whether the body is text, bytes or nothing, as STOMP has it."""
        if not self._scanned:
            self._scan()
        if self._body < 0:
            return True
        code, at = self._body_code, self._body_at
        return code == DATA or (code == VALUE and self._raw[at : at + 1] in (b"\x40", b"\xa0", b"\xa1", b"\xb0", b"\xb1"))

    def plain_body(self) -> AmqpValue:
        """Return the body as AMQP has it: a value, or the bytes of its data; None when there is none."""
        if not self._scanned:
            self._scan()
        if self._body < 0:
            return None
        if self._body_code == VALUE:
            return decode_value(self._raw, self._body_at)[0]
        return b"".join([part for part in self._parts(self._body_code) if isinstance(part, bytes)])

    def _data(self) -> bytes:
        return b"".join([part for part in self._parts(DATA) if isinstance(part, bytes)])

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


class KeptEnvelope(ReceivedEnvelope):
    """A message that was received before: its properties section is read when a field is asked for, and a text once.

    Such an envelope lives no longer than it takes to read it.
    """

    __slots__ = ()

    _longest_text = sys.maxsize
    _reads_fields = False
