"""A decorator of the SPI that writes down what goes through one connection of an embedded broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    Envelope,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    Tag,
)
from jmsapi.testing._record import HeldMessage, Record, Sent, TransactionWork

__all__ = ["Gone", "Recording"]


class _RecordedConsumer:
    """The record of a consumer."""

    __slots__ = ("asks", "session", "spec", "tags")

    def __init__(self, session: Handle, spec: ConsumerSpec) -> None:
        self.session = session
        self.spec = spec
        self.asks = False
        """It has given credit, so it knows that it is open, and may wait; no browser does."""
        self.tags: set[Tag] = set()
        """Of what it was given and has not settled."""


Gone = Callable[["Recording"], None]
"""Told, perhaps more than once, when a connection has ended."""


class Recording(Forwarding):
    """One connection.

    Args:
        provider: The connection below.
        record: Written to.
        gone: See there.
    """

    def __init__(self, provider: Provider, record: Record, gone: Gone) -> None:
        super().__init__(provider)
        self._record = record
        self._gone = gone
        self._guard = threading.RLock()
        """Held while a consumer is woken, and while one is taken out: which of the two comes first is then clear."""
        self._consumers: dict[Handle, _RecordedConsumer] = {}
        self._producers: dict[Handle, Address | None] = {}
        self._transactions: dict[Handle, TransactionWork] = {}
        self._enlisted: dict[Handle, TransactionWork] = {}
        """The same for handles that stand for a branch, which may outlive the connection."""

    def spec_of(self, consumer: Handle) -> ConsumerSpec | None:
        """Return what a consumer asked for; None for one that is released."""
        known = self._consumers.get(consumer)
        return None if known is None else known.spec

    def target_of(self, producer: Handle, envelope: Envelope) -> Address:
        """Return where a message goes."""
        return self._producers.get(producer) or envelope.destination

    def destination_of(self, tags: Sequence[Tag]) -> str | None:
        """Return where a delivery that is unsettled came from."""
        found = (known.spec.address.name for known in list(self._consumers.values()) if tags and tags[0] in known.tags)
        return next(found, None)

    def enlist(self, tx: Handle, work: TransactionWork) -> None:
        """Write what is done under this handle to the work of a branch."""
        self._enlisted[tx] = work

    def delist(self, work: TransactionWork) -> None:
        """Take note that a branch is over."""
        self._enlisted = {tx: other for tx, other in self._enlisted.items() if other is not work}

    def _work(self, tx: Handle) -> TransactionWork:
        return self._enlisted.get(tx) or self._transactions.setdefault(tx, TransactionWork())

    def sever(self) -> None:
        """End as a lost link ends: what was handed out goes back as redelivered, open transactions are rolled back."""
        for consumer in list(self._consumers):
            self.below.drain(consumer)
        for tx in list(self._transactions):
            self.below.end(tx, commit=False)
        tags = self._record.forget(self)
        if tags:
            self.below.settle(tags, Outcome.FAILED)
        self.close()

    def wake(self) -> None:
        """Let receivers look at the clock again: an empty delivery wakes them."""
        for consumer, known in list(self._consumers.items()):
            with self._guard:
                if known.asks and consumer in self._consumers:
                    self.above.on_deliveries(consumer, ())

    # ---- calls ----------------------------------------------------------------------------------------------------
    def close(self) -> Future[None]:
        """Close; nothing is held any more."""
        closed = self.below.close()
        self._record.forget(self)
        self._gone(self)
        return closed

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Remember what it is for."""
        opened = self.below.open_consumer(session, spec)
        if opened.exception() is None:
            self._consumers[opened.result()] = _RecordedConsumer(session, spec)
        return opened

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Remember where it sends."""
        opened = self.below.open_producer(session, destination)
        if opened.exception() is None:
            self._producers[opened.result()] = destination
        return opened

    def release(self, handle: Handle) -> Future[None]:
        """What a consumer holds goes back, but for what it accepted in a transaction that is open."""
        with self._guard:
            # First, so that nothing wakes a consumer that is released.
            ended = [consumer for consumer, known in self._consumers.items() if handle in (consumer, known.session)]
            tags = {tag for consumer in ended for tag in self._consumers.pop(consumer).tags}
        released = self.below.release(handle)
        open_work = [*self._transactions.values(), *self._enlisted.values()]
        self._record.let_go(tags - {tag for work in open_work for tag in work.tags})
        self._producers.pop(handle, None)
        return released

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Write it down before it is sent, since who gets it may answer at once; strike it out if it is refused."""
        sent = Sent(self.target_of(producer, envelope), envelope)
        if tx is None:
            self._record.add((sent,))
        else:
            self._work(tx).sent.append(sent)
        try:
            self.below.send(producer, envelope, tx, token)
        except ProviderError:
            if tx is None:
                self._record.withdraw((sent,))
            else:
                self._work(tx).sent.remove(sent)
            raise

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Take note that it may wait for messages now."""
        known = self._consumers.get(consumer)
        if known is not None:
            known.asks = not known.spec.browse
        return self.below.credit(consumer, n)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """What is accepted in a transaction stays with its consumer until the commit."""
        settled = self.below.settle(tags, outcome, tx, failures)
        if tx is None:
            self._let_go(tags)
        else:
            self._work(tx).tags.extend(tags)
        return settled

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Write down what a commit sends."""
        work = self._transactions.pop(tx, None) or TransactionWork()
        if commit:
            self._record.add(work.sent)
        ended = self.below.end(tx, commit=commit)
        if not commit:
            # What a consumer that is still there accepted is its own again.
            still = {tag for known in list(self._consumers.values()) for tag in known.tags}
            self._record.let_go([tag for tag in work.tags if tag not in still])
        elif ended.exception() is None:
            self._let_go(work.tags)
        else:
            self._record.withdraw(work.sent)
        return ended

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Take note of what a consumer gets; a browser gets nothing."""
        known = self._consumers.get(consumer)
        if known is not None and not known.spec.browse:
            for delivery in deliveries:
                known.tags.add(delivery.tag)
                self._record.hold(delivery.tag, HeldMessage(self, known.spec.address, delivery.envelope))
        self.above.on_deliveries(consumer, deliveries)

    def on_lost(self, cause: ProviderError) -> None:
        """Nothing is held any more."""
        self._record.forget(self)
        self._gone(self)
        self.above.on_lost(cause)

    def _let_go(self, tags: Sequence[Tag]) -> None:
        self._record.let_go(tags)
        for known in list(self._consumers.values()):
            known.tags.difference_update(tags)
