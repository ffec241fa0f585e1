"""One queue's part of a store: the keys of its messages, and how they are written, read and erased.

Every method is called under the broker's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from jmsapi.spi import PERSISTENT, Envelope
from jmsapi_inproc.messages import DELAYED, QueuedMessage, StoredMessage, group_of
from jmsapi_inproc.queue import BrokerQueue
from jmsapi_inproc.store.delayed import DelayedMessages
from jmsapi_inproc.store.keys import DELAYED_LEVEL, LAST_ORDER, ORDER_BITS, QUEUE_SHIFT
from jmsapi_inproc.store.reader import Reader
from jmsapi_inproc.store.rows import HEAVY, QueueRecord, checksum_change, record_checksum, row_of, row_of_record, weight
from jmsapi_inproc.write_batch import BatchWriter, WriteBatch

__all__ = ["PAGE", "Partition", "PartitionOwner"]

PAGE: Final = 256
"""The most messages that are read at one time."""
_ERASE: Final = "DELETE FROM message WHERE key IN (SELECT key FROM message WHERE key > ? AND key < ? LIMIT ?)"
_CHANGE_CHECKSUM: Final = "checksum = (checksum | ?) - (checksum & ?)"
"""Changes the checksum by ``checksum_change``, given twice: SQLite has no operator for XOR."""
_ALL_ERASED: Final = "DELETE FROM erasing WHERE id = ? AND NOT EXISTS (SELECT 1 FROM message WHERE key > ? AND key < ?)"
_ERASED: Final = 1000
"""The most messages of a queue that are erased at one time."""


class PartitionOwner(BatchWriter, Protocol):
    """The store, as its partitions see it."""

    closing: bool
    """The broker closes, and what is in the file stays there."""
    reader: Reader
    delayed: DelayedMessages

    def free(self, record: QueueRecord) -> None:
        """Let another queue have the number of this one, of which nothing is left."""


class Partition:
    """One queue's part of the store.

    Args:
        store: The store.
        record: The queue or durable subscription.
        known: Whether the file has it.
    """

    __slots__ = ("_base", "_created_in", "_grouped_in", "_grouped_known", "_store", "grouped", "known", "record")

    def __init__(self, store: PartitionOwner, record: QueueRecord, *, known: bool) -> None:
        self._store = store
        self.record = record
        self.known = known
        self.grouped = record.grouped
        """Whether there ever was a message that belongs to a group."""
        self._base = record.number << QUEUE_SHIFT
        self._created_in: WriteBatch | None = None
        self._grouped_in: WriteBatch | None = None
        self._grouped_known = record.grouped

    @property
    def writer(self) -> BatchWriter:
        """What writes batches."""
        return self._store

    def key(self, level: int, order: int) -> int:
        """Return the key of a message; a higher priority comes first."""
        return self._base | (9 - level) << ORDER_BITS | order

    def delayed_key(self, order: int) -> int:
        """Return the key of a message whose delivery time has not come."""
        return self._base | DELAYED_LEVEL << ORDER_BITS | order

    def create(self, batch: WriteBatch) -> None:
        """Add the queue or subscription to the file."""
        row = row_of_record(self.record)
        batch.sql("INSERT OR IGNORE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row, record_checksum(row))
        batch.on_written(self._created)

    def remove(self, batch: WriteBatch) -> None:
        """Remove the queue or subscription from the file; its messages follow when the queue is closed."""
        batch.sql("DELETE FROM place WHERE id = ?", self.record.number)
        # Tells, should the process end first, that the messages without a queue are no damage.
        batch.sql("INSERT OR IGNORE INTO erasing VALUES (?)", self.record.number)

    def stage(self, queue: BrokerQueue, envelope: Envelope, batch: WriteBatch) -> bool:
        """Write a message with the batch and add it to the queue once it is written; False: it is kept in memory only.

        A message that is not PERSISTENT is written only for want of room in memory, and forgotten when the broker starts again.
        """
        due = envelope.delivery_time
        delayed = due > envelope.timestamp and due > queue.now_ms()
        persistent = envelope.delivery_mode == PERSISTENT
        if not persistent and delayed:
            return False
        order = queue.next_order()
        if not persistent and not queue.backlog.full(envelope.priority):
            kept = QueuedMessage(envelope, group_of(envelope) if envelope.properties else None)
            kept.order = order
            batch.on_written(lambda: queue.arrive(kept))
            return True
        key = self.delayed_key(order) if delayed else self.key(envelope.priority, order)
        message = StoredMessage(envelope, key, order)
        self._insert(batch, message, due=due if delayed else None)
        if delayed:
            expected = self._store.delayed
            expected.expect(key)
            batch.on_failed(lambda: expected.lost(key))
            batch.on_written(lambda: self._delay(queue, message, due))
        else:
            batch.on_written(lambda: queue.arrive(message))
        return True

    def read(self, level: int, after: int, end: int) -> tuple[list[StoredMessage], bool]:
        """Return the messages of a priority whose orders are above ``after`` and not above ``end``, and whether that is all.

        At most a page; large bodies make the page shorter.
        """
        base = self.key(level, 0)
        found: list[StoredMessage] = []
        room = PAGE * HEAVY >> 4
        for row in self._store.reader.rows(base + after, base + end, PAGE):
            message = self._store.reader.message_of(row)
            found.append(message)
            room -= weight(message.envelope.body)
            if room < 0:
                return found, False
        return found, len(found) < PAGE

    def last(self, level: int) -> int:
        """Return the highest order of a priority; 0 if there is none."""
        base = self.key(level, 0)
        return self._store.reader.highest(base, base + LAST_ORDER) - base

    def last_delayed(self) -> int:
        """Return the highest order of a delayed message; 0 if there is none."""
        base = self.delayed_key(0)
        return self._store.reader.highest(base, base + LAST_ORDER) - base

    def count(self, level: int, after: int, end: int) -> int:
        """Return how many messages there are in a range of orders."""
        base = self.key(level, 0)
        return self._store.reader.count(base + after, base + end)

    def move_in(self, batch: WriteBatch, message: QueuedMessage, queue: BrokerQueue) -> StoredMessage:
        """Write a message that was in memory only, and return the one that replaces it once that is done."""
        delayed = message.state is DELAYED
        order = message.order or queue.next_order()
        key = self.delayed_key(order) if delayed else self.key(message.envelope.priority, order)
        kept = StoredMessage(message.envelope, key, order, message.count)
        self._insert(batch, kept, due=message.envelope.delivery_time if delayed else None)
        return kept

    def recount(self, message: StoredMessage) -> None:
        """Write how many deliveries of a message have failed."""
        batch = WriteBatch(deferrable=True)
        change = checksum_change((message.key, None, message.stored_count), (message.key, None, message.count))
        batch.sql(f"UPDATE message SET count = ?, {_CHANGE_CHECKSUM} WHERE key = ?", message.count, change, change, message.key)
        message.stored_count = message.count
        self._store.submit(batch)

    def drop(self, message: StoredMessage) -> None:
        """Delete a message that expired."""
        batch = WriteBatch(deferrable=True)
        batch.delete(message.key)
        self._store.submit(batch)

    def due(self, message: StoredMessage, queue: BrokerQueue) -> None:
        """Add a delayed message to its queue, where it gets another key, now that its delivery time has come."""
        delayed, old = self._store.delayed, message.key
        message.order = queue.next_order()
        message.key = self.key(message.envelope.priority, message.order)
        batch = WriteBatch(deferrable=True)
        count = message.stored_count
        change = checksum_change((old, message.envelope.delivery_time, count), (message.key, None, count))
        batch.sql(f"UPDATE message SET key = ?, due = NULL, {_CHANGE_CHECKSUM} WHERE key = ?", message.key, change, change, old)
        batch.on_written(lambda: delayed.moved(old))
        batch.on_written(lambda: queue.arrive(message))
        delayed.leaves(old)
        delayed.left()
        self._store.submit(batch)

    def closed(self, delayed: Iterable[QueuedMessage]) -> None:
        """Erase the messages of a queue that was closed; ``delayed`` are those of them that the scheduler has in memory."""
        self._store.delayed.left(sum(isinstance(message, StoredMessage) for message in delayed))
        if not self._store.closing:
            self._erase()

    def _insert(self, batch: WriteBatch, message: StoredMessage, *, due: int | None = None) -> None:
        if not self.known and self._created_in is not batch and not self.record.topic:
            # A subscription, in contrast, is written for the consumer that asks for it.
            self._created_in = batch
            self.create(batch)
        if message.group is not None and not self._grouped_known:
            self.grouped = True
            if self._grouped_in is not batch:
                self._grouped_in = batch
                changed = record_checksum(row_of_record(self.record._replace(grouped=True)))
                batch.sql("UPDATE place SET grouped = 1, checksum = ? WHERE id = ?", changed, self.record.number)
                batch.on_written(self._grouped)
        batch.insert(row_of(message.envelope, message.key, due, message.count))

    def _delay(self, queue: BrokerQueue, message: StoredMessage, due: int) -> None:
        delayed = self._store.delayed
        if queue.gone:
            delayed.lost(message.key)
        elif delayed.admits(due, message.key):
            queue.delay(message)
            delayed.trim()

    def _erase(self) -> None:
        """Erase the queue with all its messages, a part at a time, so that it needs little time and room at once."""
        self.known = False
        batch = WriteBatch(deferrable=True)
        batch.sql(_ERASE, self._base, self._base + (1 << QUEUE_SHIFT), _ERASED)
        self.remove(batch)
        batch.sql(_ALL_ERASED, self.record.number, self._base, self._base + (1 << QUEUE_SHIFT))
        batch.on_written(self._erased)
        self._store.submit(batch)

    def _erased(self) -> None:
        if self._store.closing:
            return
        if self._store.reader.highest(self._base, self._base + (1 << QUEUE_SHIFT) - 1) > self._base:
            self._erase()
        else:
            self._store.free(self.record)

    def _created(self) -> None:
        self.known = True
        self._created_in = None

    def _grouped(self) -> None:
        self._grouped_known = True
        self._grouped_in = None
