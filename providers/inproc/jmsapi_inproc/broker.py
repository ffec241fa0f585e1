"""A broker inside the process: queues, topics and subscriptions by name, shared by its connections.

One lock guards all of it. It may be taken again by its holder: a signal handler or finaliser that closes a connection can
come in the middle of a call of the same thread, and must not wait for it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from jmsapi.spi import Address, Clock, Delivery, DestinationKind, Envelope, ErrorKind, HeaderView, ProviderError
from jmsapi_inproc.agenda import Agenda
from jmsapi_inproc.handles import Browser, Consumer, Session
from jmsapi_inproc.messages import Selector
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.topics import Subscriptions, Topic
from jmsapi_inproc.turns import BrokerLock

if TYPE_CHECKING:
    from jmsapi_inproc.connection import InprocProvider

__all__ = ["Broker", "connect", "discard"]

TEMPORARY: Final = "jmsapi-temporary."
"""Begins the name of every temporary destination, and of no other."""


class Broker:
    """Everything that lives under one broker name. The caller of a method holds ``lock``, if not said otherwise."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.lock = BrokerLock()
        self.agenda = Agenda(clock, self._fire)
        self.consumers: dict[int, Consumer] = {}
        self.connections: set[InprocProvider] = set()
        self.subscriptions = Subscriptions(self)
        self.outbox: dict[Consumer, list[Delivery]] | None = None
        """While several messages are filed at once: deliveries by consumer, said at the end."""
        self._queues: dict[str, Queue] = {}
        self._topics: dict[str, Topic] = {}
        self._numbers = 0
        self._word = os.urandom(8).hex()

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
            self.agenda.resume()

    def leave(self, connection: InprocProvider) -> None:
        """Let a connection go, and its temporary destinations with it."""
        self.connections.discard(connection)
        for place in self._places():
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
            return self._queues.setdefault(name, Queue(self, name))
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
        shown: deque[tuple[Envelope, int]] = deque(
            (message.envelope, message.count + 1)
            for message in queue.waiting
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

    def discard(self) -> None:
        """Drop everything and tell the connections that their link is lost. Takes the lock itself."""
        with self.lock:
            connections = list(self.connections)
            for connection in connections:
                connection.sever()
            self.connections.clear()
            self.consumers.clear()
            self.agenda.clear()
            self.subscriptions.clear()
            for place in self._places():
                place.close()
        for connection in connections:
            connection.say_lost()

    def _places(self) -> list[Queue | Topic]:
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


_brokers: Final[dict[str, Broker]] = {}
_lock: Final = threading.RLock()


def connect(connection: InprocProvider, name: str, clock: Clock) -> Broker:
    """Let a connection into the broker of that name, which is made if there is none.

    Raises:
        ProviderError: CLIENT_ID when another connection has this client id.
    """
    with _lock:
        broker = _brokers.get(name)
        if broker is None:
            broker = _brokers[name] = Broker(name, clock)
        with broker.lock:
            broker.join(connection)
    return broker


def discard(name: str) -> bool:
    """Forget the in-process broker of that name with all it holds.

    A broker otherwise lives as long as the process. Connections that are still open lose their link, as if a server had
    died; the next connection to the name meets an empty broker.

    Args:
        name: As it stands in the URL, ``inproc://name``; empty for ``inproc://``.
    Returns:
        Whether there was such a broker.
    Threads: any.
    """
    with _lock:
        broker = _brokers.pop(name, None)
    if broker is None:
        return False
    broker.discard()
    return True
