"""A bound on the time that keys of a stranger's choice cost in a dict or set.

Numbers, and tuples of them, have hashes that a sender can choose, so that each key is found only behind all that came before it:
quadratic time, which no count of equal hashes shows. So the time itself is what is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

__all__ = ["HashingTime", "dict_of", "set_of"]

K = TypeVar("K")
V = TypeVar("V")
_PART: Final = 256
_PER_KEY_S: Final = 10e-6
"""A hundred times what a number takes."""
_SPARE_S: Final = 0.2


class HashingTime:
    """The processor time that the keys of one message may take. Threads: one at a time."""

    __slots__ = ("_allowed_s", "_spent_s")

    def __init__(self) -> None:
        self._allowed_s = _SPARE_S
        self._spent_s = 0.0

    def parts(self, items: Sequence[K]) -> Iterator[Sequence[K]]:
        """Yield items, some at a time; what the caller does with each part is what is measured.

        Raises:
            ValueError: It takes far longer than so many keys take.
        """
        for start in range(0, len(items), _PART):
            part = items[start : start + _PART]
            begun = time.thread_time()
            yield part
            self._spent_s += time.thread_time() - begun
            self._allowed_s += _PER_KEY_S * len(part)
            if self._spent_s > self._allowed_s:
                raise ValueError("the keys of one container are in each other's way: their hashes are chosen to be so")


def dict_of(pairs: Sequence[tuple[K, V]]) -> dict[K, V]:
    """Return pairs as a dict.

    Raises:
        ValueError: Their keys take more than linear time.
        TypeError: A key cannot be hashed.
    """
    made: dict[K, V] = {}
    for part in HashingTime().parts(pairs):
        made.update(part)
    return made


def set_of(items: Sequence[K]) -> set[K]:
    """Return items as a set.

    Raises:
        ValueError: They take more than linear time.
        TypeError: An item cannot be hashed.
    """
    made: set[K] = set()
    for part in HashingTime().parts(items):
        made.update(part)
    return made
