"""Delayed messages of a store: the next ones are in the broker's agenda, the others only in the file.

Every method is called under the broker's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.store import Store

__all__ = ["Schedule"]

MOST: Final = 1000


class Schedule:
    """Which delayed messages are in memory: all that are due before the horizon.

    Args:
        store: The store.
        broker: Whose agenda it is.
    """

    def __init__(self, store: Store, broker: Broker) -> None:
        self._store = store
        self._broker = broker
        self._held = 0
        self._horizon: tuple[int, int] | None = None
        """The first one that is only in the file; None: there is none."""

    def admits(self, due: int, key: int) -> bool:
        """Return whether a delayed message that has been written is to be kept in memory, too."""
        if self._horizon is None and self._held >= MOST:
            self._horizon = (due, key)
        if self._horizon is not None and (due, key) >= self._horizon:
            return False
        self._held += 1
        return True

    def left(self, n: int = 1) -> None:
        """Take note that so many left the agenda; the next ones come when none is left."""
        self._held -= n
        if not self._held and self._horizon is not None:
            self.load(*self._horizon)

    def load(self, due: int = 0, key: int = 0) -> None:
        """Read the next ones."""
        found = self._store.due_after(due, key, MOST + 1)
        self._horizon = found.pop() if len(found) > MOST else None
        for _, number in found:
            row = self._store.row(number)
            queue = self._broker.queue_of(self._store.place_of(number))
            if row is not None and queue is not None:
                self._held += 1
                queue.delay(self._store.message_of(row))
