"""Sequences of questions to the broker, written as generators instead of nested callbacks.

A step yields a function that asks something and calls the given ``Done`` with the answer. A refusal is raised at the
``yield``, so that a sequence reads like blocking code. All on the I/O thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from jmsapi.spi import ProviderError
from jmsapi_stomp.control import Done

__all__ = ["Ask", "Steps", "run"]

T = TypeVar("T")
Ask = Callable[[Done], object]
Steps = Generator[Ask, None, T]


def run(steps: Steps[None], done: Done) -> None:
    """Run a sequence to its end and call ``done`` with None, or with what it failed of."""

    def resume(cause: ProviderError | None) -> None:
        try:
            ask = next(steps) if cause is None else steps.throw(cause)
        except StopIteration:
            done(None)
        except ProviderError as failure:
            done(failure)
        else:
            ask(resume)

    resume(None)
