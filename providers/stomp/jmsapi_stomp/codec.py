"""Envelope to SEND frame and MESSAGE frame to envelope: pure functions of a dialect.

A received envelope keeps its frame and reads a part when it is first asked for.
"""

from __future__ import annotations

import base64
import binascii
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
)
from jmsapi.values import Value
from jmsapi_stomp.amqp_values import MARK, read_value
from jmsapi_stomp.bodies import MAP_TYPE, STREAM_TYPE, read_body, write_body
from jmsapi_stomp.dialect import Dialect, number
from jmsapi_stomp.frames import Frame, Peek, escape, header_lines
from jmsapi_stomp.properties import encoded, property_lines, read_properties

__all__ = ["StompEnvelope", "encode"]

_KINDS: Final = {kind.name.capitalize(): kind for kind in MessageKind}
_TYPE_LINES: Final = {kind: f"JMS_PY_type:{name}\n" for name, kind in _KINDS.items()} | {
    MessageKind.MAP: f"JMS_PY_type:Map\ncontent-type:{MAP_TYPE}\n",
    MessageKind.STREAM: f"JMS_PY_type:Stream\ncontent-type:{STREAM_TYPE}\n",
}
_BY_NAME: Final = {name.encode(): kind for name, kind in _KINDS.items()}
_TYPE: Final = b"\nJMS_PY_type:"
_NULL: Final = b"\nJMS_PY_null:"
_EXPIRES: Final = b"\nexpires:"
_OWN_EXPIRY: Final = b"\nJMS_PY_exp:"
_JAVA_OBJECT: Final = "application/x-java-serialized-object"


def encode(envelope: Envelope, dialect: Dialect, now_ms: int, start: str) -> bytes:
    """Return the SEND frame for an envelope.

    Args:
        envelope: What to send.
        dialect: The broker's manners.
        now_ms: The time, for headers that are relative.
        start: The header lines that say where to and from whom.
    Raises:
        ProviderError: FORMAT; it cannot be encoded, or is larger than the broker takes.
    """
    kind, content = envelope.kind, envelope.body
    body = write_body(kind, content)
    name = None if envelope.message_id is None else escape(envelope.message_id)
    text = f"SEND\n{start}{_TYPE_LINES[kind]}{dialect.send_lines(envelope, name, now_ms)}priority:{envelope.priority}\n"
    if name is not None:
        text += f"JMS_PY_id:{name}\n"
    correlation = envelope.correlation_id
    if correlation is not None:
        text += _correlation(correlation)
    if envelope.jms_type is not None:
        text += f"type:{escape(envelope.jms_type)}\n"
    if envelope.reply_to is not None:
        text += header_lines(dialect.reply_to(envelope.reply_to))
    if envelope.delivery_time and envelope.delivery_time != envelope.timestamp:
        text += f"JMS_PY_due:{envelope.delivery_time}\n"
    if content is None and kind is not MessageKind.MESSAGE:
        text += "JMS_PY_null:1\n"
    if kind is MessageKind.OBJECT:
        text += f"content-type:{escape(envelope.content_type or _JAVA_OBJECT)}\n"
    text += dialect.body_lines(kind, body)
    if envelope.properties:
        text += property_lines(envelope.properties, dialect.name_limit)
    head = encoded(text, "a header")
    if b"\0" in head:
        raise ProviderError(ErrorKind.FORMAT, "a header of the message has a NUL, which STOMP cannot carry")
    _check_size(text, len(head) + len(body), dialect)
    return b"%b\n%b\0" % (head, body)


