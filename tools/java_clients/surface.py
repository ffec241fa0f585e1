"""The members of JMS by their Python and their Java names, out of ``api.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

__all__ = ["INTERFACES", "MESSAGES", "Member", "Overload", "members_of"]


@dataclass(frozen=True, slots=True)
class Overload:
    """One Java method."""

    java: str
    params: tuple[str, ...]
    names: tuple[str, ...]
    """The parameters in snake_case."""
    returns: str


@dataclass(slots=True)
class Member:
    """One Python member, with the Java methods that it stands for."""

    name: str
    calls: list[Overload] = field(default_factory=list[Overload])
    getter: Overload | None = None
    setters: list[Overload] = field(default_factory=list[Overload])

    @property
    def is_property(self) -> bool:
        """Whether it is used without brackets."""
        return self.getter is not None or bool(self.setters)


def _load() -> dict[str, Any]:
    text = resources.files("jmsapi_conformance").joinpath("data/api.yaml").read_text(encoding="utf-8")
    return {one["name"]: one for one in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["types"]}


_TYPES: Final = _load()
INTERFACES: Final = frozenset(name for name, one in _TYPES.items() if one["kind"] == "interface")
MESSAGES: Final = ("BytesMessage", "MapMessage", "ObjectMessage", "StreamMessage", "TextMessage", "Message")
"""The kinds of messages, the one that all are last."""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def members_of(name: str) -> dict[str, Member]:
    """Return the members of an interface by their Python names, inherited ones behind its own."""
    found: dict[str, Member] = {}
    for method in _TYPES[name].get("methods", ()):
        overloads = [
            Overload(method["java"], tuple(one["params"]), tuple(map(_snake, one["names"])), one["returns"])
            for one in method["overloads"]
        ]
        member = found.setdefault(method["python_name"], Member(method["python_name"]))
        if method["python_kind"] != "property":
            member.calls += overloads
        elif overloads[0].params:
            member.setters += overloads
        else:
            member.getter = overloads[0]
        if fluent := method.get("fluent_name"):
            found.setdefault(fluent, Member(fluent)).calls += overloads
    for base in _TYPES[name].get("extends") or ():
        for key, inherited in members_of(base).items() if base in _TYPES else ():
            own = found.setdefault(key, Member(key))
            own.calls += [one for one in inherited.calls if one not in own.calls]
            own.getter = own.getter or inherited.getter
            own.setters += [one for one in inherited.setters if one not in own.setters]
    return found
