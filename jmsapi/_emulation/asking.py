"""Calls down, whose failures all come the same way, and calls up, whose failures stay there.

A provider may raise at once or fail the future it returns. The core, when told something, should do neither; if it does, that
must not cost the links and futures of which it is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from jmsapi.spi import failed

__all__ = ["asked", "tell"]

_log = logging.getLogger("jmsapi")

P = ParamSpec("P")
T = TypeVar("T")


def asked(call: Callable[P, Future[T]], *arguments: P.args, **options: P.kwargs) -> Future[T]:
    """Make a call of a provider; what it raises fails the future.

    Args:
        call: The provider's method; its arguments follow.
    """
    try:
        return call(*arguments, **options)
    except Exception as error:  # of whatever kind: who waits for the answer is told of it
        return failed(error)


def tell(event: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> None:
    """Tell somebody above of something; a fault of theirs is logged, and what is done here goes on.

    Args:
        event: What is called; its arguments follow.
    """
    try:
        event(*arguments, **options)
    except Exception:
        _log.exception("a fault in %s, which is told of an event", getattr(event, "__qualname__", event))
