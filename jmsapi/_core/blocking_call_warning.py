"""A warning of calls that block the thread of a running event loop: they stop every task of it.

It is given once for each method, by the method's name.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Final

__all__ = ["warn_in_event_loop"]

_warned: Final[dict[str, object]] = {}
"""The methods that have warned."""
_INNER: Final = ("translated", "call", "<lambda>", "run")


def warn_in_event_loop() -> None:
    """Warn if the calling thread runs an event loop. Without a lock held, since a warning can raise or call what shows it."""
    events = sys.modules.get("asyncio.events")
    if events is not None:
        running: Callable[[], object] = events._get_running_loop
        if running() is not None:
            _warn()


def _warn() -> None:
    frame = inspect.currentframe()
    level, method = 1, "this call"
    while frame is not None and _is_ours(frame):
        name = frame.f_code.co_qualname
        if not name.rpartition(".")[2].startswith("_") and name.rpartition(".")[2] not in _INNER:
            method = name.replace("Impl.", ".")
        frame = frame.f_back
        level += 1
    # Of threads that come at once, one finds its own token; a lock would have to be looked after when the process forks.
    token = object()
    if _warned.setdefault(method, token) is token:
        warnings.warn(
            f"{method} blocks the event loop that runs in this thread, and with it every task; await the same call of jmsapi.aio,"
            " or leave it to a thread with asyncio.to_thread",
            RuntimeWarning,
            stacklevel=level,
        )


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] == "jmsapi" and name != "jmsapi.testing"
