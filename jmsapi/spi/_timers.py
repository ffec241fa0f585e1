"""The machine's timers: one thread waits for all of them, so that a thousand waits cost one thread.

Each call that falls due gets a thread of its own, since a call that hangs must not hold up the others. Nothing here takes a
lock that a signal's handler in the same thread could wait for: it may arm and cancel timers amid a call of this module.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

__all__ = ["MachineTimer", "arm"]

NAME: Final = "jmsapi-timer"
MOST_CANCELLED: Final = 1000
"""So many cancelled timers are kept before the heap is made anew without them."""


class MachineTimer:
    """A call that is still to come."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Drop the call if it has not begun."""
        if self._call is not None:
            self._call = None
            _waiting.cancelled()

    @property
    def is_over(self) -> bool:
        """Whether it was cancelled or has begun."""
        return self._call is None

    def take(self) -> Callable[[], None] | None:
        """Return the call, once."""
        call, self._call = self._call, None
        return call


class _Waiting:
    """The timers that are to come, and the thread that waits for the next of them while there is one."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[tuple[float, int, MachineTimer] | None] = SimpleQueue()
        self._numbers = itertools.count()
        self._guard = threading.RLock()
        """Guards ``_running``. Re-entrant, for the handlers of signals."""
        self._running = False

    def arm(self, seconds: float, call: Callable[[], None]) -> MachineTimer:
        """Have a call made after some seconds."""
        timer = MachineTimer(call)
        self._arrived.put((time.monotonic() + seconds, next(self._numbers), timer))
        with self._guard:
            if not self._running:
                self._running = True
                try:
                    threading.Thread(target=self._wait, name=NAME, daemon=True).start()
                except BaseException:
                    # Whether it has started is not known, when a signal's handler raised. Two that wait share the timers.
                    self._running = False
                    raise
        return timer

    def cancelled(self) -> None:
        """Have the thread look whether it is still needed."""
        self._arrived.put(None)

    def _wait(self) -> None:
        heap: list[tuple[float, int, MachineTimer]] = []
        cancelled = 0
        while True:
            try:
                arrived = self._arrived.get(timeout=_remaining(heap))
            except Empty:
                _make_due_calls(heap)
            else:
                if arrived is not None:
                    heapq.heappush(heap, arrived)
                else:
                    cancelled += 1
            if cancelled > MOST_CANCELLED:
                heap = [entry for entry in heap if not entry[2].is_over]
                heapq.heapify(heap)
                cancelled = 0
            while heap and heap[0][2].is_over:
                heapq.heappop(heap)
            if not heap and self._is_done():
                return

    def _is_done(self) -> bool:
        with self._guard:
            self._running = not self._arrived.empty()
            return not self._running


def _remaining(heap: list[tuple[float, int, MachineTimer]]) -> float:
    """Return the seconds until the next is due; what has arrived is sorted in before any waiting."""
    return min(max(0.0, heap[0][0] - time.monotonic()), threading.TIMEOUT_MAX) if heap else 0.0


def _make_due_calls(heap: list[tuple[float, int, MachineTimer]]) -> None:
    now = time.monotonic()
    while heap and heap[0][0] <= now:
        call = heapq.heappop(heap)[2].take()
        if call is not None:
            _call_apart(call)


def _call_apart(call: Callable[[], None]) -> None:
    try:
        threading.Thread(target=call, name=NAME, daemon=True).start()
    except RuntimeError:  # the system has no more threads: late is better than never
        call()


def arm(seconds: float, call: Callable[[], None]) -> MachineTimer:
    """Have a call made after some seconds, in a daemon thread of its own. Threads: any."""
    return _waiting.arm(seconds, call)


def _begin() -> None:
    global _waiting
    _waiting = _Waiting()


_waiting = _Waiting()
if hasattr(os, "register_at_fork"):
    # A fork copies no thread, and the timers of the parent are the parent's.
    os.register_at_fork(after_in_child=_begin)
