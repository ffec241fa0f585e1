"""The interface ``BytesMessage``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from jmsapi.api.message import Message

__all__ = ["BytesMessage"]


class BytesMessage(Message):
    """A message with bytes as its body, written and read in Java's DataOutput format, high byte first.

    A new message can only be written; ``reset``, sending it and receiving it make it readable, ``clear_body``
    writeable.

    Spec: 3.3-3, 3.7-1, 3.11.4-2, 3.11.4-4.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def body_length(self) -> int:
        """Give the length of the body in bytes, wherever the reading is.

        Raises:
            MessageNotReadableException: The body is in write-only mode.
        Spec: 3.11-6, 7.3-24, 9.4.4-1, B.4.5.1-1.
        """

    @abstractmethod
    def read_boolean(self) -> bool:
        """Read one byte as a bool.

        Returns:
            True or False.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: The body is at its end.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_byte(self) -> int:
        """Read one byte as a byte.

        Returns:
            An int, -128 to 127.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: The body is at its end.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_unsigned_byte(self) -> int:
        """Read one byte as a number without sign.

        Returns:
            An int, 0 to 255.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: The body is at its end.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_short(self) -> int:
        """Read 2 bytes as a short.

        Returns:
            An int, -2**15 to 2**15 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 2 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_unsigned_short(self) -> int:
        """Read 2 bytes as a number without sign.

        Returns:
            An int, 0 to 65535.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 2 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_char(self) -> str:
        """Read 2 bytes as a char.

        Returns:
            One UTF-16 code unit, a str of length 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 2 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_int(self) -> int:
        """Read 4 bytes as an int.

        Returns:
            An int, -2**31 to 2**31 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 4 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_long(self) -> int:
        """Read 8 bytes as a long.

        Returns:
            An int, -2**63 to 2**63 - 1.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 8 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_float(self) -> float:
        """Read 4 bytes as a float.

        Returns:
            A float that fits 32 bits without rounding.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 4 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_double(self) -> float:
        """Read 8 bytes as a double.

        Returns:
            A float.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: Fewer than 8 bytes are left, and stay.
        Spec: 3.11-6, 3.11.3-10, 7.3-18, 7.3-24.
        """

    @abstractmethod
    def read_utf(self) -> str:
        """Read text in Java's modified UTF-8, after two bytes with its length.

        Returns:
            The text.
        Raises:
            MessageNotReadableException: The body is in write-only mode.
            MessageEOFException: The body ends within the text; nothing moves.
            MessageFormatException: The bytes are no such text; nothing moves.
        Spec: 3.11.3-10.
        """

    @abstractmethod
    def read_bytes(self, value: bytearray | memoryview, length: int | None = None) -> int:
        """Read bytes into a buffer.

        Args:
            value: Where to put them, from its beginning.
            length: How many at most, from 0 to the buffer's length; None means as many as the buffer holds.
        Returns:
            How many were read; -1 when the reading was at the end already.
        Raises:
            IllegalArgumentException: The length is negative or larger than the buffer.
            MessageNotReadableException: The body is in write-only mode.
        Spec: 3.11-6, 9.4.4-1, 9.4.4-2, B.2.20-1, B.2.21-4.
        """

    @abstractmethod
    def write_boolean(self, value: bool) -> None:
        """Write a bool, one byte.

        Args:
            value: True or False.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_byte(self, value: int) -> None:
        """Write a byte, one byte.

        Args:
            value: An int, -128 to 127.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25, B.2.16-1.
        """

    @abstractmethod
    def write_short(self, value: int) -> None:
        """Write a short, 2 bytes.

        Args:
            value: An int, -2**15 to 2**15 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_char(self, value: str) -> None:
        """Write a char, 2 bytes.

        Args:
            value: One UTF-16 code unit: a str of length 1, not above U+FFFF.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_int(self, value: int) -> None:
        """Write an int, 4 bytes.

        Args:
            value: An int, -2**31 to 2**31 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 3.11.2-2, 7.3-25.
        """

    @abstractmethod
    def write_long(self, value: int) -> None:
        """Write a long, 8 bytes.

        Args:
            value: An int, -2**63 to 2**63 - 1.
        Raises:
            IllegalArgumentException: The value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_float(self, value: float) -> None:
        """Write a float, 4 bytes.

        Args:
            value: A float, to be rounded to 32 bits.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_double(self, value: float) -> None:
        """Write a double, 8 bytes.

        Args:
            value: A float.
        Raises:
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 7.3-25.
        """

    @abstractmethod
    def write_utf(self, value: str) -> None:
        """Write text in Java's modified UTF-8, after two bytes with its length.

        Args:
            value: The text, at most 65,535 bytes in that form.
        Raises:
            NullPointerException: The value is None.
            MessageFormatException: The text is too long.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.12-5.
        """

    @abstractmethod
    def write_bytes(self, value: bytes | bytearray | memoryview, offset: int = 0, length: int | None = None) -> None:
        """Write a copy of bytes.

        Args:
            value: The bytes.
            offset: The first to write.
            length: How many to write; None means all from the offset on.
        Raises:
            NullPointerException: The value is None.
            IllegalArgumentException: Offset and length go past the value.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-6, 3.11.2-1, 3.12-3, 3.12-5.
        """

    @abstractmethod
    def write_object(self, value: Any) -> None:
        """Write a value in the format of its type.

        Args:
            value: A bool, int, float, str, bytes or one of the classes of ``jmsapi.values``.
        Raises:
            NullPointerException: The value is None.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.12-5, 7.3-19.
        """

    @abstractmethod
    def reset(self) -> None:
        """Make the body read-only, and read it from its beginning.

        Raises:
            MessageFormatException: The body is not well formed.
            JMSException: The provider failed.
        Spec: 3.11.1-1.
        """
