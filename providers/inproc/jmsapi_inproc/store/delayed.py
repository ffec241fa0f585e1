"""Delayed messages of a store: the next ones are in the broker's scheduler, the others only in the file.

Every method is called under the broker's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsapi_inproc.messages import StoredMessage
from jmsapi_inproc.queue import BrokerQueue
from jmsapi_inproc.scheduler import Scheduler
from jmsapi_inproc.store.keys import QUEUE_SHIFT
from jmsapi_inproc.store.reader import Reader

__all__ = ["DelayedMessages"]

MOST: Final = 1000


class DelayedMessages:
    """Decides which delayed messages are in memory: all that are due before the horizon, and at most twice ``MOST``.

    A row tells that a message is delayed only once it is written, and still tells so while the batch is being written that moves
    the message to its queue. The keys of both are kept meanwhile: a message that is read must neither be in memory already nor on
    its way there.

    Args:
        reader: Of the store.
        scheduler: Of the broker.
        queue_of: Returns the queue that has a number in the store.
    """

    def __init__(self, reader: Reader, scheduler: Scheduler[BrokerQueue], queue_of: Callable[[int], BrokerQueue | None]) -> None:
        self._reader = reader
        self._scheduler = scheduler
        self._queue_of = queue_of
        self._held = 0
        self._latest = (0, 0)
        """No message in memory is due later than this."""
        self._horizon: tuple[int, int] | None = None
        """The first message that is only in the file; None if there is none."""
        self._coming: set[int] = set()
        self._leaving: set[int] = set()
        self._stopped = False

    def stop(self) -> None:
        """Read nothing any more, because the broker closes."""
        self._stopped = True

    def expect(self, key: int) -> None:
        """Note that a delayed message is being written; ``admits`` or ``lost`` follows."""
        self._coming.add(key)

    def lost(self, key: int) -> None:
        """Note that a delayed message could not be written."""
        self._coming.discard(key)

    def admits(self, due: int, key: int) -> bool:
        """Return whether a delayed message that has been written is kept in memory, too."""
        self._coming.discard(key)
        when = (due, key)
        if self._horizon is None and self._held >= MOST and when > self._latest:
            self._horizon = when
        if self._horizon is not None and when >= self._horizon:
            return False
        self._keep(when)
        return True

    def trim(self) -> None:
        """Leave the latest messages to the file, if there are too many in memory."""
        if self._held <= 2 * MOST:
            return
        there = [
            (message.envelope.delivery_time, message.key, message, queue)
            for message, queue in self._scheduler.all_delayed()
            if isinstance(message, StoredMessage)
        ]
        there.sort(key=lambda one: one[:2])
        for _, _, message, queue in there[MOST:]:
            queue.evict_delayed(message)
        if there[MOST:]:
            self._held -= len(there) - MOST
            self._latest = self._horizon = there[MOST][:2]

    def leaves(self, key: int) -> None:
        """Note that a batch is being written that adds a message to its queue; ``left`` and ``moved`` follow."""
        self._leaving.add(key)

    def moved(self, key: int) -> None:
        """Note that the batch is written."""
        self._leaving.discard(key)

    def left(self, n: int = 1) -> None:
        """Note that this many messages left the scheduler; when none is left, the next ones are read."""
        self._held -= n
        if self._stopped:
            return
        while not self._held and self._horizon is not None:
            self.load(*self._horizon)

    def load(self, due: int = 0, key: int = 0) -> None:
        """Read the next messages."""
        found = self._reader.due_after(due, key, MOST + 1)
        self._horizon = found.pop() if len(found) > MOST else None
        for when, number in found:
            if number in self._coming or number in self._leaving:
                continue
            row = self._reader.row(number)
            queue = self._queue_of(number >> QUEUE_SHIFT)
            if row is not None and queue is not None and not queue.gone:
                self._keep((when, number))
                queue.delay(self._reader.message_of(row))

    def _keep(self, when: tuple[int, int]) -> None:
        self._held += 1
        self._latest = max(self._latest, when)
