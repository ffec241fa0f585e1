"""Making everything again on a new link: temporary destinations, sessions, producers, consumers, unused transactions.

What the broker refuses is not tried for ever: a refused consumer or producer is ended and says so, all others go on. Only what
our own dead link may still hold (an exclusive durable subscription) is asked for again, beside the running connection, until
the broker must have noticed. A browser is not made again: it would show everything twice.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from jmsapi._emulation.guarded_calls import call_below, notify
from jmsapi._emulation.reconnecting.records import (
    ConsumerRecord,
    HandleRecord,
    ProducerRecord,
    SessionRecord,
    is_loss,
)
from jmsapi._emulation.reconnecting.requests import Requests
from jmsapi._emulation.reconnecting.state import ConnectionState
from jmsapi._emulation.reconnecting.temporary_destinations import TemporaryDestinations
from jmsapi.spi import ErrorKind, Handle, ProviderError, failed
from jmsapi.wire import Waits, run

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting.epoch import Epoch

__all__ = ["Restoring"]

T = TypeVar("T")
_log = logging.getLogger("jmsapi.reconnect")
_AGAIN_S: Final = 0.5
"""How often a subscription that is in use is asked for again."""
_HELD: Final = frozenset({ErrorKind.IN_USE, ErrorKind.MISMATCH})
"""What a subscription that our dead link still holds is refused with."""


class Restoring:
    """What must be made again.

    Args:
        state: The connection's.
        temporary: Its temporary destinations.
        requests: Its calls, some of which wait for a handle that is made again late.
    """

    def __init__(self, state: ConnectionState, temporary: TemporaryDestinations, requests: Requests) -> None:
        self._state = state
        self._temporary = temporary
        self._requests = requests
        self._news: list[tuple[ConsumerRecord, ProviderError]] = []
        """Consumers that could not be made again, which must be reported to the core."""
        self._held: list[ConsumerRecord] = []
        """Consumers whose subscription our dead link may still hold."""

    # ---- losing ---------------------------------------------------------------------------------------------------
    def forget_browsers(self, cause: ProviderError) -> list[tuple[ConsumerRecord, ProviderError]]:
        """End the browsers of a link that is lost; return them with what must be reported to the core."""
        ended: list[tuple[ConsumerRecord, ProviderError]] = []
        with self._state.guard:
            for session in self._state.sessions:
                for child in list(session.children):
                    if isinstance(child, ConsumerRecord) and child.spec.browse:
                        del session.children[child]
                        text = f"the look at the queue ended with its link ({cause.message}); look again"
                        child.refused = ProviderError(ErrorKind.CONNECTION, text)
                        ended.append((child, child.refused))
        return ended

    # ---- making again ---------------------------------------------------------------------------------------------
    async def restore(self, epoch: Epoch, waits: Waits) -> None:
        """Make everything again on a new link.

        Raises:
            ProviderError: The link does not hold, or refuses what no connection can be without.
        """
        state, provider = self._state, epoch.provider
        self._news.clear()
        self._held.clear()
        with state.guard:
            sessions = list(state.sessions)
        for session, opened in [
            (session, call_below(provider.open_session, transacted=session.transacted)) for session in sessions
        ]:
            self._take(session, epoch, await self._answer(epoch, waits, opened))
        await self._restore_temporary(epoch, waits)
        with state.guard:
            children = [(child, session) for session in sessions for child in session.children]
            unused = [(tx, session) for session in sessions for tx in session.transactions if not tx.used]
        reopened = [(child, self._reopen(epoch, child, session)) for child, session in children]
        for child, opened in reopened:
            await self._take_child(child, epoch, waits, opened)
        begun = [(tx, call_below(provider.begin, session.on(epoch))) for tx, session in unused if not session.released]
        for tx, opened in begun:
            inner = await self._answer(epoch, waits, opened)
            with state.guard:
                if not tx.used:
                    tx.epoch, tx.inner = epoch, inner

    async def _answer(self, epoch: Epoch, waits: Waits, future: Future[T]) -> T:
        await waits.done(future, self._state.options.request_timeout_ms / 1000)
        if not future.done() or epoch.over:
            raise epoch.cause or ProviderError(ErrorKind.TIMEOUT, "no answer while everything was made again", fatal=True)
        return future.result()

    def _take(self, record: HandleRecord, epoch: Epoch, inner: Handle) -> int:
        """Put a handle in its place, unless the core has let go of it meanwhile; return the credit it had until now."""
        credit = 0
        with self._state.guard:
            released = record.released
            if not released:
                record.epoch, record.inner = epoch, inner
                if isinstance(record, ConsumerRecord):
                    epoch.consumers[inner] = record
                    credit = record.credit
        if released:
            call_below(epoch.provider.release, inner)
        return credit

    def _reopen(self, epoch: Epoch, child: ConsumerRecord | ProducerRecord, session: SessionRecord) -> Future[Handle]:
        provider = epoch.provider
        if session.inner is None or session.released:
            return failed(ProviderError(ErrorKind.CLOSED, "its session is closed"))
        try:
            if isinstance(child, ConsumerRecord):
                return provider.open_consumer(session.inner, self._temporary.spec_here(child.spec))
            place = None if child.destination is None else self._temporary.here(child.destination)
            return provider.open_producer(session.inner, place)
        except ProviderError as error:
            return failed(error)

    async def _take_child(
        self, child: ConsumerRecord | ProducerRecord, epoch: Epoch, waits: Waits, opened: Future[Handle]
    ) -> None:
        state = self._state
        try:
            inner = await self._answer(epoch, waits, opened)
        except ProviderError as error:
            if epoch.over or is_loss(error):
                raise
            if isinstance(child, ConsumerRecord) and error.kind in _HELD and state.in_grace:
                self._held.append(child)
            else:
                self._refuse(child, error)
            # Where every refusal ends the link, it ends now: another one is made then, without what was refused.
            await waits.hop()
            return
        self._take(child, epoch, inner)

    def _refuse(self, child: ConsumerRecord | ProducerRecord, cause: ProviderError) -> None:
        """Give a consumer or producer up."""
        with self._state.guard:
            child.refused = cause
            child.session.children.pop(child, None)
        if isinstance(child, ConsumerRecord) and not child.released:
            self._news.append((child, cause))

    async def _restore_temporary(self, epoch: Epoch, waits: Waits) -> None:
        state = self._state
        with state.guard:
            wanted = self._temporary.lost(recreate=state.failover.recreate_temporary)
            living = [session for session in state.sessions if session.is_on(epoch)]
        own: Handle | None = None
        for address, maker in wanted:
            session = maker if maker in living else next(iter(living), None)
            inner = None if session is None else session.inner
            if inner is None:
                # It outlives the sessions of its connection, and is made by one that nobody else has; that ends with the link.
                if own is None:
                    own = await self._answer(epoch, waits, call_below(epoch.provider.open_session, transacted=False))
                inner = own
            made = call_below(epoch.provider.create_temporary, inner, topic=address.kind.is_topic)
            self._temporary.recreated(address, await self._answer(epoch, waits, made))

    # ---- going on -------------------------------------------------------------------------------------------------
    def grants(self, epoch: Epoch) -> list[tuple[Handle, int]]:
        """Return the credit that each consumer still has. With the guard held, as the link becomes the one."""
        return [(inner, record.credit) for inner, record in epoch.consumers.items() if record.credit > 0]

    def grant(self, epoch: Epoch, inner: Handle, credit: int) -> None:
        """Give a consumer the credit it had; if that cannot be, its link is gone or it is ended."""

        def given(done: Future[None]) -> None:
            error = done.exception()
            record = epoch.consumers.get(inner)
            if error is None or record is None:
                return
            cause = error if isinstance(error, ProviderError) else ProviderError(ErrorKind.PROTOCOL, repr(error))
            if is_loss(cause, over=epoch.over):
                epoch.suspect(cause)
            else:
                self._refuse(record, cause)
                self.report(epoch)

        call_below(epoch.provider.credit, inner, credit).add_done_callback(given)

    def report(self, epoch: Epoch) -> None:
        """Notify the core of what could not be made again, and go on asking for what is only held."""
        news, self._news = self._news, []
        for record, cause in news:
            notify(self._state.above.on_closed, record, cause)
        held, self._held = self._held, []
        for record in held:
            asking: Future[None] = Future()
            asking.add_done_callback(partial(self._asked_on, record, epoch))
            run(self._ask_on(record, epoch, Waits(self._state.clock)), asking)

    def _asked_on(self, record: ConsumerRecord, epoch: Epoch, asking: Future[None]) -> None:
        fault = asking.exception()
        if fault is not None:
            _log.error("a fault while a consumer was made again", exc_info=fault)
            self._refuse(record, ProviderError(ErrorKind.PROTOCOL, f"a fault while it was made again: {fault!r}"))
            self.report(epoch)

    async def _ask_on(self, record: ConsumerRecord, epoch: Epoch, waits: Waits) -> None:
        """Ask for a subscription until the broker gives it back, or must have."""
        state = self._state
        until = state.clock.monotonic() + state.grace_s
        while True:
            await waits.pause(_AGAIN_S)
            if epoch.over or record.released:
                return
            opened = self._reopen(epoch, record, record.session)
            await waits.done(opened, state.options.request_timeout_ms / 1000)
            if epoch.over or not opened.done():
                return
            error = opened.exception()
            if error is None:
                inner = opened.result()
                credit = self._take(record, epoch, inner)
                if credit > 0:
                    self.grant(epoch, inner, credit)
                self._requests.replay()
                return
            if not isinstance(error, ProviderError):
                raise error
            if is_loss(error):
                return
            if error.kind not in _HELD or state.clock.monotonic() > until:
                self._refuse(record, error)
                self.report(epoch)
                self._requests.replay()
                return
