"""Timeouts as an application says them: in milliseconds, or as a timedelta. Spec: 4.5.1-2."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from datetime import timedelta
from numbers import Real
from typing import Final, ParamSpec, TypeVar, cast

from jmsapi.errors import IllegalArgumentException

__all__ = ["longest_wait", "warns_of_seconds"]

P = ParamSpec("P")
R = TypeVar("R")
_SUSPICIOUS_MS: Final = 10.0
"""A float below this that is not named is more likely meant as seconds."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_warned: Final[dict[str, object]] = {}
"""The methods that have warned."""


def longest_wait(timeout_ms: object, method: str) -> float | None:
    """Return how long a call may wait, in milliseconds; None if nothing was given.

    Args:
        timeout_ms: What was given.
        method: The method that was called, which an error names.
    Raises:
        IllegalArgumentException: It is no timeout.
    Threads: any.
    """
    if timeout_ms is None or (type(timeout_ms) is int and timeout_ms >= 0):
        return timeout_ms
    if isinstance(timeout_ms, timedelta):
        milliseconds = timeout_ms / _MILLISECOND
    else:
        milliseconds = cast("float", timeout_ms) if isinstance(timeout_ms, Real) else -1.0
    if not milliseconds >= 0:
        raise IllegalArgumentException(
            f"{method}: a timeout is a number of milliseconds from 0 on, or a timedelta, not {timeout_ms!r}"
        )
    return milliseconds


def warns_of_seconds(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method warn, once, of a small float that is given for its parameter ``timeout_ms`` without its name."""
    place = list(inspect.signature(method).parameters).index("timeout_ms")

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > place:
            given = args[place]
            if type(given) is float and 0 < given < _SUSPICIOUS_MS:
                _warn(method.__name__, given)
        return method(*args, **kwargs)

    return call


def _warn(method: str, milliseconds: float) -> None:
    # Of threads that come at once, one finds its own token; a lock would have to be looked after when the process forks.
    token = object()
    if _warned.setdefault(method, token) is token:
        warnings.warn(
            f"{method}({milliseconds!r}) waits for {milliseconds!r} milliseconds; write timeout_ms={milliseconds!r} if that is"
            f" meant, and timeout_ms={milliseconds * 1000:g} or a timedelta for seconds",
            UserWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """Return the level, for ``warn`` called by the caller, of the first frame that is not the library's."""
    level, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jmsapi":
        level, frame = level + 1, frame.f_back
    return level
