"""Python values on their way into a message: which are taken, as which Java type, in which form they are kept.

Kept are: bool, int (a Java int), float (a double), str, bytes, None, and the wrappers Byte, Short, Long, Float, Char for
the other types; so the type of a value says its Java type. A number outside its Java range is an
IllegalArgumentException, a value of another kind a MessageFormatException, None for a primitive a NullPointerException.

Spec: 3.5.2-1, 3.5.5-2, 3.11.3-1, 3.12-3, 3.12-4.
"""

from __future__ import annotations

from typing import Any, Final, SupportsFloat, SupportsIndex, TypeVar, cast

from jmsapi.errors import IllegalArgumentException, MessageFormatException, NullPointerException
from jmsapi.spi import BodyValue
from jmsapi.values import INT_RANGE, Byte, Char, Float, Int, Long, Short, Value

__all__ = [
    "body_value",
    "boolean",
    "byte",
    "byte_array",
    "char",
    "double",
    "float_",
    "int_",
    "long",
    "property_value",
    "short",
    "string",
]

_LOW, _HIGH = INT_RANGE["int"]
_WIDE_LOW, _WIDE_HIGH = INT_RANGE["long"]
_KEPT: Final = frozenset((bool, float, Byte, Short, Long, Float, type(None)))
_W = TypeVar("_W", Byte, Short, Int, Long)


def boolean(value: object) -> bool:
    """Take a boolean."""
    if type(value) is bool:
        return value
    raise _refused(value, "a bool")


def _integer(value: object, wrapper: type[_W]) -> _W:
    if type(value) is not int and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise _refused(value, "an int")
    return wrapper(cast(SupportsIndex, value))


def byte(value: object) -> Byte:
    """Take a whole number of 8 bits."""
    return _integer(value, Byte)


def short(value: object) -> Short:
    """Take a whole number of 16 bits."""
    return _integer(value, Short)


def int_(value: object) -> int:
    """Take a whole number of 32 bits."""
    if type(value) is int and _LOW <= value <= _HIGH:
        return value
    return int(_integer(value, Int))


def long(value: object) -> Long:
    """Take a whole number of 64 bits."""
    return _integer(value, Long)


def _real(value: object) -> SupportsFloat:
    if type(value) is not int and (isinstance(value, bool | str) or not hasattr(value, "__float__")):
        raise _refused(value, "a number")
    return cast(SupportsFloat, value)


def float_(value: object) -> Float:
    """Take a number and round it to binary32."""
    return Float(_double(value))


def double(value: object) -> float:
    """Take a number as binary64."""
    return value if type(value) is float else _double(value)


def _double(value: object) -> float:
    try:
        return float(_real(value))
    except OverflowError as error:
        raise IllegalArgumentException(f"the number is outside the range of double: {error}") from error


def string(value: object) -> str | None:
    """Take text, or None; half of a surrogate pair is no text."""
    if type(value) is str and value.isascii():
        return value
    if value is None:
        return None
    if not isinstance(value, str):
        raise _refused(value, "text")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"the text holds half of a surrogate pair, as character {error.start}") from error
    return text


def char(value: object) -> Char:
    """Take one UTF-16 code unit."""
    if not isinstance(value, str):
        raise _refused(value, "text of one character")
    return Char(value)


def byte_array(value: object, offset: int = 0, length: int | None = None) -> bytes | None:
    """Take a copy of bytes, or of a part of them.

    Raises:
        IllegalArgumentException: The part is not inside the bytes.
    """
    if value is None:
        return None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _refused(value, "bytes")
    data = _copied(value)
    end = len(data) if length is None else offset + length
    if not 0 <= offset <= end <= len(data):
        raise IllegalArgumentException(f"offset {offset} and length {length} do not fit into {len(data)} bytes")
    return data[offset:end]


def _copied(value: Any) -> bytes:
    return bytes(value)


def property_value(value: object) -> Value:
    """Take the value of a property, its Java type by its Python type."""
    kind = type(value)
    if kind is str:
        return string(value)
    if kind in _KEPT:
        return cast(Value, value)
    if isinstance(value, int):
        return _plain_integer(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str) and not isinstance(value, Char):
        return string(value)
    raise MessageFormatException(
        f"a property cannot hold a {kind.__name__}: it is a bool, int, float or str, one of the number wrappers, or None"
    )


def body_value(value: object) -> BodyValue:
    """Take the value of an entry of a MapMessage or StreamMessage, its Java type by its Python type."""
    if isinstance(value, Char):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _copied(value)
    if value is None or isinstance(value, bool | int | float | str):
        return property_value(value)
    raise MessageFormatException(
        f"an entry cannot hold a {type(value).__name__}: it is a bool, int, float, str, bytes, one of the wrappers, or None;"
        " what is nested travels as JSON text (send the text that json.dumps makes, or a dataclass or pydantic model), or in an"
        " ObjectMessage (create_object_message)"
    )


def _plain_integer(value: int) -> int:
    if _LOW <= value <= _HIGH:
        return int(value)
    if _WIDE_LOW <= value <= _WIDE_HIGH:
        return Long(value)
    raise MessageFormatException(f"{value:#x} has more than the 64 bits of a long")


def _refused(value: object, wanted: str) -> Exception:
    if value is None:
        return NullPointerException(f"{wanted} is needed, not None")
    return MessageFormatException(f"{wanted} is needed, not a {type(value).__name__}")
