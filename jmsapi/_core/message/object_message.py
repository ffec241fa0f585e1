"""ObjectMessage: an object as the bytes of a codec, which nobody reads before the application asks for the object.

Bytes of a codec that is not ours, such as a serialised Java object, are never executed; ``get_body(bytes)`` gives them.

Spec: 3.11-5, 3.12-3, 3.12-6, 9.4.10-1, B.2.21-9.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from jmsapi._core.message.base import MessageImpl, plain_class
from jmsapi._core.message.parts import UNREAD, Unread, read_part
from jmsapi.api import ObjectMessage
from jmsapi.errors import JMSException
from jmsapi.spi import MessageKind

__all__ = ["ObjectMessageImpl"]

T = TypeVar("T")


class ObjectMessageImpl(MessageImpl, ObjectMessage):
    """A message whose body is one object."""

    __slots__ = ("_content_type", "_data")

    _kind = MessageKind.OBJECT
    _data: bytes | Unread | None
    _content_type: str | None

    def _start_body(self, *, received: bool) -> None:
        super()._start_body(received=received)
        self._data = UNREAD if received else None
        self._content_type = None

    def _content(self) -> bytes | None:
        data = self._data
        if data is UNREAD:
            self._content_type = read_part(self._envelope, "content_type")
            data = self._data = cast("bytes | None", self._received_body())
        return data

    @property
    def object(self) -> Any:
        data = self._content()
        return None if data is None else self._codec.decode(data, self._content_type)

    @object.setter
    def object(self, object: Any) -> None:
        self._check_writable()
        if object is None:
            self._data, self._content_type = None, None
        else:
            self._data, self._content_type = self._codec.encode(object)

    def get_body(self, body_type: type[T]) -> T | None:
        data = self._content()
        wanted = plain_class(body_type)
        if data is None:
            return None
        if wanted is bytes and not self._codec.knows(self._content_type):
            return cast(T, data)
        value = self._codec.decode(data, self._content_type)
        if isinstance(value, wanted):
            return cast(T, value)
        raise self._wrong_body(body_type)

    def is_body_assignable_to(self, body_type: type[Any]) -> bool:
        wanted = plain_class(body_type)
        try:
            self.get_body(wanted)
        except JMSException:
            return False
        return True

    def _freeze_body(self) -> tuple[bytes | None, str | None]:
        data = self._content()
        return data, self._content_type
