"""Messages that a connection consumer has loaded into a session, and the session's own listener, which runs over them.

They are borrowed: settled by this session's mode and in its transaction, while the consumer at the provider is the lender's.

Spec: 8.2.1, 8.2.4-3, ASF-5 to ASF-9, ASF-48, ASF-51.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from jmsapi._core.acknowledgement.ledger import BUFFERED, Entry, Inbox
from jmsapi._core.acknowledgement.lending import Lender
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.session_state import Listener
from jmsapi._core.waiting import Steps
from jmsapi.errors import IllegalStateException
from jmsapi.spi import ProviderError

__all__ = ["Load", "LoadedMessages"]


class Load:
    """Messages lent to a server session for one run; to that session it is one of its consumers.

    Args:
        loaded: The server session's.
        lender: Who has lent them.
        entries: In their order.
    """

    exclusive = False

    def __init__(self, loaded: LoadedMessages, lender: Lender, entries: Sequence[Entry]) -> None:
        consumer = lender.consumer
        self.inbox = Inbox()
        self.spec = consumer.spec
        self.handle = consumer.handle
        self.listener: Listener | None = None
        self.closed = False
        self.receiving = 0
        self.in_line = False
        self.cause: ProviderError | None = None
        self.entries = entries
        self.session = loaded.session
        self.over = False
        """The run that had it has ended, or there will be none. Guarded by the lender's lock."""
        self._loaded = loaded
        self._lender = lender
        state = self.session.state
        state.turn = state.link.turn
        with state.lock:
            state.ledger.borrows = True
            for entry in entries:
                entry.inbox = self.inbox
                entry.state = BUFFERED
            self.inbox.buffer.extend(entries)
            state.consumers[self.inbox] = self
            loaded.waiting.append(self)

    def run(self, listener: Listener) -> None:
        """Give everything to the listener, one after the other; while the connection is stopped, wait."""
        session, state, buffer = self.session, self.session.state, self.inbox.buffer
        while True:
            with state.lock:
                while buffer and not state.flowing and not state.closing and state.link.lost is None:
                    state.changed.wait(60.0)
                while buffer and buffer[0].lost:
                    buffer.popleft()
                if not (buffer and state.flowing):
                    return
                entry = buffer.popleft()
                state.ledger.borrow((entry,))
                session.dispatcher.enter(self)
            try:
                self.run_listener(listener, entry)
            finally:
                with state.lock:
                    session.dispatcher.leave()

    def run_listener(self, listener: Listener, entry: Entry) -> None:
        """Give one entry to the listener; see Receiver."""
        self.session.call_listener(listener, entry, self.spec)

    def take_back(self) -> bool:
        """Undo the loading, unless it has been run already; return whether that was done."""
        state, waiting = self.session.state, self._loaded.waiting
        with state.lock:
            if self not in waiting:
                return False
            waiting.remove(self)
            state.consumers.pop(self.inbox, None)
            self.inbox.buffer.clear()
        self._note_over()
        return True

    def end(self) -> None:
        """End the run: what it has not handed out goes back, and the rest is reported to the lender as it is settled."""
        state = self.session.state
        with state.lock:
            state.consumers.pop(self.inbox, None)
            plan = state.ledger.close_inbox(self.inbox)
        self.session.settlement.carry_out(plan)
        self._note_over()

    def make_room(self) -> None:
        """Do nothing: the lender asks for more when something is reported to be settled; see Receiver."""

    def take_credit_back_steps(self) -> Steps[None]:
        """Do nothing: the credit is the lender's; see Receiver."""
        return
        yield

    def stop_credit_steps(self, timeout: float) -> Steps[None]:
        """Do nothing: the credit is the lender's; see Receiver."""
        return
        yield

    def let_go(self) -> Future[None] | None:
        """Return None: the consumer at the provider is the lender's to release; see Receiver."""
        return None

    def detach(self) -> None:
        """The session is closed, so nobody will run this; see Receiver."""
        waiting = self._loaded.waiting
        with self.session.state.lock:
            if self in waiting:
                waiting.remove(self)
        self._note_over()

    def _note_over(self) -> None:
        with self._lender.state.lock:
            self.over = True
            self._lender.state.changed.notify_all()


class LoadedMessages:
    """What is loaded into one session, and the session's own listener.

    Args:
        session: The session's parts.
    """

    def __init__(self, session: SessionParts) -> None:
        self.session = session
        self.listener: Listener | None = None
        self.waiting: deque[Load] = deque()
        """Loads that have not been run yet. Guarded by the session's lock."""

    def listen(self, listener: Listener | None) -> None:
        """Set the session's own listener; see Session.

        Raises:
            IllegalStateException: The session receives by consumers.
        """
        consumers = list(self.session.state.consumers.values())
        if listener is not None and any(not isinstance(one, Load) and not one.closed for one in consumers):
            raise IllegalStateException("a session with consumers cannot have a message listener of its own", "session-listener")
        self.listener = listener

    def run(self) -> None:
        """Call the session's own listener with what was loaded; see Session."""
        while True:
            listener = self.listener
            with self.session.state.lock:
                load = self.waiting.popleft() if self.waiting and listener is not None else None
            if load is None or listener is None:
                return
            try:
                load.run(listener)
            finally:
                load.end()
