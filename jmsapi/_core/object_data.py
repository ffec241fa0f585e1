"""Objects as plain data: JSON, in which what JSON lacks is an object with one key that begins with ``$``.

Reading builds values of the types below and of classes that the application registered; it never runs what a sender chose.

| in JSON | stands for |
|---|---|
| ``{"$bytes": "aGk="}``, ``$bytearray`` | bytes, in base64 |
| ``{"$float": "nan"}`` | nan, inf, -inf |
| ``{"$int": "-0x1f"}`` | a whole number of more than 64 bits |
| ``{"$tuple": [...]}``, ``$set``, ``$frozenset`` | that container |
| ``{"$dict": [[key, value], ...]}`` | a dict with a key that is no text or begins with ``$`` |
| ``{"$datetime": "2024-02-29T12:00:00+01:00"}``, ``$date``, ``$time``, ``$timedelta`` ([days, seconds, microseconds]) | that |
| ``{"$decimal": "1.50"}``, ``{"$uuid": "..."}`` | that |
| ``{"$java": ["short", "5"]}`` | one of the number wrappers, or Char by its code |
| ``{"$object": ["module.Class", {"field": value}]}``, ``{"$enum": ["module.Class", "NAME"]}`` | of a registered class |
| ``{"$enum": ["module.Class", 3]}`` | flags of a registered class that have no name together |

Spec: 3.11-5, 11.2.4-7.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import inspect
import json
import math
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeVar, cast, overload

from jmsapi._core.equal_hashes import hashes_apart
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import dict_of, set_of
from jmsapi.values import INT_RANGE, Byte, Char, Double, Float, Int, Long, Short

__all__ = ["NotData", "dump", "is_registered", "load", "register_class"]

C = TypeVar("C", bound=type)
_DEEPEST: Final = 200
_LOW, _HIGH = INT_RANGE["long"]

_classes: dict[str, type] = {}
_names: dict[type, str] = {}


class NotData(Exception):
    """The object has no data form; or the text is none."""


# ---- classes of the application


@overload
def register_class(cls: C, *, name: str | None = None) -> C: ...
@overload
def register_class(cls: None = None, *, name: str | None = None) -> Callable[[C], C]: ...
def register_class(cls: C | None = None, *, name: str | None = None) -> C | Callable[[C], C]:
    """Let instances of a class travel in an ObjectMessage.

    Receivers must register the same class under the same name. An instance is sent as its fields and rebuilt by calling the
    class with them; then all fields are set to what was sent, whatever the call made of them. The types of the fields are not
    checked.

    Args:
        cls: A dataclass or an Enum; left out, the function is a decorator.
        name: The name on the wire; by default the class's module and qualified name, joined by a dot.
    Returns:
        The class.
    Raises:
        IllegalArgumentException: No such class, one that needs more than its fields to be built, or a name that is taken.
    Threads: any; meant for the time of import.
    Spec: 11.2.4-7.
    """
    if cls is None:
        return lambda it: _register(it, name)
    return _register(cls, name)


def _register(cls: C, name: str | None) -> C:
    origin = f"{cls.__module__}.{cls.__qualname__}"
    _check_class(cls, origin)
    wire_name = name or origin
    other = _classes.get(wire_name)
    if other is not None and f"{other.__module__}.{other.__qualname__}" != origin:
        raise IllegalArgumentException(f"the name {wire_name!r} is taken by {other!r}")
    if other is not None:
        _names.pop(other, None)
    _classes[wire_name] = cls
    _names[cls] = wire_name
    return cls


def _check_class(cls: type, origin: str) -> None:
    if dataclasses.is_dataclass(cls):
        fields = {field.name for field in dataclasses.fields(cls) if field.init}
        arguments = inspect.signature(cls).parameters.values()
        missing = {it.name for it in arguments if it.default is it.empty and it.kind is not it.VAR_KEYWORD} - fields
        if missing:
            raise IllegalArgumentException(f"{origin} cannot be rebuilt from its fields: it also needs {sorted(missing)}")
    elif not issubclass(cls, enum.Enum):
        raise IllegalArgumentException(f"{origin} is neither a dataclass nor an Enum")


def is_registered(cls: type) -> bool:
    """Tell whether ``register_class`` was called for a class."""
    return cls in _names


def _registered(name: object) -> type:
    try:
        return _classes[name]  # type: ignore[index]
    except (KeyError, TypeError):
        raise NotData(f"{name!r} is no registered class: call jmsapi.register_class for it") from None


# ---- out


def dump(value: object) -> bytes:
    """Write an object as data.

    Raises:
        NotData: It, or a part of it, has no data form, is nested too deeply, or is a loop.
    """
    try:
        packed = _packed(value, 0)
        # ASCII, since a broker may take this for a text and not know every character: ActiveMQ Classic's AMQP writes those
        # outside the basic plane as two times three bytes.
        text = json.dumps(packed, allow_nan=False, separators=(",", ":"))
        if "\\ud" in text:
            json.dumps(packed, ensure_ascii=False).encode()  # half of a pair raises
        return text.encode()
    except RecursionError as error:
        raise NotData("the object is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise NotData("a text in the object holds half of a surrogate pair; it has no UTF-8 form") from error


def _packed(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise NotData(f"the object is nested more than {_DEEPEST} levels deep, or is part of itself")
    kind = type(cast(object, value))
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if _LOW <= value <= _HIGH else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is dict:
        if all(type(key) is str and key[:1] != "$" for key in value):
            return {key: _packed(item, depth + 1) for key, item in value.items()}
        return {"$dict": [[_packed(key, depth + 1), _packed(item, depth + 1)] for key, item in value.items()]}
    if kind is list:
        return [_packed(item, depth + 1) for item in value]
    if kind in _CONTAINERS:
        return {f"${kind.__name__}": [_packed(item, depth + 1) for item in value]}
    if kind in _WRITERS:
        return {_TAGS[kind]: _WRITERS[kind](value)}
    if kind in _names:
        return _packed_instance(value, _names[kind], depth)
    raise NotData(f"a {kind.__module__}.{kind.__qualname__} is no plain data, nor registered with jmsapi.register_class")


def _packed_instance(value: Any, name: str, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        return {"$enum": [name, _member(value, depth)]}
    fields = {field.name: _packed(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
    return {"$object": [name, fields]}


def _member(value: enum.Enum, depth: int) -> Any:
    if value.name in type(value).__members__:
        return value.name
    if isinstance(value, enum.Flag):
        return _packed(value.value, depth + 1)
    raise NotData(f"{value!r} is not among the members of its class")


def _iso_text(value: datetime.datetime | datetime.time) -> str:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise NotData(f"{value!r} has no offset from UTC that could be written")
    return value.isoformat()


def _base64(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode()


def _java_text(value: Any) -> list[str]:
    return [value.jms_type, str(ord(value)) if type(value) is Char else str(value)]


_JAVA: Final = frozenset((Byte, Short, Int, Long, Float, Double, Char))
_CONTAINERS: Final = frozenset((tuple, set, frozenset))
_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    bytes: _base64,
    bytearray: _base64,
    datetime.datetime: _iso_text,
    datetime.date: datetime.date.isoformat,
    datetime.time: _iso_text,
    datetime.timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    Decimal: str,
    uuid.UUID: str,
    **dict.fromkeys(_JAVA, _java_text),
}
_TAGS: Final = {kind: "$java" if kind in _JAVA else f"${kind.__name__.lower()}" for kind in _WRITERS}


# ---- in


def load(data: bytes) -> Any:
    """Read an object from its data form.

    Raises:
        NotData: The bytes are no such form, name a class that is not registered, or hold values that the class refuses.
    """
    try:
        return json.loads(data.decode(), object_hook=_unpacked, parse_constant=_no_constant)
    except NotData:
        raise
    except RecursionError as error:
        raise NotData("the object is nested too deeply") from error
    except ValueError as error:
        raise NotData(f"the bytes are no object in data form: {error}") from error


def _no_constant(name: str) -> NoReturn:
    raise NotData(f"{name} is not allowed in the data form")


def _unpacked(found: dict[str, Any]) -> Any:
    """Turn a JSON object, its parts done already, into what it stands for."""
    tag = next(iter(found), "")
    if tag[:1] != "$":
        if any(key[:1] == "$" for key in found):
            raise NotData("an object mixes keys that begin with $ and others")
        return found
    read = _READERS.get(tag)
    if read is None or len(found) != 1:
        raise NotData(f"the data form has no {tag[:40]!r}, or not with other keys")
    try:
        return read(found[tag])
    except NotData:
        raise
    except Exception as error:  # a registered class may refuse its fields in any way it likes
        raise NotData(f"{tag} cannot be read: {error}") from error


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise NotData(f"text is needed, not {type(value).__name__}")
    return value


def _bytes_from(value: object) -> bytes:
    return base64.b64decode(_as_text(value), validate=True)


def _java_from(pair: list[Any]) -> Any:
    name, text = pair
    return _JAVA_READERS[name](_as_text(text))


def _object_from(pair: list[Any]) -> Any:
    name, values = pair
    cls = _registered(name)
    if not dataclasses.is_dataclass(cls):
        raise NotData(f"{name!r} is no dataclass here")
    fields = {field.name: field.init for field in dataclasses.fields(cls)}
    if fields.keys() != values.keys():
        raise NotData(f"{name!r} has other fields here: {sorted(fields.keys() ^ values.keys())}")
    made = cls(**{field: values[field] for field, init in fields.items() if init})
    for field, value in values.items():
        # Also what the call has taken: it may have counted, rounded or joined what was the result of that already.
        object.__setattr__(made, field, value)
    return made


def _enum_from(pair: list[Any]) -> Any:
    name, member = pair
    cls = _registered(name)
    if not issubclass(cls, enum.Enum):
        raise NotData(f"{name!r} is no Enum here")
    return cls(member) if issubclass(cls, enum.Flag) and type(member) is int else cls[member]


def _items_of(value: object) -> Iterable[Any]:
    if not isinstance(value, list):
        raise NotData("a list is needed")
    return value  # pyright: ignore[reportUnknownVariableType]


def _dict_from(pairs: object) -> dict[Any, Any]:
    items: list[tuple[Any, Any]] = [(key, value) for key, value in _items_of(pairs)]
    hashes_apart(key for key, _ in items)
    return dict_of(items)


_JAVA_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": lambda text: Double(float(text)),
    "char": lambda text: Char(chr(int(text))),
}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$int": lambda text: int(_as_text(text), 16),
    "$float": lambda text: float(_as_text(text)),
    "$bytes": _bytes_from,
    "$bytearray": lambda text: bytearray(_bytes_from(text)),
    "$tuple": lambda items: tuple(_items_of(items)),
    "$set": lambda items: set_of(hashes_apart(_items_of(items))),
    "$frozenset": lambda items: frozenset(set_of(hashes_apart(_items_of(items)))),
    "$dict": _dict_from,
    "$datetime": lambda text: datetime.datetime.fromisoformat(_as_text(text)),
    "$date": lambda text: datetime.date.fromisoformat(_as_text(text)),
    "$time": lambda text: datetime.time.fromisoformat(_as_text(text)),
    "$timedelta": lambda parts: datetime.timedelta(*_items_of(parts)),
    "$decimal": lambda text: Decimal(_as_text(text)),
    "$uuid": lambda text: uuid.UUID(_as_text(text)),
    "$java": _java_from,
    "$object": _object_from,
    "$enum": _enum_from,
}
