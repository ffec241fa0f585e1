"""Making everything again on a new link: temporary destinations, sessions, producers, consumers, unused transactions.

What the broker refuses is not tried for ever: a refused consumer or producer is ended and says so, all others go on. Only what
our own dead link may still hold (an exclusive durable subscription) is asked for again, beside the running connection, until
the broker must have noticed. A browser is not made again: it would show everything twice.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from jmsapi._emulation.asking import asked, tell
from jmsapi._emulation.reconnecting_handles import (
    ConsumerRecord,
    ProducerRecord,
    Record,
    SessionRecord,
    altered,
    is_loss,
)
from jmsapi._emulation.reconnecting_steps import Steps
from jmsapi.spi import Address, ConsumerSpec, Envelope, ErrorKind, Handle, ProviderError, failed

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting_epoch import Epoch
    from jmsapi._emulation.reconnecting_lifecycle import Lifecycle

__all__ = ["Restoring"]

T = TypeVar("T")
_AGAIN_S: Final = 0.5
"""How often a subscription that is in use is asked for again."""
_HELD: Final = frozenset({ErrorKind.IN_USE, ErrorKind.MISMATCH})
"""What a subscription that our dead link still holds is refused with."""


class Restoring:
    """What must be made again.

    Args:
        life: The connection.
    """

    def __init__(self, life: Lifecycle) -> None:
        self._life = life
        self._temporary: dict[Address, SessionRecord] = {}
        """Temporary destinations by the address that the core has, with the session that made them."""
        self._names: dict[Address, Address] = {}
        """Their addresses on the link of the moment, where they are others."""
        self._gone: set[Address] = set()
        self._news: list[tuple[ConsumerRecord, ProviderError]] = []
        """Consumers that could not be made again, which the core is to be told."""
        self._held: list[ConsumerRecord] = []
        """Consumers whose subscription our dead link may still hold."""

    # ---- temporary destinations -----------------------------------------------------------------------------------
    def temporary(self, session: SessionRecord, address: Address) -> None:
        """Take note of a new temporary destination. With the guard held."""
        self._temporary[address] = session

    def removed(self, address: Address) -> None:
        """Forget one that was deleted. With the guard held."""
        self._temporary.pop(address, None)
        self._names.pop(address, None)

    def here(self, address: Address) -> Address:
        """Return the name that a destination has on the link of the moment.

        Raises:
            ProviderError: DESTINATION; it ended with a link.
        """
        if address in self._gone:
            raise _ended_with_its_link(address)
        return self._names.get(address, address)

    def renamed(self, envelope: Envelope) -> Envelope:
        """Return a message with the names that destinations have on the link of the moment.

        Raises:
            ProviderError: DESTINATION; it goes to one that ended with a link.
        """
        if not self._names and not self._gone:
            return envelope
        destination, reply_to = self.here(envelope.destination), envelope.reply_to
        answer = reply_to if reply_to is None else self._names.get(reply_to, reply_to)
        if destination == envelope.destination and answer == reply_to:
            return envelope
        return altered(envelope, destination=destination, reply_to=answer)

    def spec_here(self, spec: ConsumerSpec) -> ConsumerSpec:
        """Return what is asked of the link of the moment; see ``here``."""
        address = self.here(spec.address)
        return spec if address is spec.address else replace(spec, address=address)

    # ---- losing ---------------------------------------------------------------------------------------------------
    def forget_browsers(self, cause: ProviderError) -> list[tuple[ConsumerRecord, ProviderError]]:
        """End the browsers of a link that is lost; return them with what the core is to be told."""
        ended: list[tuple[ConsumerRecord, ProviderError]] = []
        with self._life.guard:
            for session in self._life.sessions:
                for child in list(session.children):
                    if isinstance(child, ConsumerRecord) and child.spec.browse:
                        del session.children[child]
                        text = f"the look at the queue ended with its link ({cause.message}); look again"
                        child.refused = ProviderError(ErrorKind.CONNECTION, text)
                        ended.append((child, child.refused))
        return ended

    # ---- making again ---------------------------------------------------------------------------------------------
    async def restore(self, epoch: Epoch, steps: Steps) -> None:
        """Make everything again on a new link.

        Raises:
            ProviderError: The link does not hold, or refuses what no connection can be without.
        """
        life, provider = self._life, epoch.provider
        self._news.clear()
        self._held.clear()
        with life.guard:
            sessions = list(life.sessions)
        for session, opened in [(session, asked(provider.open_session, transacted=session.transacted)) for session in sessions]:
            self._take(session, epoch, await self._answer(epoch, steps, opened))
        await self._restore_temporary(epoch, steps)
        with life.guard:
            children = [(child, session) for session in sessions for child in session.children]
            unused = [(tx, session) for session in sessions for tx in session.transactions if not tx.used]
        reopened = [(child, self._reopen(epoch, child, session)) for child, session in children]
        for child, opened in reopened:
            await self._take_child(child, epoch, steps, opened)
        begun = [(tx, asked(provider.begin, session.on(epoch))) for tx, session in unused if not session.released]
        for tx, opened in begun:
            inner = await self._answer(epoch, steps, opened)
            with life.guard:
                if not tx.used:
                    tx.epoch, tx.inner = epoch, inner

    async def _answer(self, epoch: Epoch, steps: Steps, future: Future[T]) -> T:
        await steps.done(future, self._life.options.request_timeout_ms / 1000)
        if not future.done() or epoch.over:
            raise epoch.cause or ProviderError(ErrorKind.TIMEOUT, "no answer while everything was made again", fatal=True)
        return future.result()

    def _take(self, record: Record, epoch: Epoch, inner: Handle) -> int:
        """Put a handle in its place, unless the core has let go of it meanwhile; return the credit it had until now."""
        credit = 0
        with self._life.guard:
            released = record.released
            if not released:
                record.epoch, record.inner = epoch, inner
                if isinstance(record, ConsumerRecord):
                    epoch.consumers[inner] = record
                    credit = record.credit
        if released:
            asked(epoch.provider.release, inner)
        return credit

    def _reopen(self, epoch: Epoch, child: ConsumerRecord | ProducerRecord, session: SessionRecord) -> Future[Handle]:
        provider = epoch.provider
        if session.inner is None or session.released:
            return failed(ProviderError(ErrorKind.CLOSED, "its session is closed"))
        try:
            if isinstance(child, ConsumerRecord):
                return provider.open_consumer(session.inner, self.spec_here(child.spec))
            return provider.open_producer(session.inner, None if child.destination is None else self.here(child.destination))
        except ProviderError as error:
            return failed(error)

    async def _take_child(
        self, child: ConsumerRecord | ProducerRecord, epoch: Epoch, steps: Steps, opened: Future[Handle]
    ) -> None:
        life = self._life
        try:
            inner = await self._answer(epoch, steps, opened)
        except ProviderError as error:
            if epoch.over or is_loss(error):
                raise
            if isinstance(child, ConsumerRecord) and error.kind in _HELD and life.in_grace:
                self._held.append(child)
            else:
                self._refuse(child, error)
            # Where every refusal ends the link, it ends now: another one is made then, without what was refused.
            await steps.hop()
            return
        self._take(child, epoch, inner)

    def _refuse(self, child: ConsumerRecord | ProducerRecord, cause: ProviderError) -> None:
        """Give a consumer or producer up."""
        with self._life.guard:
            child.refused = cause
            child.session.children.pop(child, None)
        if isinstance(child, ConsumerRecord) and not child.released:
            self._news.append((child, cause))

    async def _restore_temporary(self, epoch: Epoch, steps: Steps) -> None:
        life = self._life
        with life.guard:
            if not life.failover.recreate_temporary:
                self._gone.update(self._temporary)
                self._temporary.clear()
            wanted = list(self._temporary.items())
            living = [session for session in life.sessions if session.is_on(epoch)]
        own: Handle | None = None
        for address, maker in wanted:
            session = maker if maker in living else next(iter(living), None)
            inner = None if session is None else session.inner
            if inner is None:
                # It outlives the sessions of its connection, and is made by one that nobody else has; that ends with the link.
                if own is None:
                    own = await self._answer(epoch, steps, asked(epoch.provider.open_session, transacted=False))
                inner = own
            made = asked(epoch.provider.create_temporary, inner, topic=address.kind.is_topic)
            self._names[address] = await self._answer(epoch, steps, made)

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
                self._life.suspect(epoch, cause)
            else:
                self._refuse(record, cause)
                self.tell(epoch)

        asked(epoch.provider.credit, inner, credit).add_done_callback(given)

    def tell(self, epoch: Epoch) -> None:
        """Tell the core what could not be made again, and go on asking for what is only held."""
        news, self._news = self._news, []
        for record, cause in news:
            tell(self._life.above.on_closed, record, cause)
        held, self._held = self._held, []
        for record in held:
            steps = Steps(self._life.clock, partial(self._cannot_ask, record, epoch))
            steps.run(self._ask_on(record, epoch, steps))

    def _cannot_ask(self, record: ConsumerRecord, epoch: Epoch, fault: Exception) -> None:
        self._refuse(record, ProviderError(ErrorKind.PROTOCOL, f"a fault while it was made again: {fault!r}"))
        self.tell(epoch)

    async def _ask_on(self, record: ConsumerRecord, epoch: Epoch, steps: Steps) -> None:
        """Ask for a subscription until the broker gives it back, or must have."""
        life = self._life
        until = life.clock.monotonic() + life.grace_s
        while True:
            await steps.pause(_AGAIN_S)
            if epoch.over or record.released:
                return
            opened = self._reopen(epoch, record, record.session)
            await steps.done(opened, life.options.request_timeout_ms / 1000)
            if epoch.over or not opened.done():
                return
            error = opened.exception()
            if error is None:
                inner = opened.result()
                credit = self._take(record, epoch, inner)
                if credit > 0:
                    self.grant(epoch, inner, credit)
                life.requests.replay()
                return
            if not isinstance(error, ProviderError):
                raise error
            if is_loss(error):
                return
            if error.kind not in _HELD or life.clock.monotonic() > until:
                self._refuse(record, error)
                self.tell(epoch)
                life.requests.replay()
                return


def _ended_with_its_link(address: Address) -> ProviderError:
    return ProviderError(ErrorKind.DESTINATION, f"the temporary destination {address.name!r} ended with a link that was lost")
