"""A bound on keys that share one hash: a sender can choose numbers so, and a dict or set takes quadratic time over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

__all__ = ["MOST_EQUAL_HASHES", "hashes_apart"]

MOST_EQUAL_HASHES: Final = 100
"""Far more than any ordinary container has."""


def hashes_apart(keys: Iterable[object]) -> list[object]:
    """Return keys as they are.

    Raises:
        ValueError: Too many of them have the same hash.
    """
    found = list(keys)
    if len(found) > MOST_EQUAL_HASHES and max(Counter(map(hash, found)).values()) > MOST_EQUAL_HASHES:
        raise ValueError(f"more than {MOST_EQUAL_HASHES} keys of one container have the same hash")
    return found
