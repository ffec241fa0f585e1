"""The dated levels of the suite: what counts in one never changes.

A test that comes later is marked ``new_in("2026.2")``. Up to that level, and in it, it only reports; it counts from the next
level on. So nobody who passed a level fails it by installing a newer suite.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["LEVEL", "LEVELS", "counts_in", "parse"]

LEVELS: Final = ("2026.1",)
"""Those that were published, the oldest first."""
LEVEL: Final = LEVELS[-1]
"""What a run certifies when nobody says otherwise."""


def parse(level: str) -> tuple[int, int]:
    """Return year and number of a level.

    Raises:
        ValueError: It is not written ``2026.1``.
    """
    found = re.fullmatch(r"(20\d\d)\.([1-9]\d?)", level)
    if found is None:
        raise ValueError(f"a level is a year and a number, such as {LEVELS[0]}, not {level!r}")
    return int(found[1]), int(found[2])


def counts_in(level: str, new_in: str | None) -> bool:
    """Return whether a test decides in a level, or only reports.

    Args:
        level: What is certified.
        new_in: The level that the test is new in; None for one that was there from the first.
    """
    return new_in is None or parse(new_in) < parse(level)
