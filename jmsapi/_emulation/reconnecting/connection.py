"""The provider interface over links that are made again.

What the core holds outlives a link. A loss is reported by ``on_lost`` with an error that is not fatal, and ``on_resumed`` follows
when another link is there, with everything on it. A fatal error means that it was given up.

What holds over a break, for each call:

| call | under way, or made while there is no link |
|---|---|
| open_session, open_consumer, open_producer, begin, create_temporary, remove | made (again) on the next link |
| drain | fails: nothing is at hand |
| release | done: the end of the link has released everything |
| credit | counts: what was given and is not used up is given on the next link |
| settle | the delivery comes again: ACCEPTED fails, the others are done |
| send | under way: fails as IN_DOUBT, or is sent again if asked for; not begun: waits for the next link |
| a transaction in which something was done | can only roll back: ``end(commit=True)`` fails as ROLLED_BACK |
| ``end(commit=True)`` under way | fails as IN_DOUBT, never made again |

Requests wait at most ``request_timeout_ms``, sends ``send_timeout_ms``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi._emulation.reconnecting.epoch import Epoch
from jmsapi._emulation.reconnecting.lifecycle import AttemptObserver, Lifecycle
from jmsapi._emulation.reconnecting.pending_sends import UnansweredSends
from jmsapi._emulation.reconnecting.records import (
    ConsumerRecord,
    LinkTag,
    ProducerRecord,
    SessionRecord,
    TransactionRecord,
    is_loss,
)
from jmsapi._emulation.reconnecting.requests import Requests
from jmsapi._emulation.reconnecting.restoring import Restoring
from jmsapi._emulation.reconnecting.state import ConnectionState
from jmsapi._emulation.reconnecting.temporary_destinations import TemporaryDestinations
from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    answered,
    fail,
    failed,
    resolve,
    stop_consumer,
)

if TYPE_CHECKING:
    from jmsapi.spi.options import FailoverOptions, ProviderOptions

__all__ = ["Reconnecting"]


class Reconnecting:
    """One connection to one of several servers, over as many links as it takes.

    Args:
        make: Makes an unopened provider for a server, with the decorators that belong to a link.
        options: Those of the connection.
        failover: Its part about reconnecting.
        clock: Time.
        watch: Is given each attempt.
        chance: For jitter and the order of servers.
    """

    def __init__(
        self,
        make: Callable[[ProviderOptions], Provider],
        options: ProviderOptions,
        failover: FailoverOptions,
        clock: Clock,
        watch: AttemptObserver,
        chance: random.Random | None = None,
    ) -> None:
        self._state = ConnectionState(options, failover, clock)
        self._temporary = TemporaryDestinations()
        self._requests = Requests(self._state)
        self._sends = UnansweredSends(self._state, self._temporary.renamed)
        restoring = Restoring(self._state, self._temporary, self._requests)
        self._lifecycle = Lifecycle(self._state, make, self._requests, self._sends, restoring, watch, chance)

    def open(self, events: Events) -> Future[Capabilities]:
        """Make the first link, trying as often as the options say."""
        return self._lifecycle.open(events)

    def close(self) -> Future[None]:
        """End in order: a link that lives is closed, an attempt is broken off."""
        return self._lifecycle.close()

    # ---- what is made again ---------------------------------------------------------------------------------------
    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Open a session that outlives its link."""
        record = SessionRecord(transacted=transacted)

        def keep(epoch: Epoch, inner: Handle) -> Handle:
            record.epoch, record.inner = epoch, inner
            self._state.sessions[record] = None
            return record

        return self._requests.ask(lambda epoch: epoch.provider.open_session(transacted=transacted), keep)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Open a consumer, subscription or browser; all but a browser outlive their link."""
        owner = _session(session)
        record = ConsumerRecord(owner, spec)

        def keep(epoch: Epoch, inner: Handle) -> Handle:
            record.epoch, record.inner = epoch, inner
            epoch.consumers[inner] = record
            owner.children[record] = None
            return record

        def start(epoch: Epoch) -> Future[Handle]:
            return epoch.provider.open_consumer(owner.on(epoch), self._temporary.spec_here(spec))

        return self._requests.ask(start, keep)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Open a producer that outlives its link."""
        owner = _session(session)
        record = ProducerRecord(owner, destination)

        def keep(epoch: Epoch, inner: Handle) -> Handle:
            record.epoch, record.inner = epoch, inner
            owner.children[record] = None
            return record

        def start(epoch: Epoch) -> Future[Handle]:
            place = None if destination is None else self._temporary.here(destination)
            return epoch.provider.open_producer(owner.on(epoch), place)

        return self._requests.ask(start, keep)

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Create a destination that ends with its link, or is made again if that is asked for."""
        owner = _session(session)

        def keep(_: Epoch, address: Address) -> Address:
            self._temporary.add(owner, address)
            return address

        return self._requests.ask(lambda epoch: epoch.provider.create_temporary(owner.on(epoch), topic=topic), keep)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination, or end a durable subscription; that it is not there any more is as good."""
        owner = _session(session)

        def start(epoch: Epoch) -> Future[None]:
            named = what if isinstance(what, str) else self._temporary.here(what)
            return epoch.provider.remove(owner.on(epoch), named)

        def keep(_: Epoch, answer: None) -> None:
            if isinstance(what, Address):
                self._temporary.remove(what)
            return answer

        return self._requests.ask(start, keep, ErrorKind.SUBSCRIPTION if isinstance(what, str) else ErrorKind.DESTINATION)

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer; without a link it is ended already."""
        if not isinstance(handle, SessionRecord | ConsumerRecord | ProducerRecord):
            return failed(ProviderError(ErrorKind.CLOSED, "not a handle of this connection"))
        with self._state.guard:
            epoch = self._state.epoch
            inner = handle.inner if epoch is not None and handle.is_on(epoch) else None
            handle.released = True
            if isinstance(handle, SessionRecord):
                self._state.sessions.pop(handle, None)
            else:
                handle.session.children.pop(handle, None)
        if epoch is None or inner is None:
            return DONE
        answer: Future[None] = Future()

        def done(released: Future[None]) -> None:
            with self._state.guard:
                epoch.consumers.pop(inner, None)
            error = released.exception()
            _end(answer, None if is_loss(error, over=epoch.over) else error)

        try:
            epoch.provider.release(inner).add_done_callback(done)
        except ProviderError as error:
            return DONE if is_loss(error) else failed(error)
        return answer

    # ---- receiving ------------------------------------------------------------------------------------------------
    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow more deliveries, by whatever link they come."""
        if not isinstance(consumer, ConsumerRecord):
            return failed(ProviderError(ErrorKind.CLOSED, "not a consumer of this connection"))
        with self._state.guard:
            consumer.credit += n
            epoch = self._state.epoch
            inner = consumer.inner if epoch is not None and consumer.is_on(epoch) else None
        if epoch is None or inner is None:
            return DONE
        try:
            future = epoch.provider.credit(inner, n)
        except ProviderError as error:
            future = failed(error)
        failure = future.exception() if future.done() else None
        if isinstance(failure, ProviderError) and is_loss(failure, over=epoch.over):
            epoch.suspect(failure)
            return DONE
        return future

    def drain(self, consumer: Handle) -> Future[None]:
        """Take all credit back. Without a link there is nothing at hand: it fails, and the credit holds for the next link."""
        return self._take_credit_back(consumer, lambda provider, inner: provider.drain(inner))

    def stop(self, consumer: Handle) -> Future[None]:
        """Take all credit back; without a link as ``drain``."""
        return self._take_credit_back(consumer, stop_consumer)

    def _take_credit_back(self, consumer: Handle, call: Callable[[Provider, Handle], Future[None]]) -> Future[None]:
        if not isinstance(consumer, ConsumerRecord):
            return failed(ProviderError(ErrorKind.CLOSED, "not a consumer of this connection"))
        with self._state.guard:
            epoch = self._state.epoch
            inner = consumer.inner if epoch is not None and consumer.is_on(epoch) else None
        if consumer.refused is not None:
            return failed(consumer.refused)
        if epoch is None or inner is None:
            return failed(
                ProviderError(ErrorKind.CONNECTION, "there is no link at the moment")
                if self._state.usable
                else self._state.why_not()
            )
        answer: Future[None] = Future()

        def done(drained: Future[None]) -> None:
            error = drained.exception()
            if error is None:
                with self._state.guard:
                    if self._state.epoch is epoch:
                        consumer.credit = 0
            elif isinstance(error, ProviderError) and is_loss(error, over=epoch.over):
                epoch.suspect(error)
                error = ProviderError(ErrorKind.CONNECTION, error.message)
            _end(answer, error)

        try:
            call(epoch.provider, inner).add_done_callback(done)
        except ProviderError as error:
            return failed(error)
        return answer

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Settle deliveries; what came by a link that is lost is delivered again, whatever its outcome was to be."""
        epoch = self._state.epoch
        mine = [tag.inner for tag in tags if isinstance(tag, LinkTag) and tag.epoch is epoch]
        stale = len(mine) < len(tags)
        if isinstance(tx, TransactionRecord):
            return self._enlist(tx, mine, stale)
        counts = [n for tag, n in zip(tags, failures, strict=False) if isinstance(tag, LinkTag) and tag.epoch is epoch]
        future = DONE
        if epoch is not None and mine:
            try:
                future = epoch.provider.settle(mine, outcome, None, counts)
            except ProviderError as error:
                future = failed(error)
            if not future.done() or future.exception() is not None:
                future = self._settled(epoch, future)
        if stale and outcome is Outcome.ACCEPTED:
            text = "the link by which it was delivered was lost before it was acknowledged; it comes again"
            return failed(ProviderError(ErrorKind.CONNECTION, text))
        return future

    def _settled(self, epoch: Epoch, future: Future[None]) -> Future[None]:
        def refused(error: BaseException) -> BaseException:
            if not isinstance(error, ProviderError) or not is_loss(error, over=epoch.over):
                return error
            if not error.fatal and not epoch.over:
                return error  # its consumer has ended, and with it whatever link that one had: not ours
            epoch.suspect(error)
            text = f"the link was lost before the broker confirmed it ({error.message}); what was acknowledged may come again"
            return ProviderError(ErrorKind.IN_DOUBT, text)

        return answered(future, lambda _: None, refused)

    def _enlist(self, tx: TransactionRecord, mine: list[Tag], stale: bool) -> Future[None]:
        with self._state.guard:
            epoch = self._state.epoch
            tx.used = True
            inner = tx.inner if epoch is not None and tx.is_on(epoch) else None
        if stale or epoch is None or inner is None:
            return failed(_rolled_back())
        try:
            return self._settled(epoch, epoch.provider.settle(mine, Outcome.ACCEPTED, inner))
        except ProviderError as error:
            return self._settled(epoch, failed(error))

    # ---- sending --------------------------------------------------------------------------------------------------
    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Send one message; ``on_sent`` answers it once, whatever becomes of the link."""
        if not isinstance(producer, ProducerRecord):
            raise ProviderError(ErrorKind.CLOSED, "not a producer of this connection")
        self._sends.send(producer, envelope, tx if isinstance(tx, TransactionRecord) else None, token)

    def take_back(self, token: object) -> None:
        """Answer a send that no broker has seen."""
        self._sends.take_back(token)

    def begin(self, session: Handle) -> Future[Handle]:
        """Begin a transaction; as long as nothing is done in it, it outlives its link."""
        owner = _session(session)
        record = TransactionRecord(owner)

        def keep(epoch: Epoch, inner: Handle) -> Handle:
            record.epoch, record.inner = epoch, inner
            owner.transactions[record] = None
            return record

        return self._requests.ask(lambda epoch: epoch.provider.begin(owner.on(epoch)), keep)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back; a transaction that spans a break is rolled back."""
        if not isinstance(tx, TransactionRecord):
            return failed(ProviderError(ErrorKind.CLOSED, "not a transaction of this connection"))
        with self._state.guard:
            epoch = self._state.epoch
            inner = tx.inner if epoch is not None and tx.is_on(epoch) else None
            tx.session.transactions.pop(tx, None)
            tx.used = True
        if epoch is None or inner is None:
            # Its link's end has rolled it back. Of one without anything in it nothing is lost either way.
            return failed(_rolled_back()) if commit else DONE
        answer: Future[None] = Future()
        try:
            ended = epoch.provider.end(inner, commit=commit)
        except ProviderError as error:
            ended = failed(error)

        def done(future: Future[None]) -> None:
            error = future.exception()
            loss = isinstance(error, ProviderError) and (is_loss(error, over=epoch.over))
            if loss and isinstance(error, ProviderError):
                epoch.suspect(error)
            if loss and isinstance(error, ProviderError) and error.kind is not ErrorKind.ROLLED_BACK:
                error = _in_doubt(error) if commit else None
            _end(answer, error)

        ended.add_done_callback(done)
        return answer


def _end(answer: Future[None], error: BaseException | None) -> None:
    if error is None:
        resolve(answer, None)
    else:
        fail(answer, error)


def _session(handle: Handle) -> SessionRecord:
    if not isinstance(handle, SessionRecord):
        raise ProviderError(ErrorKind.CLOSED, "not a session of this connection")
    return handle


def _rolled_back() -> ProviderError:
    text = "the link was lost during the transaction: it is rolled back, and what was received in it comes again"
    return ProviderError(ErrorKind.ROLLED_BACK, text)


def _in_doubt(cause: ProviderError) -> ProviderError:
    text = f"the link was lost before the broker answered ({cause.message}); whether the transaction is committed is not known"
    return ProviderError(ErrorKind.IN_DOUBT, text)
