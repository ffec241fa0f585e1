"""The properties that a JMSProducer gives to its messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self, overload

if TYPE_CHECKING:
    from jmsapi.values import PropertyType

__all__ = ["ProducerProperties"]


class ProducerProperties(ABC):
    """The properties that a JMSProducer gives to its messages."""

    @overload
    @abstractmethod
    def set_property(self, name: str, value: bool | str | None) -> Self: ...

    @overload
    @abstractmethod
    def set_property(self, name: str, value: int, property_type: PropertyType | None = None) -> Self: ...

    @overload
    @abstractmethod
    def set_property(self, name: str, value: float, property_type: Literal["float", "double"] | None = None) -> Self: ...

    @overload
    @abstractmethod
    def set_property(self, name: str, value: Any, property_type: PropertyType | None = None) -> Self: ...

    @abstractmethod
    def set_property(self, name: str, value: Any, property_type: PropertyType | None = None) -> Self:
        """Set a property of the messages of the next sends.

        Without a type, a bool stays a boolean, an int becomes an int or, above 32 bits, a long, a float a double, a str
        a string; the classes of ``jmsapi.values`` keep their type.

        Args:
            name: Name of the property, a Java identifier and no word of the selector language.
            value: A bool, int, float, str or None.
            property_type: The Java type to give it.
        Returns:
            This producer.
        Raises:
            IllegalArgumentException: The name is not allowed, or the value does not fit the type.
            MessageFormatRuntimeException: The value is of no type that a property can have.
        Spec: 3.5.1-1, 3.5.5-2, 7.3-26, 7.3-32, 11.2.4-16, 11.2.4-17, 11.2.4-21, 11.4.3-1.
        """

    @abstractmethod
    def clear_properties(self) -> Self:
        """Forget all properties set on this producer.

        Returns:
            This producer.
        Spec: 11.2.4-25.
        """

    @abstractmethod
    def property_exists(self, name: str) -> bool:
        """Tell whether this producer has a property.

        Args:
            name: Name of the property.
        Spec: 11.2.4-25.
        """

    @abstractmethod
    def get_boolean_property(self, name: str) -> bool:
        """Read a property as a bool.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            True or False; False if it is missing or null.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_byte_property(self, name: str) -> int:
        """Read a property as a byte.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -128 to 127.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_short_property(self, name: str) -> int:
        """Read a property as a short.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**15 to 2**15 - 1.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_int_property(self, name: str) -> int:
        """Read a property as an int.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**31 to 2**31 - 1.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_long_property(self, name: str) -> int:
        """Read a property as a long.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            An int, -2**63 to 2**63 - 1.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no such number, or missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_float_property(self, name: str) -> float:
        """Read a property as a float.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            A float that fits 32 bits without rounding.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_double_property(self, name: str) -> float:
        """Read a property as a double.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            A float.
        Raises:
            MessageFormatRuntimeException: The property does not convert to this type.
            NumberFormatException: It is text that is no number.
            NullPointerException: It is missing or null.
        Spec: 3.5.4-1, 11.2.4-26.
        """

    @abstractmethod
    def get_string_property(self, name: str) -> str | None:
        """Read a property as text.

        Args:
            name: Name of the property, in exact letter case.
        Returns:
            The text, numbers in Java's form; None if the property is missing or null.
        Spec: 11.2.4-26.
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
        Spec: 3.5.5-3, 3.5.5-4, 11.2.4-26.
        """

    @property
    @abstractmethod
    def property_names(self) -> set[str]:
        """Give the names of the properties set on this producer.

        Returns:
            A new set.
        Spec: 11.2.4-25.
        """
