"""Delivery times and expirations, behind one timer for the earliest of them.

Every method is called under the broker's lock. The timer runs only while the broker has a connection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from jmsapi.spi import Clock, Timer
from jmsapi_inproc.messages import DELAYED, GONE, QueuedMessage

__all__ = ["Scheduler", "TimedQueue"]

LONGEST_NAP_MS: Final = 60_000
"""A timer notices neither that the wall clock was set nor that the machine slept, so the heap is looked at this often."""
EXPIRY_GRAIN_MS: Final = 100
"""Expired messages are never delivered or shown; they are removed at the next multiple of this, many at once."""
FEW: Final = 256
_SAME_S: Final = 0.002
"""Two ends of a timer that differ by less are one: the wall clock counts in milliseconds."""


class TimedQueue(Protocol):
    """A queue as the scheduler sees it."""

    @property
    def gone(self) -> bool:
        """Whether the queue has been deleted."""
        ...

    def due(self, message: QueuedMessage) -> None:
        """Add a delayed message whose delivery time has come."""

    def expire(self, message: QueuedMessage) -> None:
        """Remove a waiting message that has expired."""


Q = TypeVar("Q", bound=TimedQueue)


class Scheduler(Generic[Q]):
    """A heap of messages by the time at which something must happen to them."""

    __slots__ = ("_clock", "_fire", "_heap", "_nap_ms", "_number", "_running", "_stale", "_timer", "_timer_ends")

    def __init__(self, clock: Clock, fire: Callable[[], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._nap_ms: float = inf if getattr(clock, "steady", False) else LONGEST_NAP_MS
        self._heap: list[tuple[int, int, QueuedMessage, Q]] = []
        self._number = 0
        self._stale = 0
        """Entries whose message has gone; when they are many the heap is rebuilt."""
        self._running = False
        self._timer: Timer | None = None
        self._timer_ends = 0.0
        """By the monotonic clock: the wall clock may have been set since."""

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def armed(self) -> bool:
        """Whether a timer is running."""
        return self._timer is not None

    def delay(self, message: QueuedMessage, queue: Q) -> None:
        """Add a message to its queue at its delivery time."""
        message.state = DELAYED
        self._add(message.envelope.delivery_time, message, queue)

    def delayed(self, queue: Q) -> list[QueuedMessage]:
        """Return the delayed messages of a queue that are in memory."""
        entries = [entry for entry in self._heap if entry[3] is queue and entry[2].state is DELAYED]
        return [message for _, _, message, _ in sorted(entries)]

    def all_delayed(self) -> list[tuple[QueuedMessage, Q]]:
        """Return all delayed messages that are in memory, with their queues, in no order."""
        return [(message, queue) for _, _, message, queue in self._heap if message.state is DELAYED and not queue.gone]

    def expire(self, message: QueuedMessage, queue: Q) -> None:
        """Remove a waiting message from its queue when it has expired."""
        if message.timed:
            self._stale -= 1
        else:
            self._add((message.envelope.expiration // EXPIRY_GRAIN_MS + 1) * EXPIRY_GRAIN_MS, message, queue)

    def forget(self) -> None:
        """Count the entry of a message that has left its queue as stale."""
        self._stale += 1
        if self._stale > FEW and self._stale * 2 > len(self._heap):
            for entry in self._heap:
                entry[2].timed = entry[2].state is not GONE and not entry[3].gone
            self._heap = [entry for entry in self._heap if entry[2].timed]
            heapq.heapify(self._heap)
            self._stale = 0

    def abandon(self, entries: int) -> None:
        """Count this many entries as stale, because their queue has been deleted."""
        self._stale += entries

    def resume(self) -> None:
        """Catch up with what fell due meanwhile, and let the timer run."""
        self._running = True
        self.run()

    def run(self) -> None:
        """Handle what is due, and set the timer for the rest."""
        if not self._running:
            return
        self._cancel()
        now = self._clock.now_ms()
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, _, message, queue = heapq.heappop(heap)
            message.timed = False
            if queue.gone or message.state is GONE:
                self._stale -= 1
            elif message.state is DELAYED:
                queue.due(message)
            else:
                queue.expire(message)
        self._arm(now)

    def pause(self) -> None:
        """Let no timer run until ``resume``."""
        self._running = False
        self._cancel()

    def clear(self) -> None:
        """Forget everything."""
        self.pause()
        self._heap.clear()
        self._stale = 0

    def _add(self, due: int, message: QueuedMessage, queue: Q) -> None:
        message.timed = True
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, message, queue))
        if self._running:
            self._arm(self._clock.now_ms())

    def _arm(self, now: int) -> None:
        if not self._heap:
            return
        seconds = min(max(self._heap[0][0] - now, 1), self._nap_ms) / 1000
        ends = self._clock.monotonic() + seconds
        if self._timer is not None and self._timer_ends <= ends + _SAME_S:
            return
        self._cancel()
        self._timer_ends = ends
        self._timer = self._clock.call_later(seconds, self._fire)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
