"""The STOMP provider: the seam's fourteen calls, each turned into a job for the I/O thread."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from jmsapi.spi import (
    DONE,
    Address,
    ConsumerSpec,
    DestinationKind,
    Envelope,
    ErrorKind,
    Handle,
    Outcome,
    ProviderError,
    Tag,
    completed,
    failed,
)
from jmsapi_stomp.consumer import Consumer
from jmsapi_stomp.control import Done
from jmsapi_stomp.lifecycle import Lifecycle
from jmsapi_stomp.wiring import (
    ConsumerHandle,
    ProducerHandle,
    SessionHandle,
    StompTag,
    TxHandle,
    fail,
    resolve,
)

__all__ = ["StompProvider"]


class StompProvider(Lifecycle):
    """One JMS connection over STOMP."""

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
        return completed(ProducerHandle())

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
            self._sending.send(_producer(producer), envelope, tx if isinstance(tx, TxHandle) else None, token)
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

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Acknowledge, give back or reject.

        Acknowledgements of consumers that ask for late ones are confirmed by the broker; others are done when they are written.
        """
        refused = self._refused()
        if refused is not None:
            return refused
        ours = [tag for tag in tags if isinstance(tag, StompTag)]
        if isinstance(tx, TxHandle):
            self._loop.post(self._transactions.settle, tx, ours)
            return DONE
        one = outcome is Outcome.ACCEPTED and len(ours) == 1 and not ours[0].confirmed
        if one and self._consumers.acknowledge_now(ours[0]):
            return DONE
        future: Future[None] = Future()
        if one:
            self._loop.post(self._consumers.acknowledge_one, ours[0], _ending(future))
            return future
        if outcome is Outcome.REJECTED and self._wired().dialect.rejects_by_copy:
            self._loop.post(self._sending.reject, ours, outcome, _ending(future))
        else:
            self._loop.post(self._consumers.settle, ours, outcome, _ending(future), failures)
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
        """Make a destination with a unique name; it ends with the connection."""
        refused = self._refused()
        if refused is not None:
            return refused
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        future: Future[Address] = Future()
        self._loop.post(self._create_temporary, kind, future)
        return future

    def _create_temporary(self, kind: DestinationKind, future: Future[Address]) -> None:
        def made(answer: Address | ProviderError) -> None:
            if isinstance(answer, ProviderError):
                fail(future, answer)
            else:
                resolve(future, answer)

        self._subscribing.create_temporary(kind, made)

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


def _session(handle: Handle) -> SessionHandle:
    if not isinstance(handle, SessionHandle):
        raise ProviderError(ErrorKind.CLOSED, "not a session of this provider")
    return handle


def _producer(handle: Handle) -> ProducerHandle:
    if not isinstance(handle, ProducerHandle):
        raise ProviderError(ErrorKind.CLOSED, "not a producer of this provider")
    return handle


def _ending(future: Future[None]) -> Done:
    def done(cause: ProviderError | None) -> None:
        if cause is None:
            resolve(future, None)
        else:
            fail(future, cause)

    return done
