"""AMQP 1.0 bytes to values.

Numbers keep their width: byte, short, long and float come back as the typed classes of ``jmsapi.values``, int and double as
plain Python numbers. Whatever the bytes are, only ``ProviderError(FORMAT)`` is raised.

Spec: AMQP 1.0, part 1 (types).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from jmsapi.spi import dict_of
from jmsapi.values import Byte, Char, Float, Long, Short
from jmsapi_amqp.codec.types import (
    MAX_DEPTH,
    AmqpValue,
    Described,
    FloatingDecimal,
    MapKey,
    Symbol,
    Timestamp,
    UInt,
    ULong,
    bad_format,
)

__all__ = ["MOST_ENTRIES", "check_entries", "decode_value"]

MAX_EMPTY: Final = 8
"""Entries without bytes that an array may have beyond its own size. Every other value takes at least a byte of the message, so
what a message becomes, and the time for it, is bounded by a multiple of its size."""
_MANY_KEYS: Final = 64
"""Keys of a map above which those are refused that all may have one hash, and the time for the others is bounded."""
MOST_ENTRIES: Final = 1 << 20
"""Values of the largest message that is read: each becomes an object of up to a hundred times its bytes."""
_LONGEST_KEPT: Final = 256
"""Bytes of the longest symbol that is remembered."""

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
            raise bad_format("the message ends inside a length")
        end = start + int.from_bytes(buffer[position:start])
        if end > len(buffer):
            raise bad_format(f"a value of {end - start} bytes begins {len(buffer) - start} bytes before the message's end")
        return make(buffer[start:end]), end

    return read


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _modified_text(data)


def _modified_text(data: bytes) -> str:
    """Read Java's modified UTF-8, which Classic 6.3.1 lets out in the texts of map messages.

    A character beyond U+FFFF is a pair of surrogates of three bytes each there, and U+0000 is two bytes.
    """
    halves = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


@lru_cache(maxsize=256)
def _kept_symbol(data: bytes) -> Symbol:
    return Symbol(data.decode("ascii"))


def _symbol(data: bytes) -> Symbol:
    return _kept_symbol(data) if len(data) <= _LONGEST_KEPT else Symbol(data.decode("ascii"))


def _raw(data: bytes) -> bytes:
    return data


def _long(value: int) -> Long:
    return int.__new__(Long, value)


def _byte(value: int) -> Byte:
    return int.__new__(Byte, value)


def _short(value: int) -> Short:
    return int.__new__(Short, value)


def _float(value: float) -> Float:
    return float.__new__(Float, value)


def _char(value: int) -> str:
    text = chr(value)
    return str.__new__(Char, text) if value <= 0xFFFF else text


def _decimal(data: bytes) -> FloatingDecimal:
    return FloatingDecimal(data)


def _read_uuid(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    end = position + 16
    if end > len(buffer):
        raise bad_format("the message ends inside a UUID")
    return UUID(bytes=buffer[position:end]), end


def _read_bool(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    return buffer[position] != 0, position + 1


def _frame(buffer: bytes, position: int, width: int) -> tuple[int, int, int]:
    """Return count, first position and end of a compound value."""
    if width == 1:
        end = position + 1 + buffer[position]
        count = buffer[position + 1]
        start = position + 2
    else:
        start = position + 8
        if start > len(buffer):
            raise bad_format("the message ends inside a list, map or array")
        end = position + 4 + int.from_bytes(buffer[position : position + 4])
        count = int.from_bytes(buffer[position + 4 : start])
    if end > len(buffer) or end < start:
        raise bad_format("a list, map or array is longer than the message")
    return count, start, end


def _entries(buffer: bytes, position: int, width: int, depth: int) -> tuple[list[AmqpValue], int]:
    count, at, end = _frame(buffer, position, width)
    if count > end - at:
        raise bad_format(f"{count} entries cannot fit {end - at} bytes")
    if depth > MAX_DEPTH:
        raise bad_format(f"values are nested deeper than {MAX_DEPTH}")
    values: list[AmqpValue] = []
    add = values.append
    depth += 1
    # The types that nearly all entries have are read here and not through the table: it halves the time of a message.
    for _ in range(count):
        code = buffer[at]
        if code == 0xA1:
            start = at + 2
            at = start + buffer[at + 1]
            if at > end:
                raise bad_format("a text is longer than the list or map it is in")
            try:
                add(buffer[start:at].decode())
            except UnicodeDecodeError:
                add(_modified_text(buffer[start:at]))
        elif code == 0x40:
            add(None)
            at += 1
        elif code == 0x54:
            small = buffer[at + 1]
            add(small if small < 128 else small - 256)
            at += 2
        elif code == 0x41:
            add(True)
            at += 1
        elif code == 0xA3:
            start = at + 2
            at = start + buffer[at + 1]
            if at > end:
                raise bad_format("a symbol is longer than the list or map it is in")
            add(_symbol(buffer[start:at]))
        else:
            value, at = READERS[code](buffer, at + 1, depth)
            add(value)
    if at != end:
        raise bad_format("the entries of a list or map do not end where its size says")
    return values, end


def _read_list(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        return _entries(buffer, position, width, depth)

    return read


def _read_map(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        values, end = _entries(buffer, position, width, depth)
        if len(values) % 2:
            raise bad_format("a map has a key without a value")
        pairs = iter(values)
        many = len(values) > 2 * _MANY_KEYS
        try:
            found = _large_map(list(zip(pairs, pairs, strict=True))) if many else dict(zip(pairs, pairs, strict=True))
        except TypeError:
            return _apart(values), end
        return (found if 2 * len(found) == len(values) else _apart(values)), end

    return read


def _large_map(pairs: list[tuple[AmqpValue, AmqpValue]]) -> dict[AmqpValue, AmqpValue]:
    if any(isinstance(key, UUID | Described | list | dict) for key, _ in pairs):
        raise bad_format("a map of many entries has keys that are no texts, numbers or symbols")
    try:
        return dict_of(pairs)
    except ValueError as error:
        raise bad_format(str(error)) from error


def _apart(values: list[AmqpValue]) -> dict[AmqpValue, AmqpValue]:
    """Return a map of keys that are not all different, or possible, in Python; of two that are one in AMQP the last counts."""
    found: dict[AmqpValue, AmqpValue] = {}
    kinds: dict[AmqpValue, type] = {}
    for key, value in zip(values[::2], values[1::2], strict=True):
        try:
            is_itself = kinds.setdefault(key, type(key)) is type(key)
        except TypeError:
            is_itself = False
        found[key if is_itself else MapKey(key)] = value
    return found


def _read_array(width: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        count, start, end = _frame(buffer, position, width)
        if depth > MAX_DEPTH:
            raise bad_format(f"values are nested deeper than {MAX_DEPTH}")
        if count > end - start + MAX_EMPTY:
            raise bad_format(f"an array of {count} entries is longer than the message")
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
            raise bad_format("the entries of an array do not end where its size says")
        return values, end

    return read


def _read_described(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
    if depth > MAX_DEPTH:
        raise bad_format(f"values are nested deeper than {MAX_DEPTH}")
    descriptor, position = READERS[buffer[position]](buffer, position + 1, depth + 1)
    value, position = READERS[buffer[position]](buffer, position + 1, depth + 1)
    return Described(descriptor, value), position


def _unknown(code: int) -> Reader:
    def read(buffer: bytes, position: int, depth: int) -> tuple[AmqpValue, int]:
        raise bad_format(f"0x{code:02x} is not an AMQP type")

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
    0x51: _fixed(">b", _byte),
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


_WIDTHS: Final = (1, 2, 3, 5, 9, 17)
"""Bytes of a value with its constructor, by the constructor's first half, from 4."""


