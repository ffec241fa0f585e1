"""Time as an argument, so that tests need not sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from jmsapi.spi._timers import arm

__all__ = ["Clock", "SystemClock", "Timer"]


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Drop the call if it has not begun."""


class Clock(Protocol):
    """Where the core and the providers get time from.

    One that says ``steady = True`` beside is never set: its timers see every change of ``now_ms``, so nobody need look again.
    """

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00Z."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` after ``delay`` seconds, in a thread of the clock's own.

        ``call`` must be quick and must not raise.
        """
        ...


class SystemClock:
    """The machine's own time."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01T00:00Z."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` after ``delay`` seconds, in a daemon thread. Waiting costs one thread, however many timers wait."""
        return arm(min(max(delay, 0.0), threading.TIMEOUT_MAX), call)
