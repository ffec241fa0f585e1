"""Which Java method a Python call means. A call that none of them takes is one that Java's compiler refuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from java_clients.surface import INTERFACES, Overload
from java_clients.throwing import NotInJava
from java_clients.values import fits, kind_of, to_whole_ms
from jmsapi import api

__all__ = ["chosen"]

_FIRST: Final = ("destination_or_message", "topic_or_message")
_LISTENERS: Final = ("MessageListener", "CompletionListener", "ExceptionListener")
_BODIES: Final[dict[type, str]] = {str: "String", dict: "Map<String, Object>", bytes: "byte[]", object: "Serializable"}
_OF_PRODUCER: Final = {"delivery_mode": "delivery_mode", "priority": "priority", "time_to_live": "time_to_live"}


def chosen(
    name: str,
    overloads: Sequence[Overload],
    given: Mapping[str, Any],
    of: object = None,
    optional: Collection[str] = (),
) -> tuple[Overload, list[Any]]:
    """Return the Java method for a call, and its arguments.

    Args:
        name: What was called.
        overloads: The methods that it may mean.
        given: The arguments by their Python names, in the order of the Python signature; what the caller left out is not there.
        of: The object, whose own options stand for those of a send that are left out.
        optional: The arguments for which None means that they are left out.
    Raises:
        NotInJava: None of them takes these arguments.
    """
    # Where None stands for an argument that is left out, the shorter Java method comes first.
    for wanted in ({key: value for key, value in given.items() if value is not None or key not in optional}, given):
        for overload in overloads:
            arguments = _arguments(name, overload, wanted, of)
            if arguments is not None:
                return overload, arguments
    kinds = ", ".join(f"{key}={type(value).__name__}" for key, value in given.items())
    raise NotInJava(f"Java's compiler refuses {name}({kinds})")


def _arguments(called: str, overload: Overload, given: Mapping[str, Any], of: object) -> list[Any] | None:
    left = dict(given)
    wanted_kind = _kind_asked_for(called, left)
    if wanted_kind is not None and wanted_kind != overload.params[-1]:
        return None
    arguments: list[Any] = []
    for name, kind in zip(overload.names, overload.params, strict=True):
        key = _key(name, kind, left)
        if key is not None:
            value = left.pop(key)
        elif name in _OF_PRODUCER and isinstance(of, api.MessageProducer):
            value = getattr(of, _OF_PRODUCER[name])
        elif name == "no_local" and "message_selector" in given:
            value = False
        elif name == "message_selector" and "no_local" in given:
            value = None
        elif name == "offset":
            value = 0
        elif name == "length" and "offset" in given:
            value = len(given["value"]) - given["offset"]
        else:
            return None
        value = to_whole_ms(value) if key is not None and key.endswith("_ms") else value
        if not _takes(kind, value):
            return None
        arguments.append(value)
    return None if left else arguments


def _kind_asked_for(name: str, left: dict[str, Any]) -> str | None:
    """Take out the arguments that only say which overload is meant."""
    if "body" in left:
        body_type = left.pop("body_type", None)
        return _BODIES.get(body_type, "none") if left["body"] is None else None
    kind = left.pop("property_type", None)
    if name == "set_property" and kind is None:
        return kind_of(left.get("value"))
    return None if kind is None else {"string": "String"}.get(kind, kind)


def _key(name: str, kind: str, left: Mapping[str, Any]) -> str | None:
    """Return which of the arguments left is meant by a parameter."""
    for key in (name, f"{name}_ms", f"{name}_"):
        if key in left:
            return key
    first = next(iter(left), None)
    # By place: names differ where one Python form stands for several Java ones.
    same_place = first in _FIRST or (first, name) in _RENAMED or (kind.startswith("Class") and first == "body_type")
    return first if same_place else None


_RENAMED: Final = {
    ("session_mode", "transacted"), ("user_name", "session_mode"), ("body", "message"), ("destination", "queue"),
    ("destination", "topic"), ("body_type", "c"), ("client_id", "client_id"), ("value", "string"),
}  # fmt: skip


def _takes(kind: str, value: Any) -> bool:
    if kind not in INTERFACES:
        return fits(value, kind)
    if value is None or isinstance(value, getattr(api, kind)):
        return True
    # Objects of an application need not inherit: they have the methods, or are a callable in place of a listener.
    return (kind in _LISTENERS and (callable(value) or hasattr(value, "on_completion"))) or kind == "ServerSessionPool"
