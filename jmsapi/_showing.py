"""Messages as text for people: a part that cannot be read hides no other, and nothing in a message can steer a terminal.

The command line and the test kit show messages; neither decides anything by what it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from jmsapi.api import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsapi.errors import MessageEOFException

__all__ = ["Unreadable", "body_of", "escaped", "head", "one_line", "part", "properties_head", "properties_of"]

T = TypeVar("T")
_WIDEST: Final = 60


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a part of a message that cannot be read, such as a body of somebody else's making.

    Attributes:
        why: The reason in one printable line.
    """

    why: str

    def __repr__(self) -> str:
        return f"cannot be read: {self.why}"


def part(read: Callable[[], T]) -> T | Unreadable:
    """Read one part of a message.

    Whatever a decoder or an object's own ``repr`` raises: who looks at a queue must see what is behind that message, too.
    """
    try:
        return read()
    except Exception as error:
        return Unreadable(one_line(error))


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


def properties_of(message: Message) -> dict[str, object]:
    """Return all properties by name.

    Raises:
        JMSException: They cannot be decoded.
    """
    return {name: message.get_object_property(name) for name in message.property_names}


def properties_head(message: Message, widest: int = 2 * _WIDEST) -> str:
    """Return the properties in one line, or why they cannot be read; the count of deliveries is the broker's and left out.

    Args:
        message: It stays as it is.
        widest: Most characters of all of them.
    """
    found = part(lambda: properties_of(message))
    if isinstance(found, Unreadable):
        return repr(found)
    text = " ".join(f"{escaped(name)}={head(value, widest // 4)}" for name, value in found.items() if name != "JMSXDeliveryCount")
    return text if len(text) <= widest else f"{text[:widest]}..."


def head(value: object, widest: int = _WIDEST) -> str:
    """Return the beginning of a value as Python writes it: one line, control characters escaped.

    Args:
        value: What is shown; of long text and bytes no more than the beginning is looked at.
        widest: Most characters.
    """
    if isinstance(value, str | bytes) and len(value) > widest:
        return f"{escaped(repr(value[:widest]))}... ({len(value)} {'bytes' if isinstance(value, bytes) else 'characters'})"
    # repr escapes what is not printable; an object's own repr need not, and may fail.
    written = part(lambda: repr(value))
    text = repr(written) if isinstance(written, Unreadable) else escaped(written)
    return text if len(text) <= 3 * widest else f"{text[: 3 * widest]}..."


def escaped(text: str, keep: str = "") -> str:
    """Return text with everything escaped that is not printable, but what is to be kept."""
    return "".join(char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text)


def one_line(error: BaseException) -> str:
    """Return the text of an error in one line; a broker may have written it, so nothing in it steers a terminal."""
    return escaped(" ".join(str(error).split())) or type(error).__name__
