"""Client ids that a process has given back, and a broker may still hold for a moment."""

from __future__ import annotations

import threading
import time
from typing import Final

__all__ = ["GivenBack"]

_STILL_HELD_S: Final = 3.0


class GivenBack:
    """Client ids of connections that were closed in order.

    A broker with much to do frees one only a moment after it has said that the connection is closed; a provider that is
    refused such an id asks again. Threads: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: dict[tuple[object, ...], float] = {}

    def note(self, key: tuple[object, ...]) -> None:
        """Note that a connection with this id (broker, port, id) has just been closed."""
        now = time.monotonic()
        with self._lock:
            self._at = {one: at for one, at in self._at.items() if now - at < _STILL_HELD_S}
            self._at[key] = now

    def taken(self, key: tuple[object, ...]) -> None:
        """Note that a connection with this id is open again: who is refused it now is refused at once."""
        with self._lock:
            self._at.pop(key, None)

    def lately(self, key: tuple[object, ...]) -> bool:
        """Whether one was closed so lately that the broker may still hold its id."""
        with self._lock:
            at = self._at.get(key)
        return at is not None and time.monotonic() - at < _STILL_HELD_S
