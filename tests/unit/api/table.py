"""The table of the API, as data, and the one way its lines are compared with Python objects."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

# What may differ from the table, and why. A plain callable is accepted where a listener is (python_note of the listener
# types), and only a type that says so lets checkers accept one; Self is what __enter__ gives for subclasses, too. A timeout may
# be a timedelta as well.
WIDER = {
    "MessageListenerLike": "MessageListener",
    "ExceptionListenerLike": "ExceptionListener",
    "Timeout": "float",
}
# Members that the library has beyond the table.
BEYOND = {"JMSContext": {"request"}}


@cache
def table() -> dict[str, Any]:
    """The whole table, as copied from the specification's sources."""
    text = (files("jmsapi_conformance") / "data" / "api.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


@cache
def types() -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in table()["types"]}


@dataclass(frozen=True)
class Member:
    """One Python member that a type must have."""

    owner: str
    name: str
    kind: str
    """method, property or dunder."""
    signature: str
    access: str | None

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"


@cache
def members() -> tuple[Member, ...]:
    found: dict[tuple[str, str], Member] = {}
    for owner, entry in types().items():
        for method in entry.get("methods", []):
            name = method["python_name"]
            found[owner, name] = Member(owner, name, method["python_kind"], method["python"], method.get("access"))
            if "fluent" in method:
                fluent = method["fluent_name"]
                found[owner, fluent] = Member(owner, fluent, "method", method["fluent"], None)
    return tuple(found.values())


@cache
def additions() -> tuple[Member, ...]:
    return tuple(
        Member(owner, more["python_name"], "method", more["python"], None)
        for owner, entry in types().items()
        for more in entry.get("additions", [])
    )


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    annotation: str
    default: str


def parse(signature: str) -> tuple[list[Parameter], str]:
    """Read a line such as ``def close(self) -> None`` into parameters and result."""
    node = ast.parse(f"{signature}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    spec = node.args
    places = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(places) - len(spec.defaults)) + list(spec.defaults)
    found = [_parameter(arg, "POSITIONAL_OR_KEYWORD", default) for arg, default in zip(places, defaults, strict=True)]
    found += [_parameter(arg, "KEYWORD_ONLY", default) for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    assert spec.vararg is None
    assert spec.kwarg is None
    return found, normal(ast.unparse(node.returns)) if node.returns else ""


def _parameter(arg: ast.arg, kind: str, default: ast.expr | None) -> Parameter:
    annotation = normal(ast.unparse(arg.annotation)) if arg.annotation else ""
    return Parameter(arg.arg, kind, annotation, "" if default is None else repr(ast.literal_eval(default)))


def normal(annotation: str) -> str:
    """Write a type in one way, whatever quotes and blanks it came with."""
    text = ast.unparse(ast.parse(annotation.strip('"'), mode="eval"))
    for wide, narrow in WIDER.items():
        text = text.replace(wide, narrow)
    return text


def signature_of(function: Any, owner: str) -> tuple[list[Parameter], str]:
    """Read the signature of a live function in the same form."""
    live = inspect.signature(function)
    found = [
        Parameter(
            one.name,
            one.kind.name,
            "" if one.annotation is inspect.Parameter.empty else normal(str(one.annotation)),
            "" if one.default is inspect.Parameter.empty else repr(one.default),
        )
        for one in live.parameters.values()
    ]
    result = "" if live.return_annotation is inspect.Signature.empty else normal(str(live.return_annotation))
    return found, owner if result == "Self" else result
