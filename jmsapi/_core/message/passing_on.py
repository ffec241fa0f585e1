"""What tools that pass messages on need beyond the specification: objects as they are, and some properties away."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Callable

from jmsapi._core.message.object_message import ObjectMessageImpl
from jmsapi._core.message.properties import Access, Properties
from jmsapi.api import Message, ObjectMessage
from jmsapi.errors import MessageFormatException

__all__ = ["drop_properties", "encoded_object", "set_encoded_object"]


def encoded_object(message: ObjectMessage) -> tuple[bytes | None, str | None]:
    """Return the bytes of an object and their content type, without decoding them; for tools that pass objects on.

    Raises:
        MessageFormatException: The message is another library's.
    """
    if not isinstance(message, ObjectMessageImpl):
        raise MessageFormatException(f"{type(message).__name__} does not tell the bytes of its object")
    return message._freeze_body()


def set_encoded_object(message: ObjectMessage, data: bytes, content_type: str | None) -> None:
    """Give a new message an object in the form of ``encoded_object``.

    Raises:
        MessageFormatException: The message is another library's.
        MessageNotWriteableException: The body is read-only.
    """
    if not isinstance(message, ObjectMessageImpl):
        raise MessageFormatException(f"{type(message).__name__} does not take the bytes of an object")
    message._check_writable()
    message._data, message._content_type = data, content_type


def drop_properties(message: Message, unwanted: Callable[[str], bool]) -> None:
    """Take some properties away; the rest stays as it came, also under names that no client of JMS may give.

    Raises:
        MessageFormatException: The message is another library's.
    """
    if not isinstance(message, Properties):
        raise MessageFormatException(f"{type(message).__name__} does not let properties be taken away")
    message._properties = {name: value for name, value in message._all_properties().items() if not unwanted(name)}
    message._property_access = Access.SHARED
