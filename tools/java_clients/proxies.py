"""Objects of an application as Java sees them: listeners, pools of server sessions, messages that somebody else implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from java_clients.jvm import java_class, jpype
from java_clients.surface import MESSAGES, Member, Overload, members_of
from java_clients.throwing import NotInJava, thrown_for, translated
from jmsapi import JMSError, NullPointerException

__all__ = ["proxy_of", "python_behind"]

Wrap = Callable[[Any, str], Any]


class _Behind:
    """What a proxy calls: the Java methods by name.

    Args:
        thing: The object of the application; a callable stands for one with the interface's only method.
        interface: Which interface of JMS.
        wrap: Takes Java values to Python.
        unwrap: Takes Python values to Java.
    """

    def __init__(self, thing: Any, interface: str, wrap: Wrap, unwrap: Wrap) -> None:
        self.thing, self._interface, self._wrap, self._unwrap = thing, interface, wrap, unwrap

    def __getattr__(self, name: str) -> Callable[..., Any]:
        for member in members_of(self._interface).values():
            ways = [*member.calls, *member.setters, *([member.getter] if member.getter else [])]
            same = [one for one in ways if one.java == name]
            if same:
                return lambda *given: self._called(member, same, given)
        raise AttributeError(name)

    def _called(self, member: Member, ways: list[Overload], given: tuple[Any, ...]) -> Any:
        way = next(one for one in ways if len(one.params) == len(given))
        values = [self._value(value, kind) for value, kind in zip(given, way.params, strict=True)]
        if way in member.setters:
            setattr(self.thing, member.name, values[0])
            return None
        if member.name == "read_bytes":
            return self._read_bytes(given)
        try:
            target = getattr(self.thing, member.name, self.thing)
            answer = target if way is member.getter else target(*values)
        except (JMSError, NullPointerException, ValueError) as error:
            raise thrown_for(error) from error
        return None if way.returns == "void" else self._unwrap(answer, way.returns)

    def _value(self, value: Any, kind: str) -> Any:
        return translated(value) if isinstance(value, jpype.JException) else self._wrap(value, kind)

    def _read_bytes(self, given: tuple[Any, ...]) -> Any:
        buffer = bytearray(len(given[0]))
        count = self.thing.read_bytes(buffer, *map(int, given[1:]))
        for index, one in enumerate(buffer[: max(count, 0)]):
            given[0][index] = one - 256 if one > 127 else one
        return jpype.JInt(count)


def proxy_of(thing: Any, declared: str, wrap: Wrap, unwrap: Wrap) -> Any:
    """Return a Java object of an interface that calls an object of the application.

    Args:
        thing: That object.
        declared: The interface; for a message the nearest one that it has.
        wrap: Takes Java values to Python.
        unwrap: Takes Python values to Java.
    """
    from jmsapi import api

    interface = declared
    if declared == "Message":
        interface = next(name for name in MESSAGES if isinstance(thing, getattr(api, name)))
    if declared in ("Destination", "Queue", "Topic"):
        raise NotInJava(f"{thing!r} is no destination of this client")
    return jpype.JProxy(java_class(interface), inst=_Behind(thing, interface, wrap, unwrap), convert=True)


def python_behind(found: Any) -> Any:
    """Return the object of the application that a proxy stands for; None for any other object."""
    return found.thing if isinstance(found, _Behind) else None
