"""The interface ``StreamMessage``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from jmsapi.api.message import Message

__all__ = ["StreamMessage"]


class StreamMessage(Message):
    """A message with typed values in a row as its body, read in the order in which they were written.

    A new message can only be written; ``reset``, sending it and receiving it make it readable, ``clear_body``
    writeable. A value is read as its own type or as one it converts to. A read that fails does not move the reading.

    Spec: 3.3-3, 3.7-1, 3.11.3-1, 3.11.3-4, 3.11.4-1, 3.11.4-2.
    """

    __slots__ = ()

    @abstractmethod
    def read_boolean(self) -> bool:
        """Read the next value as a bool.

        Returns:
            True or False; null counts as False.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
        Spec: 3.11.3-3, 3.11.3-4, 3.11.3-6, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24.
        """

    @abstractmethod
    def read_byte(self) -> int:
        """Read the next value as a byte.

        Returns:
            An int, -128 to 127.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24.
        """

    @abstractmethod
    def read_short(self) -> int:
        """Read the next value as a short.

        Returns:
            An int, -2**15 to 2**15 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24.
        """

    @abstractmethod
    def read_char(self) -> str:
        """Read the next value as a char.

        Returns:
            One UTF-16 code unit, a str of length 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NullPointerException: It is null.
        Spec: 3.11.3-3, 3.11.3-4, 3.11.3-7, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24, B.2.14-1.
        """

    @abstractmethod
    def read_int(self) -> int:
        """Read the next value as an int.

        Returns:
            An int, -2**31 to 2**31 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or null.
        Spec: 3.11-1, 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-23, 7.3-24.
        """

    @abstractmethod
    def read_long(self) -> int:
        """Read the next value as a long.

        Returns:
            An int, -2**63 to 2**63 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24.
        """

    @abstractmethod
    def read_float(self) -> float:
        """Read the next value as a float.

        Returns:
            A float that fits 32 bits without rounding.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24.
        """

    @abstractmethod
    def read_double(self) -> float:
        """Read the next value as a double.

        Returns:
            A float.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-9, 7.3-18, 7.3-20, 7.3-24, B.2.18-1.
        """

    @abstractmethod
    def read_string(self) -> str | None:
        """Read the next value as text.

        Returns:
            The text, numbers in Java's form; None for a null value.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
        Spec: 3.11-1, 3.11.3-3, 3.11.3-9, 9.4.8-1.
        """

    @abstractmethod
    def read_bytes(self, value: bytearray | memoryview) -> int:
        """Read a field of bytes into a buffer; further calls continue with it until it is used up.

        Args:
            value: Where to put them, from its beginning.
        Returns:
            How many were read; fewer than the buffer holds, or -1, at the end of the field; -1 for a null field.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
        Spec: 3.11.3-3, B.2.21-4, B.2.21-5.
        """

    @abstractmethod
    def read_object(self) -> Any:
        """Read the next value as it is.

        Returns:
            A bool, int, float, str, new bytes or None; of a class of ``jmsapi.values`` where its Java type needs
            one.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: There is no further value.
            MessageFormatException: The value does not convert to this type.
        Spec: 3.11.3-2, 3.11.3-9, 3.12-6, B.2.21-1.
        """

    @abstractmethod
    def write_boolean(self, value: bool) -> None:
        """Write a bool.

        Args:
            value: True or False.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_byte(self, value: int) -> None:
        """Write a byte.

        Args:
            value: An int, -128 to 127.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_short(self, value: int) -> None:
        """Write a short.

        Args:
            value: An int, -2**15 to 2**15 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_char(self, value: str) -> None:
        """Write a char.

        Args:
            value: One UTF-16 code unit: a str of length 1, not above U+FFFF.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_int(self, value: int) -> None:
        """Write an int.

        Args:
            value: An int, -2**31 to 2**31 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_long(self, value: int) -> None:
        """Write a long.

        Args:
            value: An int, -2**63 to 2**63 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_float(self, value: float) -> None:
        """Write a float.

        Args:
            value: A float, to be rounded to 32 bits.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_double(self, value: float) -> None:
        """Write a double.

        Args:
            value: A float.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.11.2-1, 3.11.3-1, 7.3-25.
        """

    @abstractmethod
    def write_string(self, value: str | None) -> None:
        """Write text.

        Args:
            value: The text, without lone surrogates; None writes a null value.
        Raises:
            MessageFormatException: The text holds a lone surrogate.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-1, 3.12-4, 9.4.8-1, B.2.11-1.
        """

    @abstractmethod
    def write_bytes(self, value: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None) -> None:
        """Write a copy of bytes as one field.

        Args:
            value: The bytes; None writes a null value.
            offset: The first to write.
            length: How many to write; None means all from the offset on.
        Raises:
            IllegalArgumentException: Offset and length go past the value.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.12-3.
        """

    @abstractmethod
    def write_object(self, value: Any) -> None:
        """Write a value with its own type.

        Args:
            value: A bool, int, float, str, bytes, None or one of the classes of ``jmsapi.values``.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-2, 3.11.3-7, 3.12-4, 7.3-19.
        """

    @abstractmethod
    def reset(self) -> None:
        """Make the body read-only, and read it from its first value.

        Raises:
            MessageFormatException: The body is not well formed.
            JMSException: The provider failed.
        Spec: 3.11-1, 3.11.1-1.
        """
