"""One future answered by another: what a decorator, or a provider that waits for something of its own, gives back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

__all__ = ["answered"]

S = TypeVar("S")
T = TypeVar("T")


def answered(
    by: Future[S],
    value: Callable[[S], T],
    error: Callable[[BaseException], BaseException] | None = None,
    *,
    answer: Future[T] | None = None,
) -> Future[T]:
    """Return a future that is done when another one is, after what that one says has been noted.

    Args:
        by: The other one.
        value: Makes the value of the other's; what it raises fails the answer.
        error: Makes the error of the other's; left out, it stays as it is.
        answer: The future that is answered; left out, a new one. Somebody else may have answered it meanwhile: that stands.
    Threads: ``value`` and ``error`` are called in the thread that ends the other future, or in this one if that is done.
    """
    told: Future[T] = Future() if answer is None else answer

    def done(ended: Future[S]) -> None:
        cause = ended.exception()
        with suppress(InvalidStateError):
            try:
                if cause is None:
                    told.set_result(value(ended.result()))
                else:
                    told.set_exception(cause if error is None else error(cause))
            except InvalidStateError:
                raise
            except Exception as raised:
                told.set_exception(raised)

    by.add_done_callback(done)
    return told
