"""The deadlines of waits in an event loop: those of equal length stand in one line and need one timer.

A timer of the loop for each send costs more than all else that its wait does, and a loop that has thousands of them sorts them.
Waits of equal length end in the order in which they begin, so one timer for the first is enough, and who is done leaves the line.
"""

from __future__ import annotations

import asyncio
from itertools import takewhile

__all__ = ["LoopDeadlines"]


class _Line:
    """The waits of one length, in the order of their ends."""

    __slots__ = ("due", "timer", "waits")

    def __init__(self) -> None:
        self.waits: dict[asyncio.Future[bool], float] = {}
        """When each ends, by the loop's clock."""
        self.due = 0.0
        """When the timer goes off: not after the first wait's end."""
        self.timer: asyncio.TimerHandle


class LoopDeadlines:
    """Ends waits whose time is up, by the result False.

    Args:
        loop: It alone calls the methods.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: dict[float, _Line] = {}
        """By the length of their waits, in seconds."""

    def add(self, waiter: asyncio.Future[bool], seconds: float) -> None:
        """Have a wait ended after so many seconds, unless it is removed before."""
        ends = self._loop.time() + seconds
        line = self._lines.get(seconds)
        if line is None:
            self._lines[seconds] = line = _Line()
            self._set_timer(line, seconds, ends)
        line.waits[waiter] = ends

    def remove(self, waiter: asyncio.Future[bool], seconds: float) -> None:
        """Forget a wait, also one that has been ended."""
        line = self._lines.get(seconds)
        if line is None or line.waits.pop(waiter, None) is None or line.waits:
            return
        line.timer.cancel()
        del self._lines[seconds]

    def _set_timer(self, line: _Line, seconds: float, due: float) -> None:
        line.due = due
        line.timer = self._loop.call_at(due, self._end_due, line, seconds)

    def _end_due(self, line: _Line, seconds: float) -> None:
        for waiter in [waiter for waiter, _ in takewhile(lambda wait: wait[1] <= line.due, line.waits.items())]:
            del line.waits[waiter]
            if not waiter.done():
                waiter.set_result(False)
        if line.waits:
            self._set_timer(line, seconds, next(iter(line.waits.values())))
        else:
            del self._lines[seconds]
