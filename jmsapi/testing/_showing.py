"""Messages as text for people who read a failed test: nothing in it can steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jmsapi.api import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsapi.errors import JMSException, MessageEOFException

__all__ = ["body_of", "head", "table"]

_WIDEST: Final = 60
_MOST_ROWS: Final = 20


def body_of(message: Message) -> object:
    """Return the body of a message as a Python value.

    Args:
        message: It stays as it is; a stream or bytes message is read from its start.
    Returns:
        Text: str or None. Bytes: bytes. Map: dict. Stream: list. Object: the object. Plain message: None.
    Raises:
        JMSException: The body cannot be decoded.
    """
    match message:
        case TextMessage():
            return message.text
        case BytesMessage():
            return message.get_body(bytes)
        case MapMessage():
            return {name: message.get_object(name) for name in message.map_names}
        case StreamMessage():
            return _entries(message)
        case ObjectMessage():
            return message.object
        case _:
            return None


def _entries(message: StreamMessage) -> list[object]:
    entries: list[object] = []
    message.reset()
    while True:
        try:
            entries.append(message.read_object())
        except MessageEOFException:
            message.reset()
            return entries


def head(value: object, widest: int = _WIDEST) -> str:
    """Return the beginning of a value as Python writes it: one line, control characters escaped.

    Args:
        value: What is shown; of long text and bytes no more than the beginning is looked at.
        widest: Most characters.
    """
    if isinstance(value, str | bytes) and len(value) > widest:
        return (
            f"{_ascii_controls(repr(value[:widest]))}... ({len(value)} {'bytes' if isinstance(value, bytes) else 'characters'})"
        )
    text = _ascii_controls(repr(value))
    return text if len(text) <= 3 * widest else f"{text[: 3 * widest]}..."


def _ascii_controls(text: str) -> str:
    # repr escapes what is not printable; an object's own repr need not.
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def table(messages: Sequence[Message], remarks: Sequence[str] = ()) -> str:
    """Draw a table of messages: number, id, type, properties, body, and a remark each.

    Args:
        messages: In their order; of very many the last ones are shown.
        remarks: One for each message, or none.
    """
    first = max(0, len(messages) - _MOST_ROWS)
    rows = [["#", "id", "type", "properties", "body", *(["remark"] if remarks else [])]]
    for index in range(first, len(messages)):
        rows.append([str(index + 1), *_cells(messages[index]), *([_ascii_controls(remarks[index])] if remarks else [])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if first:
        lines.insert(1, f"   ... {first} before these")
    return "\n".join(f"  {line}" for line in lines)


def _cells(message: Message) -> Iterable[str]:
    yield (message.jms_message_id or "none")[-_WIDEST // 3 :]
    yield "" if message.jms_type is None else head(message.jms_type)
    properties = {name: message.get_object_property(name) for name in message.property_names}
    shown = " ".join(f"{name}={head(value, 30)}" for name, value in properties.items() if name != "JMSXDeliveryCount")
    yield shown if len(shown) <= 2 * _WIDEST else f"{shown[: 2 * _WIDEST]}..."
    try:
        yield head(body_of(message))
    except JMSException as error:
        yield f"cannot be read: {head(str(error))}"
