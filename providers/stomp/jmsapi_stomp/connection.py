"""The STOMP provider: the seam's fourteen calls, each turned into a job for the I/O thread."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    SendResult,
    Tag,
    completed,
    failed,
)
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.link import Done, Link
from jmsapi_stomp.links import Links
from jmsapi_stomp.loop import IoLoop
from jmsapi_stomp.opening import ClientIdClaim, choose_dialect, link_settings
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitMQ
from jmsapi_stomp.sending import Sending
from jmsapi_stomp.settings import LinkSettings
from jmsapi_stomp.steps import run
from jmsapi_stomp.subscribing import Subscribing
from jmsapi_stomp.transactions import Transactions
from jmsapi_stomp.wiring import (
    ConsumerHandle,
    ProducerHandle,
    SessionHandle,
    StompTag,
    TxHandle,
    Wiring,
    fail,
    resolve,
)

__all__ = ["StompProvider"]


class StompProvider:
    """One JMS connection over STOMP.

    Args:
        options: Its options.
        clock: Where it gets time from.
    """

    def __init__(self, options: StompOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._word = str(uuid.uuid4())
        self._loop = IoLoop(clock, self._on_crash)
        self._serials = count(1)
        self._events: Events | None = None
        self._opened: Future[Capabilities] = Future()
        self._closed: Future[None] | None = None
        self._lost: ProviderError | None = None
        self._wiring: Wiring | None = None
        self._main: Link | None = None
        self._settings: LinkSettings | None = None
        self._claim = ClientIdClaim()

    # opening and closing

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate; the dialect is chosen from the broker's answer."""
        if self._events is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._events = events
        try:
            self._settings = settings = link_settings(self._options)
        except ProviderError as cause:
            self._lost = cause
            return failed(cause)
        self._loop.start()
        self._loop.post(self._connect, settings)
        return self._opened

    def _connect(self, settings: LinkSettings) -> None:
        self._main = link = Link(self._loop, self._clock, settings, self)
        link.connect(self._on_connected)

    def _on_connected(self, cause: ProviderError | None) -> None:
        link, events, settings = self._main, self._events, self._settings
        if link is None or events is None or settings is None:
            return
        if cause is None:
            try:
                dialect = choose_dialect(self._options, link.connected_headers.get("server", ""))
            except ProviderError as unknown:
                cause = unknown
            else:
                link.every_error_ends = dialect.every_error_ends
                link.one_at_a_time = dialect.one_at_a_time
                place = (f"{settings.address[0]}:{settings.address[1]}", settings.vhost)
                wiring = Wiring(
                    self._loop, self._clock, self._options, events, link, dialect, self._options.client_id, self._word, place
                )
                self._links = Links(self._loop, self._clock, settings, self, dialect)
                self._consumers = Consumers(wiring)
                self._subscribing = Subscribing(wiring, self._consumers, self._links)
                self._transactions = Transactions(wiring, self._consumers)
                self._sending = Sending(wiring, self._consumers, self._transactions)
                run(self._claim.take(wiring), lambda refused: self._opened_as(wiring, refused))
                return
        self._not_opened(cause)

    def _opened_as(self, wiring: Wiring, refused: ProviderError | None) -> None:
        if refused is None:
            self._wiring = wiring
            resolve(self._opened, wiring.dialect.capabilities())
        else:
            self._not_opened(refused)

    def _not_opened(self, cause: ProviderError) -> None:
        self._lost = cause
        self._claim.drop()
        if self._main is not None:
            self._main.end(cause)
        self._loop.stop(lambda: fail(self._opened, cause))

    def close(self) -> Future[None]:
        """End in order: what was sent is written, then the broker is told, then everything pending fails."""
        if self._closed is None:
            self._closed = Future()
            if self._events is None or (self._lost is not None and self._wiring is None):
                resolve(self._closed, None)
            else:
                self._loop.post(self._close, self._closed)
        return self._closed

    def _close(self, closed: Future[None]) -> None:
        def left(_: ProviderError | None) -> None:
            self._links_gone()
            fail(self._opened, ProviderError(ErrorKind.CLOSED, "the connection was closed while it was opened"))
            self._loop.stop(lambda: resolve(closed, None))

        link = self._main
        if link is None or self._wiring is None:
            left(None)
            return
        self._loop.later(self._options.close_timeout_ms / 1000, lambda: self._give_up(link, left))
        link.disconnect(lambda _: self._links.leave(left))

    def _links_gone(self) -> None:
        """Let go of everything but the thread."""
        self._claim.drop()
        if self._wiring is not None:
            for consumer in self._consumers.all_lost(None, _closed_error()):
                self._subscribing.left(consumer)
            self._links.end()

    def _give_up(self, link: Link, left: Done) -> None:
        link.end(_closed_error())
        left(None)

    def _on_crash(self, fault: Exception) -> None:
        cause = ProviderError(ErrorKind.PROTOCOL, f"a fault in the provider ended the connection: {fault!r}", fatal=True)
        fail(self._opened, cause)
        if self._main is not None:
            self._main.end(cause)
        self._lost = self._lost or cause
        if self._closed is not None:
            resolve(self._closed, None)

    # the seam

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Make a token: STOMP has no sessions."""
        return self._refused() or completed(SessionHandle(next(self._serials), transacted))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Subscribe."""
        refused = self._refused()
        if refused is not None:
            return refused
        future: Future[Handle] = Future()
        self._loop.post(self._open_consumer, _session(session), spec, future)
        return future

    def _open_consumer(self, session: SessionHandle, spec: ConsumerSpec, future: Future[Handle]) -> None:
        wiring = self._wired()
        try:
            wiring.dialect.check(spec.address)
            self._check_temporary(spec.address)
            plan = wiring.dialect.plan(spec, wiring.client_id)
        except ProviderError as cause:
            fail(future, cause)
            return
        handle = ConsumerHandle(next(self._serials), session.serial, spec.deferred_acks)
        consumer = Consumer(handle, spec, plan, wiring.link)

        def done(cause: ProviderError | None) -> None:
            if cause is None:
                resolve(future, handle)
            else:
                fail(future, cause)

        self._subscribing.open(consumer, done)

    def _check_temporary(self, address: Address) -> None:
        if address.kind.is_temporary and address not in self._wired().temporary:
            text = f"{address.name!r} is no temporary destination of this connection, or it is deleted"
            raise ProviderError(ErrorKind.DESTINATION, text)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Check the destination's name and make a token."""
        refused = self._refused()
        if refused is not None:
            return refused
        if destination is not None:
            try:
                self._wired().dialect.check(destination)
            except ProviderError as cause:
                return failed(cause)
        return completed(ProducerHandle(next(self._serials), destination))

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer."""
        if isinstance(handle, ProducerHandle) or self._lost is not None or self._closed is not None:
            return DONE
        future: Future[None] = Future()
        self._loop.post(self._release, handle, future)
        return future

    def _release(self, handle: Handle, future: Future[None]) -> None:
        if isinstance(handle, ConsumerHandle):
            consumer = self._consumers.find(handle)
            gone = [] if consumer is None else [consumer]
        else:
            gone = self._consumers.of_session(_session(handle).serial)
        left = len(gone)

        def done(_: ProviderError | None) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                resolve(future, None)

        for consumer in gone:
            self._subscribing.release(consumer, done)
        if not gone:
            resolve(future, None)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Encode here, so that a fault is the caller's; the I/O thread writes."""
        if self._wiring is None or self._lost is not None or self._closed is not None:
            self._loop.post(self._answer, token, self._why_not())
            return
        try:
            self._sending.send(envelope, tx if isinstance(tx, TxHandle) else None, token)
        except ProviderError as cause:
            if cause.kind is ErrorKind.FORMAT:
                raise
            self._loop.post(self._answer, token, cause)

    def _answer(self, token: object, cause: ProviderError) -> None:
        if self._events is not None:
            self._events.on_sent([(token, cause)])

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow more deliveries; what is held is handed on."""
        refused = self._refused()
        if refused is not None:
            return refused
        self._loop.post(self._consumers.credit, consumer, n)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        """Wait for the grace period, then take all credit back."""
        refused = self._refused()
        if refused is not None:
            return refused
        future: Future[None] = Future()
        self._loop.post(self._consumers.drain, consumer, future)
        return future

    def settle(self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None) -> Future[None]:
        """Acknowledge, give back or reject.

        Acknowledgements of consumers that ask for late ones are confirmed by the broker; others are written and trusted.
        """
        refused = self._refused()
        if refused is not None:
            return refused
        ours = [tag for tag in tags if isinstance(tag, StompTag)]
        if isinstance(tx, TxHandle):
            self._loop.post(self._transactions.settle, tx, ours)
            return DONE
        if outcome is Outcome.ACCEPTED and len(ours) == 1:
            self._loop.post(self._consumers.settle, ours, outcome, None)
            return DONE
        future: Future[None] = Future()
        reject = outcome is Outcome.REJECTED and self._wired().dialect.rejects_by_copy
        self._loop.post(self._sending.reject if reject else self._consumers.settle, ours, outcome, _ending(future))
        return future

    def begin(self, session: Handle) -> Future[Handle]:
        """Make a transaction; BEGIN is written before its first frame."""
        return self._refused() or completed(TxHandle(f"{self._word}.{next(self._serials)}"))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back."""
        refused = self._refused()
        if refused is not None:
            return refused
        future: Future[None] = Future()
        self._loop.post(self._transactions.end, tx, commit, _ending(future))
        return future

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Make a unique name; the broker makes the destination when it is first used."""
        refused = self._refused()
        if refused is not None:
            return refused
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        address = Address(kind, f"jmsapi.temp.{uuid.uuid4()}")
        future: Future[Address] = Future()
        self._loop.post(self._create_temporary, address, future)
        return future

    def _create_temporary(self, address: Address, future: Future[Address]) -> None:
        wiring = self._wired()

        def made(cause: ProviderError | None) -> None:
            if cause is None:
                wiring.temporary.add(address)
                resolve(future, address)
            else:
                fail(future, cause)

        self._subscribing.create_temporary(address, made)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination or end a durable subscription."""
        refused = self._refused()
        if refused is not None:
            return refused
        future: Future[None] = Future()
        if isinstance(what, Address):
            self._loop.post(self._subscribing.remove_temporary, what, _ending(future))
        else:
            self._loop.post(self._subscribing.remove, what, _ending(future))
        return future

    def _refused(self) -> Future[Any] | None:
        """Return a failed future when the connection is of no more use."""
        if self._wiring is None or self._lost is not None or self._closed is not None:
            return failed(self._why_not())
        return None

    def _why_not(self) -> ProviderError:
        if self._closed is not None:
            return _closed_error()
        return self._lost or ProviderError(ErrorKind.CLOSED, "the connection is not open")

    def _wired(self) -> Wiring:
        if self._wiring is None:
            raise self._why_not()
        return self._wiring

    # what links tell

    def on_messages(self, link: Link, frames: list[Frame]) -> None:
        """Pass messages to their consumers."""
        self._consumers.on_messages(frames)

    def on_receipts(self, results: list[SendResult]) -> None:
        """Pass answers to the core."""
        if self._events is not None:
            self._events.on_sent(self._transactions.answers(results))

    def on_stray_error(self, link: Link, headers: Mapping[str, str], text: str) -> bool:
        """Live on after an ERROR of RabbitMQ that concerns one consumer, or none any more."""
        if not isinstance(self._wired().dialect, RabbitMQ):
            return False
        if "Server cancelled subscription" in text:
            self._consumers.cancelled(headers.get("subscription", ""), text)
            return True
        return "Subscription not found" in text

    def on_link_lost(self, link: Link, cause: ProviderError) -> None:
        """Tell the core once that the link is gone; a further connection takes only its consumers along."""
        if self._wiring is None:
            return
        gone = self._consumers.all_lost(link, cause)
        for consumer in gone:
            self._subscribing.left(consumer)
        if link is not self._main:
            for consumer in gone:
                self._wiring.events.on_closed(consumer.handle, cause)
            return
        if self._lost is None:
            self._lost = cause
            self._claim.drop()
            if self._closed is None:
                self._wiring.events.on_lost(cause)


def _session(handle: Handle) -> SessionHandle:
    if not isinstance(handle, SessionHandle):
        raise ProviderError(ErrorKind.CLOSED, "not a session of this provider")
    return handle


def _closed_error() -> ProviderError:
    return ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)


def _ending(future: Future[None]) -> Done:
    def done(cause: ProviderError | None) -> None:
        if cause is None:
            resolve(future, None)
        else:
            fail(future, cause)

    return done
