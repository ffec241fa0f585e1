"""Delayed messages of a store: the next ones are in the broker's agenda, the others only in the file.

Every method is called under the broker's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi_inproc.messages import StoredMessage

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.store import Store

__all__ = ["Schedule"]

MOST: Final = 1000


class Schedule:
    """Which delayed messages are in memory: all that are due before the horizon, and twice ``MOST`` at the most.

    A row says what is delayed only once it is written, and for as long as it is not written that it has fallen due. So the
    numbers of both are kept meanwhile: what is read must be neither there already nor on its way.

    Args:
        store: The store.
        broker: Whose agenda it is.
    """

    def __init__(self, store: Store, broker: Broker) -> None:
        self._store = store
        self._broker = broker
        self._held = 0
        self._latest = (0, 0)
        """No message in memory is due later than this."""
        self._horizon: tuple[int, int] | None = None
        """The first one that is only in the file; None: there is none."""
        self._coming: set[int] = set()
        self._leaving: set[int] = set()

    def expects(self, key: int) -> None:
        """Take note that a delayed message is being written; ``admits`` or ``lost`` follows."""
        self._coming.add(key)

    def lost(self, key: int) -> None:
        """Take note that it could not be written."""
        self._coming.discard(key)

    def admits(self, due: int, key: int) -> bool:
        """Return whether a delayed message that has been written is to be kept in memory, too."""
        self._coming.discard(key)
        place = (due, key)
        if self._horizon is None and self._held >= MOST and place > self._latest:
            self._horizon = place
        if self._horizon is not None and place >= self._horizon:
            return False
        self._keep(place)
        return True

    def trim(self) -> None:
        """Leave the latest ones to the file, if there are too many in memory."""
        if self._held <= 2 * MOST:
            return
        there = [
            (message.envelope.delivery_time, message.key, message, queue)
            for message, queue in self._broker.agenda.delays()
            if isinstance(message, StoredMessage)
        ]
        there.sort(key=lambda one: one[:2])
        for _, _, message, queue in there[MOST:]:
            queue.put_off(message)
        if there[MOST:]:
            self._held -= len(there) - MOST
            self._latest = self._horizon = there[MOST][:2]

    def leaves(self, key: int) -> None:
        """Take note that it is being written that a message has fallen due; ``left`` and ``written`` follow."""
        self._leaving.add(key)

    def written(self, key: int) -> None:
        """Take note that it is written."""
        self._leaving.discard(key)

    def left(self, n: int = 1) -> None:
        """Take note that so many left the agenda; the next ones come when none is left."""
        self._held -= n
        if self._store.closing:
            return
        while not self._held and self._horizon is not None:
            self.load(*self._horizon)

    def load(self, due: int = 0, key: int = 0) -> None:
        """Read the next ones."""
        found = self._store.due_after(due, key, MOST + 1)
        self._horizon = found.pop() if len(found) > MOST else None
        for when, number in found:
            if number in self._coming or number in self._leaving:
                continue
            row = self._store.row(number)
            queue = self._broker.queue_of(self._store.place_of(number))
            if row is not None and queue is not None and not queue.gone:
                self._keep((when, number))
                queue.delay(self._store.message_of(row))

    def _keep(self, place: tuple[int, int]) -> None:
        self._held += 1
        self._latest = max(self._latest, place)
