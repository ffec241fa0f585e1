"""From the words of a broker's error to the kind of error: each broker has a table, and this reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jmsapi.spi import ErrorKind

__all__ = ["ANY_BROKER", "ErrorWords", "kind_of"]

ErrorWords = tuple[tuple[str, ErrorKind], ...]
"""Pairs of words in lower case and what they speak of; the first that a text contains decides."""

ANY_BROKER: Final[ErrorWords] = (
    ("selector", ErrorKind.SELECTOR),
    ("password", ErrorKind.SECURITY),
    ("not authorized", ErrorKind.SECURITY),
    ("not authenticated", ErrorKind.SECURITY),
    ("authentication", ErrorKind.SECURITY),
    ("securityexception", ErrorKind.SECURITY),
    ("resourceallocationexception", ErrorKind.RESOURCE),
    ("memory limit", ErrorKind.RESOURCE),
)
"""Words that a broker may use that nothing else is known of; to be looked for after a broker's own."""


def kind_of(text: str, tables: Iterable[ErrorWords], default: ErrorKind) -> ErrorKind:
    """Return the kind of error that a broker's text speaks of.

    Args:
        text: What the broker answered.
        tables: The words to look for, the most particular ones first.
        default: The kind when none of them is there.
    """
    lower = text.lower()
    return next((kind for table in tables for words, kind in table if words in lower), default)
