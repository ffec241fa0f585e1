"""Calls down, whose failures all come the same way, and calls up, whose failures stay there.

A provider may raise at once or fail the future it returns. The core must not raise when it is notified; if it does, that must not
cost the links and futures that the event is about.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from jmsapi.spi import failed

__all__ = ["call_below", "notify"]

_log = logging.getLogger("jmsapi")

P = ParamSpec("P")
T = TypeVar("T")


def call_below(call: Callable[P, Future[T]], *arguments: P.args, **options: P.kwargs) -> Future[T]:
    """Make a call of a provider; what it raises fails the future.

    Args:
        call: The provider's method; its arguments follow.
    """
    try:
        return call(*arguments, **options)
    except Exception as error:  # of whatever kind: it belongs to whoever waits for the answer
        return failed(error)


def notify(event: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> None:
    """Report an event upwards; a fault of the receiver is logged, and what is done here goes on.

    Args:
        event: What is called; its arguments follow.
    """
    try:
        event(*arguments, **options)
    except Exception:
        _log.exception("a fault in %s, which takes an event", getattr(event, "__qualname__", event))
