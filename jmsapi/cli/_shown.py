"""Messages as text: as JSON for programs, and for people so that nothing in a message can steer their terminal."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from jmsapi import (
    BytesMessage,
    JMSException,
    MapMessage,
    Message,
    MessageEOFException,
    ObjectMessage,
    StreamMessage,
    TextMessage,
)

__all__ = ["body_of", "for_terminal", "head", "json_line", "plain", "printable", "properties_of"]

_WIDEST: Final = 48


def body_of(message: Message) -> Any:
    """Return the body as a Python value; an object as Python writes it."""
    if isinstance(message, TextMessage):
        return message.text
    if isinstance(message, BytesMessage):
        return message.get_body(bytes)
    if isinstance(message, MapMessage):
        return {key: message.get_object(key) for key in message.map_names}
    if isinstance(message, StreamMessage):
        return list(_entries(message))
    if isinstance(message, ObjectMessage):
        return repr(message.object)
    return None


def _entries(message: StreamMessage) -> Iterable[Any]:
    while True:
        try:
            yield message.read_object()
        except MessageEOFException:
            return


def plain(value: Any) -> Any:
    """Return what JSON can say; bytes become base64."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def json_line(message: Message) -> str:
    """Return headers, properties and body as one line of JSON."""
    headers = {
        "JMSMessageID": message.jms_message_id,
        "JMSTimestamp": message.jms_timestamp,
        "JMSCorrelationID": message.jms_correlation_id,
        "JMSReplyTo": None if message.jms_reply_to is None else str(message.jms_reply_to),
        "JMSDestination": str(message.jms_destination),
        "JMSDeliveryMode": message.jms_delivery_mode,
        "JMSRedelivered": message.jms_redelivered,
        "JMSType": message.jms_type,
        "JMSExpiration": message.jms_expiration,
        "JMSPriority": message.jms_priority,
    }
    content = {"headers": headers, "properties": properties_of(message), "body": plain(body_of(message))}
    return json.dumps(content, ensure_ascii=False)


def properties_of(message: Message) -> dict[str, Any]:
    """Return all properties by name."""
    return {name: message.get_object_property(name) for name in message.property_names}


def for_terminal(text: str) -> str:
    """Return text as standard output may have it: unchanged, but on a terminal without what would steer it."""
    return printable(text) if sys.stdout.isatty() else text


def printable(text: str) -> str:
    """Return text with everything escaped that is neither printable nor a line end or tab."""
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()


def head(message: Message) -> str:
    """Return the beginning of a body in one printable line, with what kind it is."""
    try:
        body = body_of(message)
    except JMSException as error:
        return printable(f"cannot be read: {error}".replace("\n", " "))
    if body is None:
        return "-"
    size = f" ({len(body)} {'bytes' if isinstance(body, bytes) else 'characters'})" if isinstance(body, str | bytes) else ""
    text = repr(body[:_WIDEST] if isinstance(body, str | bytes) else body)
    more = isinstance(body, str | bytes) and len(body) > _WIDEST
    if len(text) > 2 * _WIDEST:
        text, more = text[: 2 * _WIDEST], True
    return printable(text) + (f"...{size}" if more else "")
