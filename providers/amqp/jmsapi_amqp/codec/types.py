"""The AMQP 1.0 type system: any value to bytes, any bytes to a value.

Numbers keep their width: what AMQP calls byte, short, long and float comes back as the typed classes of ``jmsapi.values``,
int and double as plain Python numbers. Whatever the bytes are, only ``ProviderError(FORMAT)`` is raised.

Spec: AMQP 1.0, part 1 (types).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias
from uuid import UUID

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.values import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["AmqpValue", "Described", "Symbol", "Timestamp", "UInt", "ULong", "bad_format", "decode_value", "encode_value"]

MAX_DEPTH: Final = 64
"""Deepest nesting read or written; deeper is refused rather than overflowing the stack."""
MAX_EMPTY: Final = 65_536
"""Most entries of an array whose entries take no bytes: its length is not bounded by the message's."""


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


AmqpValue: TypeAlias = "None | bool | int | float | str | bytes | UUID | Described | Mapping[AmqpValue, AmqpValue] | Sequence[AmqpValue]"


def bad_format(text: str) -> NoReturn:
    """Raise the codec's one error."""
    raise ProviderError(ErrorKind.FORMAT, text)


# ---------------------------------------------------------------------------------------------------------- writing

_I32: Final = struct.Struct(">Bi")
_I64: Final = struct.Struct(">Bq")
_U32: Final = struct.Struct(">BI")
_U64: Final = struct.Struct(">BQ")
_I16: Final = struct.Struct(">Bh")
_I8: Final = struct.Struct(">Bb")
_F32: Final = struct.Struct(">Bf")
_F64: Final = struct.Struct(">Bd")


def encode_text(value: str) -> bytes:
    """Return an AMQP string."""
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        bad_format(f"a text holds a lone surrogate at character {error.start}; AMQP strings are UTF-8, which has none")
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
        bad_format(f"{value!r} is not ASCII, so it cannot be an AMQP symbol")
    size = len(data)
    return b"\xa3" + size.to_bytes(1) + data if size < 256 else b"\xb3" + size.to_bytes(4) + data


def encode_long(value: int) -> bytes:
    """Return an AMQP long."""
    if -128 <= value <= 127:
        return _I8.pack(0x55, value)
    try:
        return _I64.pack(0x81, value)
    except struct.error:
        bad_format(f"{value} does not fit a long of 64 bits")


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
        bad_format(f"{value} does not fit an unsigned number of 32 bits")


def encode_ulong(value: int) -> bytes:
    """Return an AMQP ulong."""
    if value == 0:
        return b"\x44"
    if 0 < value < 256:
        return b"\x53" + value.to_bytes(1)
    try:
        return _U64.pack(0x80, value)
    except struct.error:
        bad_format(f"{value} does not fit an unsigned number of 64 bits")


def encode_timestamp(value: int) -> bytes:
    """Return an AMQP timestamp."""
    try:
        return _I64.pack(0x83, value)
    except struct.error:
        bad_format(f"the time {value} ms does not fit 64 bits")


def encode_compound(small: int, count: int, data: bytes) -> bytes:
    """Return a list (small code 0xc0) or map (0xc1) around entries written already."""
    size = len(data)
    if size < 255 and count < 256:
        return small.to_bytes(1) + (size + 1).to_bytes(1) + count.to_bytes(1) + data
    return (small + 0x10).to_bytes(1) + (size + 4).to_bytes(4) + count.to_bytes(4) + data


def _encode_bool(value: bool) -> bytes:
    return b"\x41" if value else b"\x42"


def _encode_char(value: str) -> bytes:
    return b"\x73" + ord(value).to_bytes(4)


def _encode_float(value: float) -> bytes:
    return _F32.pack(0x72, value)


def _encode_double(value: float) -> bytes:
    return _F64.pack(0x82, value)


def _encode_uuid(value: UUID) -> bytes:
    return b"\x98" + value.bytes


