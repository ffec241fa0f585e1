"""Messages that a connection consumer has loaded into a session, and the session's own listener, which runs over them.

They are *lent*: settled by this session's mode and in its transaction, while the consumer at the provider stays the lender's.

Spec: 8.2.1, 8.2.4-3, ASF-5 to ASF-9, ASF-48, ASF-51.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi._core.consumer import ConsumerImpl, Listener
from jmsapi._core.ledger import Entry, Inbox
from jmsapi._core.options_check import check_listener
from jmsapi.errors import IllegalStateException

if TYPE_CHECKING:
    from jmsapi._core.session import SessionImpl

__all__ = ["Load", "run", "set_listener"]


class Load(ConsumerImpl):
    """Messages lent to a server session for one run; to that session it is one of its consumers.

    Args:
        session: The server session's session.
        lender: The consumer that took them from the broker.
        entries: In their order.
        ended: Called when the last of them is settled.
    """

    def __init__(self, session: SessionImpl, lender: ConsumerImpl, entries: list[Entry], ended: Callable[[], None]) -> None:
        self.entries = entries
        self.over = False
        """The run that had it has ended, or there will be none. Guarded by the lender's lock."""
        self._settled = ended
        self._lender = lender.session
        session.turn = session.link.turn
        self._begin(session, lender.spec, Inbox(), lender.handle, prefetch=0)
        with session.lock:
            session.ledger.file(self.inbox, [entry.delivery for entry in entries])
            session.consumers[self.inbox] = self
            session.loads.append(self)

    def run(self, listener: Listener) -> None:
        """Give everything to the listener, one after the other; while the connection is stopped, wait."""
        session = self.session
        while True:
            with session.lock:
                while self.inbox.buffer and not session.flowing and not session.closing and session.link.lost is None:
                    session.changed.wait(60.0)
                entry = session.ledger.take(self.inbox) if session.flowing else None
                if entry is None:
                    return
                session.dispatcher.enter(self)
            try:
                self.run_listener(listener, entry)
            finally:
                with session.lock:
                    session.dispatcher.leave()

    def take_back(self) -> bool:
        """Undo the loading, unless it has been run already; return whether that was done."""
        session = self.session
        with session.lock:
            if self not in session.loads:
                return False
            session.loads.remove(self)
            session.consumers.pop(self.inbox, None)
            self.inbox.buffer.clear()
        self._note_over()
        return True

    def end(self) -> None:
        """The run is over: when all is settled, now or later, the lender hears of it."""
        session = self.session
        with session.lock:
            self.inbox.closed = True
            idle = self.inbox.idle
        if idle:
            session.release(self.inbox)
        self._note_over()

    def let_go(self) -> Future[None] | None:
        """All is settled: the consumer at the provider is the lender's to release."""
        self._settled()
        return None

    def detach(self) -> None:
        """The session has done with it, or is closed: nobody will run it."""
        session = self.session
        with session.lock:
            if self in session.loads:
                session.loads.remove(self)
        self._note_over()

    def _note_over(self) -> None:
        with self._lender.lock:
            self.over = True
            self._lender.changed.notify_all()


def set_listener(session: SessionImpl, listener: Listener | None) -> None:
    """Set the session's own listener; see Session.

    Raises:
        IllegalStateException: The session receives by consumers.
    """
    session.check_open()
    check_listener(listener)
    if listener is not None and any(not isinstance(one, Load) and not one.closed for one in list(session.consumers.values())):
        raise IllegalStateException("a session with consumers cannot have a message listener of its own", "session-listener")
    session.own_listener = listener


def run(session: SessionImpl) -> None:
    """Call the session's own listener with what was loaded; see Session."""
    session.check_open()
    while True:
        listener = session.own_listener
        with session.lock:
            load = session.loads.popleft() if session.loads and listener is not None else None
        if load is None or listener is None:
            return
        try:
            load.run(listener)
        finally:
            load.end()
