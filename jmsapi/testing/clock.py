"""Time that passes when a test says so."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Clock, SystemClock, Timer

__all__ = ["HandClock"]

_START_MS: Final = 1_800_000_000_000
"""In January 2027. A number that is always the same, so that a test that depends on the day fails on each day."""


class _HandTimer:
    """A call that is still to come."""

    __slots__ = ("_clock", "call", "due", "number")

    def __init__(self, clock: HandClock, due: int, number: int, call: Callable[[], None]) -> None:
        self._clock = clock
        self.due = due
        self.number = number
        self.call = call

    def cancel(self) -> None:
        """Drop the call if it has not begun."""
        self._clock.drop(self)


class _Either:
    """A timer that runs when the machine's time or that of the hand has come, whichever is first."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._guard = threading.Lock()
        self._done = False
        self.timers: list[Timer] = []

    def run(self) -> None:
        with self._guard:
            if self._done:
                return
            self._done = True
        self.cancel()
        self._call()

    def cancel(self) -> None:
        """Drop the call if it has not begun."""
        with self._guard:
            self._done = True
        for timer in self.timers:
            timer.cancel()


class _Lasting:
    """The time of a hand clock for what lasts a while."""

    def __init__(self, hand: HandClock) -> None:
        self._machine = SystemClock()
        self._hand = hand
        self.now_ms = hand.now_ms
        self.monotonic = hand.monotonic

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` when so many seconds are over by the machine or by the hand."""
        if delay <= 0:
            return self._machine.call_later(0, call)
        either = _Either(call)
        either.timers += [self._hand.call_later(delay, either.run), self._machine.call_later(delay, either.run)]
        return either


class HandClock:
    """A clock that stands still until ``advance``: a test of delays and expirations takes no time and always comes out alike.

    What lasts for a while (the timeout of a receive, the pause before a link is made again) goes by the machine's time and by
    ``advance`` together, so that no wait is endless: ``receive(30_000)`` returns when 30 s are over by either.

    Args:
        start_ms: What it shows at first, in milliseconds since 1970-01-01T00:00Z.
    Threads: any.
    """

    steady: Final = True
    """See ``jmsapi.spi.Clock``."""

    def __init__(self, start_ms: int = _START_MS) -> None:
        self._start_ms = start_ms
        self._lock = threading.RLock()
        self._turn = threading.RLock()
        """Held by who advances it: one at a time."""
        self._passed_us = 0
        self._timers: set[_HandTimer] = set()
        self._numbers = 0
        self._watchers: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00Z."""
        return self._start_ms + self._passed_us // 1000

    def monotonic(self) -> float:
        """Return seconds that never go back: those of the machine, and those that it was advanced by."""
        return time.monotonic() + self._passed_us / 1_000_000

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` when the clock has been advanced by so many seconds, in the thread that does it.

        What is due at once runs in a thread of its own: whoever asks may hold a lock.
        """
        if delay <= 0:
            return SystemClock().call_later(0, call)
        with self._lock:
            self._numbers += 1
            later = _HandTimer(self, self._passed_us + max(1, math.ceil(delay * 1_000_000)), self._numbers, call)
            self._timers.add(later)
        return later

    @property
    def lasting(self) -> Clock:
        """The same time, with timers that run when the machine's or this clock's time has come, whichever is first."""
        return _Lasting(self)

    def advance(self, seconds: float) -> None:
        """Let time pass. All that falls due meanwhile is done in its order before this returns.

        Messages are then where they belong, and receivers are awake. Listeners run in threads of their own, so wait for
        what they do: ``broker.wait_idle()``, or any assertion of the kit.

        Args:
            seconds: Not negative; parts of a millisecond add up.
        Raises:
            IllegalArgumentException: It is negative, infinite or no number.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e12:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise IllegalArgumentException(f"advance: {seconds!r} is no number of seconds from 0 on")
        with self._turn:
            end = self._passed_us + round(seconds * 1_000_000)
            while (timer := self._next(end)) is not None:
                timer.call()
            self._passed_us = end
            for watcher in list(self._watchers):
                watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have something called at the end of each ``advance``."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Have it called no more."""
        self._watchers.remove(watcher)

    def drop(self, timer: _HandTimer) -> None:
        """Forget a timer."""
        with self._lock:
            self._timers.discard(timer)

    def _next(self, end: int) -> _HandTimer | None:
        """Take out the timer that is due first, and set the time to it; None when none is due by ``end``."""
        with self._lock:
            first = min(self._timers, key=lambda timer: (timer.due, timer.number), default=None)
            if first is None or first.due > end:
                return None
            self._timers.remove(first)
            self._passed_us = max(self._passed_us, first.due)
            return first

    def __repr__(self) -> str:
        return f"HandClock(+{self._passed_us / 1_000_000:g} s)"
