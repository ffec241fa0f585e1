"""BytesMessage: bytes, written at the end or read from a position; a read that fails moves nothing.

What was written is kept as ``bytes`` while nobody writes, so that envelopes share it without a copy.

Spec: 3.11-6, 3.11.1-1, 3.11.2-1, 3.11.2-2, 3.11.3-10, 3.12-5, 7.3-18, 7.3-24, 9.4.4-1 to 9.4.4-3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, SupportsFloat, SupportsIndex, TypeVar, cast

from jmsapi._core.message import accept, mutf8
from jmsapi._core.message.base import MessageImpl, plain_class
from jmsapi._core.message.buffers import fill
from jmsapi._core.message.parts import UNREAD, Unread
from jmsapi.api import BytesMessage
from jmsapi.errors import MessageEOFException, MessageFormatException, MessageNotReadableException, NullPointerException
from jmsapi.spi import MessageKind
from jmsapi.values import Byte, Char, Float, Long, Short

__all__ = ["BytesMessageImpl"]

T = TypeVar("T")
_BOOLEAN: Final = struct.Struct(">?")
_BYTE: Final = struct.Struct(">b")
_UNSIGNED_BYTE: Final = struct.Struct(">B")
_SHORT: Final = struct.Struct(">h")
_UNSIGNED_SHORT: Final = struct.Struct(">H")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_FLOAT: Final = struct.Struct(">f")
_DOUBLE: Final = struct.Struct(">d")
_LONGEST_UTF: Final = 65_535


class BytesMessageImpl(MessageImpl, BytesMessage):
    """A message whose body is bytes."""

    __slots__ = ("_data", "_growing", "_position")

    _kind = MessageKind.BYTES
    _data: bytes | Unread
    _growing: bytearray | None
    """The body while it is being written; it begins with ``_data``."""
    _position: int

    def _start_body(self, *, received: bool) -> None:
        super()._start_body(received=received)
        self._data = UNREAD if received else b""
        self._growing = None
        self._position = 0

    def _content(self) -> bytes:
        data = self._data
        if data is UNREAD:
            data = self._data = cast("bytes | None", self._received_body()) or b""
        elif self._growing is not None:
            data = self._data = bytes(self._growing)
            self._growing = None
        return data

    def _readable(self) -> bytes:
        if not self._body_read_only:
            raise MessageNotReadableException("the body is write-only until reset()")
        return self._content()

    def reset(self) -> None:
        self._content()
        self._body_read_only = True
        self._position = 0

    @property
    def body_length(self) -> int:
        return len(self._readable())

    def get_body(self, body_type: type[T]) -> T | None:
        if not issubclass(bytes, plain_class(body_type)):
            raise self._wrong_body(body_type)
        self.reset()
        return cast(T, self._content())

    def is_body_assignable_to(self, body_type: type[Any]) -> bool:
        return issubclass(bytes, plain_class(body_type))

    def _freeze_body(self) -> tuple[bytes, None]:
        return self._content(), None

    # ---- reading

    def _read(self, shape: struct.Struct) -> Any:
        data = self._readable()
        end = self._position + shape.size
        if end > len(data):
            raise MessageEOFException(f"{shape.size} bytes are to be read, {len(data) - self._position} are left")
        (value,) = shape.unpack_from(data, self._position)
        self._position = end
        return value

    def read_boolean(self) -> bool:
        return bool(self._read(_BYTE))

    def read_byte(self) -> int:
        return cast(int, self._read(_BYTE))

    def read_unsigned_byte(self) -> int:
        return cast(int, self._read(_UNSIGNED_BYTE))

    def read_short(self) -> int:
        return cast(int, self._read(_SHORT))

    def read_unsigned_short(self) -> int:
        return cast(int, self._read(_UNSIGNED_SHORT))

    def read_char(self) -> str:
        return chr(self._read(_UNSIGNED_SHORT))

    def read_int(self) -> int:
        return cast(int, self._read(_INT))

    def read_long(self) -> int:
        return cast(int, self._read(_LONG))

    def read_float(self) -> float:
        return cast(float, self._read(_FLOAT))

    def read_double(self) -> float:
        return cast(float, self._read(_DOUBLE))

    def read_utf(self) -> str:
        data = self._readable()
        start = self._position + _UNSIGNED_SHORT.size
        if start > len(data):
            raise MessageEOFException(f"the length of a text takes 2 bytes, {len(data) - self._position} are left")
        end = start + _UNSIGNED_SHORT.unpack_from(data, self._position)[0]
        if end > len(data):
            raise MessageEOFException(f"a text of {end - start} bytes is to be read, {len(data) - start} are left")
        try:
            text = mutf8.decode(data[start:end])
        except ValueError as error:
            raise MessageFormatException(f"the bytes are no text in Java's modified UTF-8: {error}") from error
        self._position = end
        return text

    def read_bytes(self, value: bytearray | memoryview, length: int | None = None) -> int:
        data = self._readable()
        count = fill(value, length, data, self._position)
        if self._position >= len(data):
            return -1
        self._position += count
        return count

    # ---- writing

    def _write(self, data: bytes) -> None:
        if self._growing is None:
            self._growing = bytearray(self._content())
        self._growing += data

    def write_boolean(self, value: bool) -> None:
        self._check_writable()
        self._write(_BOOLEAN.pack(accept.boolean(value)))

    def write_byte(self, value: SupportsIndex) -> None:
        self._check_writable()
        self._write(_BYTE.pack(accept.byte(value)))

    def write_short(self, value: SupportsIndex) -> None:
        self._check_writable()
        self._write(_SHORT.pack(accept.short(value)))

    def write_char(self, value: str) -> None:
        self._check_writable()
        self._write(_UNSIGNED_SHORT.pack(ord(accept.char(value))))

    def write_int(self, value: SupportsIndex) -> None:
        self._check_writable()
        self._write(_INT.pack(accept.int_(value)))

    def write_long(self, value: SupportsIndex) -> None:
        self._check_writable()
        self._write(_LONG.pack(accept.long(value)))

    def write_float(self, value: SupportsFloat) -> None:
        self._check_writable()
        self._write(_FLOAT.pack(accept.float_(value)))

    def write_double(self, value: SupportsFloat) -> None:
        self._check_writable()
        self._write(_DOUBLE.pack(accept.double(value)))

    def write_utf(self, value: str) -> None:
        self._check_writable()
        text = accept.string(value)
        if text is None:
            raise NullPointerException("text is needed, not None")
        data = mutf8.encode(text)
        if len(data) > _LONGEST_UTF:
            raise MessageFormatException(f"the text takes {len(data)} bytes; write_utf has room for {_LONGEST_UTF}")
        self._write(_UNSIGNED_SHORT.pack(len(data)) + data)

    def write_bytes(self, value: bytes | bytearray | memoryview, offset: int = 0, length: int | None = None) -> None:
        self._check_writable()
        data = accept.byte_array(value, offset, length)
        if data is None:
            raise NullPointerException("bytes are needed, not None")
        if self._data or self._growing is not None:
            self._write(data)
        else:
            self._data = data

    def write_object(self, value: Any) -> None:
        if value is None:
            raise NullPointerException("a value is needed, not None")
        kept = accept.body_value(value)
        _WRITERS[type(kept)](self, kept)


_WRITERS: Final[dict[type, Callable[[BytesMessageImpl, Any], None]]] = {
    bool: BytesMessageImpl.write_boolean,
    Byte: BytesMessageImpl.write_byte,
    Short: BytesMessageImpl.write_short,
    Char: BytesMessageImpl.write_char,
    int: BytesMessageImpl.write_int,
    Long: BytesMessageImpl.write_long,
    Float: BytesMessageImpl.write_float,
    float: BytesMessageImpl.write_double,
    str: BytesMessageImpl.write_utf,
    bytes: BytesMessageImpl.write_bytes,
}
