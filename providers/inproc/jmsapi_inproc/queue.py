"""A queue and its consumers, and the invariant that holds between any two calls: no message waits that a consumer with credit
would take. So a new message can go straight to a consumer, and new credit concerns only the consumer that gave it.

Every method is called under the broker's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, cast

from jmsapi.spi import Clock, Delivery, Envelope, Events, Handle, HeaderView
from jmsapi.values import Value
from jmsapi_inproc.backlog import LEVELS, Backlog
from jmsapi_inproc.messages import (
    CONSUMER_SHIFT,
    GONE,
    WAITING,
    CompiledSelector,
    InprocTag,
    QueuedMessage,
    SendingConnection,
    StoredMessage,
    group_of,
)
from jmsapi_inproc.scheduler import Scheduler
from jmsapi_inproc.write_batch import BatchWriter, WriteBatch

__all__ = ["BrokerQueue", "Browser", "DeliveryContext", "QueueConsumer", "QueueStorage"]

MOST_GROUPS: Final = 10_000
"""With more assigned message groups than this, those are forgotten that have no message here or with a consumer."""

_new_delivery = cast("Callable[[type[Delivery], tuple[object, ...]], Delivery]", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""Builds a Delivery without the Python code of a named tuple's constructor, in half the time."""
_END: Final[tuple[None, int]] = (None, 0)


class DeliveryContext:
    """What all queues of a broker share: its clock, its scheduler, and deliveries that are being collected into batches."""

    __slots__ = ("batches", "clock", "scheduler")
    scheduler: Scheduler[BrokerQueue]

    def __init__(self, clock: Clock, fire: Callable[[], None]) -> None:
        self.clock = clock
        self.scheduler = Scheduler(clock, fire)
        self.batches: dict[QueueConsumer, list[Delivery]] | None = None
        """While several messages are added at once: deliveries by consumer, reported at the end."""

    @contextmanager
    def batched(self) -> Generator[None, None, None]:
        """Collect the deliveries made inside, and report them at the end, one batch for each consumer."""
        if self.batches is not None:
            yield
            return
        batches: dict[QueueConsumer, list[Delivery]] = {}
        self.batches = batches
        try:
            yield
        finally:
            self.batches = None
            for consumer, deliveries in batches.items():
                consumer.events.on_deliveries(consumer, deliveries)


class QueueStorage(Protocol):
    """A queue's part of the store."""

    known: bool
    """Whether the file has the queue or subscription."""
    grouped: bool
    """Whether there ever was a message that belongs to a group."""

    @property
    def writer(self) -> BatchWriter:
        """What writes batches."""
        ...

    def stage(self, queue: BrokerQueue, envelope: Envelope, batch: WriteBatch) -> bool:
        """Write a message with the batch and add it to the queue once it is written; False: it is kept in memory only."""
        ...

    def create(self, batch: WriteBatch) -> None:
        """Add the queue or subscription to the file."""

    def remove(self, batch: WriteBatch) -> None:
        """Remove the queue or subscription from the file; its messages follow when the queue is closed."""

    def recount(self, message: StoredMessage) -> None:
        """Write how many deliveries of a message have failed."""

    def drop(self, message: StoredMessage) -> None:
        """Delete a message that expired."""

    def due(self, message: StoredMessage, queue: BrokerQueue) -> None:
        """Add a delayed message to its queue, now that its delivery time has come."""

    def closed(self, delayed: Iterable[QueuedMessage]) -> None:
        """Erase the messages of a queue that was closed; ``delayed`` are those of them that the scheduler has in memory."""

    def move_in(self, batch: WriteBatch, message: QueuedMessage, queue: BrokerQueue) -> StoredMessage:
        """Write a message that was in memory only, and return the one that replaces it once that is done."""
        ...


