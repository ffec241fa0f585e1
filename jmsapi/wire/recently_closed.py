"""Client ids that this process has just given up, and a broker may still hold for a moment."""

from __future__ import annotations

import threading
import time
from typing import Final

from jmsapi.spi import ErrorKind

__all__ = ["ASK_AGAIN_S", "RecentlyClosedClientIds"]

ASK_AGAIN_S: Final = 0.05
"""After how many seconds a refused client id is asked for again."""
_STILL_HELD_S: Final = 3.0


class RecentlyClosedClientIds:
    """Client ids of connections that were closed in order.

    A busy broker frees one only a moment after it has confirmed the close; a provider that is refused such an id asks again
    every ``ASK_AGAIN_S`` for as long as ``worth_asking_again`` says so. A key is whatever names one client id at one broker,
    such as (host, port, virtual host, client id). Threads: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed_at: dict[tuple[object, ...], float] = {}

    def note_closed(self, key: tuple[object, ...]) -> None:
        """Note that a connection with this id has just been closed."""
        now = time.monotonic()
        with self._lock:
            self._closed_at = {one: at for one, at in self._closed_at.items() if now - at < _STILL_HELD_S}
            self._closed_at[key] = now

    def note_opened(self, key: tuple[object, ...]) -> None:
        """Note that a connection with this id is open again: whoever is refused it from now on is refused for good."""
        with self._lock:
            self._closed_at.pop(key, None)

    def holds(self, key: tuple[object, ...]) -> bool:
        """Whether one was closed so recently that the broker may still hold its id."""
        with self._lock:
            at = self._closed_at.get(key)
        return at is not None and time.monotonic() - at < _STILL_HELD_S

    def worth_asking_again(self, key: tuple[object, ...], refusal: ErrorKind) -> bool:
        """Whether a refusal may only mean that the broker has not freed our own last connection's id yet."""
        return refusal is ErrorKind.CLIENT_ID and self.holds(key)
