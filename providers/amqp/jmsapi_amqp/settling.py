"""Outcomes on their way to the broker: written at once by the calling thread when the I/O thread is asleep.

An AUTO session hands out no message before the ack of the one before it has been written (4.4.12-2). Waking the I/O thread for
each would cost two switches of threads a message; so the engine has a lock, which the I/O thread holds but for its sleep, and
who finds it free writes by itself. Nothing else is done that way: no events are dispatched and nobody is called back from here.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import DONE, Outcome, ProviderError, failed
from jmsapi_amqp import engine
from jmsapi_amqp.closed_links import not_settled
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import pause
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.links import ReceiverLink
from jmsapi_amqp.transaction_handle import TxHandle

__all__ = ["Settling", "return_now"]

RETURN_S: Final = 0.05
"""How long what goes back waits for the end of its consumer, in seconds, where it would come back to it at once."""


class Settling:
    """Outcomes that the application has given and the engine does not know yet.

    Args:
        context: Whose deliveries.
    """

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context
        self.engine = threading.Lock()
        """Held by whoever uses the engine."""
        self._recorded: deque[tuple[list[int], Outcome, TxHandle | None, Future[None]]] = deque()
        self._guard = threading.Lock()
        self._waiting: list[Future[None]] = []
        """Of what the engine knows and the next turn will have written."""
        self._writing: list[Future[None]] = []
        """Of what this turn writes. Under the engine's lock."""
        self._ended: ProviderError | None = None

    @property
    def waits(self) -> bool:
        """Whether there are outcomes that the I/O thread has not written."""
        return bool(self._recorded or self._waiting)

    def settle(self, numbers: list[int], outcome: Outcome, tx: TxHandle | None) -> Future[None]:
        """Settle deliveries; done when that is written to the socket. From any thread."""
        context = self._context
        known = False
        if self.engine.acquire(blocking=False):
            try:
                if context.link_lost is None:
                    if self._recorded:
                        self.apply()
                    error = settle(context, numbers, outcome, tx)
                    written = self._write()
                    if written:
                        return DONE if error is None else failed(error)
                    if error is not None:
                        context.wake()
                        return failed(error)
                    known = True
            finally:
                self.engine.release()
        future: Future[None] = Future()
        with self._guard:
            if self._ended is not None:
                return failed(self._ended)
            if known:
                self._waiting.append(future)
            else:
                self._recorded.append((numbers, outcome, tx, future))
        context.wake()
        return future

    def _write(self) -> bool:
        wire = self._context.wire
        try:
            return wire.write() and not wire.wants_write
        except OSError:
            return False  # the I/O thread meets the same error, and reports it

    def apply(self) -> None:
        """Pass the recorded outcomes to the engine. With the engine's lock held."""
        context, recorded = self._context, self._recorded
        for _ in range(len(recorded)):
            numbers, outcome, tx, future = recorded.popleft()
            error = settle(context, numbers, outcome, tx)
            if error is None:
                self._writing.append(future)
            else:
                future.set_exception(error)

    def begin(self) -> None:
        """Begin a turn of the I/O thread: outcomes recorded by now will be written in it. With the engine's lock held."""
        with self._guard:
            self._writing += self._waiting
            self._waiting.clear()
        self.apply()

    def wrote(self) -> None:
        """All that the engine had is written."""
        for future in self._writing:
            future.set_result(None)
        self._writing.clear()

    def end(self, cause: ProviderError) -> None:
        """The link has ended: what is not written never will be. With the engine's lock held."""
        with self._guard:
            self._ended = cause
            left = [*self._writing, *self._waiting, *(future for *_, future in self._recorded)]
            self._writing.clear()
            self._waiting.clear()
            self._recorded.clear()
        for future in left:
            future.set_exception(cause)


def settle(context: ConnectionContext, numbers: list[int], outcome: Outcome, tx: TxHandle | None) -> ProviderError | None:
    """Say what became of deliveries; return why something of it has no effect.

    What came by a link that we have ended is past saying, and back at the broker. What came by one that the broker has ended is
    back there too; but who accepts it must hear that it comes again.
    """
    incoming = context.traffic.incoming
    fails_with_session = context.behaviour.fails_with_session
    gives_back = outcome in (Outcome.FAILED, Outcome.RELEASED)
    may_wait = context.behaviour.returns_at_once and gives_back
    state = None if tx is None else tx.ack_state
    enlisted = None if tx is None else context.closed_links.enlisted(tx)
    error: ProviderError | None = None
    for number in numbers:
        found = incoming.get(number)
        if found is None:
            cause = context.closed_links.took_back(number)
            if cause is not None and not gives_back:
                error = not_settled(cause, transacted=tx is not None)
            continue
        delivery, link = found
        if may_wait and link.has_room:
            _return_later(context, link, number, outcome)
            continue
        del incoming[number]
        link.unsettled.discard(number)
        if outcome is Outcome.FAILED and fails_with_session:
            link.failed = True
            continue
        if enlisted is not None:
            enlisted.add(link.number)
        if outcome is Outcome.REJECTED and state is None and context.behaviour.rejected_returns:
            _call_undeliverable(delivery)
            continue
        _write_outcome(delivery, outcome, state)
    if tx is not None and error is not None:
        context.closed_links.lose(tx, error)
    return error


def _write_outcome(delivery: Pointer, outcome: Outcome, state: bytes | None) -> None:
    if state is not None:
        engine.data_decode(engine.disposition_data(engine.delivery_local(delivery)), state)
        engine.delivery_update(delivery, engine.TRANSACTIONAL)
    elif outcome is Outcome.ACCEPTED:
        engine.delivery_update(delivery, engine.ACCEPTED)
    elif outcome is Outcome.RELEASED:
        engine.delivery_update(delivery, engine.RELEASED)
    elif outcome is Outcome.FAILED:
        engine.disposition_set_failed(engine.delivery_local(delivery), True)
        engine.delivery_update(delivery, engine.MODIFIED)
    else:
        engine.delivery_update(delivery, engine.REJECTED)
    engine.delivery_settle(delivery)


def _call_undeliverable(delivery: Pointer) -> None:
    local = engine.delivery_local(delivery)
    engine.disposition_set_failed(local, True)
    engine.disposition_set_undeliverable(local, True)
    engine.delivery_update(delivery, engine.MODIFIED)
    engine.delivery_settle(delivery)


def _return_later(context: ConnectionContext, link: ReceiverLink, number: int, outcome: Outcome) -> None:
    """Wait a moment with a delivery that goes back: most go back because their consumer ends."""
    if not link.returning:
        context.submit(_begin_return, context, link)
    link.returning.append((number, outcome))


def _begin_return(context: ConnectionContext, link: ReceiverLink) -> None:
    context.spawn(_return(context, link))


async def _return(context: ConnectionContext, link: ReceiverLink) -> None:
    with contextlib.suppress(ProviderError):  # the connection has ended, and the broker has them back
        await pause(context, RETURN_S)
        return_now(context, link.take_returning())


def return_now(context: ConnectionContext, returning: list[tuple[int, Outcome]]) -> None:
    """Give deliveries back that were kept for a moment. Threads: the I/O thread."""
    for number, outcome in returning:
        found = context.traffic.incoming.get(number)
        if found is not None:
            delivery, link = found
            del context.traffic.incoming[number]
            link.unsettled.discard(number)
            _write_outcome(delivery, outcome, None)
