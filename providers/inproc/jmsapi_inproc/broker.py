"""A broker inside the process: queues, topics and subscriptions by name, shared by its connections.

One in memory lives as long as the process, one with a store as long as it has connections.

One lock guards all of it. It may be taken again by its holder: a signal handler or finaliser that closes a connection can
come in the middle of a call of the same thread, and must not wait for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jmsapi.spi import Address, Clock, ConsumerSpec, Delivery, DestinationKind, Envelope, ErrorKind, HeaderView, ProviderError
from jmsapi_inproc.agenda import Agenda
from jmsapi_inproc.branches import Branches
from jmsapi_inproc.filing import stored_queue
from jmsapi_inproc.handles import Browser, Consumer, Session
from jmsapi_inproc.messages import Selector
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.topics import SubscriptionKey, Subscriptions, Topic
from jmsapi_inproc.turns import BrokerLock

if TYPE_CHECKING:
    from jmsapi_inproc.connection import InprocProvider
    from jmsapi_inproc.store import Shelf, Store

__all__ = ["Broker", "connect", "discard"]

TEMPORARY: Final = "jmsapi-temporary."
"""Begins the name of every temporary destination, and of no other."""

CLOSE_S: Final = 30.0


class Broker:
    """Everything that lives under one broker name. The caller of a method holds ``lock``, if not said otherwise."""

    def __init__(self, name: str | Path, clock: Clock) -> None:
        self.name = name
        """A word; a stored broker's file."""
        self.clock = clock
        self.lock = BrokerLock()
        self.agenda = Agenda(clock, self._fire)
        self.consumers: dict[int, Consumer] = {}
        self.connections: set[InprocProvider] = set()
        self.subscriptions = Subscriptions(self)
        self.branches = Branches(self)
        self.outbox: dict[Consumer, list[Delivery]] | None = None
        """While several messages are filed at once: deliveries by consumer, said at the end."""
        self._queues: dict[str, Queue] = {}
        self._topics: dict[str, Topic] = {}
        self._numbers = 0
        self._word = os.urandom(8).hex()
        self._shelved: dict[int, Queue] = {}
        """The queues that are kept in the store, by their number there."""
        self.store: Store | None = None
        self.process = os.getpid()
        if isinstance(name, Path):
            self._open_store(name)

    def _open_store(self, path: Path) -> None:
        # Only here: a broker in memory needs no SQLite, and does not wait for it to be loaded.
        import sqlite3

        from jmsapi_inproc.store import Store
        from jmsapi_inproc.store_file import StoreFile, refusal

        file = StoreFile(path)
        try:
            self.store = Store(file, self)
            for shelf in self.store.shelves():
                name = shelf.place.name
                if shelf.place.topic:
                    topic = self._topics.setdefault(name, Topic(name))
                    self.subscriptions.restore(topic, shelf)
                else:
                    self._queues[name] = stored_queue(self, name, shelf)
            self.branches.restore()
            self.store.schedule.load()
        except sqlite3.Error as error:
            file.as_it_is = True
            file.close()
            raise refusal(path, f"it cannot be read: {error}; it is left as it is") from error
        except BaseException:
            file.as_it_is = True
            file.close()
            raise

    def shelved(self, number: int, queue: Queue) -> None:
        """Take note of a queue that is kept in the store."""
        self._shelved[number] = queue

    def unshelved(self, number: int) -> None:
        """Take note that the store has no such number any more."""
        self._shelved.pop(number, None)

    def queue_of(self, number: int) -> Queue | None:
        """Return the queue that has a number in the store."""
        return self._shelved.get(number)

    def shelf_for(self, topic: str, key: SubscriptionKey, spec: ConsumerSpec) -> Shelf | None:
        """Return where a new durable subscription is kept; None in memory."""
        if self.store is None:
            return None
        return self.store.subscription(topic, key, shared=spec.shared, no_local=spec.no_local, selector=spec.selector)

    @contextmanager
    def effects(self) -> Generator[None, None, None]:
        """Hold the lock and gather deliveries, for the writer of the store."""
        with self.lock, self.batched():
            yield

    def broken(self, cause: ProviderError) -> None:
        """The store can be used no more: end everything, so that it can be opened again. Not under the lock."""
        end(self, cause)

    def broken_soon(self, cause: ProviderError) -> None:
        """The same, from under the lock."""
        threading.Thread(target=self.broken, args=(cause,), name="jmsapi-store-end", daemon=True).start()

    def join(self, connection: InprocProvider) -> None:
        """Let a connection in.

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
            self.agenda.resume()

    def leave(self, connection: InprocProvider) -> None:
        """Let a connection go, and its temporary destinations with it."""
        self.connections.discard(connection)
        for place in self.places():
            if place.owner is connection:
                self._drop(place)
        if not self.connections:
            self.agenda.pause()

    def next_number(self) -> int:
        """Return a number that this broker gives only once."""
        self._numbers += 1
        return self._numbers

    def resolve(self, address: Address) -> Queue | Topic:
        """Return what an address names; a queue or topic that is not there yet comes into being.

        Raises:
            ProviderError: DESTINATION for a temporary one that is not there.
        """
        name = address.name
        kind = address.kind
        if kind is DestinationKind.QUEUE or kind is DestinationKind.TEMPORARY_QUEUE:
            queue = self._queues.get(name)
            if queue is not None:
                return queue
            self._must_not_be_temporary(address)
            made = Queue(self, name) if self.store is None else stored_queue(self, name, self.store.queue(name))
            return self._queues.setdefault(name, made)
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        self._must_not_be_temporary(address)
        return self._topics.setdefault(name, Topic(name))

    def create_temporary(self, connection: InprocProvider, *, topic: bool) -> Address:
        """Make a temporary destination of a connection."""
        name = f"{TEMPORARY}{self._word}.{self.next_number()}"
        if topic:
            self._topics[name] = Topic(name, connection)
            return Address(DestinationKind.TEMPORARY_TOPIC, name)
        self._queues[name] = Queue(self, name, connection)
        return Address(DestinationKind.TEMPORARY_QUEUE, name)

    def remove_temporary(self, connection: InprocProvider, address: Address) -> None:
        """Remove a temporary destination.

        Raises:
            ProviderError: DESTINATION when it is not there or not this connection's; IN_USE when it has consumers.
        """
        place = self.resolve(address)
        if place.owner is not connection:
            raise ProviderError(
                ErrorKind.DESTINATION, f"delete {address.name!r}: it is no temporary destination of this connection"
            )
        if place.consumers if isinstance(place, Queue) else place.subscriptions:
            raise ProviderError(ErrorKind.IN_USE, f"delete {address.name!r}: it has consumers; close them first")
        self._drop(place)

    def browse(self, session: Session, queue: Queue, selector: Selector | None) -> Browser:
        """Make a browser of what waits in a queue now."""
        shown: Iterator[tuple[Envelope, int]] = (
            (message.envelope, message.count + 1)
            for message in queue.waiting.walk(queue.latest)
            if selector is None or selector.matches(HeaderView(message.envelope))
        )
        return Browser(session, self.next_number(), queue, session.connection.events, shown)

    @contextmanager
    def batched(self) -> Generator[None, None, None]:
        """Gather the deliveries made inside, and say them at the end, one batch for each consumer."""
        if self.outbox is not None:
            yield
            return
        outbox: dict[Consumer, list[Delivery]] = {}
        self.outbox = outbox
        try:
            yield
        finally:
            self.outbox = None
            for consumer, deliveries in outbox.items():
                consumer.events.on_deliveries(consumer, deliveries)

    def discard(self, cause: ProviderError) -> None:
        """Drop everything and tell the connections that their link is lost. Takes the lock itself.

        A stored broker writes what waits for it and closes its file, in which all stays.
        """
        with self.lock:
            if self.store is not None:
                self.store.closing = True
            connections = list(self.connections)
            for connection in connections:
                connection.sever()
            self.connections.clear()
            self.consumers.clear()
            self.agenda.clear()
            self.subscriptions.clear()
            for place in self.places():
                place.close()
        if self.store is not None:
            self.store.close(CLOSE_S)
        for connection in connections:
            connection.say_lost(cause)

    def places(self) -> list[Queue | Topic]:
        """Return all queues and topics; the queues of subscriptions are not among them."""
        return [*self._queues.values(), *self._topics.values()]

    def _drop(self, place: Queue | Topic) -> None:
        if isinstance(place, Queue):
            del self._queues[place.name]
        else:
            del self._topics[place.name]
        place.close()

    def _must_not_be_temporary(self, address: Address) -> None:
        if address.kind.is_temporary or address.name.startswith(TEMPORARY):
            raise ProviderError(
                ErrorKind.DESTINATION, f"temporary destination {address.name!r} does not exist: deleted, or its connection closed"
            )

    def _fire(self) -> None:
        with self.lock, self.batched():
            self.agenda.run()


_brokers: Final[dict[str | Path, Broker]] = {}
_lock = threading.RLock()
_left_to_parent: Final[list[Broker]] = []
"""Stored brokers that came by a fork. They are kept, so that nothing of them is closed: their files are the parent's."""


