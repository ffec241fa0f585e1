"""The interface ``MapMessage``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from jmsapi.api.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["MapMessage"]


class MapMessage(Message):
    """A message with names and typed values as its body.

    A value is read as its own type or as one it converts to. A name that is not there reads like a null value.

    Spec: 3.3-3, 3.7-1, 3.11.3-1, 3.11.3-4, 3.11.4-1, 3.11.4-2.
    """

    __slots__ = ()

    @abstractmethod
    def get_boolean(self, name: str) -> bool:
        """Read a value as a bool.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            True or False; False if it is missing or null.
        Raises:
            MessageFormatException: The value does not convert to this type.
        Spec: 3.11.3-3, 3.11.3-4, 3.11.3-6 to 3.11.3-8.
        """

    @abstractmethod
    def get_byte(self, name: str) -> int:
        """Read a value as a byte.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            An int, -128 to 127.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-8.
        """

    @abstractmethod
    def get_short(self, name: str) -> int:
        """Read a value as a short.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            An int, -2**15 to 2**15 - 1.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-8, 7.3-20.
        """

    @abstractmethod
    def get_char(self, name: str) -> str:
        """Read a value as a char.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            One UTF-16 code unit, a str of length 1.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NullPointerException: It is missing or null.
        Spec: 3.11.3-3, 3.11.3-4, 3.11.3-7, 3.11.3-8, B.2.14-1.
        """

    @abstractmethod
    def get_int(self, name: str) -> int:
        """Read a value as an int.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            An int, -2**31 to 2**31 - 1.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.11-2, 3.11.3-3 to 3.11.3-5, 3.11.3-8, 7.3-23.
        """

    @abstractmethod
    def get_long(self, name: str) -> int:
        """Read a value as a long.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            An int, -2**63 to 2**63 - 1.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-8, 9.4.5-1, B.2.18-1.
        """

    @abstractmethod
    def get_float(self, name: str) -> float:
        """Read a value as a float.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            A float that fits 32 bits without rounding.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-8.
        """

    @abstractmethod
    def get_double(self, name: str) -> float:
        """Read a value as a double.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            A float.
        Raises:
            MessageFormatException: The value does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.11.3-3 to 3.11.3-5, 3.11.3-8.
        """

    @abstractmethod
    def get_string(self, name: str) -> str | None:
        """Read a value as text.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            The text, numbers in Java's form; None if the value is missing or null.
        Raises:
            MessageFormatException: The value is bytes.
        Spec: 3.11.3-3, 3.11.3-8.
        """

    @abstractmethod
    def get_bytes(self, name: str) -> bytes | None:
        """Read a value of bytes.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            A copy of the bytes; None if the value is missing or null.
        Raises:
            MessageFormatException: The value is of another type.
        Spec: 3.11-2, 3.11.3-3, 3.12-6.
        """

    @abstractmethod
    def get_object(self, name: str) -> Any:
        """Read a value as it is.

        Args:
            name: Name of the value, in exact letter case.
        Returns:
            A bool, int, float, str, new bytes or None; of a class of ``jmsapi.values`` where its Java type needs
            one.
        Spec: 3.11.3-2, 3.11.3-8, 3.12-6, B.2.21-1.
        """

    @property
    @abstractmethod
    def map_names(self) -> Iterator[str]:
        """List all names, in no particular order.

        Returns:
            A new iterator.
        Spec: 3.11-3, 3.11.1-1, 9.4.6-2.
        """

    @abstractmethod
    def set_boolean(self, name: str, value: bool) -> None:
        """Set a value to a bool.

        Args:
            name: Name of the value, not empty.
            value: True or False.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_byte(self, name: str, value: int) -> None:
        """Set a value to a byte.

        Args:
            name: Name of the value, not empty.
            value: An int, -128 to 127.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_short(self, name: str, value: int) -> None:
        """Set a value to a short.

        Args:
            name: Name of the value, not empty.
            value: An int, -2**15 to 2**15 - 1.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_char(self, name: str, value: str) -> None:
        """Set a value to a char.

        Args:
            name: Name of the value, not empty.
            value: One UTF-16 code unit: a str of length 1, not above U+FFFF.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_int(self, name: str, value: int) -> None:
        """Set a value to an int.

        Args:
            name: Name of the value, not empty.
            value: An int, -2**31 to 2**31 - 1.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-2, 3.11.2-1, 3.11.3-1, 3.11.3-2, 7.3-25, B.2.16-1, B.4.5.2-1.
        """

    @abstractmethod
    def set_long(self, name: str, value: int) -> None:
        """Set a value to a long.

        Args:
            name: Name of the value, not empty.
            value: An int, -2**63 to 2**63 - 1.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_float(self, name: str, value: float) -> None:
        """Set a value to a float.

        Args:
            name: Name of the value, not empty.
            value: A float, to be rounded to 32 bits.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, B.4.5.2-1.
        """

    @abstractmethod
    def set_double(self, name: str, value: float) -> None:
        """Set a value to a double.

        Args:
            name: Name of the value, not empty.
            value: A float.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-1, 7.3-25, 9.4.5-1, B.4.5.2-1.
        """

    @abstractmethod
    def set_string(self, name: str, value: str | None) -> None:
        """Set a value to text.

        Args:
            name: Name of the value, not empty.
            value: The text, without lone surrogates, or None.
        Raises:
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageFormatException: The text holds a lone surrogate.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.12-4, 9.4.5-1, B.2.11-1, B.4.5.2-1.
        """

    @abstractmethod
    def set_bytes(
        self, name: str, value: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None
    ) -> None:
        """Set a value to a copy of bytes.

        Args:
            name: Name of the value, not empty.
            value: The bytes, or None.
            offset: The first to take.
            length: How many to take; None means all from the offset on.
        Raises:
            IllegalArgumentException: The name is None or empty, or offset and length go past the value.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11-2, 3.12-3, 3.12-4, B.4.5.2-1, B.5.24-1, J11-22.
        """

    @abstractmethod
    def set_object(self, name: str, value: Any) -> None:
        """Set a value with its own type.

        Args:
            name: Name of the value, not empty.
            value: A bool, int, float, str, bytes, None or one of the classes of ``jmsapi.values``.
        Raises:
            MessageFormatException: The value is of another type.
            IllegalArgumentException: The name is None or empty, or the value is out of range.
            MessageNotWriteableException: The body is read-only.
        Spec: 3.11.2-1, 3.11.3-2, 3.11.3-7, 3.12-4, 7.3-19, B.4.5.2-1.
        """

    @abstractmethod
    def item_exists(self, name: str) -> bool:
        """Tell whether a name is there, if only with a null value.

        Args:
            name: Name of the value, in exact letter case.
        Spec: 3.11-2, 3.11.3-8.
        """