def check_entries(buffer: bytes, position: int = 0) -> None:
    """Refuse a message of more values than are read, without reading them. What is wrong with the bytes is found later.

    Args:
        buffer: The whole message.
        position: Where its first section is.
    Raises:
        ProviderError: FORMAT; there are too many.
    """
    if len(buffer) - position <= MOST_ENTRIES:
        return
    entries = 0
    try:
        while entries <= MOST_ENTRIES and position < len(buffer):
            code = buffer[position]
            kind = code >> 4
            entries += 1
            if kind < 4:
                position += 1  # a descriptor follows, then the value
            elif kind < 10:
                position += _WIDTHS[kind - 4]
            else:
                width = 4 if kind & 1 else 1
                inside = position + 1 + width
                size = int.from_bytes(buffer[position + 1 : inside])
                if kind in (12, 13):
                    position = inside + width  # what is in a list or map follows
                else:
                    # The entries of an array have no constructors to look at: as many as it has bytes, at most.
                    entries += size if kind > 13 else 0
                    position = inside + size
    except IndexError:
        return
    if entries > MOST_ENTRIES:
        raise bad_format(f"the message has more than {MOST_ENTRIES} values")


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
        raise bad_format("the message ends inside a value") from None
    except UnicodeDecodeError as error:
        raise bad_format(f"a text is not valid {error.encoding}") from error
    except (ValueError, OverflowError):
        raise bad_format("a char is outside Unicode") from None
