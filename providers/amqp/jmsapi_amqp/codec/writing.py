"""Values to AMQP 1.0 bytes.

Numbers keep their width: the typed classes of ``jmsapi.values`` name it, a plain ``int`` is an int when it fits 32 bits and
else a long, a plain ``float`` is a double. What cannot be written raises ``ProviderError(FORMAT)``.

Spec: AMQP 1.0, part 1 (types).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast
from uuid import UUID

from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short
from jmsapi_amqp.codec.types import MAX_DEPTH, Described, FloatingDecimal, Symbol, Timestamp, UInt, ULong, bad_format

__all__ = [
    "SCALARS",
    "encode_binary",
    "encode_compound",
    "encode_int",
    "encode_long",
    "encode_symbol",
    "encode_text",
    "encode_timestamp",
    "encode_uint",
    "encode_ulong",
    "encode_value",
]

_I32: Final = struct.Struct(">Bi")
_I64: Final = struct.Struct(">Bq")
_U32: Final = struct.Struct(">BI")
_U64: Final = struct.Struct(">BQ")
_I16: Final = struct.Struct(">Bh")
_I8: Final = struct.Struct(">Bb")
_F32: Final = struct.Struct(">Bf")
_F64: Final = struct.Struct(">Bd")
_DECIMAL_CODES: Final = {4: b"\x74", 8: b"\x84", 16: b"\x94"}


def encode_text(value: str) -> bytes:
    """Return an AMQP string."""
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise bad_format(
            f"a text holds a lone surrogate at character {error.start}; AMQP strings are UTF-8, which has none"
        ) from error
    size = len(data)
    return b"\xa1" + size.to_bytes(1) + data if size < 256 else b"\xb1" + size.to_bytes(4) + data


def encode_binary(value: bytes) -> bytes:
    """Return an AMQP binary."""
    size = len(value)
    return b"\xa0" + size.to_bytes(1) + value if size < 256 else b"\xb0" + size.to_bytes(4) + value


def encode_symbol(value: str) -> bytes:
    """Return an AMQP symbol."""
    try:
        data = value.encode("ascii")
    except UnicodeEncodeError:
        raise bad_format(f"{value!r} is not ASCII, so it cannot be an AMQP symbol") from None
    size = len(data)
    return b"\xa3" + size.to_bytes(1) + data if size < 256 else b"\xb3" + size.to_bytes(4) + data


def encode_long(value: int) -> bytes:
    """Return an AMQP long."""
    if -128 <= value <= 127:
        return _I8.pack(0x55, value)
    try:
        return _I64.pack(0x81, value)
    except struct.error:
        raise bad_format(f"{value} does not fit a long of 64 bits") from None


def encode_int(value: int) -> bytes:
    """Return an AMQP int, or a long when the number needs it."""
    if -128 <= value <= 127:
        return _I8.pack(0x54, value)
    if -0x8000_0000 <= value <= 0x7FFF_FFFF:
        return _I32.pack(0x71, value)
    return encode_long(value)


def encode_uint(value: int) -> bytes:
    """Return an AMQP uint."""
    if value == 0:
        return b"\x43"
    if 0 < value < 256:
        return b"\x52" + value.to_bytes(1)
    try:
        return _U32.pack(0x70, value)
    except struct.error:
        raise bad_format(f"{value} does not fit an unsigned number of 32 bits") from None


def encode_ulong(value: int) -> bytes:
    """Return an AMQP ulong."""
    if value == 0:
        return b"\x44"
    if 0 < value < 256:
        return b"\x53" + value.to_bytes(1)
    try:
        return _U64.pack(0x80, value)
    except struct.error:
        raise bad_format(f"{value} does not fit an unsigned number of 64 bits") from None


def encode_timestamp(value: int) -> bytes:
    """Return an AMQP timestamp."""
    try:
        return _I64.pack(0x83, value)
    except struct.error:
        raise bad_format(f"the time {value} ms does not fit 64 bits") from None


def encode_compound(small: int, count: int, data: bytes) -> bytes:
    """Return a list (small code 0xc0) or map (0xc1) around entries written already."""
    size = len(data)
    if size < 255 and count < 256:
        return small.to_bytes(1) + (size + 1).to_bytes(1) + count.to_bytes(1) + data
    return (small + 0x10).to_bytes(1) + (size + 4).to_bytes(4) + count.to_bytes(4) + data


def _encode_bool(value: bool) -> bytes:
    return b"\x41" if value else b"\x42"


def _encode_byte(value: int) -> bytes:
    return _I8.pack(0x51, value)


def _encode_short(value: int) -> bytes:
    return _I16.pack(0x61, value)


def _encode_char(value: str) -> bytes:
    return b"\x73" + ord(value).to_bytes(4)


def _encode_float(value: float) -> bytes:
    return _F32.pack(0x72, value)


def _encode_double(value: float) -> bytes:
    return _F64.pack(0x82, value)


def _encode_decimal(value: FloatingDecimal) -> bytes:
    return _DECIMAL_CODES[len(value)] + value


def _encode_uuid(value: UUID) -> bytes:
    return b"\x98" + value.bytes


SCALARS: Final[dict[type, Callable[..., bytes]]] = {
    bool: _encode_bool,
    int: encode_int,
    float: _encode_double,
    str: encode_text,
    bytes: encode_binary,
    bytearray: encode_binary,
    Byte: _encode_byte,
    Short: _encode_short,
    Int: encode_int,
    Long: encode_long,
    Float: _encode_float,
    Double: _encode_double,
    Char: _encode_char,
    Symbol: encode_symbol,
    UInt: encode_uint,
    ULong: encode_ulong,
    Timestamp: encode_timestamp,
    UUID: _encode_uuid,
    FloatingDecimal: _encode_decimal,
}
"""How each exact type is written."""


def encode_value(value: object, depth: int = 0) -> bytes:
    """Write one value.

    Args:
        value: None, bool, a number, text, bytes, UUID, ``Described``, a mapping or a list of such.
        depth: How deep it is nested already.
    Returns:
        Its bytes, constructor included.
    Raises:
        ProviderError: FORMAT; no such type in AMQP, a number too large, or nested too deep.
    """
    if value is None:
        return b"\x40"
    scalar = SCALARS.get(type(value))
    if scalar is not None:
        return scalar(value)
    if depth > MAX_DEPTH:
        raise bad_format(f"values are nested deeper than {MAX_DEPTH}")
    if isinstance(value, Described):
        return b"\x00" + encode_value(value.descriptor, depth + 1) + encode_value(value.value, depth + 1)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        parts = [encode_value(item, depth + 1) for pair in pairs for item in pair]
        return encode_compound(0xC1, len(parts), b"".join(parts))
    if isinstance(value, list | tuple):
        parts = [encode_value(item, depth + 1) for item in cast("Sequence[object]", value)]
        return encode_compound(0xC0, len(parts), b"".join(parts)) if parts else b"\x45"
    for kind, scalar in SCALARS.items():
        if isinstance(value, kind):
            return scalar(value)
    raise bad_format(f"a {type(value).__name__} has no AMQP type")
