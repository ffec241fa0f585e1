"""Futures as a provider and a decorator of one use them: done already, ended whatever others did to them, answered by another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final, TypeVar

__all__ = ["DONE", "answered", "completed", "fail", "failed", "resolve"]

S = TypeVar("S")
T = TypeVar("T")


def completed(value: T) -> Future[T]:
    """Return a future that is done."""
    future: Future[T] = Future()
    future.set_result(value)
    return future


def failed(error: BaseException) -> Future[Any]:
    """Return a future that has failed."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


class _Done(Future[None]):
    """A future that is done, and takes no lock to tell so: a forked child would find one held by a thread that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.set_result(None)

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> None:
        return None

    def exception(self, timeout: float | None = None) -> None:
        return None


DONE: Final[Future[None]] = _Done()
"""Shared: a finished future without a value."""


def resolve(future: Future[T], value: T) -> None:
    """Set a future's result, unless it has ended or was cancelled."""
    with suppress(InvalidStateError):
        future.set_result(value)


def fail(future: Future[Any], error: BaseException) -> None:
    """Fail a future, unless it has ended or was cancelled."""
    with suppress(InvalidStateError):
        future.set_exception(error)


def answered(
    by: Future[S],
    value: Callable[[S], T],
    error: Callable[[BaseException], BaseException] | None = None,
    *,
    answer: Future[T] | None = None,
) -> Future[T]:
    """Return a future that is done when another one is, after the other's result has been looked at.

    Args:
        by: The other one.
        value: Makes the value of the other's; what it raises fails the answer.
        error: Makes the error of the other's; left out, it stays as it is.
        answer: The future that is answered; left out, a new one. Somebody else may have answered it meanwhile: that stands.
    Threads: ``value`` and ``error`` are called in the thread that ends the other future, or in this one if that is done.
    """
    result: Future[T] = Future() if answer is None else answer

    def done(ended: Future[S]) -> None:
        cause = ended.exception()
        try:
            if cause is None:
                made = value(ended.result())
            else:
                fail(result, cause if error is None else error(cause))
                return
        except Exception as raised:  # of whatever kind: whoever waits for the answer gets it
            fail(result, raised)
        else:
            resolve(result, made)

    by.add_done_callback(done)
    return result
