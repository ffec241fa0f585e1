"""The properties of a message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["MessageProperties"]


class MessageProperties(ABC):
    """The properties of a message."""

    __slots__ = ()

    @abstractmethod
    def clear_properties(self) -> None:
        """Remove all properties and make them writeable; header and body stay.

        Spec: 3.5.7-1 to 3.5.7-3, 3.10-2, 3.10-3, B.2.7-1, B.3.1-7.
        """

    @abstractmethod
    def property_exists(self, name: str) -> bool:
        """Tell whether the message has a property, if only with the value None.

        Args:
            name: Name of the property, in exact letter case.
        Spec: 3.5.8-1, 3.5.9-13 to 3.5.9-15, J11-11.
        """

    @abstractmethod
    def get_boolean_property(self, name: str) -> bool:
        """Read a property as a bool.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            True or False; False if it is missing or null.
        Raises:
            MessageFormatException: The property does not convert to this type.
        Spec: 3.5.4-1, 3.5.4-2, 3.5.4-4, 3.5.4-5, 3.5.8-1, B.2.18-1.
        """

    @abstractmethod
    def get_byte_property(self, name: str) -> int:
        """Read a property as a byte.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -128 to 127.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1 to 3.5.4-3, 3.5.4-5.
        """

    @abstractmethod
    def get_short_property(self, name: str) -> int:
        """Read a property as a short.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**15 to 2**15 - 1.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1 to 3.5.4-3, 3.5.4-5.
        """

    @abstractmethod
    def get_int_property(self, name: str) -> int:
        """Read a property as an int.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**31 to 2**31 - 1.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.1-4, 3.5.4-1 to 3.5.4-3, 3.5.4-5, 3.5.8-1, 3.5.9-7, 3.5.9-9, 3.5.11-1 to 3.5.11-3, 7.3-21, 7.3-23,
            11.2.5.1-22.
        """

    @abstractmethod
    def get_long_property(self, name: str) -> int:
        """Read a property as a long.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**63 to 2**63 - 1.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1 to 3.5.4-3, 3.5.4-5, 3.5.9-12.
        """

    @abstractmethod
    def get_float_property(self, name: str) -> float:
        """Read a property as a float.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            A float that fits 32 bits without rounding.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.5.4-1 to 3.5.4-3, 3.5.4-5.
        """

    @abstractmethod
    def get_double_property(self, name: str) -> float:
        """Read a property as a double.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            A float.
        Raises:
            MessageFormatException: The property does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.5.4-1 to 3.5.4-3, 3.5.4-5.
        """

    @abstractmethod
    def get_string_property(self, name: str) -> str | None:
        """Read a property as text.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            The text, numbers in Java's form; None if the property is missing or null.
        Spec: 3.3-2, 3.5.4-1, 3.5.4-5, 3.5.8-1, 3.5.9-5, 3.5.9-6, 3.5.9-8, 3.5.9-10, 3.5.9-11.
        """

    @abstractmethod
    def get_object_property(self, name: str) -> Any:
        """Read a property as it is.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            A bool, int, float or str, of a class of ``jmsapi.values`` where its Java type needs one; None if it is
            missing or
            null.
        Spec: 3.5.2-2, 3.5.4-5, 3.5.5-1, 3.5.5-3, 3.5.5-4, 3.5.8-1.
        """

    @property
    @abstractmethod
    def property_names(self) -> Iterator[str]:
        """List the names of all properties, in no particular order; header fields are not among them.

        Returns:
            A new iterator.
        Spec: 3.3-2, 3.5.6-1, 3.5.6-2, 3.5.7-1, 3.5.10-1, 3.11.1-2.
        """

    @abstractmethod
    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a property to a bool.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: True or False.
        Raises:
            IllegalArgumentException: The name is not allowed.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_byte_property(self, name: str, value: int) -> None:
        """Set a property to a byte.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: An int, -128 to 127.
        Raises:
            IllegalArgumentException: The name is not allowed, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_short_property(self, name: str, value: int) -> None:
        """Set a property to a short.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: An int, -2**15 to 2**15 - 1.
        Raises:
            IllegalArgumentException: The name is not allowed, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_int_property(self, name: str, value: int) -> None:
        """Set a property to an int.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: An int, -2**31 to 2**31 - 1.
        Raises:
            IllegalArgumentException: The name is not allowed, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.1-4, 3.5.2-1, 3.5.3-1, 3.5.9-9, 7.3-25, B.2.17-1, B.4.5.2-2.
        """

    @abstractmethod
    def set_long_property(self, name: str, value: int) -> None:
        """Set a property to a long.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: An int, -2**63 to 2**63 - 1.
        Raises:
            IllegalArgumentException: The name is not allowed, or the value is out of range.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_float_property(self, name: str, value: float) -> None:
        """Set a property to a float.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: A float, to be rounded to 32 bits.
        Raises:
            IllegalArgumentException: The name is not allowed.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_double_property(self, name: str, value: float) -> None:
        """Set a property to a double.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: A float.
        Raises:
            IllegalArgumentException: The name is not allowed.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-3, 3.5.2-1, 3.5.3-1, 7.3-25, B.4.5.2-2.
        """

    @abstractmethod
    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a property to text.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: The text, without lone surrogates, or None.
        Raises:
            IllegalArgumentException: The name is not allowed.
            MessageFormatException: The text holds a lone surrogate.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.3-2, 3.5-1, 3.5.1-1 to 3.5.1-3, 3.5.2-1, 3.5.3-1, 3.5.7-2, 3.5.9-1, 3.5.9-8, 3.9-1, 3.12-4.
        """

    @abstractmethod
    def set_object_property(self, name: str, value: Any) -> None:
        """Set a property with its own type.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: A bool, int, float, str, None or one of the classes of ``jmsapi.values``.
        Raises:
            IllegalArgumentException: The name is not allowed, or an int does not fit 64 bits.
            MessageFormatException: The value is of another type.
            MessageNotWriteableException: The properties are read-only.
        Spec: 3.5.1-1, 3.5.1-3, 3.5.2-2, 3.5.3-1, 3.5.5-1, 3.5.5-2, 3.12-4, 7.3-21, B.4.5.2-2.
        """
