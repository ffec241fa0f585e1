"""Which messages of a stored queue are in memory: the first ones, while the others are only in the file.

For each priority there is a mark, ``cut``: what waits up to it is in memory, what waits beyond it, up to ``end``, is in the
file. Rows beyond the mark that must not be read are ``absent``: their messages are in flight or in memory. So a row is read once,
however large the queue is, and memory holds about as many messages as were asked for.

A message that goes to the file only is committed there, since the effects of a batch follow its commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from jmsapi_inproc.backlog import LEVELS, Backlog, position
from jmsapi_inproc.messages import GONE, WAITING, QueuedMessage, StoredMessage
from jmsapi_inproc.store.partition import PAGE, Partition
from jmsapi_inproc.store.rows import HEAVY, weight

__all__ = ["PagedBacklog"]

MOST: Final = 1000
"""With this many messages of a priority in memory, new ones stay in the file only."""


class PagedBacklog(Backlog):
    """Messages by priority, highest first, and within it by their order number.

    Args:
        partition: The queue's part of the store.
    """

    __slots__ = ("_absent", "_cut", "_end", "_gap", "_partition")
    _levels: int

    def __init__(self, partition: Partition) -> None:
        super().__init__()
        self._buckets = [deque() for _ in range(LEVELS)]
        self._partition = partition
        self._gap = [False] * LEVELS
        self._cut = [0] * LEVELS
        self._end = [0] * LEVELS
        self._absent: list[set[int]] = [set() for _ in range(LEVELS)]

    def restore(self) -> int:
        """Start with what the file has; return the highest order."""
        for level in range(LEVELS):
            self._end[level] = self._partition.last(level)
            if self._end[level]:
                self._gap[level] = True
                self._levels |= 1 << level
        return max(self._end)

    def full(self, level: int) -> bool:
        """Return whether a new message of this priority has to be paged out."""
        return self._gap[level] or len(self._buckets[level]) >= MOST

    def mark_in_flight(self, message: QueuedMessage) -> None:
        """Do not page in a message that came just now and may go straight to a consumer."""
        level = message.envelope.priority
        if self._gap[level] and isinstance(message, StoredMessage):
            self._absent[level].add(message.order)

    def row_removed(self, message: QueuedMessage) -> None:
        """Forget a message whose row is gone from the file."""
        self._absent[message.envelope.priority].discard(message.order)

    def mark_held(self, level: int, order: int) -> None:
        """Do not page in a message that a prepared transaction branch holds."""
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
            self._partition.count(level, self._cut[level], self._end[level])
            - sum(self._cut[level] < order <= self._end[level] for order in self._absent[level])
            for level in range(LEVELS)
            if self._gap[level]
        )
        return super().__len__() + rows

    def __iter__(self) -> Iterator[QueuedMessage]:
        for level in range(LEVELS - 1, -1, -1):
            yield from self._scan(level, 0)

    def in_memory(self) -> Iterator[QueuedMessage]:
        """Return the messages that are in memory."""
        return super().__iter__()

    def walk(self, last: int) -> Iterator[QueuedMessage]:
        """Return what waits, for a browser; the queue may change between two messages."""
        for level in range(LEVELS - 1, -1, -1):
            after = 0
            while True:
                page = list(islice(self._scan(level, after), PAGE))
                yield from (message for message in page if message.order <= last)
                if len(page) < PAGE:
                    break
                after = page[-1].order

    def append(self, message: QueuedMessage) -> None:
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
            bucket.insert(position(bucket, order), message)
        else:
            bucket.append(message)
        message.state = WAITING

    def insert(self, message: QueuedMessage) -> None:
        """Put a message back at its position, in memory."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        self._levels |= 1 << level
        bucket.insert(position(bucket, message.order), message)
        message.state = WAITING

    def pop(self) -> QueuedMessage:
        """Take the first message. The backlog must not be empty."""
        while True:
            level = self._levels.bit_length() - 1
            bucket = self._buckets[level]
            if bucket and not (self._gap[level] and bucket[0].order > self._cut[level]):
                message = bucket.popleft()
                self._tidy(level)
                return message
            self._read(level)

    def remove(self, message: QueuedMessage) -> None:
        """Remove one message that is in memory."""
        level = message.envelope.priority
        bucket = self._buckets[level]
        del bucket[position(bucket, message.order - 1)]
        self._tidy(level)

    def select(self, limit: int, accept: Callable[[QueuedMessage], bool], scanned: list[int]) -> list[QueuedMessage]:
        """Take the first messages that ``accept`` wants, at most ``limit``; see ``Backlog``."""
        taken: list[QueuedMessage] = []
        for level in range(LEVELS - 1, -1, -1):
            if self._levels >> level & 1:
                self._select(level, limit, accept, scanned, taken)
                if len(taken) == limit:
                    break
        return taken

    def _select(
        self, level: int, limit: int, accept: Callable[[QueuedMessage], bool], scanned: list[int], taken: list[QueuedMessage]
    ) -> None:
        gone: set[QueuedMessage] = set()
        for message in self._scan(level, scanned[level]):
            scanned[level] = message.order
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

    def _scan(self, level: int, after: int) -> Iterator[QueuedMessage]:
        """Return what waits at a priority above an order, from memory and file, in order."""
        bucket = self._buckets[level]
        memory = deque(islice(bucket, position(bucket, after), None)) if bucket else deque[QueuedMessage]()
        done = not self._gap[level]
        low, end = max(after, self._cut[level]), self._end[level]
        while not done:
            rows, done = self._partition.read(level, low, end)
            for message in rows:
                low = message.order
                if low not in self._absent[level]:
                    while memory and memory[0].order < low:
                        yield memory.popleft()
                    yield message
        yield from memory

    def _read(self, level: int) -> None:
        """Read the next page of a priority into memory."""
        bucket, absent = self._buckets[level], self._absent[level]
        rows, done = self._partition.read(level, self._cut[level], self._end[level]) if self._gap[level] else ([], True)
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
