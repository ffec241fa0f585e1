"""Values on their way into a Java call and out of it, by the Java types that ``api.yaml`` names."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from typing import Any, Final, cast

from java_clients.jvm import java_class, jpype
from java_clients.throwing import NotInJava
from jmsapi import Byte, Char, Double, Float, Int, Long, Short
from jmsapi.values import INT_RANGE

__all__ = ["boxed", "class_for", "fits", "kind_of", "of_object", "to_java_value", "to_python_value"]

_BYTES = bytes | bytearray | memoryview
_WHOLE: Final = ("byte", "short", "int", "long")
_WRAPPERS: Final[dict[type, str]] = {
    bool: "Boolean", Byte: "Byte", Short: "Short", Int: "Integer", Long: "Long", Float: "Float", Double: "Double",
    float: "Double", Char: "Character",
}  # fmt: skip
_PRIMITIVES: Final[dict[type, str]] = {
    bool: "boolean", Byte: "byte", Short: "short", Int: "int", Long: "long", Float: "float", float: "double",
}  # fmt: skip
_UNWRAPPED: Final[dict[str, type]] = {
    "Boolean": bool, "Byte": Byte, "Short": Short, "Integer": int, "Long": Long, "Float": Float, "Double": float,
    "Character": Char, "String": str,
}  # fmt: skip
_PICKLED: Final = "a Python object, pickled"
_CLASSES: Final[dict[type, str]] = {
    str: "java.lang.String", bytes: "[B", dict: "java.util.Map", list: "java.util.List", object: "java.lang.Object",
    bool: "java.lang.Boolean", int: "java.lang.Integer", float: "java.lang.Double", Mapping: "java.util.Map",
}  # fmt: skip


def fits(value: Any, kind: str) -> bool:
    """Return whether Java's compiler would take a value for a parameter of a Java type."""
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool) and INT_RANGE[kind][0] <= value <= INT_RANGE[kind][1]
    if kind in ("float", "double"):
        return isinstance(value, float) or fits(value, "long")
    if kind == "char":
        return isinstance(value, str) and len(value) == 1 and ord(value) <= 0xFFFF
    if kind == "String":
        return value is None or isinstance(value, str)
    if kind == "byte[]":
        return value is None or isinstance(value, _BYTES)
    if kind.startswith("Map<"):
        return value is None or (isinstance(value, Mapping) and all(isinstance(key, str) for key in cast("Any", value)))
    if kind.startswith("Class"):
        return value is None or isinstance(value, type)
    return kind in ("Object", "Serializable")


def kind_of(value: Any) -> str:
    """Return the Java type that a value of an application is of, where Java has a method for each."""
    for kind, java in _PRIMITIVES.items():
        if isinstance(value, kind):
            return java
    if isinstance(value, int):
        return next((kind for kind in ("int", "long") if fits(value, kind)), "Object")
    return "String" if isinstance(value, str) and not isinstance(value, Char) else "Object"


def to_java_value(value: Any, kind: str) -> Any:
    """Return a value that ``fits`` as the Java type."""
    if kind == "boolean":
        return jpype.JBoolean(value)
    if kind in _WHOLE:
        return {"byte": jpype.JByte, "short": jpype.JShort, "int": jpype.JInt, "long": jpype.JLong}[kind](int(value))
    if kind == "float":
        return jpype.JFloat(Float(value))
    if kind == "double":
        return jpype.JDouble(float(value))
    if kind == "char":
        return jpype.JChar(str(value))
    if kind == "String":
        return jpype.JObject(None, java_class("java.lang.String")) if value is None else _string(value)
    if kind == "byte[]":
        return jpype.JObject(None, jpype.JArray(jpype.JByte)) if value is None else _bytes(value)
    if kind.startswith("Map<"):
        return jpype.JObject(None if value is None else boxed(dict(value)), java_class("java.util.Map"))
    if kind.startswith("Class"):
        return None if value is None else class_for(value)
    target = java_class("java.lang.Object" if kind == "Object" else "java.io.Serializable")
    return jpype.JObject(boxed(value) if kind == "Object" else of_object(value), target)


