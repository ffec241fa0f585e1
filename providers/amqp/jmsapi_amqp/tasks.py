"""Steps that wait for the peer, written as coroutines and run on the I/O thread.

A ``Promise`` is what such a step waits for. There is no event loop: whoever keeps or breaks a promise runs the waiting
coroutine on, there and then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar, cast

__all__ = ["Promise", "run", "spawn"]

_LOG: Final = logging.getLogger("jmsapi.amqp")
T = TypeVar("T")


class Promise(Generic[T]):
    """A value to come, or an error instead. Kept or broken once; later words are ignored."""

    __slots__ = ("_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._waiters: list[Callable[[], None]] = []

    @property
    def done(self) -> bool:
        """Whether it was kept or broken."""
        return self._done

    def keep(self, value: T) -> None:
        """Give the value and run whoever waits."""
        if not self._done:
            self._done = True
            self._value = value
            self._wake()

    def fail(self, error: Exception) -> None:
        """Give the error instead and run whoever waits."""
        if not self._done:
            self._done = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()

    def when_done(self, waiter: Callable[[], None]) -> None:
        """Call ``waiter`` once it is done."""
        if self._done:
            waiter()
        else:
            self._waiters.append(waiter)

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self._done:
            yield self
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


def run(steps: Coroutine[Any, None, T], future: Future[T]) -> None:
    """Run ``steps`` until they wait, and on whenever they can; then complete ``future``."""

    def advance() -> None:
        try:
            waits_for = cast("Promise[object]", steps.send(None))
        except StopIteration as stop:
            future.set_result(cast("T", stop.value))
        except Exception as error:  # whatever it is, it belongs to who waits for the future
            future.set_exception(error)
        else:
            waits_for.when_done(advance)

    if future.set_running_or_notify_cancel():
        advance()
    else:
        steps.close()


def spawn(steps: Coroutine[Any, None, None]) -> None:
    """Run ``steps`` for which nobody waits; a failure is logged."""
    future: Future[None] = Future()

    def tell(done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            _LOG.warning("in the background: %s", error)

    future.add_done_callback(tell)
    run(steps, future)
