"""Waiting with deadlines: the only place where a thread of the application waits for a provider."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from jmsapi._core.errors_map import jms_error
from jmsapi.errors import JMSException

__all__ = ["Deadline", "Window", "result"]

T = TypeVar("T")


class Deadline:
    """A point in time that several waits share.

    Args:
        timeout_ms: From now; None for no end.
        monotonic: Seconds that never go back; the machine's unless somebody keeps another time.
    """

    __slots__ = ("_end", "_monotonic")

    def __init__(self, timeout_ms: float | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = None if timeout_ms is None else monotonic() + timeout_ms / 1000

    def remaining(self) -> float | None:
        """Return the seconds left, never negative; None for no end."""
        return None if self._end is None else max(0.0, self._end - self._monotonic())

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and self._monotonic() >= self._end


def result(future: Future[T], timeout: float | None, asked: str) -> T:
    """Wait for a provider's answer.

    Args:
        future: The provider's promise.
        timeout: Seconds.
        asked: What was asked, for the error's text.
    Raises:
        JMSException: The provider failed, or did not answer in time (code ``timeout``).
    """
    try:
        return future.result(timeout)
    except FutureTimeout as error:
        if future.done():
            raise jms_error(error, asked) from error
        raise JMSException(f"{asked}: no answer within {timeout:.1f} s", "timeout") from None
    except Exception as error:
        if not future.done() or (not future.cancelled() and future.exception() is not error):
            # Not the provider's: a signal's handler has ended the wait.
            raise
        raise jms_error(error, asked) from error


class Window:
    """How many sends of a connection may be unanswered."""

    __slots__ = ("_free", "_lock", "_ready", "_waiting")

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting = 0
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)

    def enter(self, timeout: float) -> bool:
        """Take a place, waiting for one at most ``timeout`` seconds; False when there was none."""
        with self._lock:
            if self._free <= 0:
                self._waiting += 1
                try:
                    if not self._ready.wait_for(lambda: self._free > 0, timeout):
                        return False
                finally:
                    self._waiting -= 1
            self._free -= 1
            return True

    def leave(self, n: int = 1) -> None:
        """Give places back."""
        with self._lock:
            self._free += n
            if self._waiting:
                self._ready.notify(n)
