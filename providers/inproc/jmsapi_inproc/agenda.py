"""What falls due: delivery times and expirations, behind one timer for the earliest.

Every method is called under the broker's lock. The timer runs only while the broker has a connection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

from jmsapi.spi import Clock, Timer
from jmsapi_inproc.messages import DELAYED, GONE, Message

if TYPE_CHECKING:
    from jmsapi_inproc.queues import Queue

__all__ = ["Agenda"]

LONGEST_NAP_MS: Final = 60_000
"""The wall clock may be set or the machine may sleep, which a timer does not see; so look again at least this often."""
EXPIRY_GRAIN_MS: Final = 100
"""Expired messages are never handed out or shown; they are taken away at the next multiple of this, many at once."""
FEW: Final = 256


class Agenda:
    """A heap of messages by the time at which something must happen to them."""

    __slots__ = ("_clock", "_fire", "_heap", "_nap_ms", "_number", "_running", "_stale", "_timer", "_timer_due")

    def __init__(self, clock: Clock, fire: Callable[[], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._nap_ms: float = inf if getattr(clock, "steady", False) else LONGEST_NAP_MS
        self._heap: list[tuple[int, int, Message, Queue]] = []
        self._number = 0
        self._stale = 0
        """Entries whose message has gone; when they are many the heap is built anew."""
        self._running = False
        self._timer: Timer | None = None
        self._timer_due = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def armed(self) -> bool:
        """Whether a timer is running."""
        return self._timer is not None

    def delay(self, message: Message, queue: Queue) -> None:
        """Have a message filed at its delivery time."""
        message.state = DELAYED
        self._add(message.envelope.delivery_time, message, queue)

    def delayed(self, queue: Queue) -> list[Message]:
        """Return the delayed messages of a queue that are in memory."""
        entries = [entry for entry in self._heap if entry[3] is queue and entry[2].state is DELAYED]
        return [message for _, _, message, _ in sorted(entries)]

    def delays(self) -> list[tuple[Message, Queue]]:
        """Return all delayed messages that are in memory, with their queues, in no order."""
        return [(message, queue) for _, _, message, queue in self._heap if message.state is DELAYED and not queue.gone]

    def expire(self, message: Message, queue: Queue) -> None:
        """Have a waiting message taken away when it has expired."""
        if message.timed:
            self._stale -= 1
        else:
            self._add((message.envelope.expiration // EXPIRY_GRAIN_MS + 1) * EXPIRY_GRAIN_MS, message, queue)

    def forget(self) -> None:
        """Take note that a waiting message with an entry has left its queue."""
        self._stale += 1
        if self._stale > FEW and self._stale * 2 > len(self._heap):
            for entry in self._heap:
                entry[2].timed = entry[2].state is not GONE and not entry[3].gone
            self._heap = [entry for entry in self._heap if entry[2].timed]
            heapq.heapify(self._heap)
            self._stale = 0

    def abandon(self, entries: int) -> None:
        """Take note that so many entries belong to a queue that is gone."""
        self._stale += entries

    def resume(self) -> None:
        """Do what fell due meanwhile, and let the timer run."""
        self._running = True
        self.run()

    def run(self) -> None:
        """Do what is due, and set the timer for what is not."""
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

    def _add(self, due: int, message: Message, queue: Queue) -> None:
        message.timed = True
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, message, queue))
        if self._running and (self._timer is None or due < self._timer_due):
            self._arm(self._clock.now_ms())

    def _arm(self, now: int) -> None:
        if not self._heap:
            return
        due = max(self._heap[0][0], now + 1)
        if due - now > self._nap_ms:
            due = now + LONGEST_NAP_MS
        if self._timer is not None and self._timer_due <= due:
            return
        self._cancel()
        self._timer_due = due
        self._timer = self._clock.call_later((due - now) / 1000, self._fire)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
