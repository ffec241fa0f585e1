"""A broker in memory, reached by links that carry one step at a time and break on demand: nothing happens by itself.

What is asked travels to the broker in its order, and what it answers travels back in its order. A test moves either by a step,
or cuts the link, and then whatever is under way is lost: asked and not heard of, or done and not answered.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    Tag,
    Timer,
    failed,
)

LOST = "the link was cut"
DETECTING = "a broker that detects duplicates"
DUPLICATE_ID = "known_by"


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._numbers = itertools.count()
        self.timers: list[tuple[float, int, Callable[[], None]]] = []

    def now_ms(self) -> int:
        return int(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = (self._now + delay, next(self._numbers), call)
        self.timers.append(timer)
        clock = self

        class Set:
            def cancel(self) -> None:
                if timer in clock.timers:
                    clock.timers.remove(timer)

        return Set()

    def advance(self, seconds: float) -> None:
        """Let time pass, and with it what is due, in order."""
        end = self._now + seconds
        while self.timers and min(self.timers)[0] <= end:
            due = min(self.timers)
            self.timers.remove(due)
            self._now = max(self._now, due[0])
            due[2]()
        self._now = end


@dataclass(eq=False)
class Stored:
    """A message in the broker."""

    envelope: Envelope
    count: int = 0
    """How often it was handed out."""
    holder: FrailConsumer | None = None
    order: int = 0


@dataclass(eq=False)
class FrailSession(Handle):
    transacted: bool


@dataclass(eq=False)
class FrailProducer(Handle):
    destination: Address | None


@dataclass(eq=False)
class FrailConsumer(Handle):
    link: FrailLink
    spec: ConsumerSpec
    credit: int = 0
    open: bool = True


@dataclass(eq=False)
class FrailTx(Handle):
    sends: list[Envelope] = field(default_factory=list[Envelope])
    acks: list[Stored] = field(default_factory=list[Stored])
    open: bool = True


@dataclass(eq=False)
class FrailTag(Tag):
    stored: Stored


class World:
    """The broker."""

    def __init__(self, broker: str = "frail") -> None:
        self.broker = broker
        self.capabilities = Capabilities(
            provider="frail", broker=broker, duplicate_property=DUPLICATE_ID if broker == DETECTING else None
        )
        self.queues: dict[str, list[Stored]] = {}
        self.stored: list[Envelope] = []
        """Everything that was ever accepted, in its order."""
        self.gone: list[Envelope] = []
        """Everything that was acknowledged."""
        self.links: list[FrailLink] = []
        self.consumers: list[FrailConsumer] = []
        self.refusals: deque[ProviderError] = deque()
        """What the next attempts to open a link are refused with."""
        self.refuse: dict[str, ProviderError] = {}
        """Consumers on these queues are refused."""
        self.credit_raises: deque[Exception] = deque()
        """What the next grants of credit raise."""
        self.temporary = itertools.count(1)
        self.opened = 0
        self._orders = itertools.count()
        self.duplicates: set[object] = set()
        """The ids that it knows."""

    @property
    def living(self) -> list[FrailLink]:
        return [link for link in self.links if link.alive]

    def put(self, envelope: Envelope) -> None:
        duplicate_id = envelope.properties.get(DUPLICATE_ID)
        if self.broker == DETECTING and duplicate_id is not None:
            if duplicate_id in self.duplicates:
                return
            self.duplicates.add(duplicate_id)
        self.stored.append(envelope)
        self.queues.setdefault(envelope.destination.name, []).append(Stored(envelope, order=next(self._orders)))
        self.hand_out()

    def hand_out(self) -> None:
        for name, queue in self.queues.items():
            for stored in queue:
                taker = next((one for one in self.consumers if one.open and one.credit and one.spec.address.name == name), None)
                if stored.holder is None and taker is not None:
                    taker.credit -= 1
                    stored.holder = taker
                    stored.count += 1
                    taker.link.bring(taker, Delivery(FrailTag(stored), stored.envelope, stored.count))

    def take_back(self, consumer: FrailConsumer) -> None:
        consumer.open = False
        self.consumers.remove(consumer)
        for queue in self.queues.values():
            for stored in queue:
                if stored.holder is consumer:
                    stored.holder = None
        self.hand_out()

    def acknowledge(self, stored: Stored) -> None:
        self.queues[stored.envelope.destination.name].remove(stored)
        self.gone.append(stored.envelope)


class FrailLink:
    """One link: a provider."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alive = False
        self.to_broker: deque[Callable[[], None]] = deque()
        self.to_client: deque[Callable[[], None]] = deque()
        self.pending: dict[Future[Any], ErrorKind] = {}
        self.unanswered: dict[int, object] = {}
        self.transactions: list[FrailTx] = []
        self.events: Events | None = None
        self.ended = False
        self._coming: deque[Callable[[], None]] = deque()
        self.late: deque[Callable[[], None]] = deque()
        """Deliveries that were under way when the link was cut, and may still be told by a thread that was slow."""
        world.links.append(self)

    @property
    def above(self) -> Events:
        assert self.events is not None
        return self.events

    # ---- moving ---------------------------------------------------------------------------------------------------
    def broker_step(self) -> bool:
        """Let the broker read the next request."""
        if not self.to_broker:
            return False
        self.to_broker.popleft()()
        return True

    def client_step(self) -> bool:
        """Let the client read the next answer."""
        if not self.to_client:
            return False
        self.to_client.popleft()()
        return True

    def cut(self, why: ProviderError | None = None) -> None:
        """Lose what is under way, and then the link.

        Args:
            why: The broker's reason, which is told to all; fatal.
        """
        if self.ended:
            return
        was_alive, self.alive, self.ended = self.alive, False, True
        self.to_broker.clear()
        self.to_client.clear()
        self.late, self._coming = self._coming, deque()
        self._forget()
        error = why or ProviderError(ErrorKind.CONNECTION, LOST, fatal=True)
        pending, self.pending = self.pending, {}
        for future, kind in pending.items():
            future.set_exception(why or ProviderError(kind, LOST, fatal=True))
        tokens, self.unanswered = list(self.unanswered.values()), {}
        if tokens:
            self.above.on_sent([(token, error) for token in tokens])
        if was_alive:
            self.above.on_lost(error)

    def _forget(self) -> None:
        for tx in self.transactions:
            tx.open = False
        for consumer in [one for one in self.world.consumers if one.link is self]:
            self.world.take_back(consumer)

    def bring(self, consumer: FrailConsumer, delivery: Delivery) -> None:
        def tell() -> None:
            self.above.on_deliveries(consumer, [delivery])

        def told() -> None:
            self._coming.remove(tell)
            tell()

        self._coming.append(tell)
        self.to_client.append(told)

    def _ask(self, do: Callable[[], Any], lost: ErrorKind = ErrorKind.CONNECTION) -> Future[Any]:
        if self.ended:
            return failed(ProviderError(ErrorKind.CONNECTION, LOST, fatal=True))
        future: Future[Any] = Future()
        self.pending[future] = lost

        def asked() -> None:
            result: Any = None
            error: ProviderError | None = None
            try:
                result = do()
            except ProviderError as refused:
                error = refused

            def answered() -> None:
                self.pending.pop(future, None)
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(result)

            self.to_client.append(answered)

        self.to_broker.append(asked)
        return future

    # ---- the SPI -------------------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        self.events = events
        self.world.opened += 1
        if self.world.refusals:
            self.ended = True
            return failed(self.world.refusals.popleft())

        def accept() -> Capabilities:
            self.alive = True
            return self.world.capabilities

        return self._ask(accept)

    def close(self) -> Future[None]:
        if not self.ended:
            # In order: what was asked is done and answered first.
            while self.broker_step() or self.client_step():
                pass
            self.alive, self.ended = False, True
            self._forget()
        return DONE

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        return self._ask(lambda: FrailSession(transacted))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        assert isinstance(session, FrailSession)

        def made() -> Handle:
            if spec.address.name in self.world.refuse:
                raise self.world.refuse[spec.address.name]
            consumer = FrailConsumer(self, spec)
            self.world.consumers.append(consumer)
            return consumer

        return self._ask(made)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        assert isinstance(session, FrailSession)
        return self._ask(lambda: FrailProducer(destination))

    def release(self, handle: Handle) -> Future[None]:
        def released() -> None:
            if isinstance(handle, FrailConsumer) and handle.open:
                self.world.take_back(handle)

        return self._ask(released)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        assert isinstance(producer, FrailProducer)
        if self.ended:
            raise ProviderError(ErrorKind.CONNECTION, LOST, fatal=True)
        self.unanswered[id(token)] = token

        def asked() -> None:
            if isinstance(tx, FrailTx):
                assert tx.open, "a send in a transaction that is over"
                tx.sends.append(envelope)
            else:
                self.world.put(envelope)

            def answered() -> None:
                self.unanswered.pop(id(token))
                self.above.on_sent([(token, None)])

            self.to_client.append(answered)

        self.to_broker.append(asked)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        assert isinstance(consumer, FrailConsumer)
        assert consumer.link is self, "a handle of another link"
        if self.world.credit_raises:
            raise self.world.credit_raises.popleft()
        if self.ended:
            return failed(ProviderError(ErrorKind.CONNECTION, LOST, fatal=True))

        def allowed() -> None:
            consumer.credit += n
            self.world.hand_out()

        self.to_broker.append(allowed)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        assert isinstance(consumer, FrailConsumer)

        def drained() -> None:
            consumer.credit = 0

        return self._ask(drained)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        stored = [tag.stored for tag in tags if isinstance(tag, FrailTag)]
        assert len(stored) == len(tags)

        def settled() -> None:
            for one in stored:
                assert one.holder is not None, "a tag of a link that is over"
                assert one.holder.link is self, "a tag of another link"
                if isinstance(tx, FrailTx):
                    tx.acks.append(one)
                elif outcome is Outcome.ACCEPTED:
                    self.world.acknowledge(one)
                else:
                    one.holder = None

        return self._ask(settled)

    def begin(self, session: Handle) -> Future[Handle]:
        assert isinstance(session, FrailSession)
        assert session.transacted

        def begun() -> Handle:
            tx = FrailTx()
            self.transactions.append(tx)
            return tx

        return self._ask(begun)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        assert isinstance(tx, FrailTx)

        def ended() -> None:
            assert tx.open, "a transaction is ended twice"
            tx.open = False
            if commit:
                for envelope in tx.sends:
                    self.world.put(envelope)
                for stored in tx.acks:
                    self.world.acknowledge(stored)

        return self._ask(ended, ErrorKind.IN_DOUBT if commit else ErrorKind.CONNECTION)

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        assert isinstance(session, FrailSession)
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        return self._ask(lambda: Address(kind, f"temporary-{next(self.world.temporary)}"))

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        assert isinstance(session, FrailSession)
        return self._ask(lambda: None)