def _string(text: str) -> Any:
    # Through UTF-16, so that a lone surrogate arrives as it is.
    units = text.encode("utf-16-be", "surrogatepass")
    return java_class("java.lang.String")(_bytes(units), "UTF-16BE") if not text.isascii() else jpype.JString(text)


def _bytes(value: Any) -> Any:
    return jpype.JArray(jpype.JByte)([one - 256 if one > 127 else one for one in bytes(value)])


def boxed(value: Any) -> Any:
    """Return a value as an object: what an application hands to ``setObject``. What Java has no class for is a plain Object."""
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, Char):
        return _string(value)
    if isinstance(value, _BYTES):
        return _bytes(value)
    for kind, wrapper in _WRAPPERS.items():
        if isinstance(value, kind):
            return java_class(f"java.lang.{wrapper}")(value)
    if isinstance(value, int):
        return _integer(value)
    content: Any = value
    if isinstance(value, list):
        made = java_class("java.util.ArrayList")()
        for one in content:
            made.add(boxed(one))
        return made
    if isinstance(value, Mapping):
        table = java_class("java.util.HashMap")()
        for key, one in content.items():
            table.put(boxed(key), boxed(one))
        return table
    return java_class("java.lang.Object")()


def _integer(value: int) -> Any:
    for kind, wrapper in (("int", "Integer"), ("long", "Long")):
        if fits(value, kind):
            return java_class(f"java.lang.{wrapper}")(value)
    return java_class("java.math.BigInteger")(str(value))


def of_object(value: Any) -> Any:
    """Return the body of an ObjectMessage: as Java's own class where there is one, else pickled in a serializable pair."""
    if value is None:
        return None
    if type(value) is object:
        raise NotInJava("Java's compiler takes nothing as the body of an ObjectMessage that is not serializable")
    if _is_javas(value):
        return boxed(value)
    try:
        text = pickle.dumps(value)
    except Exception as error:
        raise NotInJava(f"{type(value).__name__} is not serializable: {error}") from error
    return java_class("java.util.AbstractMap$SimpleImmutableEntry")(_PICKLED, _bytes(text))


def _is_javas(value: Any) -> bool:
    content: Any = value
    if type(value) is list:
        return all(map(_is_javas, content))
    if type(value) is dict:
        return all(_is_javas(key) and _is_javas(one) for key, one in content.items())
    return value is None or type(value) in (bool, int, float, str, bytes, *_WRAPPERS)


def class_for(kind: type) -> Any:
    """Return the Java class that stands for a Python type; for any other it is that of pickled objects."""
    name = _CLASSES.get(kind)
    if name is None:
        raise NotInJava(f"{kind.__name__} stands for no Java class")
    return java_class("java.lang.Class").forName(name)


def to_python_value(value: Any) -> Any:
    """Return a Java value that is no object of JMS as Python's; boxed numbers keep their types."""
    if value is None:
        return None
    kind = type(value).__name__
    if unwrapped := _UNWRAPPED.get(kind.removeprefix("java.lang.")):
        return str(value) if unwrapped is str else unwrapped(_plain(value, unwrapped))
    if kind == "byte[]":
        return bytes(one & 255 for one in value)
    if isinstance(value, java_class("java.util.Map$Entry")) and str(value.getKey()) == _PICKLED:
        return pickle.loads(to_python_value(value.getValue()))
    if isinstance(value, java_class("java.util.Map")):
        return {to_python_value(key): to_python_value(value.get(key)) for key in value.keySet()}
    if isinstance(value, java_class("java.util.Collection")):
        elements = [to_python_value(one) for one in value]
        return set(elements) if isinstance(value, java_class("java.util.Set")) else elements
    return value


def _plain(value: Any, kind: type) -> Any:
    if kind is bool:
        return bool(value)
    if kind is Char:
        return str(value)
    return float(value) if issubclass(kind, float) else int(value)


def to_whole_ms(value: Any) -> Any:
    """Return a time as whole milliseconds, not earlier; anything but a number as it is."""
    return math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value
