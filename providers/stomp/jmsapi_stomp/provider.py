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
from jmsapi_stomp.codec import encode
from jmsapi_stomp.consumers import Consumer, Consumers
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.link import Done, Link, LinkSettings
from jmsapi_stomp.loop import IoLoop
from jmsapi_stomp.opening import choose_dialect, link_settings
from jmsapi_stomp.options import StompOptions
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

    # opening and closing

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate; the dialect is chosen from the broker's answer."""
        if self._events is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._events = events
        try:
            settings = link_settings(self._options)
        except ProviderError as cause:
            return failed(cause)
        self._loop.start()
        self._loop.post(self._connect, settings)
        return self._opened

    def _connect(self, settings: LinkSettings) -> None:
        self._main = link = Link(self._loop, self._clock, settings, self)
        link.connect(self._on_connected)

    def _on_connected(self, cause: ProviderError | None) -> None:
        link, events = self._main, self._events
        if link is None or events is None:
            return
        if cause is None:
            try:
                dialect = choose_dialect(self._options, link.connected_headers.get("server", ""))
            except ProviderError as unknown:
                link.end(unknown)
                cause = unknown
            else:
                link.every_error_ends = dialect.every_error_ends
                link.one_at_a_time = dialect.one_at_a_time
                self._wiring = Wiring(
                    self._loop, self._clock, self._options, events, link, dialect, self._options.client_id, self._word
                )
                self._consumers = Consumers(self._wiring)
                self._transactions = Transactions(self._wiring, self._consumers)
                resolve(self._opened, dialect.capabilities())
                return
        self._lost = cause
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
            fail(self._opened, ProviderError(ErrorKind.CLOSED, "the connection was closed while it was opened"))
            self._loop.stop(lambda: resolve(closed, None))

        link = self._main
        if link is None or self._wiring is None:
            left(None)
            return
        self._loop.later(self._options.close_timeout_ms / 1000, lambda: link.end(_closed_error()))
        link.disconnect(left)

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
        except ProviderError as cause:
            fail(future, cause)
            return
        handle = ConsumerHandle(next(self._serials), session.serial, spec.deferred_acks)
        consumer = Consumer(handle, spec, wiring.link)
        headers = wiring.dialect.subscribe_headers(spec, spec.prefetch)

        def done(cause: ProviderError | None) -> None:
            if cause is None:
                resolve(future, handle)
            else:
                fail(future, cause)

        self._consumers.subscribe(consumer, wiring.dialect.consume_from(spec.address), headers, done)

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
            self._consumers.release(consumer, done)
        if not gone:
            resolve(future, None)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Encode here, so that a fault is the caller's; the I/O thread writes."""
        wiring = self._wiring
        if wiring is None or self._lost is not None or self._closed is not None:
            self._loop.post(self._answer, token, self._why_not())
            return
        dialect = wiring.dialect
        try:
            if not isinstance(producer, ProducerHandle) or producer.destination is None:
                dialect.check(envelope.destination)
        except ProviderError as cause:
            self._loop.post(self._answer, token, cause)
            return
        frame = encode(envelope, dialect, self._clock.now_ms(), self._options.client_id or self._word)
        if isinstance(tx, TxHandle):
            self._loop.post(self._transactions.send, tx, frame, token)
        else:
            self._loop.post(self._send, frame, token, dialect.wants_receipt(envelope))

    def _send(self, frame: bytes, token: object, confirm: bool) -> None:
        self._wired().link.send(frame, token, confirm=confirm)

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
        self._loop.post(self._consumers.settle, ours, outcome, _ending(future))
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
        self._wired().temporary.add(address)
        return completed(address)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination or end a durable subscription."""
        refused = self._refused()
        if refused is not None:
            return refused
        if isinstance(what, Address):
            self._wired().temporary.discard(what)
            return DONE
        return failed(ProviderError(ErrorKind.SUBSCRIPTION, f"there is no subscription {what!r}"))

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
        """Live on after an ERROR that is known to be harmless."""
        return self._wired().dialect.name == "rabbitmq" and "subscription not found" in text.lower()

    def on_link_lost(self, link: Link, cause: ProviderError) -> None:
        """Tell the core once that the link is gone."""
        self._consumers.all_lost(link, cause)
        if link is not self._main or self._lost is not None:
            return
        self._lost = cause
        if self._events is not None and self._closed is None:
            self._events.on_lost(cause)


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
