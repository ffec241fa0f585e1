"""A value as text with the letter of its Java type, which is how this library's messages keep types where a wire has texts alone.

``n=i`` with the text ``7`` is an int. Both wires read and write this.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Final

from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.values import INT_RANGE, Byte, Char, Double, Float, Int, Long, Short, Value

__all__ = ["code_of", "java_text", "typed"]

_INTEGERS: Final[dict[str, type[Byte] | type[Short] | type[Int] | type[Long]]] = {"b": Byte, "h": Short, "i": Int, "l": Long}
_WRAPPERS: Final[dict[str, str]] = {"byte": "b", "short": "h", "int": "i", "long": "l", "float": "f", "double": "d", "char": "c"}


def code_of(value: Value) -> str:
    """Return the letter of a value's Java type; ``0`` for null, ``s`` for a string."""
    if value is None:
        return "0"
    kind = type(value)
    if kind is str:
        return "s"
    if kind is bool:
        return "z"
    if kind is int:
        low, high = INT_RANGE["int"]
        return "i" if low <= value <= high else "l"  # type: ignore[operator]
    if kind is float:
        return "d"
    return _WRAPPERS[value.jms_type] if isinstance(value, Byte | Short | Int | Long | Float | Double | Char) else _plain(value)


def _plain(value: Value) -> str:
    """Return the letter for a subclass that is none of ours, such as an enum."""
    for kind, code in ((bool, "z"), (int, "i"), (float, "d"), (str, "s")):
        if isinstance(value, kind):
            return code_of(int(value)) if code == "i" and isinstance(value, int) else code
    raise ProviderError(ErrorKind.FORMAT, f"a value of type {type(value).__name__} has no JMS type")


def java_text(value: Value) -> str:
    """Return a value as Java's ``String.valueOf`` would, floats by their shortest form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return float.__repr__(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int):
        return int.__repr__(value)
    return "" if value is None else str.__str__(value)


def typed(code: str, text: str) -> Value:
    """Return the value that ``text`` is of the type ``code``.

    Raises:
        ProviderError: FORMAT; it is none.
    """
    try:
        if code == "s":
            return text
        if code == "i":
            return int(Int(int(text)))
        if code in _INTEGERS:
            return _INTEGERS[code](int(text))
        if code == "z":
            return {"true": True, "false": False}[text]
        if code == "d":
            return float(text)
        if code == "f":
            return Float(float(text))
        if code == "c":
            return Char(text)
        if code == "0":
            return None
        if code == "e":
            return base64.b64decode(text, validate=True).decode()
    except (ValueError, KeyError, binascii.Error, IllegalArgumentException) as cause:
        raise ProviderError(ErrorKind.FORMAT, f"a received value is not of the type {code!r} it claims") from cause
    raise ProviderError(ErrorKind.FORMAT, f"a received value has the unknown type {code!r}")
