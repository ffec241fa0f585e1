"""What a selector knows about a message: names and typed values.

A value has a Java type. Plain Python values stand for it (a bool is a boolean, an int that fits 32 bits is an int, else
a long, a float is a double, a str is a String); a subclass says otherwise by a class attribute ``jms_type``. This
package reads that attribute and imports no such class.

Spec: 3.8.1.1-15 to 3.8.1.1-17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, Protocol

from jmsapi_selector.java_numbers import NumberKind, integer_kind

__all__ = ["Getter", "Kind", "SelectorValues", "Typed", "Value", "getter", "kind_name", "type_name", "typed"]

Value = bool | int | float | str | None
Getter = Callable[[str], object]
"""Name to value; None for a name that the message does not have."""


class SelectorValues(Protocol):
    """A message, as far as selectors are concerned."""

    def selector_value(self, name: str) -> Value:
        """Give the value of a property or header field.

        Args:
            name: A property's name, or one of the six header fields that selectors may use. ``JMSDeliveryMode`` has
                the value ``'PERSISTENT'`` or ``'NON_PERSISTENT'``.
        Returns:
            The typed value; None for NULL, which a missing property is.
        """
        ...


class Kind(Enum):
    """The kinds of value that are no numbers. Values of unlike kinds compare false."""

    STRING = "string"
    BOOLEAN = "boolean"
    OTHER = "other"


Typed = tuple[NumberKind | Kind, bool | int | float | str]
"""A value that is not NULL, with what it counts as. The second part of an OTHER has no meaning."""

NOTHING: Final[Typed] = (Kind.OTHER, False)
_INTEGER: Final = "integer"
"""Marks a class whose values are ints or longs, by size."""
_BY_NAME: Final[dict[object, NumberKind | Kind]] = {
    "boolean": Kind.BOOLEAN,
    "byte": NumberKind.INT,
    "short": NumberKind.INT,
    "int": NumberKind.INT,
    "long": NumberKind.LONG,
    "float": NumberKind.FLOAT,
    "double": NumberKind.DOUBLE,
    "string": Kind.STRING,
}


def getter(values: Mapping[str, Value] | SelectorValues) -> Getter:
    """Give the one function that evaluation asks for values."""
    if isinstance(values, Mapping):
        return values.get
    return values.selector_value


@lru_cache(maxsize=256)
def _class_kind(cls: type) -> NumberKind | Kind | str:
    """Tell what the values of a class count as; _INTEGER where that depends on their size."""
    name = getattr(cls, "jms_type", None)
    if name is not None:
        return _BY_NAME.get(name, Kind.OTHER)
    if issubclass(cls, bool):
        return Kind.BOOLEAN
    if issubclass(cls, int):
        return _INTEGER
    if issubclass(cls, float):
        return NumberKind.DOUBLE
    return Kind.STRING if issubclass(cls, str) else Kind.OTHER


def typed(value: object) -> Typed | None:
    """Tell what a value counts as.

    Returns:
        Kind and value; None for None, which is NULL. A value of an unknown class, or an int of more than 64 bits,
        counts as OTHER.
    """
    if value is None:
        return None
    cls: type = type(value)
    kind = _class_kind(cls)
    if not isinstance(value, bool | int | float | str):
        return NOTHING
    if isinstance(kind, str):
        width = integer_kind(int(value))
        return NOTHING if width is None else (width, value)
    return kind, value


def kind_name(kind: NumberKind | Kind) -> str:
    """Give Java's name of a type; "other" for a value of none."""
    return kind.name.lower() if isinstance(kind, NumberKind) else kind.value


def type_name(value: object) -> str:
    """Name the Java type of a value as it was set, for people; "null" for NULL."""
    name = getattr(type(value), "jms_type", None)
    if isinstance(name, str):
        return name
    known = typed(value)
    return "null" if known is None else kind_name(known[0])
