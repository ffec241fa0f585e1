"""Coroutines without an event loop: whoever ends a wait runs the waiting coroutine on, there and then.

A provider's questions to its broker, and the steps of reconnecting, read like blocking code and hold no thread. A coroutine
awaits a ``Promise``, which belongs to one I/O thread, or a wait of ``Waits``, which any thread or the clock may end. It runs on
the thread that ended its last wait, so it must not block.
"""

from __future__ import annotations

import logging
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar, cast

from jmsapi.spi import Clock, Timer

__all__ = ["Promise", "Wait", "Waitable", "Waits", "answer_of", "run", "spawn"]

T = TypeVar("T")


class Waitable(Protocol):
    """What a coroutine yields to ``run``: something that ends later."""

    def subscribe(self, resume: Callable[[], None]) -> bool:
        """Have ``resume`` called once at the end; False, and it is not called, when the end has come already."""
        ...


class Promise(Generic[T]):
    """A value to come, or an error instead. The first of the two counts; what comes later is ignored.

    Threads: one, which is the I/O thread of the connection.
    """

    __slots__ = ("_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._waiters: list[Callable[[], None]] = []

    @property
    def done(self) -> bool:
        """Whether it has its value or its error."""
        return self._done

    def resolve(self, value: T) -> None:
        """Give the value and run whoever waits."""
        self._end(value, None)

    def fail(self, error: Exception) -> None:
        """Give the error instead and run whoever waits."""
        self._end(None, error)

    def _end(self, value: T | None, error: Exception | None) -> None:
        if self._done:
            return
        self._done = True
        self._value = value
        self._error = error
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()

    def subscribe(self, resume: Callable[[], None]) -> bool:
        """Have ``resume`` called at the end; False when it is done already."""
        if not self._done:
            self._waiters.append(resume)
        return not self._done

    def when_done(self, call: Callable[[], None]) -> None:
        """Call ``call`` once it is done, at once if it is."""
        if not self.subscribe(call):
            call()

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self._done:
            yield self
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


def answer_of(ask: Callable[[Callable[[Exception | None], None]], object]) -> Promise[None]:
    """Return a promise for a call that answers by a callback.

    Args:
        ask: Asks, and calls what it is given once: with None, or with the error.
    """
    promise: Promise[None] = Promise()
    ask(lambda error: promise.resolve(None) if error is None else promise.fail(error))
    return promise


def run(steps: Coroutine[Any, None, T], future: Future[T]) -> None:
    """Run a coroutine until it waits, and on whenever its wait ends; then complete ``future`` with its result or exception.

    A future that was cancelled before is left alone, and the coroutine does not begin.
    """

    def advance() -> None:
        while True:
            try:
                waitable = cast("Waitable", steps.send(None))
            except StopIteration as stop:
                future.set_result(cast("T", stop.value))
            except Exception as error:  # of whatever kind: it belongs to whoever waits for the future
                future.set_exception(error)
            else:
                if waitable.subscribe(advance):
                    return
                continue
            return

    if future.set_running_or_notify_cancel():
        advance()
    else:
        steps.close()


def spawn(steps: Coroutine[Any, None, None], log: logging.Logger) -> None:
    """Run a coroutine that nobody waits for; its failure is logged as a warning."""
    future: Future[None] = Future()

    def ended(done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            log.warning("in the background: %s", error)

    future.add_done_callback(ended)
    run(steps, future)


class Wait:
    """One wait that any thread may end: for a future, for time to pass, or until somebody ends it.

    Args:
        clock: Time.
        seconds: Longest wait; None for no limit.
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

    def subscribe(self, resume: Callable[[], None]) -> bool:
        """Have ``resume`` called once when the wait is over; False when it is over already."""
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


class Waits:
    """The waits of one coroutine, the one under way of which another thread may cut short.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wait: Wait | None = None

    def interrupt(self) -> None:
        """End the wait under way; the coroutine goes on and must look why. Any thread."""
        wait = self._wait
        if wait is not None:
            wait.end()

    async def _for(self, wait: Wait) -> None:
        self._wait = wait
        await _until(wait)

    async def hop(self) -> None:
        """Go on at once, on a thread of the clock's."""
        await self._for(Wait(self._clock, 0.0))

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        if seconds > 0:
            await self._for(Wait(self._clock, seconds))

    async def done(self, future: Future[Any], seconds: float | None) -> bool:
        """Wait for a future; False when time is up first, or the wait was interrupted."""
        if not future.done():
            await self._for(Wait(self._clock, seconds, future))
        return future.done()
