"""What waits in a stored queue: the first messages in memory, the others only in the file.

For each priority there is a mark, ``cut``: what waits up to it is in memory, what waits beyond it in the file, up to ``end``.
Rows beyond the mark that must not be read, because somebody has the message or it is in memory, are ``absent``. So a row is read
once, however large the queue is, and memory holds about as many messages as were asked for.

Every message that goes to the file only is committed there, since a filing takes effect when it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from jmsapi_inproc.messages import GONE, WAITING, Message, StoredMessage
from jmsapi_inproc.store import PAGE, Shelf
from jmsapi_inproc.store_rows import HEAVY, weight
from jmsapi_inproc.waiting import LEVELS, Waiting, place

__all__ = ["StoredWaiting"]

MOST: Final = 1000
"""The most messages of a priority that stay in memory when they come."""


class StoredWaiting(Waiting):
    """Messages by priority, highest first, and within it by their order number.

    Args:
        shelf: The queue's part of the store.
    """

    __slots__ = ("_absent", "_cut", "_end", "_gap", "_shelf")
    _levels: int

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._buckets = [deque() for _ in range(LEVELS)]
        self._shelf = shelf
        self._gap = [False] * LEVELS
        self._cut = [0] * LEVELS
        self._end = [0] * LEVELS
        self._absent: list[set[int]] = [set() for _ in range(LEVELS)]

    def restore(self) -> int:
        """Take note of what the file has; return the highest order."""
        for level in range(LEVELS):
            self._end[level] = self._shelf.last(level)
            if self._end[level]:
                self._gap[level] = True
                self._levels |= 1 << level
        return max(self._end)

    def full(self, level: int) -> bool:
        """Return whether a message that comes now has to be in the file."""
        return self._gap[level] or len(self._buckets[level]) >= MOST

    def lent(self, message: Message) -> None:
        """Take note that a message which came just now may go to a consumer, and must not be read."""
        level = message.envelope.priority
        if self._gap[level] and isinstance(message, StoredMessage):
            self._absent[level].add(message.order)

    def forget(self, message: Message) -> None:
        """Take note that the row of a message is gone."""
        self._absent[message.envelope.priority].discard(message.order)

    def withhold(self, level: int, order: int) -> None:
        """Do not read a row: a prepared transaction has the message."""
        self._absent[level].add(order)

    def __bool__(self) -> bool:
        while self._levels:
            level = self._levels.bit_length() - 1
            if self._buckets[level]:
                return True
            self._read(level)
        return False

    def __len__(self) -> int:
        rows = sum(
            self._shelf.count(level, self._cut[level], self._end[level])
            - sum(self._cut[level] < order <= self._end[level] for order in self._absent[level])
            for level in range(LEVELS)
            if self._gap[level]
        )
        return super().__len__() + rows

    def __iter__(self) -> Iterator[Message]:
        for level in range(LEVELS - 1, -1, -1):
            yield from self._scan(level, 0)

    def kept(self) -> Iterator[Message]:
        """Give what is in memory."""
        return super().__iter__()

    def walk(self, last: int) -> Iterator[Message]:
        """Give what waits, for a browser: between two steps the queue may change."""
        for level in range(LEVELS - 1, -1, -1):
            after = 0
            while True:
                page = list(islice(self._scan(level, after), PAGE))
                yield from (message for message in page if message.order <= last)
                if len(page) < PAGE:
                    break
                after = page[-1].order

    def append(self, message: Message) -> None:
        """Add a message; most often it is the latest of its priority."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        order = message.order
        self._levels |= 1 << level
        if isinstance(message, StoredMessage) and (
            order > self._cut[level]
            if self._gap[level]
            else len(bucket) >= MOST or (bucket and weight(message.envelope.body) >= HEAVY)
        ):
            if not self._gap[level]:
                self._gap[level] = True
                self._cut[level] = order - 1
            self._end[level] = max(self._end[level], order)
            self._absent[level].discard(order)
            message.state = GONE
            return
        if bucket and order < bucket[-1].order:
            bucket.insert(place(bucket, order), message)
        else:
            bucket.append(message)
        message.state = WAITING

    def insert(self, message: Message) -> None:
        """Put a message back to its place, in memory."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        self._levels |= 1 << level
        bucket.insert(place(bucket, message.order), message)
        message.state = WAITING

    def pop(self) -> Message:
        """Take the first message. There must be one."""
        while True:
            level = self._levels.bit_length() - 1
            bucket = self._buckets[level]
            if bucket and not (self._gap[level] and bucket[0].order > self._cut[level]):
                message = bucket.popleft()
                self._tidy(level)
                return message
            self._read(level)

    def remove(self, message: Message) -> None:
        """Take out one message that is in memory."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        del bucket[place(bucket, message.order - 1)]
        self._tidy(level)

    def sift(self, limit: int, accept: Callable[[Message], bool], seen: list[int]) -> list[Message]:
        """Take out the first messages that ``accept`` wants, at most ``limit``; see Waiting."""
        taken: list[Message] = []
        for level in range(LEVELS - 1, -1, -1):
            if self._levels >> level & 1:
                self._sift(level, limit, accept, seen, taken)
                if len(taken) == limit:
                    break
        return taken

    def _sift(self, level: int, limit: int, accept: Callable[[Message], bool], seen: list[int], taken: list[Message]) -> None:
        gone: set[Message] = set()
        for message in self._scan(level, seen[level]):
            seen[level] = message.order
            if accept(message):
                taken.append(message)
                if message.state is WAITING:
                    gone.add(message)
                else:
                    self._absent[level].add(message.order)
                if len(taken) == limit:
                    break
        if gone:
            self._buckets[level] = deque(message for message in self._buckets[level] if message not in gone)
        self._tidy(level)

    def _scan(self, level: int, after: int) -> Iterator[Message]:
        """Give what waits at a level above an order, from memory and file, in order."""
        bucket = self._buckets[level]
        memory = deque(islice(bucket, place(bucket, after), None)) if bucket else deque[Message]()
        done = not self._gap[level]
        low, end = max(after, self._cut[level]), self._end[level]
        while not done:
            rows, done = self._shelf.read(level, low, end)
            for message in rows:
                low = message.order
                if low not in self._absent[level]:
                    while memory and memory[0].order < low:
                        yield memory.popleft()
                    yield message
        yield from memory

    def _read(self, level: int) -> None:
        """Take the next page of a level into memory."""
        bucket, absent = self._buckets[level], self._absent[level]
        rows, done = self._shelf.read(level, self._cut[level], self._end[level]) if self._gap[level] else ([], True)
        found = [message for message in rows if message.order not in absent]
        for message in found:
            message.state = WAITING
        if done:
            self._gap[level] = False
            absent.clear()
        else:
            self._cut[level] = rows[-1].order
            absent.difference_update([message.order for message in rows])
        if bucket and found and bucket[0].order < found[-1].order:
            self._buckets[level] = deque(sorted([*bucket, *found], key=lambda message: message.order))
        else:
            bucket.extendleft(reversed(found))
        self._tidy(level)

    def _tidy(self, level: int) -> None:
        if not self._buckets[level] and not self._gap[level]:
            self._levels &= ~(1 << level)