class QueueConsumer(Handle):
    """Takes messages from one queue, which may be that of a subscription."""

    __slots__ = ("closed", "credit", "events", "in_flight", "last", "on_closed", "queue", "scanned", "selector", "sender")

    def __init__(
        self,
        sender: SendingConnection,
        number: int,
        queue: BrokerQueue,
        events: Events,
        *,
        selector: CompiledSelector | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        self.sender = sender
        """Its connection, which is the sender of what it rejects."""
        self.queue = queue
        self.events = events
        self.selector = selector
        self.on_closed = on_closed
        """Called after it has left its queue: the end of a subscription that lives as long as its consumers."""
        self.credit = 0
        self.last = number << CONSUMER_SHIFT
        self.in_flight: dict[int, QueuedMessage] = {}
        """Delivered and not settled, by tag."""
        self.scanned: list[int] = []
        """For each priority the order number up to which it has looked; empty while it takes whatever is first."""
        self.closed = False

    @property
    def number(self) -> int:
        """Its number in the broker."""
        return self.last >> CONSUMER_SHIFT

    def deliver(self, message: QueuedMessage) -> Delivery:
        """Make a delivery of a message, which stays in flight until it is settled."""
        number = self.last + 1
        self.last = number
        tag = InprocTag(number)
        self.in_flight[tag] = message
        return _new_delivery(Delivery, (tag, message.envelope, message.count + 1))


class Browser(Handle):
    """Shows what waited in a queue when it was opened."""

    __slots__ = ("closed", "events", "number", "rest")

    def __init__(self, number: int, events: Events, rest: Iterator[tuple[Envelope, int]]) -> None:
        self.number = number
        self.events = events
        self.rest = rest
        self.closed = False

    def show(self, limit: int, now: int) -> list[Delivery]:
        """Return the next deliveries, at most ``limit``, without those that have expired."""
        shown: list[Delivery] = []
        while len(shown) < limit:
            envelope, count = next(self.rest, _END)
            if envelope is None:
                break
            if not 0 < envelope.expiration <= now:
                shown.append(Delivery(InprocTag(self.number << CONSUMER_SHIFT), envelope, count))
        return shown


class BrokerQueue:
    """Messages in order of priority and age, distributed to consumers in turn.

    Args:
        context: Of the broker.
        name: Of the queue, or of the subscription's topic.
        owner: The connection of a temporary queue.
        storage: Its part of the store, if it is kept there.
        backlog: Where messages wait; by default in memory.
    """

    __slots__ = (
        "_context",
        "_delayed",
        "_grouped",
        "_groups",
        "_most_groups",
        "_order",
        "_ready",
        "_selective",
        "backlog",
        "consumers",
        "enlisted",
        "gone",
        "name",
        "owner",
        "storage",
    )

    def __init__(
        self,
        context: DeliveryContext,
        name: str,
        owner: SendingConnection | None = None,
        storage: QueueStorage | None = None,
        backlog: Backlog | None = None,
    ) -> None:
        self._context = context
        self.name = name
        self.owner = owner
        self.gone = False
        self.storage = storage
        self.backlog = Backlog() if backlog is None else backlog
        self.consumers: list[QueueConsumer] = []
        self.enlisted = 0
        """Messages acknowledged in transactions that are still open."""
        self._ready: deque[QueueConsumer] = deque()
        """The consumers with credit, the next in turn first."""
        self._selective = 0
        """How many consumers have selectors."""
        self._groups: dict[Value, QueueConsumer] = {}
        self._most_groups = MOST_GROUPS
        self._grouped = 0
        """How many waiting messages belong to a group."""
        self._order = 0
        self._delayed = 0

    def publish(self, envelope: Envelope, sender: SendingConnection) -> None:
        """Add a message now or at its delivery time."""
        message = QueuedMessage(envelope, group_of(envelope) if envelope.properties else None)
        due = envelope.delivery_time
        # Most often the two times are equal, and reading the clock costs more than comparing them.
        if due > envelope.timestamp and due > self._context.clock.now_ms():
            self.delay(message)
        else:
            self.put(message)

    def stage(self, envelope: Envelope, sender: SendingConnection, batch: WriteBatch) -> None:
        """Add a message once a batch is written, in a stored broker; what has to be kept is written with the batch."""
        if self.storage is None or not self.storage.stage(self, envelope, batch):
            batch.on_written(lambda: None if self.gone else self.publish(envelope, sender))

    def delay(self, message: QueuedMessage) -> None:
        """Add a message when its delivery time has come."""
        self._delayed += 1
        self._context.scheduler.delay(message, self)

    def evict_delayed(self, message: QueuedMessage) -> None:
        """Drop a delayed message from memory; its row stays in the file."""
        self._delayed -= 1
        message.state = GONE
        self._context.scheduler.forget()

    def now_ms(self) -> int:
        """Return the broker's time in milliseconds since 1970."""
        return self._context.clock.now_ms()

    def next_order(self) -> int:
        """Assign the order number of a message that is about to be written."""
        self._order += 1
        return self._order

    @property
    def latest(self) -> int:
        """The highest order number that was assigned."""
        return self._order

    def restored(self, order: int) -> None:
        """Continue from the highest order number in the file."""
        self._order = order

    def arrive(self, message: QueuedMessage) -> None:
        """Add a message that has been written, though later ones may be here already."""
        if not self.gone:
            self.backlog.mark_in_flight(message)
            if message.order < self._order:
                self.rewind(message)
            self.put(message)

    def put(self, message: QueuedMessage) -> None:
        """Deliver a new message to a consumer with credit, or let it wait."""
        if not message.order:
            order = self._order + 1
            self._order = order
            message.order = order
        envelope = message.envelope
        if 0 < envelope.expiration <= self._context.clock.now_ms():
            self._dropped(message)
            return
        ready = self._ready
        if ready:
            if message.group is None and not self._selective:
                consumer = ready[0]
            else:
                found = self._choose(message)
                if found is None:
                    self._wait(message)
                    return
                consumer = found
            delivery = consumer.deliver(message)
            consumer.credit -= 1
            if not consumer.credit:
                ready.popleft()
            elif len(ready) > 1:
                ready.rotate(-1)
            batches = self._context.batches
            if batches is None:
                consumer.events.on_deliveries(consumer, (delivery,))
            else:
                batches.setdefault(consumer, []).append(delivery)
        else:
            self._wait(message)

    def due(self, message: QueuedMessage) -> None:
        """Add a delayed message whose delivery time has come."""
        self._delayed -= 1
        message.state = GONE
        if self.storage is not None and isinstance(message, StoredMessage):
            self.storage.due(message, self)
        else:
            self.put(message)

    def expire(self, message: QueuedMessage) -> None:
        """Remove a waiting message that has expired."""
        self.backlog.remove(message)
        message.state = GONE
        if message.group is not None:
            self._grouped -= 1
        self._dropped(message)

    def attach(self, consumer: QueueConsumer) -> None:
        """Add a consumer. It has no credit yet."""
        self.consumers.append(consumer)
        if consumer.selector is not None:
            self._selective += 1

    def detach(self, consumer: QueueConsumer) -> None:
        """Remove a consumer; what it has in flight goes back to its position, uncounted."""
        self.consumers.remove(consumer)
        self.stop(consumer)
        if consumer.selector is not None:
            self._selective -= 1
        if self._groups:
            self._groups = {group: owner for group, owner in self._groups.items() if owner is not consumer}
            for other in self.consumers:
                other.scanned = []
        in_flight = consumer.in_flight
        consumer.in_flight = {}
        self.return_messages(in_flight.values())
        self._dispatch()

    def stop(self, consumer: QueueConsumer) -> None:
        """Withdraw all credit of a consumer."""
        if consumer.credit:
            consumer.credit = 0
            self._ready.remove(consumer)

    def allow(self, consumer: QueueConsumer, n: int) -> None:
        """Give a consumer credit, and deliver what waits for it."""
        if n < 1:
            return
        if not consumer.credit:
            self._ready.append(consumer)
        consumer.credit += n
        if self.backlog:
            deliveries = self._take(consumer, consumer.credit)
            if deliveries:
                consumer.events.on_deliveries(consumer, deliveries)

    def return_messages(self, messages: Iterable[QueuedMessage]) -> None:
        """Put messages that were in flight back at their positions; ``dispatch`` delivers them again."""
        if self.gone:
            return
        for message in messages:
            if self._expired(message):
                self._dropped(message)
                continue
            self.backlog.insert(message)
            self._added(message)
            self.rewind(message)

    def redeliver(self, message: QueuedMessage) -> None:
        """Return one message whose delivery failed, and deliver it again."""
        message.count += 1
        self.return_messages((message,))
        self.dispatch()

    def rewind(self, message: QueuedMessage) -> None:
        """Have consumers that have scanned past a message look at it again."""
        for consumer in self.consumers:
            if consumer.scanned:
                level = message.envelope.priority
                consumer.scanned[level] = min(consumer.scanned[level], message.order - 1)

    def dispatch(self) -> None:
        """Deliver what consumers with credit would take."""
        if self.backlog and self._ready:
            self._dispatch()

    def forget(self, message: QueuedMessage, batch: WriteBatch) -> None:
        """Delete a message from the file, if it has a row there."""
        if isinstance(message, StoredMessage):
            batch.delete(message.key)
            batch.on_written(lambda: self.backlog.row_removed(message))

    def recount(self, message: QueuedMessage) -> None:
        """Write how many deliveries of a message have failed, if it has a row in the file."""
        if self.storage is not None and isinstance(message, StoredMessage):
            self.storage.recount(message)

    def in_memory(self) -> list[QueuedMessage]:
        """Return the messages that are in memory, delayed ones included."""
        return [*self.backlog.in_memory(), *self._delayed_in_memory()]

    def _delayed_in_memory(self) -> list[QueuedMessage]:
        return self._context.scheduler.delayed(self)

    def close(self) -> None:
        """Drop all messages; none can be added any more."""
        if self.gone:
            return
        delayed: list[QueuedMessage] = [] if self.storage is None else self._delayed_in_memory()
        self.gone = True
        entries = self._delayed
        for message in self.backlog.in_memory():
            message.state = GONE
            entries += message.timed
        self._context.scheduler.abandon(entries)
        self.backlog = Backlog()
        if self.storage is not None:
            self.storage.closed(delayed)
        self._groups.clear()

    def _wait(self, message: QueuedMessage) -> None:
        self.backlog.append(message)
        self._added(message)

    def _added(self, message: QueuedMessage) -> None:
        if message.group is not None:
            self._grouped += 1
        if message.envelope.expiration and message.state is WAITING:
            self._context.scheduler.expire(message, self)

    def _removed(self, message: QueuedMessage) -> bool:
        """Account for a message that left the backlog; return whether it can be delivered."""
        message.state = GONE
        if message.group is not None:
            self._grouped -= 1
        if message.timed:
            self._context.scheduler.forget()
        if self._expired(message):
            self._dropped(message)
            return False
        return True

    def _dropped(self, message: QueuedMessage) -> None:
        if self.storage is not None and isinstance(message, StoredMessage):
            self.storage.drop(message)

    def _expired(self, message: QueuedMessage) -> bool:
        expiration = message.envelope.expiration
        return expiration != 0 and expiration <= self._context.clock.now_ms()

    def _choose(self, message: QueuedMessage) -> QueueConsumer | None:
        """Find the consumer for a new message and make it the next in turn."""
        ready = self._ready
        for index, consumer in enumerate(ready):
            if self._suits(consumer, message):
                if index:
                    del ready[index]
                    ready.appendleft(consumer)
                return consumer
        return None

    def _suits(self, consumer: QueueConsumer, message: QueuedMessage) -> bool:
        """Return whether a consumer may take a message; if so, a new group is assigned to it."""
        group = message.group
        if group is not None:
            owner = self._groups.get(group)
            if owner is not None and owner is not consumer:
                return False
        if consumer.selector is not None and not consumer.selector.matches(HeaderView(message.envelope)):
            return False
        if group is not None:
            self._assign(group, consumer)
        return True

    def _assign(self, group: Value, consumer: QueueConsumer) -> None:
        if len(self._groups) >= self._most_groups and group not in self._groups:
            alive = {message.group for one in self.consumers for message in one.in_flight.values()}
            alive.update(message.group for message in self.backlog)
            self._groups = {name: owner for name, owner in self._groups.items() if name in alive}
            self._most_groups = max(MOST_GROUPS, 2 * len(self._groups))
        self._groups[group] = consumer

    def _take(self, consumer: QueueConsumer, limit: int) -> list[Delivery]:
        """Take waiting messages for a consumer, at most its credit."""
        deliveries: list[Delivery] = []
        backlog = self.backlog
        while backlog and len(deliveries) < limit:
            if consumer.selector is None and not self._grouped and not (self.storage is not None and self.storage.grouped):
                message = backlog.pop()
                if self._removed(message):
                    deliveries.append(consumer.deliver(message))
                continue
            consumer.scanned = consumer.scanned or [0] * LEVELS
            found = backlog.select(limit - len(deliveries), lambda message: self._suits(consumer, message), consumer.scanned)
            if not found:
                break
            deliveries += [consumer.deliver(message) for message in found if self._removed(message)]
        if deliveries:
            consumer.credit -= len(deliveries)
            if not consumer.credit:
                self._ready.remove(consumer)
        return deliveries

    def _dispatch(self) -> None:
        """Give the consumers with credit one message each in turn, until none wants more."""
        batches: dict[QueueConsumer, list[Delivery]] = {}
        idle = 0
        while self.backlog and idle < len(self._ready):
            consumer = self._ready[0]
            deliveries = self._take(consumer, 1)
            if deliveries:
                batches.setdefault(consumer, []).extend(deliveries)
                idle = 0
            else:
                idle += 1
            if consumer.credit:
                self._ready.rotate(-1)
        for consumer, batch in batches.items():
            consumer.events.on_deliveries(consumer, batch)
