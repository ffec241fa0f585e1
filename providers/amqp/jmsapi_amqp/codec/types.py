"""The types of AMQP 1.0 that Python has no type of its own for, and the codec's one error.

Spec: AMQP 1.0, part 1 (types).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from jmsapi.spi import ErrorKind, ProviderError

__all__ = [
    "MAX_DEPTH",
    "AmqpValue",
    "Described",
    "FloatingDecimal",
    "MapKey",
    "Symbol",
    "Timestamp",
    "UInt",
    "ULong",
    "bad_format",
]

MAX_DEPTH: Final = 64
"""Deepest nesting read or written; deeper is refused rather than overflowing the stack."""


_EXPONENT_BITS: Final = {32: 8, 64: 10, 128: 14}
_DIGITS: Final = {32: 7, 64: 16, 128: 34}
_BIAS: Final = {32: 101, 64: 398, 128: 6176}


class Symbol(str):
    """An AMQP symbol: ASCII text from a known set of words."""

    __slots__ = ()


class UInt(int):
    """An unsigned number of 32 bits."""

    __slots__ = ()


class ULong(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970."""

    __slots__ = ()


class FloatingDecimal(bytes):
    """A decimal number of 32, 64 or 128 bits, as it is encoded: IEEE 754 with a binary integer for its digits."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the number in digits, as Java writes it: ``1.50``, ``-1E+7``, ``NaN``."""
        bits = 8 * len(self)
        word = int.from_bytes(self)
        sign = word >> (bits - 1)
        if word >> (bits - 5) & 15 == 15:
            special = "Infinity" if word >> (bits - 6) & 1 == 0 else "NaN"
            return f"-{special}" if sign else special
        width = _EXPONENT_BITS[bits]
        digits = bits - 1 - width
        if word >> (bits - 3) & 3 == 3:
            # The exponent begins two bits later, and the digits have an implied 100 before them.
            digits -= 2
            coefficient = (4 << digits) | (word & ((1 << digits) - 1))
        else:
            coefficient = word & ((1 << digits) - 1)
        exponent = (word >> digits) & ((1 << width) - 1)
        if coefficient >= 10 ** _DIGITS[bits]:
            coefficient = 0
        return str(Decimal((sign, tuple(map(int, str(coefficient))), exponent - _BIAS[bits])))


class Described(NamedTuple):
    """A value with a descriptor."""

    descriptor: AmqpValue
    value: AmqpValue


class MapKey:
    """A key of a map that Python cannot have as one, or would take for another key: true and 1 are one there, and two in AMQP.

    Args:
        value: The key.
    """

    __slots__ = ("_same", "value")

    def __init__(self, value: AmqpValue) -> None:
        self.value = value
        self._same = f"{type(value).__name__} {value!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapKey) and self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    def __repr__(self) -> str:
        return self._same


AmqpValue: TypeAlias = (
    "bool | int | float | str | bytes | UUID | Described | MapKey | Mapping[AmqpValue, AmqpValue] | Sequence[AmqpValue] | None"
)


def bad_format(text: str) -> ProviderError:
    """Return the codec's one error."""
    return ProviderError(ErrorKind.FORMAT, text)
