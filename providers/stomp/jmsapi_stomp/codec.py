"""Envelope to SEND frame and MESSAGE frame to envelope: pure functions of a behaviour.

A received envelope keeps its frame and reads a part when it is first asked for.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from jmsapi.spi import (
    NON_PERSISTENT,
    PERSISTENT,
    Address,
    Body,
    Envelope,
    ErrorKind,
    MessageKind,
    ProviderError,
    WireForm,
)
from jmsapi.values import Value
from jmsapi_stomp.amqp_values import MARK, SECTION, read_value
from jmsapi_stomp.behaviour import StompBehaviour, number
from jmsapi_stomp.bodies import MAP_TYPE, STREAM_TYPE, charset_of, read_body, write_body
from jmsapi_stomp.frames import Frame, escape, header_lines, text_of
from jmsapi_stomp.properties import encoded, property_lines, read_properties

__all__ = ["StompEnvelope", "encode"]

_KINDS: Final = {kind.name.capitalize(): kind for kind in MessageKind}
_TYPE_LINES: Final = {kind: f"JMS_PY_type:{name}\n" for name, kind in _KINDS.items()} | {
    MessageKind.MAP: f"JMS_PY_type:Map\ncontent-type:{MAP_TYPE}\n",
    MessageKind.STREAM: f"JMS_PY_type:Stream\ncontent-type:{STREAM_TYPE}\n",
}
_BY_NAME: Final = {name.encode(): kind for name, kind in _KINDS.items()}
_TYPE: Final = b"\nJMS_PY_type:"
_UNREAD: Final = b"(not read)"
"""Stands for a type that has not been looked for."""
_NULL: Final = b"\nJMS_PY_null:"
_EXPIRES: Final = b"\nexpires:"
_OWN_EXPIRY: Final = b"\nJMS_PY_exp:"
_PRIORITIES: Final[dict[str | None, int]] = {str(priority): priority for priority in range(10)}
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_JAVA_OBJECT: Final = "application/x-java-serialized-object"


def encode(envelope: Envelope, behaviour: StompBehaviour, now_ms: int, start: str) -> bytes:
    """Return the SEND frame for an envelope.

    Args:
        envelope: What to send.
        behaviour: The broker's.
        now_ms: The time, for headers that are relative.
        start: The header lines that name destination and sender.
    Raises:
        ProviderError: FORMAT; it cannot be encoded, or is larger than the broker takes.
    """
    kind, content = envelope.kind, envelope.body
    body = write_body(kind, content)
    name = None if envelope.message_id is None else escape(envelope.message_id)
    text = f"SEND\n{start}{_TYPE_LINES[kind]}{behaviour.send_lines(envelope, name, now_ms)}priority:{envelope.priority}\n"
    if name is not None:
        text += f"JMS_PY_id:{name}\n"
    correlation = envelope.correlation_id
    if correlation is not None:
        text += _correlation(correlation, behaviour)
    if envelope.jms_type is not None:
        # RabbitMQ marks so what AMQP clients sent as a value: a type of that name is not to be taken for the mark.
        own = envelope.jms_type == MARK or _is_long(envelope.jms_type, behaviour)
        text += f"{'JMS_PY_jtype' if own else 'type'}:{escape(envelope.jms_type)}\n"
    if envelope.reply_to is not None:
        text += header_lines(behaviour.reply_to(envelope.reply_to))
    if envelope.delivery_time and envelope.delivery_time != envelope.timestamp:
        text += f"JMS_PY_due:{envelope.delivery_time}\n"
    if content is None and kind is not MessageKind.MESSAGE:
        text += "JMS_PY_null:1\n"
    if kind is MessageKind.OBJECT:
        text += _object_type(envelope.content_type or _JAVA_OBJECT, behaviour)
    text += behaviour.body_lines(kind, body)
    if envelope.properties:
        user = envelope.properties.get("JMSXUserID")
        if isinstance(user, str):
            text += f"JMS_PY_user:{escape(user)}\n"
        text += property_lines(envelope.properties, behaviour.name_limit, behaviour.scheduling)
    head = encoded(text, "a header")
    if b"\0" in head:
        raise ProviderError(ErrorKind.FORMAT, "a header of the message has a NUL, which STOMP cannot carry")
    _check_size(text, len(head) + len(body), behaviour)
    return b"%b\n%b\0" % (head, body)


def _is_long(text: str, behaviour: StompBehaviour) -> bool:
    """Return whether text is longer than the broker takes in a field of its own."""
    limit = behaviour.short_text_limit
    return limit is not None and 4 * len(text) > limit and len(text.encode("utf-8", "surrogatepass")) > limit


def _correlation(value: str | bytes, behaviour: StompBehaviour) -> str:
    if isinstance(value, bytes):
        return f"JMS_PY_corr:{base64.b64encode(value).decode()}\n"
    return f"{'JMS_PY_ctext' if _is_long(value, behaviour) else 'correlation-id'}:{escape(value)}\n"


def _object_type(content_type: str, behaviour: StompBehaviour) -> str:
    return f"{'JMS_PY_otype' if _is_long(content_type, behaviour) else 'content-type'}:{escape(content_type)}\n"


def _check_size(text: str, size: int, behaviour: StompBehaviour) -> None:
    if size > behaviour.max_frame:
        words = f"the message takes {size} bytes on the wire, the broker at most {behaviour.max_frame} (option max_frame)"
        raise ProviderError(ErrorKind.FORMAT, words)
    if behaviour.header_limit is not None and text.count("\n") > behaviour.header_limit - 5:
        words = f"the message has {text.count(chr(10))} headers, the broker takes {behaviour.header_limit}"
        raise ProviderError(ErrorKind.FORMAT, words)
    limit = behaviour.line_limit
    if limit is not None and 4 * len(text) > limit:
        for line in text.split("\n"):
            if 4 * len(line) > limit and len(line.encode()) + 1 > limit:
                words = f"the header or property {line.partition(':')[0]} takes more than {limit} bytes, the broker's limit"
                raise ProviderError(ErrorKind.FORMAT, words)


class StompEnvelope:
    """A received message; reads what is asked for.

    Args:
        frame: The MESSAGE frame.
        behaviour: The broker's.
        subscribed: The address of the subscription it came by.
    """

    __slots__ = ("_behaviour", "_frame", "_kind", "_named", "_properties", "_subscribed", "_text", "_times")

    def __init__(self, frame: Frame, behaviour: StompBehaviour, subscribed: Address) -> None:
        self._frame = frame
        self._behaviour = behaviour
        self._subscribed = subscribed
        self._kind: MessageKind | None = None
        self._named: bytes | None = _UNREAD
        self._properties: Mapping[str, Value] | None = None
        self._text: str | None = None
        self._times: tuple[int, int, int] | None = None

    @property
    def kind(self) -> MessageKind:
        """One of the six message types."""
        if self._kind is None:
            kind = self.declared_kind
            if kind is MessageKind.TEXT and not self._is_amqp_value:
                charset = charset_of(self._frame.get("content-type")) if self._type_named() is None else None
                if charset is not None or not self._frame.body.isascii():
                    kind = self._decode(charset)
            self._kind = kind
        return self._kind

    @property
    def declared_kind(self) -> MessageKind:
        """The message type by the headers, before anybody looks whether a text is one."""
        named = _BY_NAME.get(self._type_named() or b"")
        return self._foreign_kind(self._frame.at_hand) if named is None else named

    def _type_named(self) -> bytes | None:
        """Return the type as a jmsapi client names it; None: another client sent the message."""
        named = self._named
        if named is _UNREAD:
            named = self._named = self._frame.raw(_TYPE)
        return named

    @property
    def _is_amqp_value(self) -> bool:
        """Whether RabbitMQ hands on what an AMQP client sent as a value, as it was encoded."""
        frame = self._frame
        return frame.body.startswith(SECTION) and self._type_named() is None and frame.get("type") == MARK

    def _foreign_kind(self, headers: Mapping[str, str]) -> MessageKind:
        if self._is_amqp_value:
            try:
                return read_value(self._frame.body)[0]
            except ProviderError:
                return MessageKind.BYTES
        return self._behaviour.foreign_kind(headers, self._frame.body)

    def _decode(self, charset: str | None) -> MessageKind:
        """Decode the text; a text that nobody could read is a BytesMessage, so that its content is not lost."""
        frame = self._frame
        try:
            self._text = text_of(frame.body) if charset is None else frame.body.decode(charset)
        except (ProviderError, ValueError, LookupError):
            return MessageKind.BYTES
        if charset is None:
            # Written as UTF-8 the text gives its bytes back; of another character set they are kept.
            self._frame = frame.without_body()
        return MessageKind.TEXT

    @property
    def destination(self) -> Address:
        """Where it was sent."""
        return self._behaviour.read_destination(self._frame.at_hand, self._subscribed)

    @property
    def message_id(self) -> str | None:
        """The sender's id, else one made of the broker's."""
        return self._behaviour.read_message_id(self._frame.at_hand)

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or 0."""
        if self._frame.is_read:
            return self._read_times()[0]
        # Often the only time that is asked for, and of a waiting message the only headers beside its id.
        return self._behaviour.read_timestamp(self._frame.at_hand)

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970, or 0."""
        # Asked for each message before it is handed out; most have none.
        frame = self._frame
        if not frame.is_read and frame.raw(_EXPIRES) in (None, b"0") and frame.raw(_OWN_EXPIRY) is None:
            return 0
        return self._read_times()[1]

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970, or 0."""
        return self._read_times()[2]

    def _read_times(self) -> tuple[int, int, int]:
        times = self._times
        if times is None:
            times = self._times = self._behaviour.read_times(self._frame.at_hand)
        return times

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or the bytes a jmsapi client sent."""
        coded = self._frame.get("JMS_PY_corr")
        if coded is not None:
            try:
                return base64.b64decode(coded, validate=True)
            except (ValueError, binascii.Error) as cause:
                raise ProviderError(ErrorKind.FORMAT, "the correlation id received is not base64") from cause
        for name in self._behaviour.correlation_names:
            text = self._frame.get(name)
            if text is not None:
                return text
        return None

    @property
    def reply_to(self) -> Address | None:
        """Where an answer is wanted."""
        return self._behaviour.read_reply_to(self._frame.at_hand)

    @property
    def delivery_mode(self) -> int:
        """1 NON_PERSISTENT, 2 PERSISTENT."""
        return PERSISTENT if self._frame.get("persistent") == "true" else NON_PERSISTENT

    @property
    def jms_type(self) -> str | None:
        """The application's word for the kind of content."""
        text = self._frame.get("type")
        if text is None or (text == MARK and self._type_named() is None):
            return self._frame.get("JMS_PY_jtype")  # the mark is the broker's word, not the sender's
        return text

    @property
    def priority(self) -> int:
        """0 to 9."""
        text = self._frame.get("priority")
        known = _PRIORITIES.get(text)
        if known is not None:
            return known
        return 4 if text is None else min(max(number({"priority": text}, "priority"), 0), 9)

    @property
    def properties(self) -> Mapping[str, Value]:
        """Typed properties, the group's among them."""
        if self._properties is None:
            behaviour = self._behaviour
            headers, others = self._frame.split()
            properties = read_properties(headers, others, behaviour.hidden, ours="JMS_PY_type" in headers)
            group, position = behaviour.read_group(headers)
            if group is not None:
                properties["JMSXGroupID"] = group
            if position is not None:
                properties["JMSXGroupSeq"] = int(position) if _INTEGER.fullmatch(position) else position
            user = behaviour.read_user(headers)
            if user is not None:
                properties["JMSXUserID"] = user
            self._properties = properties
        return self._properties

    @property
    def body(self) -> Body:
        """The content, by ``kind``. A text takes the place of its bytes once it is read."""
        kind = self.kind
        frame = self._frame  # before the text: who finds the frame without a body finds the text
        if self._text is not None:
            return self._text
        if self._type_named() is None:
            if kind is not MessageKind.BYTES and self._is_amqp_value:
                return read_value(frame.body)[1]
            # Java's null object takes bytes as well.
            if kind in (MessageKind.MAP, MessageKind.STREAM) or (kind is MessageKind.OBJECT and not frame.body):
                text = f"the broker does not show the content of a foreign {kind.name.lower()} message to STOMP"
                raise ProviderError(ErrorKind.FORMAT, text)
        body = read_body(kind, frame.body, null=frame.raw(_NULL) is not None)
        if isinstance(body, str):
            self._text = body
            self._frame = frame.without_body()
        return body

    def wire(self) -> tuple[bytes, bytes]:
        """Return the frame as it came, and its body; a text that was decoded stands for its bytes."""
        frame, text = self._frame, self._text
        body = frame.body if text is None or frame.body else text.encode("utf-8", "surrogatepass")
        return b"%s%s\n\n%s" % (frame.command, frame.head, body), body

    def wire_form(self) -> WireForm:
        """Return the message as it came, and how another process reads it; decodes nothing."""
        return WireForm(self._behaviour.how_to_read(self._subscribed), self.wire()[0])

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded."""
        if self.kind is not MessageKind.OBJECT:
            return None
        headers = self._frame.at_hand
        # Artemis 2.56 shows an AMQP sender's under a name of its own.
        return headers.get("content-type") or headers.get("JMS_PY_otype") or headers.get("JMS_AMQP_ContentType")

    @property
    def origin(self) -> str | None:
        """The client id or connection that sent it, when a jmsapi client did."""
        return self._frame.get("JMS_PY_from")
