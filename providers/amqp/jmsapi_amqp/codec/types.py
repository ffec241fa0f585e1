"""The types of AMQP 1.0 that Python has no type of its own for, and the codec's one error.

Spec: AMQP 1.0, part 1 (types).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["MAX_DEPTH", "AmqpValue", "Described", "Symbol", "Timestamp", "UInt", "ULong", "bad_format"]

MAX_DEPTH: Final = 64
"""Deepest nesting read or written; deeper is refused rather than overflowing the stack."""


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


class Described(NamedTuple):
    """A value with a descriptor."""

    descriptor: AmqpValue
    value: AmqpValue


AmqpValue: TypeAlias = (
    "bool | int | float | str | bytes | UUID | Described | Mapping[AmqpValue, AmqpValue] | Sequence[AmqpValue] | None"
)


def bad_format(text: str) -> ProviderError:
    """Return the codec's one error."""
    return ProviderError(ErrorKind.FORMAT, text)
