"""What was raised, in words that can be stored and sent.

Spec: MDB-70.
"""

from __future__ import annotations

from typing import Final

from jmsapi.listener.errors import EJBException

__all__ = ["in_words", "sendable"]

_LONGEST: Final = 1000


def in_words(error: BaseException | None) -> str:
    """Return the class and the text of what was raised; of what the callback raised, where an EJBException bears it.

    Args:
        error: None: nothing was raised.
    """
    if error is None:
        return "unknown"
    shown = error.__cause__ if isinstance(error, EJBException) and error.__cause__ is not None else error
    return sendable(f"{type(shown).__name__}: {_text_of(shown)}"[:_LONGEST])


def sendable(text: str) -> str:
    """Return a text without what no wire can carry, such as half of a surrogate pair, which is escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        # The application's own code says it, and that may fail, too.
        return f"(its text cannot be had: {type(another).__name__})"
