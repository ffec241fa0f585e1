"""The seam's fourteen calls on a broker in this process. Deliveries come from inside the call that causes them.

Contract 1 lets a callback come under the broker's lock: it files things away, takes no lock but its session's, and whoever
holds that lock calls no provider.
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
from jmsapi_inproc.broker import Broker, connect, real_path, retire
from jmsapi_inproc.handles import Browser, Consumer, Producer, Session
from jmsapi_inproc.messages import Selector, compiled
from jmsapi_inproc.settling import accept, accept_stored, enlist, give_up
from jmsapi_inproc.store_filing import Filing
from jmsapi_inproc.store_subscribing import attached, ended
from jmsapi_inproc.topics import Topic
from jmsapi_inproc.transactions import Transaction

if TYPE_CHECKING:
    from jmsapi_inproc.options import InprocOptions

__all__ = ["CAPABILITIES", "InprocProvider"]

CAPABILITIES: Final = Capabilities(
    provider="inproc",
    broker="jmsapi in-process",
    xa=NATIVE,
    missing_queue_reported=none("a queue comes into being when it is first named"),
    user_id=none("the in-process broker knows no users"),
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
        self._broker: Broker | None = None
        self._events: Events | None = None
        self._closed = False
        self._why_closed = "the connection, session, producer or consumer is closed"
        self._sessions: set[Session] = set()

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
        """End all handles, because the broker is being discarded. Called under its lock."""
        self._why_closed = why or self._why_closed
        self._closed = True
        self._broker = None
        for session in self._sessions:
            session.closed = True
            for child in session.children:
                child.closed = True
        self._sessions.clear()

    def say_lost(self, cause: ProviderError) -> None:
        """Tell the core that the link is lost."""
        self.events.on_lost(cause)

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Make a session token."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        session = Session(self, transacted)
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
                handle = self._open_consumer(broker, self._living(session), spec, selector)
                if isinstance(handle, Consumer) and handle.subscription is not None and broker.store is not None:
                    let_go = partial(_release_child, broker, handle)
                    return attached(broker.subscriptions, handle.subscription, handle, let_go)
                return completed(handle)
        except ProviderError as error:
            return failed(error)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Open a producer; its destination comes into being."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        try:
            with broker.lock:
                owner = self._living(session)
                producer = Producer(owner, None if destination is None else broker.resolve(destination))
                owner.children.add(producer)
        except ProviderError as error:
            return failed(error)
        return completed(producer)

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer; what a consumer holds goes back to its place, uncounted."""
        broker = self._broker
        if broker is not None:
            with broker.lock:
                if isinstance(handle, Session):
                    self._release_session(broker, handle)
                elif isinstance(handle, Producer | Consumer | Browser):
                    _release_child(broker, handle)
        return DONE

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """File a message, in the transaction or at once; the consumer that waits for it gets it inside this call.

        Raises:
            ProviderError: CLOSED; DESTINATION when a temporary one is gone; FORMAT for a priority that is none. Then there
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
                    filing = Filing(events, token)
                    target.plan(envelope, self, filing)
                    if broker.store.submit(filing):
                        return
            elif isinstance(tx, Transaction) and tx.open:
                tx.send(target, envelope)
            else:
                raise ProviderError(ErrorKind.CLOSED, "send: the transaction has ended")
        # Outside the lock: the core's bookkeeping of sends need not keep the other threads waiting.
        events.on_sent(((token, None),))

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow ``n`` more deliveries; those that wait come inside this call, as one batch."""
        broker = self._broker
        if broker is None or not isinstance(consumer, Consumer | Browser):
            return failed(self._unusable())
        with broker.lock:
            if consumer.closed:
                return failed(self._unusable())
            if isinstance(consumer, Consumer):
                consumer.queue.allow(consumer, n)
            else:
                shown = consumer.show(n, broker.clock.now_ms())
                if shown:
                    consumer.events.on_deliveries(consumer, shown)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        """Take all credit back; nothing is ever on its way."""
        broker = self._broker
        if broker is None or not isinstance(consumer, Consumer | Browser):
            return failed(self._unusable())
        with broker.lock:
            if consumer.closed:
                return failed(self._unusable())
            if isinstance(consumer, Consumer):
                consumer.queue.stop(consumer)
        return DONE

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Say what became of deliveries. A tag that nobody holds fails the future; the others are settled all the same."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        with broker.lock:
            if tx is None:
                filing = None if broker.store is None else Filing()
                if outcome is not ACCEPTED:
                    lost = give_up(broker, tags, outcome, failures, self._dead_letter, filing)
                elif filing is None:
                    lost = accept(broker, tags)
                else:
                    lost = accept_stored(broker, tags, filing)
                if filing is not None and broker.store is not None:
                    written = filing.awaited()
                    if broker.store.submit(filing) and not lost:
                        return written
            elif isinstance(tx, Transaction) and tx.open and outcome is ACCEPTED:
                lost = enlist(broker, tags, tx)
            else:
                return failed(
                    ProviderError(
                        ErrorKind.CLOSED, f"settle {outcome.value}: the transaction has ended, or the outcome is not accepted"
                    )
                )
        if lost:
            return failed(
                ProviderError(ErrorKind.CLOSED, f"settle: {lost} of {len(tags)} deliveries are settled or given back already")
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
                owner.transaction = Transaction(owner)
                return completed(owner.transaction)
        except ProviderError as error:
            return failed(error)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back."""
        broker = self._broker
        if broker is None:
            return failed(self._unusable())
        with broker.lock:
            if not isinstance(tx, Transaction) or not tx.open:
                return failed(ProviderError(ErrorKind.CLOSED, "end: the transaction has ended already"))
            if commit:
                return tx.commit(broker)
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
                    return ended(broker.subscriptions, broker.subscriptions.to_unsubscribe(self.client_id, what))
                broker.remove_temporary(self, what)
        except ProviderError as error:
            return failed(error)
        return DONE

    def _open_consumer(
        self, broker: Broker, session: Session, spec: ConsumerSpec, selector: Selector | None
    ) -> Consumer | Browser:
        place = broker.resolve(spec.address)
        if place.owner is not None and place.owner is not self:
            raise ProviderError(
                ErrorKind.DESTINATION,
                f"temporary destination {place.name!r} belongs to another connection; only that may consume from it",
            )
        if spec.browse:
            if isinstance(place, Topic):
                raise ProviderError(ErrorKind.DESTINATION, f"browse {place.name!r}: only a queue can be browsed")
            handle: Consumer | Browser = broker.browse(session, place, selector)
        else:
            if isinstance(place, Topic):
                subscription = broker.subscriptions.find(place, spec, selector, self, self._max_shared_consumers)
                consumer = Consumer(session, broker.next_number(), subscription.queue, self.events, subscription=subscription)
            else:
                consumer = Consumer(session, broker.next_number(), place, self.events, selector=selector)
            consumer.queue.attach(consumer)
            broker.consumers[consumer.number] = consumer
            handle = consumer
        session.children.add(handle)
        return handle

    def _release_session(self, broker: Broker, session: Session) -> None:
        session.closed = True
        broker.branches.leave(session)
        if session.transaction is not None:
            session.transaction.roll_back()
        for child in list(session.children):
            _release_child(broker, child)
        self._sessions.discard(session)

    def _living(self, session: Handle) -> Session:
        """Return a session as what it is, if it is not closed; asked under the lock, so that it cannot close meanwhile."""
        if self._closed or not isinstance(session, Session) or session.closed:
            raise self._unusable()
        return session

    def _unusable(self) -> ProviderError:
        if self._events is None:
            return ProviderError(ErrorKind.CLOSED, "the connection has not been opened")
        return ProviderError(ErrorKind.CLOSED, self._why_closed)


def _release_child(broker: Broker, child: Producer | Consumer | Browser) -> None:
    child.session.children.discard(child)
    if child.closed:
        return
    child.closed = True
    if isinstance(child, Consumer):
        broker.consumers.pop(child.number, None)
        child.queue.detach(child)
        if child.subscription is not None:
            broker.subscriptions.left(child.subscription)
