"""Bodies of messages for people."""

from __future__ import annotations

import base64
from typing import Any, Final

from jmsapi import Message, ObjectMessage
from jmsapi._showing import body_of, head, part

__all__ = ["body_head", "plain", "shown_body"]

_WIDEST: Final = 48


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


def body_head(message: Message) -> str:
    """Return the beginning of a body in one printable line, with what kind it is."""
    body = part(lambda: body_of(message))
    return "-" if body is None else head(body, _WIDEST)
