"""Java's objects as instances of the interfaces of ``jmsapi.api``; the classes are made from ``api.yaml``."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, cast

from java_clients.calling import chosen
from java_clients.jvm import java_class, jpype
from java_clients.proxies import proxy_of, python_behind
from java_clients.surface import INTERFACES, MESSAGES, Member, Overload, members_of
from java_clients.throwing import NotInJava, guarded
from java_clients.values import boxed, to_java_value, to_python_value
from jmsapi import api

__all__ = ["JavaObject", "wrap"]

_DESTINATIONS: Final = ("TemporaryQueue", "TemporaryTopic", "Queue", "Topic")
_known: weakref.WeakValueDictionary[tuple[int, type], JavaObject] = weakref.WeakValueDictionary()


class JavaObject:
    """An object of a Java client.

    Args:
        held: The Java object.
    """

    def __init__(self, held: Any) -> None:
        self._held = held

    @property
    def java(self) -> Any:
        """The Java object."""
        return self._held

    def __eq__(self, other: object) -> bool:
        if isinstance(self, api.Destination):
            return isinstance(other, JavaObject) and bool(self._held.equals(other._held))
        return self is other

    def __hash__(self) -> int:
        return int(self._held.hashCode()) if isinstance(self, api.Destination) else id(self)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Let administered objects be stored, in the form that Java has for it."""
        buffer = java_class("java.io.ByteArrayOutputStream")()
        guarded(java_class("java.io.ObjectOutputStream")(buffer).writeObject, self._held)
        declared = "ConnectionFactory" if isinstance(self, api.ConnectionFactory) else "Destination"
        return _rebuilt, (to_python_value(buffer.toByteArray()), declared)

    def __repr__(self) -> str:
        return f"<Java {self._held.getClass().getSimpleName()} {self._held.toString()}>"


def wrap(found: Any, declared: str) -> Any:
    """Return what a Java method returned.

    Args:
        found: A Java value.
        declared: The type that the method returns. Messages and destinations are of their own class; anything else is no more
            than was promised, for one class of a client often implements the interfaces of both domains.
    """
    if declared == "Enumeration":
        return None if found is None else _elements(found)
    if found is None or declared not in INTERFACES:
        return to_python_value(found)
    behind = python_behind(found)
    if behind is not None:
        return behind
    names: tuple[str, ...] = (declared,)
    if declared == "Message":
        names = _first(found, MESSAGES)
    elif declared in ("Destination", "Queue", "Topic"):
        names = _first(found, _DESTINATIONS)
    elif declared == "ConnectionFactory":
        names = ("QueueConnectionFactory", "TopicConnectionFactory")
    kind = _class_for(names)
    key = int(java_class("java.lang.System").identityHashCode(found)), kind
    known = _known.get(key)
    if known is None:
        known = _known[key] = kind(found)
    return known


def _rebuilt(stored: bytes, declared: str) -> Any:
    source = java_class("java.io.ByteArrayInputStream")(to_java_value(stored, "byte[]"))
    # Java's own stream looks for classes by who calls it, and that is nobody here.
    stream = java_class("org.apache.activemq.util.ClassLoadingAwareObjectInputStream")(source)
    return wrap(guarded(stream.readObject), declared)


def _first(found: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    return next((name,) for name in names if isinstance(found, java_class(name)))


def _elements(found: Any) -> Iterator[Any]:
    # Lazily: a browser looks at its queue while it is walked.
    while guarded(found.hasMoreElements):
        one = guarded(found.nextElement)
        yield wrap(one, "Message") if isinstance(one, java_class("Message")) else to_python_value(one)


def _to_java(value: Any, kind: str) -> Any:
    if kind == "Enumeration":
        return java_class("java.util.Collections").enumeration(boxed(list(value)))
    if kind not in INTERFACES:
        return to_java_value(value, kind)
    if value is not None:
        value = value.java if isinstance(value, JavaObject) else proxy_of(value, kind, wrap, _to_java)
    return jpype.JObject(value, java_class(kind))


@cache
def _class_for(names: tuple[str, ...]) -> type[JavaObject]:
    bases = tuple(getattr(api, name) for name in names)
    members: dict[str, object] = {}
    for interface, base in zip(names, bases, strict=True):
        for member in members_of(interface).values():
            if hasattr(base, member.name) and member.name not in members:
                members[member.name] = _property(member) if member.is_property else _method(member, base)
        members |= {name: _not_in_java(name, interface) for name in base.__abstractmethods__ if name not in members}
    return cast("type[JavaObject]", type(f"Java{names[0]}", (JavaObject, *bases), members))


def _not_in_java(name: str, interface: str) -> Callable[..., Any]:
    """Make a method that only this library has."""

    def call(*_: object, **__: object) -> Any:
        raise NotInJava(f"Java's {interface} has no {name}()")

    return call


def _property(member: Member) -> property:
    def get(self: JavaObject) -> Any:
        assert member.getter is not None
        return wrap(guarded(getattr(self.java, member.getter.java)), member.getter.returns)

    def put(self: JavaObject, value: Any) -> None:
        overload, arguments = chosen(member.name, member.setters, {member.setters[0].names[0]: value})
        _call(self, overload, arguments)

    return property(get, put if member.setters else None)


def _method(member: Member, base: type) -> Callable[..., Any]:
    signature = inspect.signature(getattr(base, member.name))
    optional = {name for name, parameter in signature.parameters.items() if parameter.default is None}

    def call(self: JavaObject, *positional: Any, **named: Any) -> Any:
        given = signature.bind(self, *positional, **named).arguments
        given.pop(next(iter(signature.parameters)))
        special = _SPECIAL.get(member.name)
        if special is not None:
            return special(self, member.calls, given)
        overload, arguments = chosen(member.name, member.calls, given, self, optional)
        return _call(self, overload, arguments)

    return call


def _call(self: JavaObject, overload: Overload, arguments: list[Any]) -> Any:
    converted = [_to_java(value, kind) for value, kind in zip(arguments, overload.params, strict=True)]
    return wrap(guarded(getattr(self.java, overload.java), *converted), overload.returns)


def _read_bytes(self: JavaObject, _: list[Overload], given: dict[str, Any]) -> int:
    """Fill the caller's buffer, as Java fills an array."""
    target = given["value"]
    buffer = jpype.JArray(jpype.JByte)(len(target))
    length = given.get("length")
    count = int(guarded(self.java.readBytes, buffer, *([] if length is None else [jpype.JInt(length)])))
    for index in range(max(count, 0)):
        target[index] = buffer[index] & 255
    return count


def _text(self: JavaObject, *_: object) -> str:
    return str(self.java.toString())


_SPECIAL: Final[dict[str, Callable[[JavaObject, list[Overload], dict[str, Any]], Any]]] = {
    "read_bytes": _read_bytes,
    "__str__": _text,
}
