"""Values on their way out of a message: the conversions of tables 3.2 and 3.7, cell by cell.

Spec: 3.5.4-1 to 3.5.4-5, 3.11.3-3 to 3.11.3-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

from jmsapi._core.message.java_text import double_text, float_text, parse_boolean, parse_double, parse_float, parse_integer
from jmsapi.errors import MessageFormatException, NullPointerException, NumberFormatException
from jmsapi.spi import BodyValue
from jmsapi.values import INT_RANGE, Byte, Char, Double, Float, Int, JavaType, Long, Short

__all__ = [
    "READABLE_AS",
    "IntegerType",
    "RealType",
    "as_boolean",
    "as_byte_array",
    "as_char",
    "as_integer",
    "as_object",
    "as_real",
    "as_string",
    "kind_of",
]

IntegerType = Literal["byte", "short", "int", "long"]
RealType = Literal["float", "double"]
READABLE_AS: Final[dict[JavaType, frozenset[JavaType]]] = {
    "boolean": frozenset(("boolean", "string")),
    "byte": frozenset(("byte", "short", "int", "long", "string")),
    "short": frozenset(("short", "int", "long", "string")),
    "char": frozenset(("char", "string")),
    "int": frozenset(("int", "long", "string")),
    "long": frozenset(("long", "string")),
    "float": frozenset(("float", "double", "string")),
    "double": frozenset(("double", "string")),
    "string": frozenset(("boolean", "byte", "short", "int", "long", "float", "double", "string")),
    "bytes": frozenset(("bytes",)),
}
"""Tables 3.2 and 3.7 in one: the type a value was stored with, and the types it can be read as."""

_KINDS: Final[dict[type, JavaType]] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    float: "double",
    str: "string",
    Char: "char",
    bytes: "bytes",
}
_WRITERS: Final[dict[JavaType, Callable[[Any], str]]] = {
    "boolean": lambda value: "true" if value else "false",
    "byte": str,
    "short": str,
    "int": str,
    "long": str,
    "float": float_text,
    "double": double_text,
    "char": str,
    "string": str,
}
_LOW, _HIGH = INT_RANGE["int"]


def kind_of(value: BodyValue) -> JavaType:
    """Give the Java type of a stored value that is not None.

    Raises:
        MessageFormatException: No Java type has such a value.
    """
    kind = type(value)
    if kind is int:
        return "int" if _LOW <= cast(int, value) <= _HIGH else "long"
    try:
        return _KINDS[kind]
    except KeyError:
        raise MessageFormatException(f"the message holds a {kind.__name__}, for which there is no Java type") from None


def _source(value: BodyValue, target: JavaType) -> JavaType:
    """Give the type a value was stored with, if it can be read as the target."""
    kind = kind_of(value)
    if target not in READABLE_AS[kind]:
        raise MessageFormatException(f"a value stored as {kind} cannot be read as {target}")
    return kind


def as_boolean(value: BodyValue) -> bool:
    """Read a stored value as boolean; null is false."""
    if value is None:
        return False
    return parse_boolean(str(value)) if _source(value, "boolean") == "string" else bool(value)


def as_integer(value: BodyValue, target: IntegerType) -> int:
    """Read a stored value as one of the four types of whole numbers, given as a plain int."""
    if type(value) is int and target == "int" and _LOW <= value <= _HIGH:
        return value
    if value is None:
        raise NumberFormatException(f"there is no value to read as {target}")
    if _source(value, target) == "string":
        return parse_integer(cast(str, value), target)
    return int(cast(int, value))


def as_real(value: BodyValue, target: RealType) -> float:
    """Read a stored value as float or double, given as a plain float."""
    if value is None:
        raise NullPointerException(f"there is no value to read as {target}")
    if _source(value, target) == "string":
        return parse_float(cast(str, value)) if target == "float" else parse_double(cast(str, value))
    return float(cast(float, value))


def as_string(value: BodyValue) -> str | None:
    """Read a stored value as text; null is null."""
    if value is None:
        return None
    return _WRITERS[_source(value, "string")](value)


def as_char(value: BodyValue) -> str:
    """Read a stored char as text of one UTF-16 code unit."""
    if value is None:
        raise NullPointerException("there is no value to read as char")
    _source(value, "char")
    return str(value)


def as_byte_array(value: BodyValue) -> bytes | None:
    """Read a stored byte array; null is null."""
    if value is None:
        return None
    _source(value, "bytes")
    return cast(bytes, value)


def as_object(value: BodyValue) -> BodyValue:
    """Read a stored value as it is, its type told by its class: a long is a Long however small or large it is."""
    kind = type(value)
    if kind is int:
        number = cast(int, value)
        return number if _LOW <= number <= _HIGH else Long(number)
    if kind is Int or kind is Double:
        return int(cast(int, value)) if kind is Int else float(cast(float, value))
    if value is not None:
        kind_of(value)
    return value
