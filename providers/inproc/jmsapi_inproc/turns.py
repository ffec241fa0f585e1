"""The broker's lock.

A thread that blocks on a plain lock is given it while another runs the interpreter, and that one soon blocks on the lock in its
turn: from then on every message costs two switches of threads, at a third of the rate. So who finds it taken first lets the
holder run and asks again; only a lock that is held for long is waited for in earnest.
"""

from __future__ import annotations

import threading
import time
from typing import Final

__all__ = ["BrokerLock"]

_ASKED_AGAIN: Final = 20


class BrokerLock:
    """A lock that its holder may take again: a signal handler or finaliser may run inside any of its calls."""

    __slots__ = ("_acquire", "_release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire = lock.acquire
        self._release = lock.release

    def __enter__(self) -> None:
        if self._acquire(blocking=False):
            return
        for _ in range(_ASKED_AGAIN):
            time.sleep(0)
            if self._acquire(blocking=False):
                return
        self._acquire()

    def __exit__(self, *_: object) -> None:
        self._release()
