"""Steps that wait without holding a thread: a coroutine goes on when its future is done, or when the clock says so.

One coroutine runs at a time and on whatever thread woke it: a provider's I/O thread or the clock's. So a step must not block.
"""

from __future__ import annotations

import logging
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any

from jmsapi.spi import Clock, Timer

__all__ = ["Steps", "Wait"]

_log = logging.getLogger("jmsapi.reconnect")


class Wait:
    """One wait: for a future, for time to pass, or for somebody to end it.

    Args:
        clock: Time.
        seconds: Longest wait; None for no end.
        future: What is waited for; None to only let time pass.
    """

    def __init__(self, clock: Clock, seconds: float | None, future: Future[Any] | None = None) -> None:
        self._clock = clock
        self._seconds = seconds
        self._future = future
        self._guard = threading.Lock()
        self._resume: Callable[[], None] | None = None
        self._timer: Timer | None = None
        self._over = False

    def begin(self, resume: Callable[[], None]) -> bool:
        """Have ``resume`` called once when the wait is over; False when it is over already, and then it is not called."""
        future = self._future
        with self._guard:
            if self._over or (future is not None and future.done()):
                return False
            self._resume = resume
        if self._seconds is not None:
            self._timer = self._clock.call_later(self._seconds, self.end)
            if self._over:
                self._timer.cancel()
        if future is not None:
            future.add_done_callback(lambda _: self.end())
        return True

    def end(self) -> None:
        """End the wait, also before its time."""
        with self._guard:
            if self._over:
                return
            self._over = True
            resume, timer = self._resume, self._timer
        if timer is not None:
            timer.cancel()
        if resume is not None:
            resume()


@types.coroutine
def _until(wait: Wait) -> Generator[Wait, None, None]:
    yield wait


class Steps:
    """Runs one coroutine that waits by ``pause`` and ``done``.

    Args:
        clock: Time.
        fault: Told of an exception that the coroutine did not handle: a fault of ours.
    """

    def __init__(self, clock: Clock, fault: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._fault = fault
        self._wait: Wait | None = None

    def run(self, coroutine: Coroutine[Wait, None, None]) -> None:
        """Run it as far as it goes without waiting; the rest follows by itself."""
        while True:
            try:
                wait = coroutine.send(None)
            except StopIteration:
                return
            except Exception as error:
                _log.exception("a fault while reconnecting")
                self._fault(error)
                return
            self._wait = wait
            if wait.begin(lambda: self.run(coroutine)):
                return

    def interrupt(self) -> None:
        """End the wait under way; who waited must look why."""
        wait = self._wait
        if wait is not None:
            wait.end()

    async def hop(self) -> None:
        """Go on at once, on a thread of the clock's."""
        await _until(Wait(self._clock, 0.0))

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        if seconds > 0:
            await _until(Wait(self._clock, seconds))

    async def done(self, future: Future[Any], seconds: float | None) -> bool:
        """Wait for a future; False when time is up first, or the wait was interrupted."""
        if not future.done():
            await _until(Wait(self._clock, seconds, future))
        return future.done()
