"""The broker's lock.

A thread that blocks on a plain lock receives it while another thread runs the interpreter, and that other thread soon blocks on
the lock in its turn: from then on each message costs two thread switches, and the rate falls to a third. So a thread that finds
the lock taken first yields to the holder and tries again a few times; it blocks only on a lock that is held for long.
"""

from __future__ import annotations

import threading
import time
from typing import Final

__all__ = ["BrokerLock"]

_TRIES: Final = 20


class BrokerLock:
    """A reentrant lock: a signal handler or finaliser may call the broker from inside any of the holder's calls."""

    __slots__ = ("_acquire", "_release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire = lock.acquire
        self._release = lock.release

    def __enter__(self) -> None:
        if self._acquire(blocking=False):
            return
        for _ in range(_TRIES):
            time.sleep(0)
            if self._acquire(blocking=False):
                return
        self._acquire()

    def __exit__(self, *_: object) -> None:
        self._release()
