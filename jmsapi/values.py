"""Typed values: Python numbers that remember which Java type they are.

Python has one integer and one float type; JMS has four and two. A plain ``int`` stands for a Java int when it fits 32
bits and for a long otherwise, a plain ``float`` for a double. Where that is not the type meant, one of these classes
says so. Each is a subclass of the Python type, so it compares, adds and prints like it.

Spec: 3.5.4-1 (property types), 3.5.1-1 (names).
"""

from __future__ import annotations

import math
import struct
from datetime import timedelta
from typing import ClassVar, Final, Literal, Self, SupportsFloat, SupportsIndex, TypeAlias

from jmsapi.errors import IllegalArgumentException

__all__ = ["INT_RANGE", "Byte", "Char", "Double", "Float", "Int", "JavaType", "Long", "PropertyType", "Short", "Timeout", "Value"]

JavaType = Literal["boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes"]
PropertyType = Literal["boolean", "byte", "short", "int", "long", "float", "double", "string"]
Timeout: TypeAlias = float | timedelta
"""How long to wait: a number of milliseconds, or a ``datetime.timedelta``."""

INT_RANGE: Final[dict[str, tuple[int, int]]] = {
    "byte": (-(2**7), 2**7 - 1),
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_FLOAT = struct.Struct(">f")


class _Integer(int):
    """A whole number of one Java width; out of range is refused."""

    __slots__ = ()
    jms_type: ClassVar[JavaType]
    _low: ClassVar[int]
    _high: ClassVar[int]

    def __init_subclass__(cls) -> None:
        cls._low, cls._high = INT_RANGE[cls.jms_type]

    def __new__(cls, value: SupportsIndex = 0) -> Self:
        self = super().__new__(cls, value.__index__())
        if not cls._low <= self <= cls._high:
            raise IllegalArgumentException(f"{int(self)} is outside the range of {cls.jms_type}, {cls._low} to {cls._high}")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    __str__ = int.__repr__


class Byte(_Integer):
    """A Java byte: a whole number from -128 to 127."""

    __slots__ = ()
    jms_type = "byte"


class Short(_Integer):
    """A Java short: a whole number of 16 bits."""

    __slots__ = ()
    jms_type = "short"


class Int(_Integer):
    """A Java int: a whole number of 32 bits."""

    __slots__ = ()
    jms_type = "int"


class Long(_Integer):
    """A Java long: a whole number of 64 bits."""

    __slots__ = ()
    jms_type = "long"


class Float(float):
    """A Java float: rounded to IEEE 754 binary32; too large becomes infinity, as in Java."""

    __slots__ = ()
    jms_type: ClassVar[JavaType] = "float"

    def __new__(cls, value: SupportsFloat = 0.0) -> Self:
        wide = float(value)
        try:
            narrow: float = _FLOAT.unpack(_FLOAT.pack(wide))[0]
        except OverflowError:
            narrow = math.copysign(math.inf, wide)
        return super().__new__(cls, narrow)

    def __repr__(self) -> str:
        return f"Float({float(self)!r})"

    __str__ = float.__repr__


class Double(float):
    """A Java double; a plain float means the same."""

    __slots__ = ()
    jms_type: ClassVar[JavaType] = "double"

    def __repr__(self) -> str:
        return f"Double({float(self)!r})"

    __str__ = float.__repr__


class Char(str):
    """A Java char: one UTF-16 code unit, so one character not above U+FFFF."""

    __slots__ = ()
    jms_type: ClassVar[JavaType] = "char"

    def __new__(cls, value: str) -> Self:
        if len(value) != 1 or ord(value) > 0xFFFF:
            raise IllegalArgumentException(f"{value!r} is not one UTF-16 code unit")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"

    __str__ = str.__str__


Value = bool | int | float | str | None
"""A property's value: one of the classes above, or a plain bool, int, float, str or None."""
