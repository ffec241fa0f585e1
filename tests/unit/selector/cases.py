"""The table of selector cases, read from where the conformance suite keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jmsapi.values import Byte, Double, Float, Int, Long, Short, Value

_TYPES: Final[dict[str, type[Any]]] = {
    "byte": Byte, "short": Short, "int": Int, "long": Long, "float": Float, "double": Double, "boolean": bool, "string": str,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        expected: True, False or "invalid"; where the standard leaves it open, our choice.
        truth: "true", "false" or "unknown"; None where the table does not say.
    """

    id: str
    selector: str
    values: dict[str, Value]
    expected: bool | str
    truth: str | None
    strict: bool
    choice: str | None


@cache
def all_cases() -> tuple[Case, ...]:
    """Read the table."""
    text = files("jmsapi_conformance").joinpath("data", "selector-cases.jsonl").read_text(encoding="utf-8")
    return tuple(_case(json.loads(line)) for line in text.splitlines())


def _case(line: dict[str, Any]) -> Case:
    values = {name: None if typed["v"] is None else _TYPES[typed["t"]](typed["v"]) for name, typed in line["props"].items()}
    return Case(
        line["id"],
        line["selector"],
        values | line["headers"],
        line.get("strict_expect", line["expect"]),
        line.get("tri"),
        line["jms_strict"],
        line.get("choice"),
    )
