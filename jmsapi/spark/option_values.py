"""The kinds of values that options have, as people write them, and how an option is described."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

__all__ = ["NAME", "Count", "Duration", "Size", "lower", "option", "upper"]

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_SIZE: Final = re.compile(r"(\d+)\s*([kmg]?)b?", re.IGNORECASE)
NAME: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""Pattern of values that become part of the names of files and queues."""
_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _duration(value: object) -> object:
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip().lower())
        if found is None:
            raise ValueError("a duration is a number and ms, s, m or h, such as 500ms")
        return float(found[1]) * _MS[found[2]]
    return value


def _size(value: object) -> object:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            raise ValueError("a size is a number of bytes, or with k, m or g, such as 8m")
        return int(found[1]) * _BYTES[found[2].lower()]
    return value


def upper(value: object) -> object:
    """Return text in upper case."""
    return value.strip().upper() if isinstance(value, str) else value


def lower(value: object) -> object:
    """Return text in lower case."""
    return value.strip().lower() if isinstance(value, str) else value


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0, le=30 * 86_400_000)]
Size = Annotated[int, BeforeValidator(_size), Field(ge=1)]
Count = Annotated[int, Field(ge=1, le=1 << 40)]


def option(alias: str, default: Any, description: str, shown: str | None = None, **limits: Any) -> Any:
    """Return a field: its name in Spark, its default as a value, what it means, and the default as people write it."""
    return Field(
        default=default,
        alias=alias,
        description=description,
        json_schema_extra={"shown": str(default) if shown is None else shown},
        **limits,
    )
