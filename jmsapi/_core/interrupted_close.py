"""Closing at any moment: from a handler of a signal, from a finalizer, and when the interpreter ends.

A handler or a finalizer runs between two steps of whatever its thread is doing. If that is a call of this library, the call may
hold locks and be half done, and it goes on only after the handler has returned: a close that waited for it would wait for ever.
Then the close is done by another thread as soon as it can, and the handler goes on at once.

A close can be interrupted like any other call, and nothing is as bad to leave half done: messages would stay with a consumer that
nobody has any more. Handlers run in the main thread alone, so what that closes is closed by another thread for which it waits: an
interruption ends the wait, and never the close.

When the interpreter ends, the threads of a connection run no more, and may have left their locks held: nothing can be waited for.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import logging
import sys
import threading
from collections.abc import Callable
from enum import Enum, auto
from types import CodeType, FrameType
from typing import Final, TypeVar

__all__ = ["calls_application", "close_when_possible"]

_log = logging.getLogger("jmsapi")
F = TypeVar("F", bound=Callable[..., object])
_WITH_LOCKS: Final = ("jmsapi._core", "jmsapi._emulation", "jmsapi.wire", "jmsapi_")
_LONGEST_S: Final = 15.0
_application_calls: Final[set[CodeType]] = set()
"""Functions that call code of the application, without a lock."""
_closing: Final[set[_thread.LockType]] = set()
"""One for each close that another thread is doing, held until it is done."""


class _Caller(Enum):
    """Who has called close."""

    APPLICATION = auto()
    """The application, and no call of this library is under way in the thread."""
    LIBRARY = auto()
    """The application, called by this library without a lock; or this library itself."""
    INTERRUPTING = auto()
    """What has interrupted a call of this library amid its work."""


def calls_application(function: F) -> F:
    """Mark a function of the core that calls a listener: what the listener closes is not closed amid a call of this library."""
    _application_calls.add(function.__code__)
    return function


def close_when_possible(close: Callable[[], None], *, apart: bool) -> None:
    """Close to the end, whatever interrupts the calling thread; not now if that is amid another call of this library.

    Args:
        close: Closes, waiting as long as that takes.
        apart: Another thread may do it. A broker in this process has a lock that the calling thread may hold, if an interruption
            came just when it had taken it; to close there waits for nothing, and so is hardly ever interrupted.
    """
    if sys.is_finalizing():
        return
    caller = _caller()
    if caller is _Caller.INTERRUPTING:
        _start(_Apart(close, awaited=False))
    elif apart and caller is _Caller.APPLICATION and _is_interruptible():
        _close_apart(close)
    else:
        close()


class _Apart:
    """A close that another thread does.

    Args:
        close: Closes.
        awaited: Somebody waits for it, and is to get what it raises.
    """

    def __init__(self, close: Callable[[], None], *, awaited: bool) -> None:
        self.awaited = awaited
        self.raised: BaseException | None = None
        # No event, and no Thread: what is interrupted in their code may leave a lock of theirs held.
        self.gate = _thread.allocate_lock()
        self.gate.acquire()
        self._close = close
        self._context = contextvars.copy_context()

    def run(self) -> None:
        """Close, in this thread."""
        _closing.add(self.gate)
        try:
            self._context.run(self._close)
        except BaseException as error:
            self.raised = error
            if not self.awaited:
                _log.exception("what a handler of a signal or a finalizer wanted to close could not be closed")
        finally:
            # To ask for the current thread makes an object for it, which Python before 3.13 counts for ever.
            threading._active.pop(threading.get_ident(), None)  # type: ignore[attr-defined]  # pyright: ignore
            _closing.discard(self.gate)
            self.gate.release()


def _close_apart(close: Callable[[], None]) -> None:
    apart = _Apart(close, awaited=True)
    try:
        _start(apart)
    except RuntimeError:  # no more threads, or none any more
        close()
        return
    try:
        apart.gate.acquire()
    except BaseException:
        apart.awaited = False
        raise
    if apart.raised is not None:
        raise apart.raised


def _start(apart: _Apart) -> None:
    _thread.start_new_thread(apart.run, ())


@atexit.register
def _wait_for_closing() -> None:
    for gate in list(_closing):
        gate.acquire(timeout=_LONGEST_S)


def _is_interruptible() -> bool:
    """Return whether signals interrupt this thread. Where an event loop runs in it, the close must warn of blocking that."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    events = sys.modules.get("asyncio.events")
    return events is None or events._get_running_loop() is None


def _caller() -> _Caller:
    """Return who has called ``close_when_possible``."""
    if threading.current_thread().name.startswith("jmsapi-"):
        return _Caller.LIBRARY  # a thread of ours, which calls listeners
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # documented, and the only way to another frame
    while frame is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    while frame is not None and not _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    if frame is None:
        return _Caller.APPLICATION
    # What holds no lock itself, such as a clock, may be called by what holds one.
    while frame is not None and _is_ours(name := frame.f_globals.get("__name__")):
        if frame.f_code in _application_calls:
            return _Caller.LIBRARY
        if str(name).startswith(_WITH_LOCKS):
            return _Caller.INTERRUPTING
        frame = frame.f_back
    return _Caller.LIBRARY


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.partition(".")[0].startswith("jmsapi") and not name.startswith("jmsapi_conformance")