def _correlation(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return f"JMS_PY_corr:{base64.b64encode(value).decode()}\n"
    return f"correlation-id:{escape(value)}\n"


def _check_size(text: str, size: int, dialect: Dialect) -> None:
    if size > dialect.max_frame:
        words = f"the message takes {size} bytes on the wire, the broker at most {dialect.max_frame} (option max_frame)"
        raise ProviderError(ErrorKind.FORMAT, words)
    if dialect.header_limit is not None and text.count("\n") > dialect.header_limit - 5:
        words = f"the message has {text.count(chr(10))} headers, the broker takes {dialect.header_limit}"
        raise ProviderError(ErrorKind.FORMAT, words)
    limit = dialect.line_limit
    if limit is not None and 4 * len(text) > limit:
        for line in text.split("\n"):
            if 4 * len(line) > limit and len(line.encode()) + 1 > limit:
                words = f"the header or property {line.partition(':')[0]} takes more than {limit} bytes, the broker's limit"
                raise ProviderError(ErrorKind.FORMAT, words)


class StompEnvelope:
    """A received message; reads what is asked for.

    Args:
        frame: The MESSAGE frame.
        dialect: The broker's manners.
        subscribed: The address of the subscription it came by.
    """

    __slots__ = ("_dialect", "_frame", "_kind", "_properties", "_subscribed", "_text", "_times")

    def __init__(self, frame: Frame, dialect: Dialect, subscribed: Address) -> None:
        self._frame = frame
        self._dialect = dialect
        self._subscribed = subscribed
        self._kind: MessageKind | None = None
        self._properties: Mapping[str, Value] | None = None
        self._text: str | None = None
        self._times: tuple[int, int, int] | None = None

    @property
    def kind(self) -> MessageKind:
        """Which of the six message types."""
        if self._kind is None:
            named = _BY_NAME.get(self._frame.raw(_TYPE) or b"")
            self._kind = self._foreign_kind(Peek(self._frame)) if named is None else named
        return self._kind

    def _foreign_kind(self, headers: Mapping[str, str]) -> MessageKind:
        if headers.get("type") == MARK:
            return read_value(self._frame.body)[0]
        return self._dialect.foreign_kind(headers, self._frame.body)

    @property
    def destination(self) -> Address:
        """Where it was sent."""
        return self._dialect.read_destination(Peek(self._frame), self._subscribed)

    @property
    def message_id(self) -> str | None:
        """The sender's id, else one made of the broker's."""
        return self._dialect.read_message_id(Peek(self._frame))

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or 0."""
        return self._read_times()[0]

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970, or 0."""
        # Asked for each message before it is handed out; most have none.
        if self._frame.raw(_EXPIRES) in (None, b"0") and self._frame.raw(_OWN_EXPIRY) is None:
            return 0
        return self._read_times()[1]

    @property
    def delivery_time(self) -> int:
        """Milliseconds since 1970, or 0."""
        return self._read_times()[2]

    def _read_times(self) -> tuple[int, int, int]:
        times = self._times
        if times is None:
            times = self._times = self._dialect.read_times(Peek(self._frame))
        return times

    @property
    def correlation_id(self) -> str | bytes | None:
        """Text, or the bytes a jmsapi client sent."""
        coded = self._frame.get("JMS_PY_corr")
        if coded is None:
            return self._frame.get("correlation-id")
        try:
            return base64.b64decode(coded, validate=True)
        except (ValueError, binascii.Error) as cause:
            raise ProviderError(ErrorKind.FORMAT, "the correlation id received is not base64") from cause

    @property
    def reply_to(self) -> Address | None:
        """Where an answer is wanted."""
        return self._dialect.read_reply_to(Peek(self._frame))

    @property
    def delivery_mode(self) -> int:
        """1 NON_PERSISTENT, 2 PERSISTENT."""
        return PERSISTENT if self._frame.get("persistent") == "true" else NON_PERSISTENT

    @property
    def jms_type(self) -> str | None:
        """The application's word for the kind of content."""
        text = self._frame.get("type")
        return None if text == MARK else text  # the broker's word, not the sender's

    @property
    def priority(self) -> int:
        """0 to 9."""
        text = self._frame.get("priority")
        return 4 if text is None else min(max(number({"priority": text}, "priority"), 0), 9)

    @property
    def properties(self) -> Mapping[str, Value]:
        """Typed properties, the group's among them."""
        if self._properties is None:
            headers = self._frame.read()
            properties = read_properties(headers)
            group, position = self._dialect.read_group(headers)
            if group is not None:
                properties["JMSXGroupID"] = group
            if position is not None:
                properties["JMSXGroupSeq"] = _integer(position)
            self._properties = properties
        return self._properties

    @property
    def body(self) -> Body:
        """The content, by ``kind``. A text takes the place of its bytes once it is read."""
        frame = self._frame  # before the text: who finds the frame without a body finds the text
        if self._text is not None:
            return self._text
        if frame.raw(_TYPE) is None:
            if Peek(frame).get("type") == MARK:
                return read_value(frame.body)[1]
            # Java's null object takes bytes as well.
            if self.kind in (MessageKind.MAP, MessageKind.STREAM) or (self.kind is MessageKind.OBJECT and not frame.body):
                text = f"the broker does not show the content of a foreign {self.kind.name.lower()} message to STOMP"
                raise ProviderError(ErrorKind.FORMAT, text)
        body = read_body(self.kind, frame.body, null=frame.raw(_NULL) is not None)
        if isinstance(body, str):
            self._text = body
            self._frame = Frame(frame.command, frame.head, b"")
        return body

    @property
    def content_type(self) -> str | None:
        """How an OBJECT body's bytes are encoded."""
        if self.kind is not MessageKind.OBJECT:
            return None
        headers = Peek(self._frame)
        # Artemis 2.56 shows an AMQP sender's under a name of its own.
        return headers.get("content-type") or headers.get("JMS_AMQP_ContentType")

    @property
    def origin(self) -> str | None:
        """The client id or connection that sent it, when a jmsapi client did."""
        return self._frame.get("JMS_PY_from")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ProviderError(ErrorKind.FORMAT, f"the group's position received is no number: {text!r}") from None
