"""Numbers as text and back, by the rules of java.lang rather than Python's.

Java knows no underscores and no "inf"; Python no suffix ``f`` and no ``1.0E10``. Written are the digits of
``Double.toString`` since JDK 19: the fewest that read back as the same number, but at least two.

Spec: 3.5.4-1, 3.5.4-3, 3.11.3-3, 3.11.3-5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from jmsapi.errors import NumberFormatException
from jmsapi.values import INT_RANGE, Float

__all__ = ["double_text", "float_text", "parse_boolean", "parse_double", "parse_float", "parse_integer"]

_INTEGER: Final = re.compile(r"([+-]?)0*(\d+)")
_LONGEST_INTEGER: Final = 19
_ONE_UNIT: Final = "\uffff"
"""Java looks at UTF-16 units, so it does not see the digits beyond."""
_REAL: Final = re.compile(
    r"""(?P<sign>[+-]?)(?:
        (?P<word>NaN|Infinity)
      | (?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?
      | (?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?
    )""",
    re.VERBOSE,
)
_WORDS: Final = {"NaN": "nan", "Infinity": "inf"}
_BLANKS: Final = "".join(map(chr, range(0x21)))
_LARGEST_FLOAT: Final = 2.0**128 - 2.0**104
_OVERFLOW: Final = 2.0**128 - 2.0**103
_SHOWN: Final = 40


def parse_boolean(text: str) -> bool:
    """Read text as ``Boolean.valueOf`` does: "true" in any letter case is true, all else is false."""
    return text.isascii() and text.lower() == "true"


def parse_integer(text: str, kind: str) -> int:
    """Read text as ``Byte.valueOf``, ``Short.valueOf``, ``Integer.valueOf`` or ``Long.valueOf`` does.

    Args:
        text: An optional sign and decimal digits of any script; no blanks, underscores or prefixes.
        kind: "byte", "short", "int" or "long".
    Raises:
        NumberFormatException: No number, or outside the range of the kind.
    """
    match = _INTEGER.fullmatch(text)
    if match is None or max(text) > _ONE_UNIT:
        raise _no_number(text, kind)
    low, high = INT_RANGE[kind]
    sign, digits = match.groups()
    if len(digits) <= _LONGEST_INTEGER and low <= (number := int(sign + digits)) <= high:
        return number
    raise NumberFormatException(f"{_shown(text)} is outside the range of {kind}, {low} to {high}")


def parse_double(text: str) -> float:
    """Read text as ``Double.valueOf`` does: surrounding blanks, NaN, Infinity, a suffix d or f and hexadecimal are fine.

    Raises:
        NumberFormatException: No number.
    """
    return _parse_real(text, "double")[0]


def parse_float(text: str) -> float:
    """Read text as ``Float.valueOf`` does: decimal digits are rounded once, to the nearest binary32 number.

    Raises:
        NumberFormatException: No number.
    """
    wide, digits = _parse_real(text, "float")
    narrow = float(Float(wide))
    if digits is None or narrow == wide:
        return narrow
    # The double nearest to the text may be just half-way between two floats although the text is not: then ask the text.
    if math.isinf(narrow):
        other, tie = math.copysign(_LARGEST_FLOAT, wide), abs(wide) == _OVERFLOW
    else:
        other = 2 * wide - narrow
        tie = float(Float(other)) == other
    if tie and (exact := Decimal(digits)) != (middle := Decimal(wide)):
        return max(narrow, other) if exact > middle else min(narrow, other)
    return narrow


def _parse_real(text: str, kind: str) -> tuple[float, str | None]:
    """Give the nearest double, and the decimal digits it came from."""
    match = _REAL.fullmatch(text.strip(_BLANKS))
    if match is None:
        raise _no_number(text, kind)
    sign, word, decimal, hexadecimal = match.group("sign", "word", "decimal", "hex")
    if decimal:
        return float(sign + decimal), sign + decimal
    if word:
        return float(sign + _WORDS[word]), None
    try:
        return float.fromhex(sign + hexadecimal), None
    except OverflowError:
        return math.copysign(math.inf, -1.0 if sign == "-" else 1.0), None


def _no_number(text: str, kind: str) -> NumberFormatException:
    return NumberFormatException(f"{_shown(text)} cannot be read as {kind}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def double_text(value: float) -> str:
    """Write a number as ``Double.toString`` does."""
    return _real_text(float(value), float)


def float_text(value: float) -> str:
    """Write a binary32 number as ``Float.toString`` does."""
    return _real_text(float(Float(value)), lambda text: float(Float(float(text))))


def _real_text(value: float, read: Callable[[str], float]) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0.0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    sign, size = ("-", -value) if value < 0 else ("", value)
    text = next(text for n in range(1, 18) if read(text := f"{size:.{n}e}") == size)
    mantissa, _, power = text.partition("e")
    exponent = int(power)
    if not 1e-3 <= size < 1e7:
        return f"{sign}{mantissa}E{exponent}"
    digits = mantissa.replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits.rstrip('0')}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :].rstrip('0') or '0'}"
