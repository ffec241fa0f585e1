"""Dataclasses and pydantic models as JSON text, the way the callbacks of ``jmsapi.listener`` read them.

pydantic is loaded when the first such object is sent.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from jmsapi.errors import MessageFormatException

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["CONTENT_TYPE", "JSON_TYPE", "has_fields", "json_text"]

CONTENT_TYPE: Final = "content_type"
"""The property that says what a text is."""
JSON_TYPE: Final = "application/json"


def has_fields(value: object) -> bool:
    """Tell whether a value is an instance of a dataclass, or of a pydantic model."""
    kind = type(value)
    return dataclasses.is_dataclass(kind) or hasattr(kind, "__pydantic_fields__")


def json_text(value: object) -> str:
    """Write an object as JSON in ASCII, its fields by their aliases.

    Args:
        value: One that ``has_fields``.
    Raises:
        MessageFormatException: pydantic has no JSON for a field, a field holds what its annotation does not allow, or a number
            is nan or infinite.
    Threads: any.
    """
    kind = type(value)
    try:
        plain = _adapter_of(cast("Hashable", kind)).dump_python(value, mode="json", by_alias=True, warnings="error")
        return json.dumps(plain, allow_nan=False, separators=(",", ":"))
    except Exception as error:  # validators, serializers and annotations of the application may fail in any way
        raise MessageFormatException(f"a {kind.__name__} cannot be written as JSON: {error}") from error


# To make an adapter takes far longer than to write an object by it.
@lru_cache(maxsize=256)
def _adapter_of(kind: Hashable) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(cast("type[Any]", kind))
