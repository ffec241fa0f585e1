"""How settings are checked: pydantic models validated without quoting a secret, and names that are nearly right.

pydantic is imported when the first model is validated. Validation errors are not chained, because their text quotes the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["closest", "is_secret", "validated"]

_SECRET: Final = re.compile(r"pass|pwd|secret|token|credential", re.IGNORECASE)

Model = TypeVar("Model", bound="BaseModel")


def is_secret(name: str) -> bool:
    """Return whether the name of an option, or any text, speaks of a secret."""
    return _SECRET.search(name) is not None


def validated(model: type[Model], values: Mapping[str, object], what: str, *, error_code: str) -> Model:
    """Return an instance of a pydantic model, or raise a JMSException that reads well and quotes no value.

    Args:
        model: The model.
        values: Its fields, by the names it takes.
        what: What is being configured, to begin the text with.
        error_code: The exception's word.
    """
    from pydantic import ValidationError

    problems: list[str] = []
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        # Not chained, and raised outside of this block: its own text quotes what was given, passwords too.
        secrets = [str(value) for name, value in values.items() if is_secret(name)]
        for detail in error.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join(map(str, detail["loc"]))
            text = detail["msg"]
            if is_secret(place):
                text = "is not valid"
            for secret in secrets:
                text = text.replace(secret, "***") if secret else text
            problems.append(f"{place}: {text}" if place else text)
    raise JMSException(f"{what}: " + "; ".join(problems), error_code)


def closest(name: str, known: Iterable[str], what: str) -> str:
    """Return the end of an error text: the nearest valid name, or all of them."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known {what}: {', '.join(names)}" if names else f"; there are no {what} yet"
