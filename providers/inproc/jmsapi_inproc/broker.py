"""A broker inside the process: queues, topics and subscriptions by name, shared by its connections.

One lock guards all of it. The lock is reentrant: a signal handler or finaliser that closes a connection can come in the middle of
a call of the same thread, and must not wait for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi.spi import Address, Clock, ConsumerSpec, DestinationKind, Envelope, ErrorKind, Events, HeaderView, ProviderError
from jmsapi_inproc.lock import BrokerLock
from jmsapi_inproc.messages import CompiledSelector, compiled
from jmsapi_inproc.queue import BrokerQueue, Browser, DeliveryContext, QueueConsumer
from jmsapi_inproc.subscriptions import BrokerTopic, NamedSubscriptions, SubscriptionIdentity, TopicSubscription
from jmsapi_inproc.xa.branches import Branches

if TYPE_CHECKING:
    from jmsapi_inproc.store.store import MessageStore

__all__ = ["CLOSE_S", "BrokerClient", "InProcessBroker"]

TEMPORARY: Final = "jmsapi-temporary."
"""The names of all temporary destinations begin with this, and no other names do."""
CLOSE_S: Final = 30.0
"""How long closing a store waits for what is still being written, in seconds."""


class BrokerClient(Protocol):
    """A connection, as its broker sees it."""

    @property
    def client_id(self) -> str | None:
        """Its client id."""
        ...

    def sever(self, why: str | None = None) -> None:
        """End all handles; called under the broker's lock."""

    def report_lost(self, cause: ProviderError) -> None:
        """Report to the core that the connection is lost."""


