"""The interface ``ObjectMessage``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from jmsapi.api.message import Message

__all__ = ["ObjectMessage"]


class ObjectMessage(Message):
    """A message with one Python object as its body; the object is copied in and out, never shared.

    Spec: 3.3-3, 3.7-1, 3.11.4-2.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def object(self) -> Any:
        """Give a new copy of the object; None if there is none.

        Nothing is executed to read it: the connection's codec rebuilds registered types only.

        Raises:
            MessageNotWriteableException: The object is to be set, and the body is read-only.
            MessageFormatException: The codec does not carry this type, or cannot read the body, as with a Java
                object.
        Spec: 3.11-5, 3.11.1-1, 3.11.2-1, 3.12-3, 3.12-4, 3.12-6, 9.4.10-1, B.2.21-9, J11-32.
        """

    @object.setter
    @abstractmethod
    def object(self, object: Any) -> None: ...
