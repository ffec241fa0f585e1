"""What a stored broker does with messages: it writes them first, and files them when they are written.

Every function is called under the broker's lock.

Spec: 4.7-3, 4.10-1, 4.10-3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsapi.spi import PERSISTENT, Envelope
from jmsapi_inproc.messages import Message, StoredMessage, group_of
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.store_filing import Filing

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.store import Shelf
    from jmsapi_inproc.topics import Sender

__all__ = ["StoredQueue", "arrive", "forget", "recount", "stored_queue"]


class StoredQueue(Queue):
    """A queue that is kept in the store."""

    __slots__ = ()

    def plan(self, envelope: Envelope, sender: Sender, filing: Filing) -> None:
        """Have a message filed when what belongs to it is written; a PERSISTENT one is written itself.

        One that is not PERSISTENT is written only for want of room in memory, and forgotten when the broker starts again.
        """
        shelf = self.shelf
        due = envelope.delivery_time
        delayed = due > envelope.timestamp and due > self.now_ms()
        passing = envelope.delivery_mode != PERSISTENT
        if shelf is None or (passing and delayed):
            super().plan(envelope, sender, filing)
            return
        order = self.next_order()
        if passing and not self.waiting.full(envelope.priority):
            kept = Message(envelope, group_of(envelope) if envelope.properties else None)
            kept.order = order
            filing.then(lambda: arrive(self, kept))
            return
        key = shelf.delayed_key(order) if delayed else shelf.key(envelope.priority, order)
        message = StoredMessage(envelope, key, order)
        shelf.add(filing, message, due=due if delayed else None)
        if delayed:
            schedule = shelf.store.schedule
            schedule.expects(key)
            filing.otherwise(lambda: schedule.lost(key))
            filing.then(lambda: _delay(self, shelf, message, due))
        else:
            filing.then(lambda: arrive(self, message))


def stored_queue(broker: Broker, name: str, shelf: Shelf) -> Queue:
    """Return a queue that is kept in the store."""
    from jmsapi_inproc.store_waiting import StoredWaiting

    waiting = StoredWaiting(shelf)
    queue = StoredQueue(broker, name, None, shelf, waiting)
    if shelf.known:
        queue.restored(max(waiting.restore(), shelf.last_delayed()))
    broker.shelved(shelf.place.number, queue)
    return queue


def arrive(queue: Queue, message: Message) -> None:
    """Put a message that is written into its queue."""
    if not queue.gone:
        queue.waiting.lent(message)
        if message.order < queue.latest:
            queue.look_again(message)
        queue.put(message)


def forget(queue: Queue, message: Message, filing: Filing) -> None:
    """Have the row of a message taken out."""
    if isinstance(message, StoredMessage):
        filing.delete(message.key)
        filing.then(lambda: queue.waiting.forget(message))


def recount(message: Message, queue: Queue) -> None:
    """Write how often a message was handed out, if it is kept."""
    if isinstance(message, StoredMessage) and queue.shelf is not None:
        queue.shelf.store.recount(message)


def _delay(queue: Queue, shelf: Shelf, message: StoredMessage, due: int) -> None:
    schedule = shelf.store.schedule
    if queue.gone:
        schedule.lost(message.key)
    elif schedule.admits(due, message.key):
        queue.delay(message)
        schedule.trim()
