"""Callbacks for the answer to a request, and how a coroutine that asks the broker is run with one.

All of it runs on the I/O thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from jmsapi.spi import ErrorKind, ProviderError, fail, resolve
from jmsapi.wire import run

__all__ = ["Ask", "Done", "after_all", "finish", "in_words", "perform"]

Done = Callable[[ProviderError | None], object]
"""Called once, with None when the request succeeded, else with its error."""
Ask = Callable[[Done], object]


def perform(steps: Coroutine[Any, None, None], done: Done) -> None:
    """Run a coroutine to its end and call ``done`` with None, or with the error that ended it."""
    future: Future[None] = Future()

    def ended(_: Future[None]) -> None:
        error = future.exception()
        if error is None or isinstance(error, ProviderError):
            done(error)
        else:
            done(ProviderError(ErrorKind.PROTOCOL, f"a fault in the provider: {in_words(error)}"))

    future.add_done_callback(ended)
    run(steps, future)


def after_all(asks: Sequence[Ask], done: Done) -> None:
    """Ask for everything at once; call ``done`` with None when all have answered, whatever they answered."""
    left = len(asks)
    if not asks:
        done(None)
        return

    def one(_: ProviderError | None) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done(None)

    for ask in asks:
        ask(one)


def in_words(fault: BaseException) -> str:
    """Return a fault of the provider's own in words: without the text that could not be encoded, which may hold a password."""
    if isinstance(fault, UnicodeEncodeError | UnicodeDecodeError):
        return f"{type(fault).__name__}({fault.encoding!r}, {fault.start}, {fault.reason!r})"
    return repr(fault)


def finish(future: Future[None]) -> Done:
    """Return a ``Done`` that resolves or fails a future."""

    def done(cause: ProviderError | None) -> None:
        if cause is None:
            resolve(future, None)
        else:
            fail(future, cause)

    return done
