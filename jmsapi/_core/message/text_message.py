"""TextMessage: text or None. Spec: 3.11-4, 3.11.1-1, 3.11.2-1, 9.2.3-1."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from jmsapi._core.message import accept
from jmsapi._core.message.base import MessageImpl, plain_class
from jmsapi._core.message.parts import UNREAD, Unread
from jmsapi.api import TextMessage
from jmsapi.spi import MessageKind

__all__ = ["TextMessageImpl"]

T = TypeVar("T")


class TextMessageImpl(MessageImpl, TextMessage):
    """A message whose body is text."""

    __slots__ = ("_text",)

    _kind = MessageKind.TEXT
    _text: str | Unread | None

    def _start_body(self, *, received: bool) -> None:
        super()._start_body(received=received)
        self._text = UNREAD if received else None

    @property
    def text(self) -> str | None:
        text = self._text
        if text is UNREAD:
            body: str | None = self._received_body()
            text = self._text = body
        return text

    @text.setter
    def text(self, text: str | None) -> None:
        self._check_writable()
        self._text = accept.string(text)

    def get_body(self, body_type: type[T]) -> T | None:
        fits = issubclass(str, plain_class(body_type))
        text = self.text
        if fits or text is None:
            return cast("T | None", text)
        raise self._wrong_body(body_type)

    def is_body_assignable_to(self, body_type: type[Any]) -> bool:
        return issubclass(str, plain_class(body_type)) or self.text is None

    def _freeze_body(self) -> tuple[str | None, None]:
        return self.text, None
