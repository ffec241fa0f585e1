"""The STOMP provider: the fourteen calls of the SPI, each turned into a job for the I/O thread."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
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
    Tag,
    completed,
    fail,
    failed,
    resolve,
)
from jmsapi_stomp.answers import after_all, finish
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.handles import ConsumerHandle, ProducerHandle, StompSessionHandle, StompTag, StompTxHandle
from jmsapi_stomp.lifecycle import ConnectionLifecycle
from jmsapi_stomp.open_connection import OpenConnection
from jmsapi_stomp.options import StompOptions

__all__ = ["StompProvider"]


class StompProvider:
    """One JMS connection over STOMP.

    Args:
        options: Its options.
        clock: The time.
    """

    def __init__(self, options: StompOptions, clock: Clock) -> None:
        self._lifecycle = ConnectionLifecycle(options, clock)
        self._loop = self._lifecycle.loop
        self._serials = count(1)

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate."""
        return self._lifecycle.open(events)

    def close(self) -> Future[None]:
        """End in order; everything pending fails."""
        return self._lifecycle.close()

    def _refused(self) -> Future[Any]:
        return failed(self._lifecycle.why_not())

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Make a token: STOMP has no sessions."""
        if self._lifecycle.parts is None:
            return self._refused()
        return completed(StompSessionHandle(next(self._serials), transacted))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Subscribe."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        future: Future[Handle] = Future()
        self._loop.post(self._open_consumer, parts, _session(session), spec, future)
        return future

    def _open_consumer(
        self, parts: OpenConnection, session: StompSessionHandle, spec: ConsumerSpec, future: Future[Handle]
    ) -> None:
        context = parts.context
        try:
            context.behaviour.check(spec.address)
            if spec.address.kind.is_temporary and spec.address not in context.temporary:
                text = f"{spec.address.name!r} is no temporary destination of this connection, or it is deleted"
                raise ProviderError(ErrorKind.DESTINATION, text)
            plan = context.behaviour.plan(spec, context.client_id)
        except ProviderError as cause:
            fail(future, cause)
            return
        handle = ConsumerHandle(next(self._serials), session.serial, spec.deferred_acks)
        consumer = StompConsumer(handle, spec, plan, context.connection)

        def done(cause: ProviderError | None) -> None:
            if cause is None:
                resolve(future, handle)
            else:
                fail(future, cause)

        parts.subscriber.open(consumer, done)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Check the destination's name and make a token."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        if destination is not None:
            try:
                parts.context.behaviour.check(destination)
            except ProviderError as cause:
                return failed(cause)
        return completed(ProducerHandle())

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer."""
        parts = self._lifecycle.parts
        if isinstance(handle, ProducerHandle) or parts is None:
            return DONE
        future: Future[None] = Future()
        self._loop.post(self._release, parts, handle, future)
        return future

    def _release(self, parts: OpenConnection, handle: Handle, future: Future[None]) -> None:
        if isinstance(handle, ConsumerHandle):
            consumer = parts.consumers.find(handle)
            gone = [] if consumer is None else [consumer]
        else:
            gone = parts.consumers.of_session(_session(handle).serial)
        after_all([partial(parts.subscriber.release, consumer) for consumer in gone], lambda _: resolve(future, None))

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Encode here, so that a fault is the caller's; the I/O thread writes."""
        parts = self._lifecycle.parts
        if parts is None:
            self._loop.post(self._lifecycle.answer, token, self._lifecycle.why_not())
            return
        try:
            parts.sender.send(_producer(producer), envelope, tx if isinstance(tx, StompTxHandle) else None, token)
        except ProviderError as cause:
            if cause.kind is ErrorKind.FORMAT:
                raise
            self._loop.post(self._lifecycle.answer, token, cause)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow more deliveries; what is held is handed on."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        self._loop.post(parts.flow.credit, consumer, n)
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        """Wait for the grace period, then take all credit back."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        future: Future[None] = Future()
        self._loop.post(parts.flow.drain, consumer, future)
        return future

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Acknowledge, return or reject.

        Acknowledgements of consumers that ask for late ones are confirmed by the broker, and all where it may forget them; others
        are done when they are written.
        """
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        ours = [tag for tag in tags if isinstance(tag, StompTag)]
        if isinstance(tx, StompTxHandle):
            self._loop.post(parts.transactions.settle, tx, ours)
            return DONE
        settlement = parts.settlement
        one = outcome is Outcome.ACCEPTED and len(ours) == 1
        if one and (written := settlement.acknowledge_now(ours[0])) is not None:
            return written
        future: Future[None] = Future()
        if one and not ours[0].confirmed:
            self._loop.post(settlement.acknowledge_one, ours[0], finish(future))
        elif outcome is Outcome.REJECTED and parts.context.behaviour.rejects_by_copy:
            self._loop.post(parts.sender.reject, ours, outcome, finish(future))
        else:
            self._loop.post(settlement.settle, ours, outcome, finish(future), failures)
        return future

    def begin(self, session: Handle) -> Future[Handle]:
        """Make a transaction; BEGIN is written before its first frame."""
        if self._lifecycle.parts is None:
            return self._refused()
        return completed(StompTxHandle(f"{self._lifecycle.identity}.{next(self._serials)}"))

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        future: Future[None] = Future()
        self._loop.post(parts.transactions.end, tx, commit, finish(future))
        return future

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Make a destination with a unique name; it ends with the connection."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        future: Future[Address] = Future()

        def made(answer: Address | ProviderError) -> None:
            if isinstance(answer, ProviderError):
                fail(future, answer)
            else:
                resolve(future, answer)

        self._loop.post(parts.subscriber.create_temporary, kind, made)
        return future

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination or end a durable subscription."""
        parts = self._lifecycle.parts
        if parts is None:
            return self._refused()
        future: Future[None] = Future()
        remove = parts.subscriber.remove_temporary if isinstance(what, Address) else parts.subscriber.remove
        self._loop.post(remove, what, finish(future))
        return future


def _session(handle: Handle) -> StompSessionHandle:
    if not isinstance(handle, StompSessionHandle):
        raise ProviderError(ErrorKind.CLOSED, "not a session of this provider")
    return handle


def _producer(handle: Handle) -> ProducerHandle:
    if not isinstance(handle, ProducerHandle):
        raise ProviderError(ErrorKind.CLOSED, "not a producer of this provider")
    return handle
