"""Numbers as Java has them: widths, promotion, wrap-around, literals.

A number is a pair of its type and a Python number. The types are ordered, so that binary numeric promotion is ``max``;
byte and short never survive an operator and count as int from the start.

Spec: 3.8.1.1-8 to 3.8.1.1-11, 3.8.1.1-29, 3.8.1.1-34, 3.8.1.1-35, 3.8.1.3-3.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from enum import IntEnum
from typing import Final

from jmsapi_selector.nodes import NumberType

__all__ = ["NumberKind", "calculate", "convert", "integer_kind", "negate", "read_literal", "to_float"]

_FLOAT: Final = struct.Struct("<f")


class NumberKind(IntEnum):
    """Java's numeric types after promotion, the wider ones greater."""

    INT = 0
    LONG = 1
    FLOAT = 2
    DOUBLE = 3


def integer_kind(value: int) -> NumberKind | None:
    """Give the narrowest type that holds a whole number; None if even a long is too narrow."""
    if -(2**31) <= value < 2**31:
        return NumberKind.INT
    return NumberKind.LONG if -(2**63) <= value < 2**63 else None


_INTEGER: Final = re.compile(r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))(?P<long>[lL]?)")
_FLOATING: Final = re.compile(
    r"(?P<digits>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+(?=[fFdD]))(?P<suffix>[fFdD]?)"
)
_TOO_LARGE: Final = "this number is outside the range of a Java long"


def read_literal(text: str, *, negative: bool = False) -> tuple[int | float, NumberType]:
    """Read a numeric literal of Java.

    Args:
        text: The literal without its sign.
        negative: A minus stands in front of it. Only then may its size be that of the least long.
    Returns:
        Value, sign included, and type. A decimal integer is an int if it fits, else a long, with the suffix L or
        without it; a hexadecimal or octal one is read as bits, as in Java, so 0xFFFFFFFF is -1.
    Raises:
        ValueError: No literal, or out of range; its text says which.
    """
    if whole := _INTEGER.fullmatch(text):
        if whole["decimal"]:
            return _decimal(whole["decimal"], negative=negative, long=bool(whole["long"]))
        digits, base = (whole["hex"], 16) if whole["hex"] else (whole["octal"], 8)
        bits = _bits(digits, base, long=bool(whole["long"]))
        kind, value = negate(bits) if negative else bits
        return value, ("int" if kind == NumberKind.INT else "long")
    if fraction := _FLOATING.fullmatch(text):
        single = fraction["suffix"] in {"f", "F"}
        result = _read_float(fraction["digits"]) if single else float(fraction["digits"])
        if math.isinf(result) or (result == 0 and re.match(r"[.0]*[1-9]", text)):
            raise ValueError(f"this number is outside the range of a Java {'float' if single else 'double'}")
        return (-result if negative else result), ("float" if single else "double")
    if re.fullmatch(r"0[0-9]+[lL]?", text):
        raise ValueError("a leading 0 means octal, and octal digits end at 7")
    raise ValueError("this is no number")


def _decimal(digits: str, *, negative: bool, long: bool) -> tuple[int, NumberType]:
    if len(digits) > 19:
        raise ValueError(_TOO_LARGE)
    value = -int(digits) if negative else int(digits)
    kind = integer_kind(value)
    if kind is None:
        raise ValueError(_TOO_LARGE)
    return value, ("long" if long or kind == NumberKind.LONG else "int")


def _bits(digits: str, base: int, *, long: bool) -> tuple[NumberKind, int]:
    digits = digits.lstrip("0") or "0"
    bits = int(digits, base) if len(digits) <= 22 else 2**64
    if bits >= 2**64:
        raise ValueError(_TOO_LARGE)
    kind = NumberKind.LONG if long or bits >= 2**32 else NumberKind.INT
    return kind, _wrap(kind, bits)


def _read_float(text: str) -> float:
    wide = float(text)
    if math.isinf(wide) or not _between_floats(wide):
        return _narrow(wide)
    exact, rounded = Decimal(text), Decimal(wide)
    return _nudged(wide, (exact > rounded) - (exact < rounded))


def to_float(value: int | float) -> float:
    """Round to the nearest Java float, once.

    Args:
        value: A double, or an int of at most 64 bits.
    Returns:
        The float, as the double of the same value; too large a value becomes infinity.
    """
    wide = float(value)
    if isinstance(value, int) and _between_floats(wide):
        return _nudged(wide, (value > wide) - (value < wide))
    return _narrow(wide)


def _between_floats(wide: float) -> bool:
    """Tell whether a double lies exactly half-way between two floats, where a second rounding could go wrong."""
    below, above = _narrow(math.nextafter(wide, -math.inf)), _narrow(math.nextafter(wide, math.inf))
    return below != above and wide - below == above - wide


def _nudged(wide: float, direction: int) -> float:
    """Round a half-way double that stands for an exact value a little above (1), below (-1) or right there (0)."""
    return _narrow(math.nextafter(wide, direction * math.inf) if direction else wide)


def _narrow(wide: float) -> float:
    try:
        narrow: float = _FLOAT.unpack(_FLOAT.pack(wide))[0]
    except OverflowError:
        return math.copysign(math.inf, wide)
    return narrow


def convert(kind: NumberKind, value: int | float) -> int | float:
    """Widen a number to a type that is no narrower than its own. The value has at most 64 bits."""
    if kind == NumberKind.DOUBLE:
        return float(value)
    if kind == NumberKind.FLOAT:
        return to_float(value)
    return value


def calculate(
    operator: str, left: tuple[NumberKind, int | float], right: tuple[NumberKind, int | float]
) -> tuple[NumberKind, int | float] | None:
    """Do one of ``+ - * /`` as Java does it.

    Returns:
        The result in the promoted type, integers wrapped around to it; None for an integer divided by zero, which
        has no value.
    """
    kind = max(left[0], right[0])
    a, b = convert(kind, left[1]), convert(kind, right[1])
    if kind >= NumberKind.FLOAT:
        result = _floating(operator, float(a), float(b))
        # Two floats added, multiplied or divided in double and then rounded give what Java's float operation gives.
        return kind, (_narrow(result) if kind == NumberKind.FLOAT else result)
    if operator == "/" and b == 0:
        return None
    return kind, _wrap(kind, _whole(operator, int(a), int(b)))


def _floating(operator: str, a: float, b: float) -> float:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _whole(operator: str, a: int, b: int) -> int:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    # Java truncates towards zero where Python rounds down.
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def negate(number: tuple[NumberKind, int | float]) -> tuple[NumberKind, int | float]:
    """Change the sign as Java does: the least int and the least long stay what they are."""
    kind, value = number
    if kind >= NumberKind.FLOAT:
        return kind, -value
    return kind, _wrap(kind, -int(value))


def _wrap(kind: NumberKind, value: int) -> int:
    half = 2**31 if kind == NumberKind.INT else 2**63
    return (value + half) % (2 * half) - half
