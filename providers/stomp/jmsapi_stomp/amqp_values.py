"""Bodies that AMQP 1.0 clients send as a value, and RabbitMQ 4 hands to STOMP readers as they were encoded.

Such a frame has ``type:amqp-1.0`` and one amqp-value section for a body: descriptor ``00 53 77``, then one value. Reads
the primitive types, lists and maps; nothing else is a JMS body.
"""

from __future__ import annotations

import struct
from typing import Final

from jmsapi.spi import Body, BodyValue, ErrorKind, MessageKind, ProviderError
from jmsapi.values import Byte, Char, Float, Long, Short, Value

__all__ = ["MARK", "SECTION", "read_value"]

MARK: Final = "amqp-1.0"
SECTION: Final = b"\x00\x53\x77"
_WIDTHS: Final[dict[int, str]] = {
    0x50: ">B", 0x51: ">b", 0x60: ">H", 0x61: ">h", 0x70: ">I", 0x71: ">i", 0x80: ">Q", 0x81: ">q", 0x52: ">B", 0x53: ">B",
    0x54: ">b", 0x55: ">b", 0x72: ">f", 0x82: ">d", 0x83: ">q", 0x73: ">I",
}  # fmt: skip
_WRAPPERS: Final[dict[int, type[Byte] | type[Short] | type[Long] | type[Float]]] = {
    0x51: Byte, 0x61: Short, 0x81: Long, 0x55: Long, 0x83: Long, 0x72: Float,
}  # fmt: skip
_FIXED: Final[dict[int, Value]] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
_SIZED: Final[dict[int, int]] = {0xA0: 1, 0xA1: 1, 0xB0: 4, 0xB1: 4, 0xA3: 1, 0xB3: 4}
_GROUPS: Final[dict[int, int]] = {0xC0: 1, 0xC1: 1, 0xD0: 4, 0xD1: 4}
_MOST_ITEMS: Final = 1 << 21
"""Keys and values of the largest map that is read."""
_Item = BodyValue | list["_Item"]


def read_value(data: bytes) -> tuple[MessageKind, Body]:
    """Return the message type and the body of an amqp-value section.

    Raises:
        ProviderError: FORMAT; it is none, or holds what no JMS body can.
    """
    try:
        if not data.startswith(SECTION):
            raise ValueError("no amqp-value section")
        code, value, end = _read(data, len(SECTION), 0)
        if end != len(data):
            raise ValueError("more than one section")
        if code in (0xC1, 0xD1) and isinstance(value, list):
            return MessageKind.MAP, {_name(key): _plain(item) for key, item in zip(value[::2], value[1::2], strict=True)}
        if isinstance(value, list):
            return MessageKind.STREAM, [_plain(item) for item in value]
    except (ValueError, IndexError, OverflowError, struct.error) as cause:
        raise ProviderError(ErrorKind.FORMAT, f"the AMQP value received cannot be read: {cause}") from cause
    if isinstance(value, bytes):
        return MessageKind.BYTES, value
    if isinstance(value, str):
        return MessageKind.TEXT, value
    if value is None:
        return MessageKind.MESSAGE, None
    raise ProviderError(ErrorKind.FORMAT, f"a message whose body is a single {type(value).__name__} has no JMS type")


def _name(key: _Item) -> str:
    if not isinstance(key, str):
        raise ValueError("a map's key is no text")
    return key


def _plain(item: _Item) -> BodyValue:
    if isinstance(item, list):
        raise ValueError("a list or map within another")
    return item


def _read(data: bytes, position: int, depth: int) -> tuple[int, _Item, int]:
    """Return the code, the value and where the next begins."""
    code = data[position]
    position += 1
    if code in _FIXED:
        return code, _FIXED[code], position
    if code == 0x45:
        return code, [], position
    if code == 0x56:
        return code, data[position] != 0, position + 1
    if code in _WIDTHS:
        form = _WIDTHS[code]
        (value,) = struct.unpack_from(form, data, position)
        end = position + struct.calcsize(form)
        if code == 0x73:
            return code, Char(chr(value)) if value <= 0xFFFF else chr(value), end
        return code, _WRAPPERS[code](value) if code in _WRAPPERS else value, end
    if code in _SIZED:
        width = _SIZED[code]
        start = position + width
        end = start + int.from_bytes(data[position:start], "big")
        if end > len(data):
            raise ValueError("cut short")
        return code, data[start:end] if code in (0xA0, 0xB0) else data[start:end].decode(), end
    if code in _GROUPS and depth == 0:
        width = _GROUPS[code]
        count = int.from_bytes(data[position + width : position + 2 * width], "big")
        position += 2 * width
        if count > _MOST_ITEMS:
            raise ValueError(f"{count} items")
        items: list[_Item] = []
        for _ in range(count):
            _, item, position = _read(data, position, depth + 1)
            items.append(item)
        return code, items, position
    raise ValueError(f"type 0x{code:02x}")
