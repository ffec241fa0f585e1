"""The messages that wait in a queue, in the order of their delivery.

``Backlog`` keeps them in memory, in a deque for each priority; ``store.paging`` leaves most of them in a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from jmsapi_inproc.messages import WAITING, QueuedMessage

__all__ = ["LEVELS", "Backlog", "position"]

LEVELS: Final = 10


class Backlog:
    """Messages by priority, highest first, and within a priority by their order number."""

    __slots__ = ("_buckets", "_levels")

    def __init__(self) -> None:
        self._buckets: list[deque[QueuedMessage]] = []
        self._levels = 0
        """A bit for each priority that has messages; the highest bit is the level to take from."""

    def __bool__(self) -> bool:
        return self._levels != 0

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def __iter__(self) -> Iterator[QueuedMessage]:
        for bucket in reversed(self._buckets):
            yield from bucket

    def full(self, level: int) -> bool:
        """Return whether a new message of this priority has to be paged out; in memory, never."""
        return False

    def mark_in_flight(self, message: QueuedMessage) -> None:
        """Do not page in a message that came just now and may go straight to a consumer."""

    def mark_held(self, level: int, order: int) -> None:
        """Do not page in a message that a prepared transaction branch holds."""

    def row_removed(self, message: QueuedMessage) -> None:
        """Forget a message whose row is gone from the file."""

    def in_memory(self) -> Iterator[QueuedMessage]:
        """Return the messages that are in memory: in this class, all."""
        return iter(self)

    def walk(self, last: int) -> Iterator[QueuedMessage]:
        """Return what waits now, up to the order number ``last``, for a browser."""
        return iter([message for message in self if message.order <= last])

    def append(self, message: QueuedMessage) -> None:
        """Add a message that is the latest of its priority."""
        level = message.envelope.priority
        if not self._buckets:
            self._buckets = [deque() for _ in range(LEVELS)]
        self._buckets[level].append(message)
        self._levels |= 1 << level
        message.state = WAITING

    def insert(self, message: QueuedMessage) -> None:
        """Put a message back at its position."""
        level = message.envelope.priority
        bucket = self._buckets[level] if self._buckets else ()
        if not bucket or message.order > bucket[-1].order:
            self.append(message)
            return
        if message.order < bucket[0].order:
            self._buckets[level].appendleft(message)
        else:
            self._buckets[level].insert(position(self._buckets[level], message.order), message)
        message.state = WAITING

    def pop(self) -> QueuedMessage:
        """Take the first message. The backlog must not be empty."""
        level = self._levels.bit_length() - 1
        bucket = self._buckets[level]
        message = bucket.popleft()
        if not bucket:
            self._levels ^= 1 << level
        return message

    def remove(self, message: QueuedMessage) -> None:
        """Remove one message that is here."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        del bucket[position(bucket, message.order - 1)]
        if not bucket:
            self._levels ^= 1 << level

    def select(self, limit: int, accept: Callable[[QueuedMessage], bool], scanned: list[int]) -> list[QueuedMessage]:
        """Take the first messages that ``accept`` wants, at most ``limit``.

        Args:
            limit: At least 1.
            accept: Called once for each message, in order, until there are enough.
            scanned: For each priority the order number up to which this caller has looked already; updated.
        """
        taken: list[QueuedMessage] = []
        for level in range(LEVELS - 1, -1, -1):
            if not self._levels >> level & 1:
                continue
            bucket = self._buckets[level]
            if bucket[-1].order <= scanned[level]:
                continue
            start = position(bucket, scanned[level]) if scanned[level] else 0
            # The part that was scanned before moves to the end for a moment: rotating copies pointers, skipping would visit each.
            bucket.rotate(-start)
            try:
                taken += _first(bucket, len(bucket) - start, limit - len(taken), accept, scanned, level)
            finally:
                bucket.rotate(start)
            if not bucket:
                self._levels ^= 1 << level
            if len(taken) == limit:
                break
        return taken


def _first(
    bucket: deque[QueuedMessage], end: int, room: int, accept: Callable[[QueuedMessage], bool], scanned: list[int], level: int
) -> list[QueuedMessage]:
    """Take what ``accept`` wants out of the first ``end`` messages, at most ``room``."""
    wanted: list[QueuedMessage] = []
    passed: list[QueuedMessage] = []
    for message in islice(bucket, end):
        if accept(message):
            wanted.append(message)
        else:
            passed.append(message)
        scanned[level] = message.order
        if len(wanted) == room:
            break
    if wanted:
        for _ in range(len(wanted) + len(passed)):
            bucket.popleft()
        bucket.extendleft(reversed(passed))
    return wanted


def position(bucket: deque[QueuedMessage], order: int) -> int:
    """Return the index of the first message whose order number is larger."""
    low, high = 0, len(bucket)
    while low < high:
        middle = (low + high) // 2
        if bucket[middle].order > order:
            high = middle
        else:
            low = middle + 1
    return low
