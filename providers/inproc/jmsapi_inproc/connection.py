"""The calls of the SPI on a broker in this process. Deliveries are reported from inside the call that causes them.

Contract 1 allows a callback under the broker's lock: the callback only records what it is given and takes no lock except its
session's, and the holder of that lock calls no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jmsapi.spi import (
    DONE,
    NATIVE,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    Tag,
    completed,
    failed,
    none,
)
from jmsapi_inproc.broker import InProcessBroker
from jmsapi_inproc.messages import CompiledSelector, compiled
from jmsapi_inproc.queue import Browser, QueueConsumer
from jmsapi_inproc.registry import connect, real_path, retire
from jmsapi_inproc.session import InProcessSession, Producer
from jmsapi_inproc.settlement import accept, accept_stored, bury, enlist, give_up
from jmsapi_inproc.subscriptions import BrokerTopic, TopicSubscription
from jmsapi_inproc.transaction import InProcessTransaction
from jmsapi_inproc.write_batch import WriteBatch

if TYPE_CHECKING:
    from jmsapi_inproc.options import InprocOptions

__all__ = ["CAPABILITIES", "InprocProvider"]

CAPABILITIES: Final = Capabilities(
    provider="inproc",
    broker="jmsapi in-process",
    xa=NATIVE,
    missing_queue_reported=none("a queue is created when it is first named"),
    user_id=none("the in-process broker has no users"),
)
ACCEPTED: Final = Outcome.ACCEPTED


class InprocProvider:
    """One connection to one broker of this process."""

    def __init__(self, options: InprocOptions, clock: Clock) -> None:
        self.client_id = options.client_id
        self._name: str | Path = options.host if options.store is None else real_path(options.store)
        self._dead_letter = options.dead_letter
        self._max_shared_consumers = options.max_shared_consumers
        self._clock = clock
        self._broker: InProcessBroker | None = None
        self._events: Events | None = None
        self._closed = False
        self._why_closed = "the connection, session, producer or consumer is closed"
        self._sessions: set[InProcessSession] = set()
        self._owners: dict[Handle, InProcessSession] = {}
        """The sessions of producers, consumers and browsers."""

    @property
    def events(self) -> Events:
        """Where callbacks go. There is one once it is open."""
        if self._events is None:
            raise self._unusable()
        return self._events

    def open(self, events: Events) -> Future[Capabilities]:
        """Join the broker of the URL's name."""
        if self._events is not None or self._closed:
            return failed(ProviderError(ErrorKind.PROTOCOL, "open: a provider is opened once"))
        self._events = events
        try:
            self._broker = connect(self, self._name, self._clock)
        except ProviderError as error:
            self._closed = True
            return failed(error)
        return completed(CAPABILITIES)

    def close(self) -> Future[None]:
        """End all sessions, roll back their transactions and leave the broker."""
        broker = self._broker
        self._closed = True
        if broker is not None:
            with broker.lock:
                for session in list(self._sessions):
                    self._release_session(broker, session)
                broker.leave(self)
            self._broker = None
            if broker.store is not None:
                retire(broker)
        return DONE

    def sever(self, why: str | None = None) -> None:
        """End all handles, because the broker is being discarded. The caller holds its lock."""
        self._why_closed = why or self._why_closed
        self._closed = True
        self._broker = None
        for session in self._sessions:
            session.closed = True
            for child in session.children:
                child.closed = True
        self._sessions.clear()
        self._owners.clear()

    def report_lost(self, cause: ProviderError) -> None:
        """Report to the core that the connection is lost."""
        self.events.on_lost(cause)

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Make a session token."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        session = InProcessSession(self, transacted=transacted)
        with broker.lock:
            self._sessions.add(session)
        return completed(session)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Open a consumer on a queue or subscription, or a browser."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            selector = None if spec.selector is None else compiled(spec.selector)
            with broker.lock:
                return self._open_consumer(broker, self._living(session), spec, selector)
        except ProviderError as error:
            return failed(error)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Open a producer; its destination is created if need be."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            with broker.lock:
                owner = self._living(session)
                producer = Producer(None if destination is None else broker.resolve(destination))
                self._adopt(owner, producer)
        except ProviderError as error:
            return failed(error)
        return completed(producer)

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer; what a consumer has in flight goes back to its position, uncounted."""
        broker = self._broker
        if broker is not None:
            with broker.lock:
                if isinstance(handle, InProcessSession):
                    self._release_session(broker, handle)
                elif isinstance(handle, Producer | QueueConsumer | Browser):
                    self._release_child(broker, handle)
        return DONE

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Add a message to its destination, in the transaction or at once; a consumer that waits gets it inside this call.

        Raises:
            ProviderError: CLOSED; DESTINATION when a temporary one is gone; FORMAT for an invalid priority. Then there
                is no ``on_sent``.
        """
        broker = self._broker
        events = self._events
        if broker is None or events is None or not isinstance(producer, Producer) or producer.closed:
            raise self._unusable()
        if not 0 <= envelope.priority <= 9:
            raise ProviderError(ErrorKind.FORMAT, f"send: priority {envelope.priority} is not one of 0 to 9")
        with broker.lock:
            target = producer.target or broker.resolve(envelope.destination)
            if target.gone:
                raise ProviderError(ErrorKind.DESTINATION, f"send: {target.name!r} has been deleted")
            if tx is None:
                if broker.store is None:
                    target.publish(envelope, self)
                else:
                    batch = WriteBatch(events, token)
                    target.stage(envelope, self, batch)
                    if broker.store.submit(batch):
                        return
            elif isinstance(tx, InProcessTransaction) and tx.open:
                tx.send(target, envelope)
            else:
                raise ProviderError(ErrorKind.CLOSED, "send: the transaction has ended")
        # Outside the lock, so that the core's bookkeeping of sends does not keep other threads waiting.
        events.on_sent(((token, None),))

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow ``n`` more deliveries; what waits is delivered inside this call, as one batch."""
        broker = self._broker
        if broker is None or not isinstance(consumer, QueueConsumer | Browser):
            return failed(self._unusable())
        with broker.lock:
            if consumer.closed:
                return failed(self._unusable())
            if isinstance(consumer, QueueConsumer):
                consumer.queue.allow(consumer, n)
            else:
                shown = consumer.show(n, broker.context.clock.now_ms())
                if shown:
                    consumer.events.on_deliveries(consumer, shown)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        """Withdraw all credit; no delivery is ever on its way."""
        broker = self._broker
        if broker is None or not isinstance(consumer, QueueConsumer | Browser):
            return failed(self._unusable())
        with broker.lock:
            if consumer.closed:
                return failed(self._unusable())
            if isinstance(consumer, QueueConsumer):
                consumer.queue.stop(consumer)
        return DONE

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Settle deliveries. A tag that is not in flight fails the future; the others are settled all the same."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        with broker.lock:
            if tx is None:
                batch = None if broker.store is None else WriteBatch()
                if outcome is not ACCEPTED:
                    reject = partial(bury, broker.resolve, self._dead_letter, batch)
                    lost = give_up(broker.consumers, tags, outcome, failures, reject)
                elif batch is None:
                    lost = accept(broker.consumers, tags)
                else:
                    lost = accept_stored(broker.consumers, tags, batch)
                if batch is not None and broker.store is not None:
                    written = batch.completion()
                    if broker.store.submit(batch) and not lost:
                        return written
            elif isinstance(tx, InProcessTransaction) and tx.open and outcome is ACCEPTED:
                lost = enlist(broker.consumers, tags, tx)
            else:
                return failed(
                    ProviderError(
                        ErrorKind.CLOSED, f"settle {outcome.value}: the transaction has ended, or the outcome is not accepted"
                    )
                )
        if lost:
            return failed(
                ProviderError(ErrorKind.CLOSED, f"settle: {lost} of {len(tags)} deliveries are settled or returned already")
            )
        return DONE

    def begin(self, session: Handle) -> Future[Handle]:
        """Begin the transaction of a transacted session."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            with broker.lock:
                owner = self._living(session)
                if not owner.transacted or owner.transaction is not None:
                    raise ProviderError(ErrorKind.PROTOCOL, "begin: the session is not transacted, or has a transaction open")
                return completed(owner.begin())
        except ProviderError as error:
            return failed(error)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        with broker.lock:
            if not isinstance(tx, InProcessTransaction) or not tx.open:
                return failed(ProviderError(ErrorKind.CLOSED, "end: the transaction has ended already"))
            if commit:
                return tx.commit(broker.context, broker.store)
            tx.roll_back()
        return DONE

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Create a destination that lives with this connection."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            with broker.lock:
                self._living(session)
                return completed(broker.create_temporary(self, topic=topic))
        except ProviderError as error:
            return failed(error)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination, or end the durable subscription of that name."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            with broker.lock:
                self._living(session)
                if isinstance(what, str):
                    return broker.subscriptions.unsubscribe(self.client_id, what)
                broker.remove_temporary(self, what)
        except ProviderError as error:
            return failed(error)
        return DONE

    def _open_consumer(
        self, broker: InProcessBroker, session: InProcessSession, spec: ConsumerSpec, selector: CompiledSelector | None
    ) -> Future[Handle]:
        place = broker.resolve(spec.address)
        if place.owner is not None and place.owner is not self:
            raise ProviderError(
                ErrorKind.DESTINATION,
                f"temporary destination {place.name!r} belongs to another connection; only that may consume from it",
            )
        if spec.browse:
            if isinstance(place, BrokerTopic):
                raise ProviderError(ErrorKind.DESTINATION, f"browse {place.name!r}: only a queue can be browsed")
            browser = broker.browse(self.events, place, selector)
            self._adopt(session, browser)
            return completed(browser)
        if isinstance(place, BrokerTopic):
            subscription = broker.subscriptions.find(place, spec, selector, self, self._max_shared_consumers)
            return self._open_subscriber(broker, session, subscription)
        consumer = QueueConsumer(self, broker.next_number(), place, self.events, selector=selector)
        self._attach(broker, session, consumer)
        return completed(consumer)

    def _open_subscriber(
        self, broker: InProcessBroker, session: InProcessSession, subscription: TopicSubscription
    ) -> Future[Handle]:
        subscriptions = broker.subscriptions
        left = partial(subscriptions.left, subscription)
        consumer = QueueConsumer(self, broker.next_number(), subscription.queue, self.events, on_closed=left)
        self._attach(broker, session, consumer)
        return subscriptions.opened(subscription, consumer, partial(self._release_child, broker, consumer))

    def _attach(self, broker: InProcessBroker, session: InProcessSession, consumer: QueueConsumer) -> None:
        consumer.queue.attach(consumer)
        broker.consumers[consumer.number] = consumer
        self._adopt(session, consumer)

    def _adopt(self, session: InProcessSession, child: Producer | QueueConsumer | Browser) -> None:
        session.children.add(child)
        self._owners[child] = session

    def _release_session(self, broker: InProcessBroker, session: InProcessSession) -> None:
        session.closed = True
        broker.branches.leave(session)
        if session.transaction is not None:
            session.transaction.roll_back()
        for child in list(session.children):
            self._release_child(broker, child)
        self._sessions.discard(session)

    def _release_child(self, broker: InProcessBroker, child: Producer | QueueConsumer | Browser) -> None:
        session = self._owners.pop(child, None)
        if session is not None:
            session.children.discard(child)
        if child.closed:
            return
        child.closed = True
        if isinstance(child, QueueConsumer):
            broker.consumers.pop(child.number, None)
            child.queue.detach(child)
            if child.on_closed is not None:
                child.on_closed()

    def _living(self, session: Handle) -> InProcessSession:
        """Return a session if it is not closed. The caller holds the lock, so that the session cannot close meanwhile."""
        if self._closed or not isinstance(session, InProcessSession) or session.closed:
            raise self._unusable()
        return session

    def _unusable(self) -> ProviderError:
        if self._events is None:
            return ProviderError(ErrorKind.CLOSED, "the connection has not been opened")
        return ProviderError(ErrorKind.CLOSED, self._why_closed)
