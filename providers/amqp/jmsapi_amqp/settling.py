"""Outcomes on their way to the broker: written at once by the thread that gives them, when the I/O thread is asleep.

An AUTO session hands out no message before the ack of the one before it has been written (4.4.12-2). Waking the I/O thread for
each would cost two switches of threads a message; so the engine has a lock, which the I/O thread holds but for its sleep, and
who finds it free writes by itself. Nothing else is done that way: no events are dispatched and nobody is called back from here.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from jmsapi.spi import DONE, Outcome, ProviderError, failed
from jmsapi_amqp import engine
from jmsapi_amqp.draining import pause
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.tasks import spawn

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection
    from jmsapi_amqp.links import ReceiverLink

__all__ = ["Settling", "return_now"]

RETURN_S: Final = 0.05
"""How long what goes back waits for the end of its consumer, in seconds, where it would come back to it at once."""


class Settling:
    """What the application said of deliveries and the engine does not know yet.

    Args:
        connection: Whose deliveries.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.engine = threading.Lock()
        """Held by whoever uses the engine."""
        self._said: deque[tuple[list[int], Outcome, bytes | None]] = deque()
        self._guard = threading.Lock()
        self._written: Future[None] | None = None
        """Done when all that is said by now is written."""
        self._writing: list[Future[None]] = []
        self._ended: ProviderError | None = None

    @property
    def waits(self) -> bool:
        """Whether something was said that the I/O thread has not written."""
        return bool(self._said) or self._written is not None

    def say(self, numbers: list[int], outcome: Outcome, state: bytes | None) -> Future[None]:
        """Settle deliveries; done when that is written to the socket. From any thread."""
        connection = self._connection
        if self.engine.acquire(blocking=False):
            try:
                if connection.link_lost is None:
                    self.apply()
                    settle(connection, numbers, outcome, state)
                    if self._write():
                        return DONE
            finally:
                self.engine.release()
        else:
            self._said.append((numbers, outcome, state))
        with self._guard:
            if self._ended is not None:
                return failed(self._ended)
            if self._written is None:
                self._written = Future()
            written = self._written
        connection.wake()
        return written

    def _write(self) -> bool:
        wire = self._connection.wire
        try:
            return wire.write() and not wire.wants_write
        except OSError:
            return False  # the I/O thread meets the same error, and reports it

    def apply(self) -> None:
        """Tell the engine what was said. With the engine's lock held."""
        connection, said = self._connection, self._said
        for _ in range(len(said)):
            settle(connection, *said.popleft())

    def begin(self) -> None:
        """Begin a turn of the I/O thread: what is said by now will be written in it. With the engine's lock held."""
        with self._guard:
            if self._written is not None:
                self._writing.append(self._written)
                self._written = None
        self.apply()

    def wrote(self) -> None:
        """All that the engine had is written."""
        for written in self._writing:
            written.set_result(None)
        self._writing.clear()

    def end(self, cause: ProviderError) -> None:
        """The link has ended: what is not written never will be."""
        self._said.clear()
        with self._guard:
            self._ended = cause
            if self._written is not None:
                self._writing.append(self._written)
                self._written = None
            waiting, self._writing = self._writing, []
        for written in waiting:
            written.set_exception(cause)


def settle(connection: Connection, numbers: list[int], outcome: Outcome, state: bytes | None) -> None:
    """Say what became of deliveries; those whose link has ended are past saying."""
    incoming = connection.incoming
    fails_with_session = connection.book.fails_with_session
    may_wait = connection.book.returns_at_once and outcome in (Outcome.FAILED, Outcome.RELEASED)
    for number in numbers:
        found = incoming.get(number)
        if found is None:
            continue
        delivery, link = found
        if may_wait and link.has_room:
            _return_later(connection, link, number, outcome)
            continue
        del incoming[number]
        link.unsettled.discard(number)
        if outcome is Outcome.FAILED and fails_with_session:
            link.failed = True
            continue
        _say(delivery, outcome, state)


def _say(delivery: Pointer, outcome: Outcome, state: bytes | None) -> None:
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


def _return_later(connection: Connection, link: ReceiverLink, number: int, outcome: Outcome) -> None:
    """Wait a moment with a delivery that goes back: most go back because their consumer ends."""
    if not link.returning:
        connection.submit(_begin_return, connection, link)
    link.returning.append((number, outcome))


def _begin_return(connection: Connection, link: ReceiverLink) -> None:
    spawn(_return(connection, link))


async def _return(connection: Connection, link: ReceiverLink) -> None:
    with contextlib.suppress(ProviderError):  # the connection has ended, and the broker has them back
        await pause(connection, RETURN_S)
        return_now(connection, link.take_returning())


def return_now(connection: Connection, returning: list[tuple[int, Outcome]]) -> None:
    """Give deliveries back that were kept for a moment. Threads: the I/O thread."""
    for number, outcome in returning:
        found = connection.incoming.get(number)
        if found is not None:
            delivery, link = found
            del connection.incoming[number]
            link.unsettled.discard(number)
            _say(delivery, outcome, None)