class InProcessBroker:
    """Everything that lives under one broker name. The caller of a method holds ``lock``, unless the method says otherwise.

    Args:
        name: A word; of a stored broker the file.
        clock: Its time.
        on_broken: Told, not under the lock, that the store has failed: the broker has to be ended.
    """

    def __init__(self, name: str | Path, clock: Clock, on_broken: Callable[[InProcessBroker, ProviderError], object]) -> None:
        self.name = name
        self.lock = BrokerLock()
        self.context = DeliveryContext(clock, self._fire)
        self.consumers: dict[int, QueueConsumer] = {}
        self.connections: set[BrokerClient] = set()
        self.subscriptions = NamedSubscriptions(self)
        self.branches = Branches(self.context, self.resolve)
        self.store: MessageStore | None = None
        self.process = os.getpid()
        self._on_broken = on_broken
        self._queues: dict[str, BrokerQueue] = {}
        self._topics: dict[str, BrokerTopic] = {}
        self._numbers = 0
        self._word = os.urandom(8).hex()
        if isinstance(name, Path):
            # Imported here, because a broker in memory needs no SQLite.
            from jmsapi_inproc.store.store import open_store

            self.store = open_store(name, self, self._restore)

    def _restore(self, store: MessageStore) -> None:
        for record, queue in store.restored():
            if not record.topic:
                self._queues[record.name] = queue
                continue
            topic = self._topics.setdefault(record.name, BrokerTopic(record.name))
            spec = ConsumerSpec(
                Address(DestinationKind.TOPIC, topic.name),
                record.selector,
                record.no_local,
                record.subscription,
                durable=True,
                shared=record.shared,
            )
            selector = None if record.selector is None else compiled(record.selector)
            key = SubscriptionIdentity(True, record.client_id, record.subscription or "")
            self.subscriptions.add(TopicSubscription(topic, spec, selector, key, None, queue))
        self.branches.restore(store.branches)

    def new_queue(self, topic: BrokerTopic, key: SubscriptionIdentity | None, spec: ConsumerSpec) -> BrokerQueue:
        """Make the queue of a new subscription, in the store if the subscription is durable and there is a store."""
        if self.store is None or key is None or not key.durable:
            return BrokerQueue(self.context, topic.name)
        return self.store.subscription(topic.name, key, spec)

    @contextmanager
    def effects(self) -> Generator[None, None, None]:
        """Hold the lock and collect deliveries, for the writer of the store."""
        with self.lock, self.context.batched():
            yield

    def broken(self, cause: ProviderError) -> None:
        """The store can be used no more: end everything, so that it can be opened again. Not under the lock."""
        self._on_broken(self, cause)

    def broken_soon(self, cause: ProviderError) -> None:
        """The same, from under the lock."""
        threading.Thread(target=self.broken, args=(cause,), name="jmsapi-store-end", daemon=True).start()

    def join(self, connection: BrokerClient) -> None:
        """Add a connection.

        Raises:
            ProviderError: CLIENT_ID when another connection has this client id.
        """
        client_id = connection.client_id
        if client_id is not None and any(other.client_id == client_id for other in self.connections):
            raise ProviderError(
                ErrorKind.CLIENT_ID, f"client id {client_id!r} is in use by another connection to inproc broker {self.name!r}"
            )
        self.connections.add(connection)
        if len(self.connections) == 1:
            if self.store is not None:
                self.store.writer.wake()
            self.context.scheduler.resume()

    def leave(self, connection: BrokerClient) -> None:
        """Remove a connection, and its temporary destinations with it."""
        self.connections.discard(connection)
        for destination in self.destinations():
            if destination.owner is connection:
                self._drop(destination)
        if not self.connections:
            self.context.scheduler.pause()

    def next_number(self) -> int:
        """Return a number that this broker assigns only once."""
        self._numbers += 1
        return self._numbers

    def resolve(self, address: Address) -> BrokerQueue | BrokerTopic:
        """Return the destination of an address; a queue or topic that does not exist yet is created.

        Raises:
            ProviderError: DESTINATION for a temporary one that does not exist.
        """
        name = address.name
        kind = address.kind
        if kind is DestinationKind.QUEUE or kind is DestinationKind.TEMPORARY_QUEUE:
            queue = self._queues.get(name)
            if queue is not None:
                return queue
            self._must_not_be_temporary(address)
            made = BrokerQueue(self.context, name) if self.store is None else self.store.queue(name)
            return self._queues.setdefault(name, made)
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        self._must_not_be_temporary(address)
        return self._topics.setdefault(name, BrokerTopic(name))

    def create_temporary(self, connection: BrokerClient, *, topic: bool) -> Address:
        """Create a temporary destination of a connection."""
        name = f"{TEMPORARY}{self._word}.{self.next_number()}"
        if topic:
            self._topics[name] = BrokerTopic(name, connection)
            return Address(DestinationKind.TEMPORARY_TOPIC, name)
        self._queues[name] = BrokerQueue(self.context, name, connection)
        return Address(DestinationKind.TEMPORARY_QUEUE, name)

    def remove_temporary(self, connection: BrokerClient, address: Address) -> None:
        """Delete a temporary destination.

        Raises:
            ProviderError: DESTINATION when it does not exist or belongs to another connection; IN_USE when it has consumers.
        """
        destination = self.resolve(address)
        if destination.owner is not connection:
            raise ProviderError(
                ErrorKind.DESTINATION, f"delete {address.name!r}: it is no temporary destination of this connection"
            )
        if destination.consumers if isinstance(destination, BrokerQueue) else destination.subscriptions:
            raise ProviderError(ErrorKind.IN_USE, f"delete {address.name!r}: it has consumers; close them first")
        self._drop(destination)

    def browse(self, events: Events, queue: BrokerQueue, selector: CompiledSelector | None) -> Browser:
        """Make a browser of what waits in a queue now."""
        shown: Iterator[tuple[Envelope, int]] = (
            (message.envelope, message.count + 1)
            for message in queue.backlog.walk(queue.latest)
            if selector is None or selector.matches(HeaderView(message.envelope))
        )
        return Browser(self.next_number(), events, shown)

    def discard(self, cause: ProviderError) -> None:
        """Drop everything and report to the connections that they are lost. Takes the lock itself.

        A stored broker writes what waits for it and closes its file, which keeps everything.
        """
        with self.lock:
            if self.store is not None:
                self.store.stop()
            connections = list(self.connections)
            for connection in connections:
                connection.sever()
            self.connections.clear()
            self.consumers.clear()
            self.context.scheduler.clear()
            self.subscriptions.clear()
            for destination in self.destinations():
                destination.close()
        if self.store is not None:
            self.store.close(CLOSE_S)
        for connection in connections:
            connection.report_lost(cause)

    def destinations(self) -> list[BrokerQueue | BrokerTopic]:
        """Return all queues and topics; the queues of subscriptions are not among them."""
        return [*self._queues.values(), *self._topics.values()]

    def queues(self) -> Iterator[BrokerQueue]:
        """Return all queues, those of subscriptions included."""
        yield from self._queues.values()
        for topic in self._topics.values():
            for subscription in topic.subscriptions:
                yield subscription.queue

    def _drop(self, destination: BrokerQueue | BrokerTopic) -> None:
        if isinstance(destination, BrokerQueue):
            del self._queues[destination.name]
        else:
            del self._topics[destination.name]
        destination.close()

    def _must_not_be_temporary(self, address: Address) -> None:
        if address.kind.is_temporary or address.name.startswith(TEMPORARY):
            raise ProviderError(
                ErrorKind.DESTINATION, f"temporary destination {address.name!r} does not exist: deleted, or its connection closed"
            )

    def _fire(self) -> None:
        with self.effects():
            self.context.scheduler.run()
