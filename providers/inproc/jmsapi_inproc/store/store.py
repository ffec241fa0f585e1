"""The store of a broker: its queues and subscriptions in the file, with their numbers.

Every method is called under the broker's lock, if its docstring does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from jmsapi.spi import ConsumerSpec, ErrorKind, ProviderError
from jmsapi_inproc.messages import StoredMessage
from jmsapi_inproc.queue import BrokerQueue, DeliveryContext
from jmsapi_inproc.store.delayed import DelayedMessages
from jmsapi_inproc.store.file import UNREADABLE, StoreFile, refusal
from jmsapi_inproc.store.keys import MOST_QUEUES
from jmsapi_inproc.store.paging import PagedBacklog
from jmsapi_inproc.store.partition import Partition
from jmsapi_inproc.store.prepared import PreparedBranches
from jmsapi_inproc.store.reader import Reader
from jmsapi_inproc.store.recovery import CLOSED_IN_ORDER, EXPIRED, clean_up
from jmsapi_inproc.store.rows import QueueRecord, record_of
from jmsapi_inproc.store.writer import Writer
from jmsapi_inproc.subscriptions import SubscriptionIdentity
from jmsapi_inproc.write_batch import WriteBatch

__all__ = ["MessageStore", "StoreHost", "open_store"]

_SWEEP_MS: Final = 10_000
"""How often expired messages are deleted from the file."""


class StoreHost(Protocol):
    """The broker, as its store sees it."""

    context: DeliveryContext

    def effects(self) -> AbstractContextManager[None]:
        """Hold the lock and collect deliveries."""
        ...

    def broken(self, cause: ProviderError) -> None:
        """The file can be used no more: end everything, so that it can be opened again. Not under the lock."""

    def broken_soon(self, cause: ProviderError) -> None:
        """The same, from under the lock."""


class MessageStore:
    """An open store.

    Args:
        file: Its file.
        host: Its broker.
    """

    def __init__(self, file: StoreFile, host: StoreHost) -> None:
        self.file = file
        self._context = host.context
        self._clock = host.context.clock
        self.writer = Writer(file, host)
        self.closing = False
        """The broker closes, and what is in the file stays there."""
        self._queues: dict[int, BrokerQueue] = {}
        """The queues by their number in the file."""
        self.reader = Reader(file, host.broken_soon)
        self.delayed = DelayedMessages(self.reader, host.context.scheduler, self._queues.get)
        self._swept = 0
        self._next_number = 1
        clean_up(file.writer)
        found = self.reader.query(f"SELECT {', '.join(QueueRecord._fields[1:])}, id FROM place")
        self._records = [record_of(row) for row in found]
        self._taken = {record.number for record in self._records}
        self.branches = PreparedBranches(self, self.reader, self._queues.get)

    def restored(self) -> Iterator[tuple[QueueRecord, BrokerQueue]]:
        """Return the queues and subscriptions of the file."""
        for record in self._records:
            yield record, self._open(Partition(self, record, known=True))

    def queue(self, name: str) -> BrokerQueue:
        """Make a new queue."""
        return self._open(self._new(QueueRecord(0, False, name, None, None, False, False, None, False)))

    def subscription(self, topic: str, key: SubscriptionIdentity, spec: ConsumerSpec) -> BrokerQueue:
        """Make the queue of a new durable subscription."""
        record = QueueRecord(0, True, topic, key.client_id, key.name, spec.shared, spec.no_local, spec.selector, False)
        return self._open(self._new(record))

    def submit(self, batch: WriteBatch) -> bool:
        """Queue a batch for writing; an empty batch is applied at once, which is answered by False."""
        if not batch.operations:
            batch.finish()
            return False
        now = self._clock.now_ms()
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            expired = WriteBatch(deferrable=True)
            expired.sql(EXPIRED, now)
            self.writer.submit(expired)
        self.writer.submit(batch)
        return True

    def stop(self) -> None:
        """Leave in the file what is there, because the broker closes."""
        self.closing = True
        self.delayed.stop()

    def close_in_order(self, queues: Iterable[BrokerQueue]) -> None:
        """Write what is only in memory, because the broker closes properly."""
        self.stop()
        batch = WriteBatch(deferrable=True)
        for queue in queues:
            for message in queue.in_memory():
                if queue.storage is not None and not isinstance(message, StoredMessage):
                    queue.storage.move_in(batch, message, queue)
        Partition(self, QueueRecord(CLOSED_IN_ORDER, False, "", None, None, False, False, None, False), known=False).create(batch)
        self.writer.submit(batch)

    def free(self, record: QueueRecord) -> None:
        """Let another queue have the number of this one, of which nothing is left."""
        self._taken.discard(record.number)
        self._queues.pop(record.number, None)

    def close(self, timeout: float) -> None:
        """Write what waits and close the file. Not under the lock."""
        if self.writer.rest(timeout):
            self.file.close()

    def _open(self, partition: Partition) -> BrokerQueue:
        backlog = PagedBacklog(partition)
        queue = BrokerQueue(self._context, partition.record.name, None, partition, backlog)
        if partition.known:
            queue.restored(max(backlog.restore(), partition.last_delayed()))
        self._queues[partition.record.number] = queue
        return queue

    def _new(self, record: QueueRecord) -> Partition:
        if len(self._taken) >= MOST_QUEUES - 1:
            raise ProviderError(
                ErrorKind.RESOURCE,
                f"the store {self.file.path} has {len(self._taken)} queues and durable subscriptions, and room for no more; "
                "empty queues go when it is opened again",
            )
        number = self._next_number
        while number in self._taken:
            number = number % (MOST_QUEUES - 1) + 1
        self._taken.add(number)
        self._next_number = number % (MOST_QUEUES - 1) + 1
        return Partition(self, record._replace(number=number), known=False)


def open_store(path: Path, host: StoreHost, restore: Callable[[MessageStore], None]) -> MessageStore:
    """Open the store of a broker.

    Args:
        path: The file.
        host: The broker.
        restore: Takes over what is in the store. If that fails the file is closed unchanged.
    Raises:
        ProviderError: IN_USE when another process has the file; CONNECTION when it cannot be used.
    """
    file = StoreFile(path)
    try:
        store = MessageStore(file, host)
        restore(store)
        store.delayed.load()
    except UNREADABLE as error:
        file.abandon()
        raise refusal(path, f"it cannot be read: {error}; it is left as it is") from error
    except BaseException:
        file.abandon()
        raise
    return store
