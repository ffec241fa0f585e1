"""Calls of an I/O thread that are due later: no thread for each, since hundreds of links may drain at one time."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

__all__ = ["IoTimer", "IoTimers"]


class IoTimer:
    """A call that is still to come."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Drop the call if it has not been made."""
        self.call = None


class IoTimers:
    """The calls that are to come. Threads: the I/O thread alone."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, IoTimer]] = []
        self._order = itertools.count()

    def later(self, seconds: float, call: Callable[[], None]) -> IoTimer:
        """Have a call made after some seconds."""
        timer = IoTimer(call)
        heapq.heappush(self._heap, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def remaining(self) -> float | None:
        """Return the seconds until the next call is due, never negative; None when there is none."""
        self._forget_cancelled()
        return max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None

    def run(self) -> None:
        """Make the calls that are due by now; what they ask for has its turn later."""
        now = time.monotonic()
        due: list[IoTimer] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        for timer in due:
            call, timer.call = timer.call, None
            if call is not None:
                call()

    def _forget_cancelled(self) -> None:
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