def connect(connection: InprocProvider, name: str | Path, clock: Clock) -> Broker:
    """Let a connection into the broker of that name, which is made if there is none.

    Raises:
        ProviderError: CLIENT_ID when another connection has this client id; for a stored one CONNECTION when its file cannot be
            used, IN_USE when another process has it.
    """
    with _lock:
        broker = _brokers.get(name)
        if broker is None:
            broker = _brokers[name] = Broker(name, clock)
        with broker.lock:
            broker.join(connection)
    return broker


def discard(name: str | Path) -> bool:
    """Forget the in-process broker of that name with all it holds; close the store of a file.

    A broker otherwise lives as long as the process. Connections that are still open lose their link, as if a server had
    died; the next connection to the name meets an empty broker, the next one to the file what is kept there.

    Args:
        name: As it stands in the URL, ``inproc://name``; empty for ``inproc://``. The file of a stored broker as a ``Path``.
    Returns:
        Whether there was such a broker.
    Threads: any.
    """
    key = real_path(name) if isinstance(name, Path) else name
    with _lock:
        broker = _brokers.get(key)
    if broker is None:
        return False
    what = f"inproc broker {name!r} was discarded" if broker.store is None else f"the store {key} was closed"
    return end(broker, ProviderError(ErrorKind.CONNECTION, what, fatal=True))


