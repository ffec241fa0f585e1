"""Callbacks are plain functions: coroutine and generator functions are refused where they are handed over, or fail when called.

A coroutine that nobody awaits does nothing, while the message that it was called with would count as processed. Only the
containers of ``jmsapi.listener`` take coroutine functions, and await what they return.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Final, cast
from weakref import WeakSet

from jmsapi.errors import IllegalArgumentException, JMSException

__all__ = ["check_callback", "check_methods", "check_returned", "is_asynchronous", "is_coroutine_function"]

_HOW: Final = (
    "hand over a plain function, await messages with jmsapi.aio, the API for asyncio, or deploy a listener of jmsapi.listener,"
    " which may be a coroutine function; a function that runs a coroutine to its end is, for example,"
    " lambda *arguments: asyncio.run(function(*arguments))"
)


_PLAIN: Final[WeakSet[FunctionType]] = WeakSet()
"""Functions behind methods that were found not to be asynchronous."""
_DEFERRED: Final[tuple[Callable[[object], bool], ...]] = (
    inspect.iscoroutinefunction,
    inspect.isasyncgenfunction,
    inspect.isgeneratorfunction,
)


_CALL_OF_CLASSES: Final[object] = inspect.getattr_static(type, "__call__")
"""What a call of a class runs, unless its metaclass has one of its own."""


def is_asynchronous(callback: object) -> bool:
    """Return whether a call gives something to await or to iterate, as far as that can be known without calling.

    Looks through partial functions, bound methods, callable objects and decorators that use ``functools.wraps``.
    """
    return _deferred_as(callback) is not None


def is_coroutine_function(callback: object) -> bool:
    """Return whether a call gives something to await, as far as that can be known; it looks as far as ``is_asynchronous``."""
    return _deferred_as(callback) is inspect.iscoroutinefunction


def _deferred_as(callback: object) -> Callable[[object], bool] | None:
    """Return which of the checks a callback fits, or what it stands for."""
    seen: set[int] = set()
    while id(callback) not in seen:
        seen.add(id(callback))
        for check in _DEFERRED:
            if check(callback):
                return check
        # The callable that this one stands for, if it does.
        if isinstance(callback, functools.partial | functools.partialmethod):
            callback = cast("functools.partial[object]", callback).func
        elif isinstance(callback, staticmethod | classmethod):
            callback = cast("staticmethod[..., object]", callback).__func__
        elif inspect.ismethod(callback):
            callback = callback.__func__
        elif (wrapped := inspect.getattr_static(callback, "__wrapped__", None)) is not None:
            callback = wrapped
        elif inspect.isroutine(callback):
            return None
        elif isinstance(callback, type):
            callback = _maker(callback)
        else:
            callback = inspect.getattr_static(type(callback), "__call__", None)
    return None


def _maker(kind: type) -> object:
    """Return what a call of a class runs, which decides what it gives; whatever its instances do when they are called."""
    call: object = inspect.getattr_static(type(kind), "__call__")
    return inspect.getattr_static(kind, "__new__") if call is _CALL_OF_CLASSES else call


def check_callback(callback: object, what: str) -> None:
    """Refuse a callback that is asynchronous.

    Args:
        callback: What will be called.
        what: What it is, to begin the text with.
    Raises:
        IllegalArgumentException: It is a coroutine function or a generator function, or stands for one.
    """
    if is_asynchronous(callback):
        raise IllegalArgumentException(
            f"{what} is a coroutine or generator function, and nobody would await or iterate what it returns: {callback!r};"
            f" {_HOW}"
        )


def check_methods(listener: object, *names: str, what: str) -> None:
    """Refuse an object of which a method is asynchronous; methods that it does not have are no matter.

    Raises:
        IllegalArgumentException: One is a coroutine function, or stands for one.
    """
    for name in names:
        method = getattr(listener, name, None)
        function = getattr(method, "__func__", None)
        if isinstance(function, FunctionType):
            # A completion listener is handed over with every message: its methods are looked at once.
            if function in _PLAIN:
                continue
            check_callback(method, f"{name} of {what}")
            _PLAIN.add(function)
        else:
            check_callback(method, f"{name} of {what}")


def check_returned(result: object, what: str) -> None:
    """Refuse what a callback has returned if that is something to await or a generator, so that nothing has been done yet.

    Args:
        result: What the call returned. A coroutine is closed, so that nothing warns of it later.
        what: What was called, to begin the text with.
    Raises:
        JMSException: It has to be awaited or iterated (``bad-callback``).
    """
    if result is None or not (inspect.isawaitable(result) or inspect.isasyncgen(result) or inspect.isgenerator(result)):
        return
    if isinstance(result, Coroutine):
        cast("Coroutine[object, object, object]", result).close()
    raise JMSException(f"{what} returned {result!r}, which nobody awaits or iterates; {_HOW}", "bad-callback")
