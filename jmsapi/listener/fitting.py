"""Making what an argument wants of what a message holds; what is wrong is said without anything of the message.

What pydantic says quotes the input in more places than one: in texts (a tag, a character, what a validator raises) and in the
way to a value (a key). Here only what is of the class is kept: texts that quote nothing else, names of fields, and positions.

Spec: MDB-40.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

from jmsapi.errors import MessageFormatException

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["fitted", "unfit"]

_KNOWN: Final = frozenset(get_args(ErrorType))
_OF_THE_CLASS: Final = frozenset(
    (
        *(
            "class",
            "class_name",
            "decimal_places",
            "expected",
            "expected_plural",
            "expected_schemes",
            "expected_tags",
            "field_type",
        ),
        *(
            "ge",
            "gt",
            "le",
            "lt",
            "max_digits",
            "max_length",
            "method_name",
            "min_length",
            "multiple_of",
            "pattern",
            "tz_expected",
        ),
        "whole_digits",
    )
)
"""What a text of pydantic's may name: parts of the class, not of the input."""
_MOST: Final = 5
_KEY: Final = "*"
"""Stands for what may be a key of the message."""


def unfit(place: str, why: str) -> MessageFormatException:
    """Return the error of an argument that a message does not fit."""
    return MessageFormatException(f"{place}: {why}", error_code="callback-argument")


def fitted(adapter: TypeAdapter[object], value: object, where: str, wanted: str, *, json: bool) -> object:
    """Return a value as an argument wants it.

    Args:
        adapter: Of the argument's type.
        value: A value of the message, or JSON.
        where: Which argument, of which part of the message; for errors.
        wanted: The type; for errors.
        json: Whether the value is JSON in text or bytes.
    Raises:
        MessageFormatException: It does not fit (``callback-argument``). It has no cause: that would hold the values.
    """
    try:
        return adapter.validate_json(cast("str | bytes", value)) if json else adapter.validate_python(value)
    except ValidationError as error:
        names = frozenset(_names(adapter.core_schema))
        why = "; ".join(_problem(one, names, json) for one in error.errors(include_url=False, include_input=False)[:_MOST])
    except Exception as error:
        # A validator that raises what pydantic does not expect of one.
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__} in {last.name}, line {last.lineno}"
    # Raised out here, so that what quotes the input is not chained to it.
    raise unfit(where, f"is no {wanted}: {why}")


def _problem(one: ErrorDetails, names: frozenset[str], json: bool) -> str:
    # In JSON a number is a position; elsewhere it may be a key.
    way = ".".join(str(step) if (json and isinstance(step, int)) or step in names else _KEY for step in one["loc"])
    return way + (": " if way else "") + _text(one["type"], one.get("ctx"))


def _text(kind: str, context: dict[str, Any] | None) -> str:
    if kind not in _KNOWN:
        return "refused by a validator"
    if kind == "json_invalid" or _OF_THE_CLASS.issuperset(context or ()):
        # Made anew: a validator can raise a known kind with a text of its own.
        try:
            return PydanticKnownError(cast("ErrorType", kind), context).message()
        except (KeyError, TypeError, ValueError):
            return kind
    return kind


def _names(schema: object) -> Iterator[str]:
    """Yield the names of fields, with their aliases, and the tags of unions that stand in a schema."""
    if isinstance(schema, Mapping):
        node = cast("Mapping[str, object]", schema)
        for named in (node.get("fields"), node.get("choices")):
            if isinstance(named, Mapping):
                yield from map(str, cast("Mapping[object, object]", named))
        if node.get("type") == "dataclass-field":
            yield str(node["name"])
        yield from _strings(node.get("validation_alias"))
        for inner in node.values():
            yield from _names(inner)
    elif isinstance(schema, list | tuple):
        for inner in cast("list[object]", schema):
            yield from _names(inner)


def _strings(alias: object) -> Iterator[str]:
    if isinstance(alias, str):
        yield alias
    elif isinstance(alias, list):
        for inner in cast("list[object]", alias):
            yield from _strings(inner)