def end(broker: Broker, cause: ProviderError) -> bool:
    """Forget a broker, for a reason that its connections hear; False when somebody else does.

    Threads: any.
    """
    with _lock:
        if _brokers.get(broker.name) is not broker:
            return False
        del _brokers[broker.name]
    broker.discard(cause)
    return True


def retire(broker: Broker) -> None:
    """Close the store of a broker whose last connection has left, so that another process can have it.

    Threads: any.
    """
    store = broker.store
    with _lock, broker.lock:
        if store is None or broker.connections or _brokers.get(broker.name) is not broker:
            return
        ends = not broker.branches
        if ends:
            del _brokers[broker.name]
            store.closing = True
            store.leave_in_order(broker.places())
    if ends:
        store.close(CLOSE_S)
    else:
        store.writer.rest(CLOSE_S)


def real_path(path: Path) -> Path:
    """Return the one name of a file, whatever it is called in a URL."""
    return Path(os.path.realpath(path))


def _after_fork() -> None:
    """Cut a child's connections to stored brokers. It takes no lock: the thread that has it may not be here."""
    global _lock
    _lock = threading.RLock()
    for name, broker in list(_brokers.items()):
        if broker.store is not None:
            del _brokers[name]
            _left_to_parent.append(broker)
            for connection in broker.connections:
                connection.sever(
                    f"the connection belongs to process {broker.process}, which has the store {name}; this is its child"
                )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
