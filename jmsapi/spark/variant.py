"""Map and stream bodies as Spark's VARIANT: a binary form that keeps the kinds of values JSON does not have.

A variant is two byte strings: ``metadata`` with the field names, ``value`` with everything else. Numbers are little endian,
offsets take as many bytes as the largest needs, fields of an object are listed by name.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from jmsapi.values import JavaType

__all__ = ["encode_variant", "java_type"]

_TRUE: Final = b"\x04"
_FALSE: Final = b"\x08"
_NULL: Final = b"\x00"
_WIDTHS: Final = {
    "byte": (3, "<b"),
    "short": (4, "<h"),
    "int": (5, "<i"),
    "long": (6, "<q"),
    "double": (7, "<d"),
    "float": (14, "<f"),
}
_SHORT_TEXT: Final = 63


def java_type(value: object) -> JavaType | None:
    """Return the Java type that a value of a message has; None for null.

    Raises:
        TypeError: JMS has no such value.
    """
    if value is None:
        return None
    known = getattr(value, "jms_type", None)
    if known is not None:
        found: JavaType = known
        return found
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int" if -(2**31) <= value < 2**31 else "long"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes | bytearray):
        return "bytes"
    raise TypeError(f"JMS has no values of type {type(value).__name__}")


def encode_variant(body: Mapping[str, object] | Sequence[object]) -> tuple[bytes, bytes]:
    """Encode a map as an object, a sequence as an array.

    Args:
        body: Values of JMS: None, bool, numbers (typed or not), str, bytes.
    Returns:
        ``value`` and ``metadata``.
    Raises:
        TypeError: JMS has no such value.
    Threads: any.
    """
    if isinstance(body, Mapping):
        names = sorted((name.encode("utf-8", "surrogatepass"), name) for name in body)
        return _object([_scalar(body[name]) for _, name in names]), _metadata([data for data, _ in names])
    return _array([_scalar(value) for value in body]), _metadata([])


def _scalar(value: object) -> bytes:
    kind = java_type(value)
    if kind is None:
        return _NULL
    if kind == "boolean":
        return _TRUE if value else _FALSE
    if kind in _WIDTHS:
        code, form = _WIDTHS[kind]
        return bytes((code << 2,)) + struct.pack(form, value)
    data = bytes(value) if isinstance(value, bytes | bytearray) else str(value).encode("utf-8", "surrogatepass")
    if kind == "bytes":
        return bytes((15 << 2,)) + struct.pack("<I", len(data)) + data
    if len(data) <= _SHORT_TEXT:
        return bytes((len(data) << 2 | 1,)) + data
    return bytes((16 << 2,)) + struct.pack("<I", len(data)) + data


def _offsets(parts: Sequence[bytes]) -> tuple[int, list[int]]:
    """Return how many bytes an offset takes, and the offsets, the total among them."""
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return _width(offsets[-1]), offsets


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _numbers(numbers: Sequence[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def _object(values: Sequence[bytes]) -> bytes:
    width, offsets = _offsets(values)
    ids = _width(max(len(values) - 1, 0))
    large = len(values) > 255
    header = (large << 4 | (ids - 1) << 2 | (width - 1)) << 2 | 2
    size = len(values).to_bytes(4 if large else 1, "little")
    return bytes((header,)) + size + _numbers(range(len(values)), ids) + _numbers(offsets, width) + b"".join(values)


def _array(values: Sequence[bytes]) -> bytes:
    width, offsets = _offsets(values)
    large = len(values) > 255
    header = (large << 2 | (width - 1)) << 2 | 3
    return bytes((header,)) + len(values).to_bytes(4 if large else 1, "little") + _numbers(offsets, width) + b"".join(values)


def _metadata(names: Sequence[bytes]) -> bytes:
    _, offsets = _offsets(names)
    width = max(_width(offsets[-1]), _width(len(names)))
    # Version 1; the names are sorted.
    header = (width - 1) << 6 | 1 << 4 | 1
    return bytes((header,)) + _numbers([len(names)], width) + _numbers(offsets, width) + b"".join(names)
