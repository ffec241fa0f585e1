"""StreamMessage: values of ten types in order, converted when read; a read that fails moves nothing.

A byte array is read in parts. It ends with the part that leaves room in the buffer; a part that fills the buffer exactly
must be followed by one more call, which gives -1. A call after the end gives -1, too, where neither a byte array nor null
follows; Java clients differ here, and programs for either kind work.

Spec: 3.11-1, 3.11.3-1 to 3.11.3-9, 7.3-18, 7.3-19, 7.3-20, 7.3-24, 9.4.8-1, 9.4.8-2, B.2.21-4, B.2.21-5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NoReturn, SupportsFloat, SupportsIndex, TypeVar, cast

from jmsapi._core.message import accept, convert
from jmsapi._core.message.base import MessageImpl, plain_class
from jmsapi._core.message.buffers import fill, writable_view
from jmsapi._core.message.parts import UNREAD, Unread
from jmsapi.api import StreamMessage
from jmsapi.errors import MessageEOFException, MessageFormatException, MessageNotReadableException
from jmsapi.spi import BodyValue, MessageKind

__all__ = ["StreamMessageImpl"]

T = TypeVar("T")


class _Array(Enum):
    """Where the reading is with byte arrays, when not inside of one."""

    NONE = "none was read last"
    ENDED = "the value before was one, and its last part left room in the buffer"


class StreamMessageImpl(MessageImpl, StreamMessage):
    """A message whose body is a sequence of values."""

    __slots__ = ("_array", "_items", "_own", "_position")

    _kind = MessageKind.STREAM
    _items: Sequence[BodyValue] | Unread
    _own: bool
    """Whether no envelope holds the items; if one does, they are copied before the next change."""
    _position: int
    """The item that is read next."""
    _array: int | _Array
    """How many bytes of the item, a byte array, were read."""

    def _start_body(self, *, received: bool) -> None:
        super()._start_body(received=received)
        self._items = UNREAD if received else []
        self._own = not received
        self._position = 0
        self._array = _Array.NONE

    def _all(self) -> Sequence[BodyValue]:
        items = self._items
        if items is UNREAD:
            items = self._items = cast("Sequence[BodyValue] | None", self._received_body()) or []
        return items

    def reset(self) -> None:
        self._body_read_only = True
        self._position = 0
        self._array = _Array.NONE

    def get_body(self, body_type: type[T]) -> NoReturn:
        raise self._wrong_body(body_type)

    def is_body_assignable_to(self, body_type: type[Any]) -> bool:
        plain_class(body_type)
        return False

    def _freeze_body(self) -> tuple[Sequence[BodyValue], None]:
        self._own = False
        return self._all(), None

    # ---- reading

    def _readable(self) -> Sequence[BodyValue]:
        if not self._body_read_only:
            raise MessageNotReadableException("the body is write-only until reset()")
        return self._all()

    def _read(self, converted: Callable[[BodyValue], T]) -> T:
        items = self._readable()
        if self._position >= len(items):
            raise MessageEOFException(f"all {len(items)} values have been read")
        if not isinstance(self._array, _Array):
            raise MessageFormatException("a byte array is half read: call read_bytes until it gives less than the buffer holds")
        value = converted(items[self._position])
        self._position += 1
        self._array = _Array.NONE
        return value

    def read_boolean(self) -> bool:
        return self._read(convert.as_boolean)

    def read_byte(self) -> int:
        return self._read(lambda value: convert.as_integer(value, "byte"))

    def read_short(self) -> int:
        return self._read(lambda value: convert.as_integer(value, "short"))

    def read_char(self) -> str:
        return self._read(convert.as_char)

    def read_int(self) -> int:
        return self._read(lambda value: convert.as_integer(value, "int"))

    def read_long(self) -> int:
        return self._read(lambda value: convert.as_integer(value, "long"))

    def read_float(self) -> float:
        return self._read(lambda value: convert.as_real(value, "float"))

    def read_double(self) -> float:
        return self._read(lambda value: convert.as_real(value, "double"))

    def read_string(self) -> str | None:
        return self._read(convert.as_string)

    def read_object(self) -> Any:
        return self._read(convert.as_object)

    def read_bytes(self, value: bytearray | memoryview) -> int:
        items = self._readable()
        with writable_view(value) as view:
            room = len(view)
        state, at_end = self._array, self._position >= len(items)
        if state is _Array.ENDED and (at_end or not isinstance(items[self._position], bytes | None)):
            self._array = _Array.NONE
            return -1
        if at_end:
            raise MessageEOFException(f"all {len(items)} values have been read")
        data = convert.as_byte_array(items[self._position])
        done = 0 if isinstance(state, _Array) else state
        if data is None or (state == done == len(data)):
            return self._end_array(-1, _Array.NONE)
        count = fill(value, None, data, done)
        if count < room:
            return self._end_array(count, _Array.ENDED)
        self._array = done + count
        return count

    def _end_array(self, answer: int, after: _Array) -> int:
        self._position += 1
        self._array = after
        return answer

    # ---- writing

    def _write(self, value: BodyValue) -> None:
        self._check_writable()
        items = self._all()
        if not self._own:
            self._items = items = list(items)
            self._own = True
        cast("list[BodyValue]", items).append(value)

    def write_boolean(self, value: bool) -> None:
        self._write(accept.boolean(value))

    def write_byte(self, value: SupportsIndex) -> None:
        self._write(accept.byte(value))

    def write_short(self, value: SupportsIndex) -> None:
        self._write(accept.short(value))

    def write_char(self, value: str) -> None:
        self._write(accept.char(value))

    def write_int(self, value: SupportsIndex) -> None:
        self._write(accept.int_(value))

    def write_long(self, value: SupportsIndex) -> None:
        self._write(accept.long(value))

    def write_float(self, value: SupportsFloat) -> None:
        self._write(accept.float_(value))

    def write_double(self, value: SupportsFloat) -> None:
        self._write(accept.double(value))

    def write_string(self, value: str | None) -> None:
        self._write(accept.string(value))

    def write_bytes(self, value: bytes | bytearray | memoryview | None, offset: int = 0, length: int | None = None) -> None:
        self._write(accept.byte_array(value, offset, length))

    def write_object(self, value: Any) -> None:
        self._write(accept.body_value(value))
