"""The messages that wait in a queue, in the order of their delivery.

Here they are kept in memory, a deque for each priority; ``store_waiting`` keeps most of them in a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from jmsapi_inproc.messages import WAITING, Message

__all__ = ["LEVELS", "Waiting", "place"]

LEVELS: Final = 10


class Waiting:
    """Messages by priority, highest first, and within it by their order number."""

    __slots__ = ("_buckets", "_levels")

    def __init__(self) -> None:
        self._buckets: list[deque[Message]] = []
        self._levels = 0
        """A bit for each priority that has messages: the highest bit is the level to take from."""

    def __bool__(self) -> bool:
        return self._levels != 0

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def __iter__(self) -> Iterator[Message]:
        for bucket in reversed(self._buckets):
            yield from bucket

    def full(self, level: int) -> bool:
        """Return whether there is no room in memory; here there always is."""
        return False

    def lent(self, message: Message) -> None:
        """Take note that a message is on its way to a consumer; here that means nothing."""

    def forget(self, message: Message) -> None:
        """Take note that a message is gone for ever; here that means nothing."""

    def withhold(self, level: int, order: int) -> None:
        """Take note that a prepared transaction has a message; here that means nothing."""

    def kept(self) -> Iterator[Message]:
        """Give what is in memory; for this class that is all."""
        return iter(self)

    def walk(self, last: int) -> Iterator[Message]:
        """Give what waits, for a browser that shows orders up to ``last``: all of it as it is now."""
        return iter([message for message in self if message.order <= last])

    def append(self, message: Message) -> None:
        """Add a message that is the latest of its priority."""
        level = message.envelope.priority
        if not self._buckets:
            self._buckets = [deque() for _ in range(LEVELS)]
        self._buckets[level].append(message)
        self._levels |= 1 << level
        message.state = WAITING

    def insert(self, message: Message) -> None:
        """Put a message back to its place."""
        level = message.envelope.priority
        bucket = self._buckets[level] if self._buckets else ()
        if not bucket or message.order > bucket[-1].order:
            self.append(message)
            return
        if message.order < bucket[0].order:
            self._buckets[level].appendleft(message)
        else:
            self._buckets[level].insert(place(self._buckets[level], message.order), message)
        message.state = WAITING

    def pop(self) -> Message:
        """Take the first message. There must be one."""
        level = self._levels.bit_length() - 1
        bucket = self._buckets[level]
        message = bucket.popleft()
        if not bucket:
            self._levels ^= 1 << level
        return message

    def remove(self, message: Message) -> None:
        """Take out one message that is here."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        del bucket[place(bucket, message.order - 1)]
        if not bucket:
            self._levels ^= 1 << level

    def sift(self, limit: int, accept: Callable[[Message], bool], seen: list[int]) -> list[Message]:
        """Take out the first messages that ``accept`` wants, at most ``limit``.

        Args:
            limit: Not less than 1.
            accept: Called once for each message in order, until there are enough.
            seen: For each priority the order number up to which this caller has looked already; moved on.
        """
        taken: list[Message] = []
        for level in range(LEVELS - 1, -1, -1):
            if not self._levels >> level & 1:
                continue
            bucket = self._buckets[level]
            if bucket[-1].order <= seen[level]:
                continue
            start = place(bucket, seen[level]) if seen[level] else 0
            # What has been looked at goes behind for a moment: moving it is a copy of pointers, stepping over it is not.
            bucket.rotate(-start)
            try:
                taken += _first(bucket, len(bucket) - start, limit - len(taken), accept, seen, level)
            finally:
                bucket.rotate(start)
            if not bucket:
                self._levels ^= 1 << level
            if len(taken) == limit:
                break
        return taken


def _first(
    bucket: deque[Message], end: int, room: int, accept: Callable[[Message], bool], seen: list[int], level: int
) -> list[Message]:
    """Take what ``accept`` wants out of the first ``end`` messages, at most ``room``."""
    wanted: list[Message] = []
    passed: list[Message] = []
    for message in islice(bucket, end):
        if accept(message):
            wanted.append(message)
        else:
            passed.append(message)
        seen[level] = message.order
        if len(wanted) == room:
            break
    if wanted:
        for _ in range(len(wanted) + len(passed)):
            bucket.popleft()
        bucket.extendleft(reversed(passed))
    return wanted


def place(bucket: deque[Message], order: int) -> int:
    """Return the index of the first message whose order number is larger."""
    low, high = 0, len(bucket)
    while low < high:
        middle = (low + high) // 2
        if bucket[middle].order > order:
            high = middle
        else:
            low = middle + 1
    return low
