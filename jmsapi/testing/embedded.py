"""A broker of a test's own, in the test's process: it keeps the test's time, remembers what it was sent, and fails on demand."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import jmsapi
import jmsapi_inproc
from jmsapi.api import ConnectionFactory, Destination
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Address, DestinationKind, Provider
from jmsapi.testing._branches import faulty, recording
from jmsapi.testing._faulty import Faulty
from jmsapi.testing._hand import Hand
from jmsapi.testing._record import Record
from jmsapi.testing._recording import Recording
from jmsapi.testing._showing import table
from jmsapi.testing.clock import HandClock
from jmsapi.testing.destinations import WITHIN_S, QueueProbe, TopicProbe
from jmsapi.testing.provider_faults import ProviderFaults

if TYPE_CHECKING:
    from jmsapi.testing._record import HeldMessage

__all__ = ["EmbeddedBroker"]

_LONGEST_NAME: Final = 200


class EmbeddedBroker:
    """A fresh in-process broker. The application under test gets its ``url`` by configuration, as it gets any broker's.

    Made, it is there; a context manager, which closes it and drops all it holds.

        with EmbeddedBroker() as broker:
            shop = Shop(broker.url)
            broker.queue("orders").send("a kettle")
            broker.queue("parcels").assert_received("a parcel with a kettle")

    Args:
        name: For ``inproc://name``; left out, one that nobody else has.
        clock: A ``HandClock``; left out, a new one.
    Raises:
        IllegalArgumentException: The name is empty or is no part of a URL, or there is an embedded broker of that name.
    Threads: any.
    """

    def __init__(self, name: str | None = None, *, clock: HandClock | None = None) -> None:
        self._name = f"test-{os.urandom(6).hex()}" if name is None else name
        letters = all(char.isalnum() or char in "-_." for char in self._name)
        if not letters or not 0 < len(self._name) <= _LONGEST_NAME or not self._name.strip("."):
            raise IllegalArgumentException(f"a broker's name is of letters, digits, '-', '_' and '.': not {self._name!r}")
        if jmsapi_inproc.embedding_of(self._name) is not None:
            raise IllegalArgumentException(f"there is an embedded broker {self._name!r} already")
        self.clock = HandClock() if clock is None else clock
        """The time of the broker and of all its connections."""
        self.faults = ProviderFaults()
        """The faults that are planned."""
        self._record = Record()
        self._guard = threading.Lock()
        self._connections: set[Recording] = set()
        self._faulty: set[Faulty] = set()
        self._bound: set[str] = set()
        self._closed = False
        self._private = threading.local()
        # Whatever had that name before is gone: this one is fresh, and keeps the test's time.
        jmsapi_inproc.discard(self._name)
        jmsapi_inproc.embed(self._name, jmsapi_inproc.Embedding(self.clock, self.clock.lasting, self._wrap))
        self._private.opening = True
        try:
            self._hand = Hand(self.connection_factory(prefetch=0), self.clock)
        finally:
            self._private.opening = False
        self._connections.clear()
        self.clock.watch(self._wake)

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._name

    @property
    def url(self) -> str:
        """The URL for ``jmsapi.connection_factory``, for this process."""
        return f"inproc://{self._name}"

    @property
    def connections(self) -> int:
        """How many connections the application has open."""
        return len(self._connections)

    def connection_factory(self, **options: object) -> ConnectionFactory:
        """Make a connection factory of this broker.

        Args:
            options: See ``jmsapi.connection_factory``.
        """
        return jmsapi.connection_factory(self.url, **options)

    def bind(self, *names: str, **options: object) -> None:
        """Let ``jmsapi.lookup`` find this broker's factory by these names until it is closed, whatever ``jmsapi.toml`` says.

        Args:
            names: As the application looks them up.
            options: See ``jmsapi.connection_factory``.
        """
        factory = self.connection_factory(**options)
        for name in names:
            self._bind(name, factory)

    def bind_queue(self, name: str, queue: str | None = None) -> None:
        """Let ``jmsapi.lookup`` find a queue by a name until the broker is closed.

        Args:
            name: As the application looks it up.
            queue: What the queue is called; left out, the same.
        """
        self._bind(name, self._hand.destination(Address(DestinationKind.QUEUE, name if queue is None else queue)))

    def bind_topic(self, name: str, topic: str | None = None) -> None:
        """Let ``jmsapi.lookup`` find a topic by a name; see ``bind_queue``."""
        self._bind(name, self._hand.destination(Address(DestinationKind.TOPIC, name if topic is None else topic)))

    def queue(self, name: str) -> QueueProbe:
        """Return a queue, to put messages on and to look at what came."""
        return QueueProbe(Address(DestinationKind.QUEUE, name), self._hand, self._record, self._elsewhere)

    def topic(self, name: str) -> TopicProbe:
        """Return a topic, to publish to and to look at what was published."""
        return TopicProbe(Address(DestinationKind.TOPIC, name), self._hand, self._record, self._elsewhere)

    def wait_idle(self, within: float = WITHIN_S) -> None:
        """Wait until the application has nothing more to do: no consumer holds a message, and nothing is held up.

        A message that waits on a queue for nobody is no work. One that a consumer was given and has not settled is; so
        receive it, or close that consumer.

        Args:
            within: Seconds of the machine.
        Raises:
            AssertionError: There is still something; it says what.
        """
        __tracebackhide__ = True
        if self._record.wait_for(lambda: self._record.busy() == ([], 0), within):
            return
        held, late = self._record.busy()
        text = [f"the application is not done within {within:g} s"]
        if held:
            text.append(f"consumers have {len(held)} messages that they have not settled:")
            text.append(table([self._hand.message(one.envelope) for one in held], [f"of {_where(one)}" for one in held]))
        if late:
            text.append(f"{late} calls or deliveries are held up: the clock must be advanced")
        raise AssertionError("\n".join(text))

    def cut(self) -> None:
        """Let every connection of the application lose its link, now.

        What they held unsettled comes again as redelivered; open transactions are rolled back.
        """
        with self._guard:
            connections = list(self._faulty)
        for connection in connections:
            connection.cut()

    def summary(self) -> str:
        """Return what each destination was sent, as text for people."""
        counts = self._record.counts()
        if not counts:
            return "nothing was sent"
        parts: list[str] = []
        for address in sorted(counts, key=lambda one: (one.kind, one.name)):
            probe = self.topic(address.name) if address.kind.is_topic else self.queue(address.name)
            parts.append(f"{probe} was sent {counts[address]}:\n{table(probe.received)}")
        return "\n".join(parts)

    def close(self) -> None:
        """End the broker with all it holds; connections that are still open lose their link. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for name in self._bound:
            jmsapi.register_object(name, None)
        self.clock.unwatch(self._wake)
        self._hand.close()
        jmsapi_inproc.embed(self._name, None)
        jmsapi_inproc.discard(self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EmbeddedBroker({self._name!r})"

    def _bind(self, name: str, found: ConnectionFactory | Destination) -> None:
        jmsapi.register_object(name, found)
        self._bound.add(name)

    def _wrap(self, provider: Provider) -> Provider:
        tap = recording(provider, self._record, self._left)
        if getattr(self._private, "opening", False):
            return tap
        connection = faulty(tap, self._record, self.faults, self.clock)
        with self._guard:
            self._connections.add(tap)
            self._faulty.add(connection)
        return connection

    def _left(self, tap: Recording) -> None:
        with self._guard:
            self._connections.discard(tap)
            self._faulty = {one for one in self._faulty if one.below is not tap}

    def _wake(self) -> None:
        with self._guard:
            connections = list(self._connections)
        for connection in connections:
            connection.wake()

    def _elsewhere(self, address: Address) -> str:
        counts = {one: count for one, count in self._record.counts().items() if one != address}
        if not counts:
            return "nothing was sent anywhere else"
        return "sent elsewhere: " + ", ".join(f"{_named(one)}: {count}" for one, count in counts.items())


def _named(address: Address) -> str:
    return f"{'topic' if address.kind.is_topic else 'queue'} {address.name!r}"


def _where(held: HeldMessage) -> str:
    return _named(held.address)
