"""Three-valued logic.

Spec: 3.8.1.2-3 to 3.8.1.2-23 (tables 3.4 to 3.6), 3.8.1.1-24.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Truth"]


class Truth(Enum):
    """The value of a condition. Only TRUE is a match.

    ``&``, ``|`` and ``~`` are AND, OR and NOT of the standard.
    """

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2

    def __and__(self, other: Truth) -> Truth:
        return self if self.value < other.value else other

    def __or__(self, other: Truth) -> Truth:
        return self if self.value > other.value else other

    def __invert__(self) -> Truth:
        return Truth(2 - self.value)

    def __bool__(self) -> bool:
        """Refuse to be taken for a bool, since UNKNOWN is neither: write ``is Truth.TRUE``."""
        raise TypeError("a Truth is no bool; compare it with Truth.TRUE")
