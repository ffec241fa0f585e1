"""Messages on standard output: as JSON for programs, and as text that cannot steer a terminal."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from jmsapi import Message, ObjectMessage
from jmsapi._showing import Unreadable, body_of, escaped, head, part, properties_of

__all__ = ["body_head", "for_terminal", "json_line", "plain", "printable", "shown_body"]

_WIDEST: Final = 48
_HEADERS: Final[dict[str, Callable[[Message], Any]]] = {
    "JMSMessageID": lambda message: message.jms_message_id,
    "JMSTimestamp": lambda message: message.jms_timestamp,
    "JMSCorrelationID": lambda message: message.jms_correlation_id,
    "JMSReplyTo": lambda message: None if message.jms_reply_to is None else str(message.jms_reply_to),
    "JMSDestination": lambda message: str(message.jms_destination),
    "JMSDeliveryMode": lambda message: message.jms_delivery_mode,
    "JMSRedelivered": lambda message: message.jms_redelivered,
    "JMSType": lambda message: message.jms_type,
    "JMSExpiration": lambda message: message.jms_expiration,
    "JMSPriority": lambda message: message.jms_priority,
}


def shown_body(message: Message) -> object:
    """Return the body as a Python value, an object as Python writes it; ``Unreadable`` if it cannot be read."""
    return part(lambda: repr(message.object) if isinstance(message, ObjectMessage) else body_of(message))


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
    """Return headers, properties and body as one line of JSON; what cannot be read is null, and ``unreadable`` says why."""
    unreadable: dict[str, str] = {}

    def read(name: str, value: Any) -> Any:
        if isinstance(value, Unreadable):
            unreadable[name] = value.why
            return None
        return plain(value)

    content = {
        "headers": {name: read(name, part(partial(get, message))) for name, get in _HEADERS.items()},
        "properties": read("properties", part(lambda: properties_of(message))),
        "body": read("body", shown_body(message)),
    }
    return json.dumps(content | ({"unreadable": unreadable} if unreadable else {}), ensure_ascii=False)


def for_terminal(text: str) -> str:
    """Return text as standard output may have it: unchanged, but on a terminal without what would steer it.

    What its encoding cannot say, such as half of a surrogate pair, is escaped.
    """
    encoding = sys.stdout.encoding or "utf-8"
    said = text.encode(encoding, "backslashreplace").decode(encoding)
    return printable(said) if sys.stdout.isatty() else said


def printable(text: str) -> str:
    """Return text with everything escaped that is neither printable nor a line end or tab."""
    return escaped(text, keep="\n\t")


def body_head(message: Message) -> str:
    """Return the beginning of a body in one printable line, with what kind it is."""
    body = part(lambda: body_of(message))
    return "-" if body is None else head(body, _WIDEST)