SCALARS: Final[dict[type, Callable[..., bytes]]] = {
    bool: _encode_bool,
    int: encode_int,
    float: _encode_double,
    str: encode_text,
    bytes: encode_binary,
    bytearray: encode_binary,
    Byte: lambda value: _I8.pack(0x51, value),
    Short: lambda value: _I16.pack(0x61, value),
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
        bad_format(f"values are nested deeper than {MAX_DEPTH}")
    if isinstance(value, Described):
        return b"\x00" + encode_value(value.descriptor, depth + 1) + encode_value(value.value, depth + 1)
    if isinstance(value, Mapping):
        parts = [encode_value(item, depth + 1) for pair in value.items() for item in pair]  # pyright: ignore[reportUnknownVariableType]
        return encode_compound(0xC1, len(parts), b"".join(parts))
    if isinstance(value, list | tuple):
        parts = [encode_value(item, depth + 1) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return encode_compound(0xC0, len(parts), b"".join(parts)) if parts else b"\x45"
    for kind, scalar in SCALARS.items():
        if isinstance(value, kind):
            return scalar(value)
    bad_format(f"a {type(value).__name__} has no AMQP type")


# ---------------------------------------------------------------------------------------------------------- reading

Reader: TypeAlias = "Callable[[bytes, int, int], tuple[AmqpValue, int]]"
"""Buffer, position behind the constructor, depth: the value and the position behind it."""


def _fixed(layout: str, make: Callable[..., AmqpValue] | None = None) -> Reader:
    form = struct.Struct(layout)
    size = form.size
    unpack = form.unpack_from

    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        value = unpack(buffer, position)[0]
        return (value if make is None else make(value)), position + size

    return read


def _constant(value: AmqpValue) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        return value, position

    return read


def _variable(width: int, make: Callable[[bytes], AmqpValue]) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        start = position + width
        if start > len(buffer):
            bad_format("the message ends inside a length")
        end = start + int.from_bytes(buffer[position:start])
        if end > len(buffer):
            bad_format(f"a value of {end - start} bytes begins {len(buffer) - start} bytes before the message's end")
        return make(buffer[start:end]), end

    return read


def _text(data: bytes) -> str:
    return data.decode()


def _symbol(data: bytes) -> Symbol:
    return Symbol(data.decode("ascii"))


def _raw(data: bytes) -> bytes:
    return data


def _long(value: int) -> Long:
    return int.__new__(Long, value)


def _short(value: int) -> Short:
    return int.__new__(Short, value)


def _float(value: float) -> Float:
    return float.__new__(Float, value)


def _char(value: int) -> str:
    text = chr(value)
    return str.__new__(Char, text) if value <= 0xFFFF else text


def _decimal(data: bytes) -> bytes:
    return data


def _read_uuid(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    end = position + 16
    if end > len(buffer):
        bad_format("the message ends inside a UUID")
    return UUID(bytes=buffer[position:end]), end


def _read_bool(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    return buffer[position] != 0, position + 1


def _frame(buffer: bytes, position: int, width: int) -> tuple[int, int, int]:
    """Return count, first position and end of a compound value."""
    body = position + width
    start = body + width
    if start > len(buffer):
        bad_format("the message ends inside a list, map or array")
    end = body + int.from_bytes(buffer[position:body])
    count = int.from_bytes(buffer[body:start])
    if end > len(buffer) or end < start:
        bad_format("a list, map or array is longer than the message")
    return count, start, end


def _entries(buffer: bytes, position: int, width: int, depth: int) -> tuple[list[AmqpValue], int]:
    count, start, end = _frame(buffer, position, width)
    if count > end - start:
        bad_format(f"{count} entries cannot fit {end - start} bytes")
    if depth > MAX_DEPTH:
        bad_format(f"values are nested deeper than {MAX_DEPTH}")
    values: list[AmqpValue] = []
    at = start
    for _ in range(count):
        value, at = READERS[buffer[at]](buffer, at + 1, depth + 1)
        values.append(value)
    if at != end:
        bad_format("a list or map does not end where it said")
    return values, end


def _read_list(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        return _entries(buffer, position, width, depth)

    return read


def _read_map(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        values, end = _entries(buffer, position, width, depth)
        if len(values) % 2:
            bad_format("a map has a key without a value")
        pairs = iter(values)
        return dict(zip(pairs, pairs, strict=True)), end

    return read


def _read_array(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        count, start, end = _frame(buffer, position, width)
        if depth > MAX_DEPTH:
            bad_format(f"values are nested deeper than {MAX_DEPTH}")
        if count > max(end - start, MAX_EMPTY):
            bad_format(f"an array of {count} entries is longer than the message")
        descriptor: AmqpValue = None
        described = buffer[start] == 0
        at = start
        if described:
            descriptor, at = READERS[buffer[at + 1]](buffer, at + 2, depth + 1)
        reader = READERS[buffer[at]]
        at += 1
        values: list[AmqpValue] = []
        for _ in range(count):
            value, at = reader(buffer, at, depth + 1)
            values.append(Described(descriptor, value) if described else value)
        if at != end:
            bad_format("an array does not end where it said")
        return values, end

    return read


def _read_described(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    if depth > MAX_DEPTH:
        bad_format(f"values are nested deeper than {MAX_DEPTH}")
    descriptor, position = READERS[buffer[position]](buffer, position + 1, depth + 1)
    value, position = READERS[buffer[position]](buffer, position + 1, depth + 1)
    return Described(descriptor, value), position


def _unknown(code: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        bad_format(f"0x{code:02x} is not an AMQP type")

    return read


READERS: Final[list[Reader]] = [_unknown(code) for code in range(256)]
"""By constructor byte."""
for _code, _reader in {
    0x00: _read_described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: _constant([]),
    0x50: _fixed(">B", UInt),
    0x51: _fixed(">b", lambda value: int.__new__(Byte, value)),
    0x52: _fixed(">B", UInt),
    0x53: _fixed(">B", ULong),
    0x54: _fixed(">b"),
    0x55: _fixed(">b", _long),
    0x56: _read_bool,
    0x60: _fixed(">H", UInt),
    0x61: _fixed(">h", _short),
    0x70: _fixed(">I", UInt),
    0x71: _fixed(">i"),
    0x72: _fixed(">f", _float),
    0x73: _fixed(">I", _char),
    0x74: _fixed(">4s", _decimal),
    0x80: _fixed(">Q", ULong),
    0x81: _fixed(">q", _long),
    0x82: _fixed(">d"),
    0x83: _fixed(">q", Timestamp),
    0x84: _fixed(">8s", _decimal),
    0x94: _fixed(">16s", _decimal),
    0x98: _read_uuid,
    0xA0: _variable(1, _raw),
    0xA1: _variable(1, _text),
    0xA3: _variable(1, _symbol),
    0xB0: _variable(4, _raw),
    0xB1: _variable(4, _text),
    0xB3: _variable(4, _symbol),
    0xC0: _read_list(1),
    0xC1: _read_map(1),
    0xD0: _read_list(4),
    0xD1: _read_map(4),
    0xE0: _read_array(1),
    0xF0: _read_array(4),
}.items():
    READERS[_code] = _reader


def decode_value(buffer: bytes, position: int = 0) -> tuple[AmqpValue, int]:
    """Read one value.

    Args:
        buffer: The whole message.
        position: Where its constructor is.
    Returns:
        The value and the position behind it.
    Raises:
        ProviderError: FORMAT; whatever is wrong with the bytes.
    """
    try:
        return READERS[buffer[position]](buffer, position + 1, 0)
    except (IndexError, struct.error):
        bad_format("the message ends inside a value")
    except UnicodeDecodeError as error:
        bad_format(f"a text is not valid {error.encoding}")
    except TypeError:
        bad_format("a map's key is itself a list or map")
    except (ValueError, OverflowError):
        bad_format("a char is outside Unicode")
