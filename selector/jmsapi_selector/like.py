"""LIKE: a pattern to a test over strings.

A pattern is cut at each ``%`` into segments, and each segment is looked for behind the one before it, first place
first. So nothing is ever tried twice, and the time is linear in the length of the value, whatever the pattern.

An escape character takes the special meaning from a ``%``, a ``_`` or another escape character behind it. In front of
anything else it stands for itself, and keeps the special meaning that it may have.

Spec: 3.8.1.1-43 to 3.8.1.1-47.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["ANY_ONE", "ANY_RUN", "Wildcard", "like", "literal_segments", "pattern_parts"]


class Wildcard:
    """A part of a pattern that is no character; there are two."""

    __slots__ = ()


ANY_ONE = Wildcard()
"""What an unescaped ``_`` means."""
ANY_RUN = Wildcard()
"""What an unescaped ``%`` means."""


def pattern_parts(pattern: str, escape: str | None) -> list[str | Wildcard]:
    """Cut a pattern into its characters and wildcards.

    Args:
        pattern: As in the selector.
        escape: The escape character, or None.
    Returns:
        One item a character that the pattern means; ANY_ONE and ANY_RUN for the wildcards.
    """
    parts: list[str | Wildcard] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        following = pattern[at + 1 : at + 2]
        if char == escape and following and following in f"%_{escape}":
            parts.append(following)
            at += 2
            continue
        parts.append(ANY_RUN if char == "%" else ANY_ONE if char == "_" else char)
        at += 1
    return parts


def literal_segments(pattern: str, escape: str | None) -> list[str] | None:
    """Cut a pattern at each ``%``; None if a ``_`` is in it."""
    segments: list[list[str]] = [[]]
    for part in pattern_parts(pattern, escape):
        if isinstance(part, str):
            segments[-1].append(part)
        elif part is ANY_RUN:
            segments.append([])
        else:
            return None
    return ["".join(segment) for segment in segments]


def like(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Turn a pattern into a test.

    Args:
        pattern: As in the selector.
        escape: The escape character, or None.
    Returns:
        A pure function that tells whether the pattern covers a whole string, with the case of the letters.
    """
    segments: list[list[str | Wildcard]] = [[]]
    for part in pattern_parts(pattern, escape):
        if part is ANY_RUN:
            segments.append([])
        else:
            segments[-1].append(part)
    head, tail = _Segment(segments[0]), _Segment(segments[-1])
    if len(segments) == 1:
        return head.covers
    middle = [_Segment(segment) for segment in segments[1:-1] if segment]
    if not middle:
        return _ends(head, tail)

    def matches(value: str) -> bool:
        limit = len(value) - tail.length
        if limit < head.length or not head.at(value, 0) or not tail.at(value, limit):
            return False
        position = head.length
        for segment in middle:
            position = segment.find(value, position, limit)
            if position < 0:
                return False
        return True

    return matches


def _ends(head: _Segment, tail: _Segment) -> Callable[[str], bool]:
    shortest = head.length + tail.length

    def matches(value: str) -> bool:
        return len(value) >= shortest and head.at(value, 0) and tail.at(value, len(value) - tail.length)

    return matches


class _Segment:
    """Characters and single wildcards: a piece of fixed length."""

    __slots__ = ("_literal", "_regex", "length")

    def __init__(self, parts: list[str | Wildcard]) -> None:
        self.length = len(parts)
        self._literal: str | None = None
        # Of fixed length and without alternatives or repeats, so the regular expression has nothing to go back to.
        self._regex = re.compile("".join(re.escape(p) if isinstance(p, str) else "." for p in parts), re.DOTALL)
        if ANY_ONE not in parts:
            self._literal = "".join(p for p in parts if isinstance(p, str))

    def covers(self, value: str) -> bool:
        if self._literal is not None:
            return value == self._literal
        return self._regex.fullmatch(value) is not None

    def at(self, value: str, position: int) -> bool:
        if self._literal is not None:
            return value.startswith(self._literal, position)
        return self._regex.match(value, position) is not None

    def find(self, value: str, start: int, limit: int) -> int:
        """Give the end of the first place between two positions where the segment is; -1 if there is none."""
        if self._literal is not None:
            found = value.find(self._literal, start, limit)
            return found if found < 0 else found + self.length
        place = self._regex.search(value, start, limit)
        return -1 if place is None else place.end()
