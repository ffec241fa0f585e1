"""MapMessage: named values of ten types, converted when read. Spec: 3.11-2, 3.11-3, 3.11.3-1 to 3.11.3-8, 9.4.5-1 to 9.4.6-2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, SupportsFloat, SupportsIndex, TypeVar, cast

from jmsapi._core.message import accept, convert
from jmsapi._core.message.base import MessageImpl, plain_class
from jmsapi._core.message.parts import UNREAD, Unread
from jmsapi.api import MapMessage
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import BodyValue, MessageKind

__all__ = ["MapMessageImpl"]

T = TypeVar("T")


class MapMessageImpl(MessageImpl, MapMessage):
    """A message whose body is a mapping."""

    __slots__ = ("_entries", "_own")

    _kind = MessageKind.MAP
    _entries: Mapping[str, BodyValue] | Unread
    _own: bool
    """Whether no envelope holds the entries; if one does, they are copied before the next change."""

    def _start_body(self, *, received: bool) -> None:
        super()._start_body(received=received)
        self._entries = UNREAD if received else {}
        self._own = not received

    def _all(self) -> Mapping[str, BodyValue]:
        entries = self._entries
        if entries is UNREAD:
            entries = self._entries = cast("Mapping[str, BodyValue] | None", self._received_body()) or {}
        return entries

    def _entry(self, name: str) -> BodyValue:
        return self._all().get(name)

    def _set(self, name: str, value: BodyValue) -> None:
        self._check_writable()
        _check_name(name)
        entries = self._all()
        if not self._own:
            self._entries = entries = dict(entries)
            self._own = True
        cast("dict[str, BodyValue]", entries)[name] = value

    def _freeze_body(self) -> tuple[Mapping[str, BodyValue], None]:
        self._own = False
        return self._all(), None

    def get_body(self, body_type: type[T]) -> T | None:
        if not issubclass(dict, plain_class(body_type)):
            raise self._wrong_body(body_type)
        return cast(T, {name: convert.as_object(value) for name, value in self._all().items()})

    def is_body_assignable_to(self, body_type: type[Any]) -> bool:
        return issubclass(dict, plain_class(body_type))

    @property
    def map_names(self) -> Iterator[str]:
        return iter(tuple(self._all()))

    def item_exists(self, name: str) -> bool:
        return name in self._all()

    def get_boolean(self, name: str) -> bool:
        return convert.as_boolean(self._entry(name))

    def get_byte(self, name: str) -> int:
        return convert.as_integer(self._entry(name), "byte")

    def get_short(self, name: str) -> int:
        return convert.as_integer(self._entry(name), "short")

    def get_char(self, name: str) -> str:
        return convert.as_char(self._entry(name))

    def get_int(self, name: str) -> int:
        return convert.as_integer(self._entry(name), "int")

    def get_long(self, name: str) -> int:
        return convert.as_integer(self._entry(name), "long")

    def get_float(self, name: str) -> float:
        return convert.as_real(self._entry(name), "float")

    def get_double(self, name: str) -> float:
        return convert.as_real(self._entry(name), "double")

    def get_string(self, name: str) -> str | None:
        return convert.as_string(self._entry(name))

    def get_bytes(self, name: str) -> bytes | None:
        return convert.as_byte_array(self._entry(name))

    def get_object(self, name: str) -> Any:
        return convert.as_object(self._entry(name))

    def set_boolean(self, name: str, value: bool) -> None:
        self._set(name, accept.boolean(value))

    def set_byte(self, name: str, value: SupportsIndex) -> None:
        self._set(name, accept.byte(value))

    def set_short(self, name: str, value: SupportsIndex) -> None:
        self._set(name, accept.short(value))

    def set_char(self, name: str, value: str) -> None:
        self._set(name, accept.char(value))

    def set_int(self, name: str, value: SupportsIndex) -> None:
        self._set(name, accept.int_(value))

    def set_long(self, name: str, value: SupportsIndex) -> None:
        self._set(name, accept.long(value))

    def set_float(self, name: str, value: SupportsFloat) -> None:
        self._set(name, accept.float_(value))

    def set_double(self, name: str, value: SupportsFloat) -> None:
        self._set(name, accept.double(value))

    def set_string(self, name: str, value: str | None) -> None:
        self._set(name, accept.string(value))

    def set_bytes(
        self,
        name: str,
        value: bytes | bytearray | memoryview | None,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        self._set(name, accept.byte_array(value, offset, length))

    def set_object(self, name: str, value: Any) -> None:
        self._set(name, accept.body_value(value))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise IllegalArgumentException(f"the name of an entry must be text of at least one character, not {name!r}")
    accept.string(name)
