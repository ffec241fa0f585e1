"""The interface ``TextMessage``."""

from __future__ import annotations

from abc import abstractmethod

from jmsapi.api.message import Message

__all__ = ["TextMessage"]


class TextMessage(Message):
    """A message with text as its body.

    Spec: 3.3-3, 3.7-1, 3.11.4-2.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str | None:
        """Give the text; None if there is none. It may hold any characters but lone surrogates.

        Raises:
            MessageNotWriteableException: The text is to be set, and the body is read-only.
            MessageFormatException: The text to be set holds a lone surrogate.
        Spec: 3.5.7-3, 3.9-1, 3.11-4, 3.11.1-1, 3.11.2-1, 3.11.2-2, 3.12-4, 7.3-25, 11.2.9-3.
        """

    @text.setter
    @abstractmethod
    def text(self, text: str | None) -> None: ...
