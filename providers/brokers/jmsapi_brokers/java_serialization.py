"""Reads values from Java's serialization, of which no object is made: classes are names, and fields are looked up by theirs.

Artemis answers some questions of management in it. Only what such answers hold is read: objects, strings, arrays and enums.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

__all__ = ["SerializedObject", "read_serialized"]

_MAGIC: Final = b"\xac\xed\x00\x05"
_FIRST_HANDLE: Final = 0x7E0000
_NULL, _REFERENCE, _CLASS_DESCRIPTION, _OBJECT, _STRING, _ARRAY = range(0x70, 0x76)
_BLOCK, _END_OF_BLOCK, _LONG_BLOCK, _LONG_STRING, _ENUM = 0x77, 0x78, 0x7A, 0x7C, 0x7E
_PRIMITIVES: Final = {
    code: struct.Struct(form)
    for code, form in {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}.items()
}
_WRITES_MORE: Final = 1
"""The flag of a class whose objects have more than their fields."""
_DEEPEST: Final = 100


@dataclass(slots=True)
class SerializedObject:
    """One object."""

    class_name: str
    fields: dict[str, object] = field(default_factory=dict[str, object])
    more: list[object] = field(default_factory=list[object])
    """What its classes wrote beside their fields: the entries of a map, with a block of bytes before them."""


@dataclass(slots=True)
class _Class:
    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    above: _Class | None = None

    def lineage(self) -> list[_Class]:
        """Return the class and those that it extends, the topmost first."""
        above = [] if self.above is None else self.above.lineage()
        return [*above, self]


def read_serialized(data: bytes) -> object:
    """Return the first value of a stream.

    Returns:
        None, a str, a list, bytes or a ``SerializedObject``.
    Raises:
        ValueError: It is no such stream, or has what is not read here.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("no serialized value of Java")
    try:
        return _JavaReader(data).value()
    except (IndexError, struct.error, AttributeError, UnicodeDecodeError, KeyError) as cause:
        raise ValueError("a serialized value of Java that cannot be read") from cause


class _JavaReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = len(_MAGIC)
        self._handles: list[object] = []
        self._depth = 0

    def _take(self, size: int) -> bytes:
        start = self._position
        self._position = start + size
        if self._position > len(self._data):
            raise IndexError(size)
        return self._data[start : self._position]

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _text(self, width: int = 2) -> str:
        return self._take(self._number(width)).decode("utf-8", "surrogatepass")

    def value(self) -> object:
        """Read one value."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("a serialized value of Java with more in one another than anybody reads")
        found = self._value(self._number(1))
        self._depth -= 1
        return found

    def _value(self, code: int) -> object:
        if code == _NULL:
            return None
        if code == _REFERENCE:
            return self._handles[self._number(4) - _FIRST_HANDLE]
        if code in (_STRING, _LONG_STRING):
            text = self._text(2 if code == _STRING else 8)
            self._handles.append(text)
            return text
        if code in (_BLOCK, _LONG_BLOCK):
            return self._take(self._number(1 if code == _BLOCK else 4))
        if code == _OBJECT:
            return self._object()
        if code == _ARRAY:
            return self._array()
        if code == _ENUM:
            self._class()
            place = len(self._handles)
            self._handles.append(None)
            self._handles[place] = self.value()
            return self._handles[place]
        raise ValueError(f"a serialized value of Java of the kind {code:#x}, which is not read")

    def _class(self) -> _Class | None:
        code = self._number(1)
        if code == _NULL:
            return None
        if code == _REFERENCE:
            known = self._handles[self._number(4) - _FIRST_HANDLE]
            if not isinstance(known, _Class):
                raise KeyError(code)
            return known
        if code != _CLASS_DESCRIPTION:
            raise KeyError(code)
        made = _Class(self._text())
        self._take(8)  # its version
        self._handles.append(made)
        made.flags = self._number(1)
        for _ in range(self._number(2)):
            kind, name = chr(self._number(1)), self._text()
            if kind not in _PRIMITIVES:
                self.value()  # the name of its type
            made.fields.append((kind, name))
        self._more()
        made.above = self._class()
        return made

    def _known_class(self) -> _Class:
        found = self._class()
        if found is None:
            raise KeyError(_NULL)
        return found

    def _more(self) -> list[object]:
        found: list[object] = []
        while self._data[self._position] != _END_OF_BLOCK:
            found.append(self.value())
        self._position += 1
        return found

    def _member(self, kind: str) -> object:
        form = _PRIMITIVES.get(kind)
        return self.value() if form is None else form.unpack(self._take(form.size))[0]

    def _object(self) -> SerializedObject:
        of = self._known_class()
        made = SerializedObject(of.name)
        self._handles.append(made)
        for one in of.lineage():
            for kind, name in one.fields:
                made.fields[name] = self._member(kind)
            if one.flags & _WRITES_MORE:
                made.more += self._more()
        return made

    def _array(self) -> list[object]:
        of = self._known_class()
        made: list[object] = []
        self._handles.append(made)
        for _ in range(self._number(4)):
            made.append(self._member(of.name[1]))
        return made
