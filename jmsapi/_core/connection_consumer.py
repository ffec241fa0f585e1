"""Connection consumers: messages of one destination, loaded into the sessions of a pool and run there.

A connection consumer has a session of its own that only receives, and lends what it takes to the pool's sessions.

Spec: 8.1 to 8.2.7, ASF.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from jmsapi._callbacks import check_methods, check_returned
from jmsapi._core.acknowledgement.ledger import Entry
from jmsapi._core.acknowledgement.lending import Lender
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.server_session import Load
from jmsapi._core.session import SessionImpl
from jmsapi._core.waiting import Deadline, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import ConnectionConsumer, MessageConsumer, ServerSession, ServerSessionPool, Session
from jmsapi.errors import IllegalStateException, JMSException

__all__ = ["ConnectionConsumerImpl", "check_terms"]

_log: Final = logging.getLogger("jmsapi")
_RETRY_S: Final = (0.1, 5.0)
"""First and longest wait after a pool has failed."""


class _LoadLender(Lender):
    """Lends to server sessions what was taken for them."""

    def __init__(self, session: SessionImpl, returned: Callable[[], None]) -> None:
        super().__init__(session.parts.state, session.parts.settlement, returned)
        self.taken: list[Entry] = []
        """Messages that are taken and in no server session yet. Guarded by the lock."""

    def before_close(self) -> None:
        """Put what is taken and in no server session back in front of what waits."""
        with self.state.lock:
            if not self.taken:
                return
            taken, self.taken = self.taken, []
            waiting, plan = self.take_back(taken, seen=False)
            self.put_in_front(waiting)
        self.settlement.carry_out(plan)

    def keep(self, entries: list[Entry]) -> None:
        """Keep entries that no server session has run for the next one."""
        with self.state.lock:
            mine = [entry for entry in entries if entry in self.lent]
            for entry in mine:
                entry.inbox = self.inbox
            self.taken = mine + self.taken

    def next_load(self) -> list[Entry]:
        """Return what is taken, for a server session. Nothing when the session is closing."""
        with self.state.lock:
            if self.state.closing:
                return []
            # What was taken when its connection was lost comes again.
            taken, self.taken = [entry for entry in self.taken if entry in self.lent], []
            return taken


def check_terms(pool: object, max_messages: object) -> None:
    """Refuse arguments of a connection consumer before any traffic.

    Raises:
        JMSException: ``server-session-pool``, ``max-messages``.
    """
    if not callable(getattr(pool, "get_server_session", None)):
        raise JMSException(f"a connection consumer needs a pool with get_server_session, not {pool!r}", "server-session-pool")
    check_methods(pool, "get_server_session", what="the server session pool")
    if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 1:
        raise JMSException(f"max_messages is a number of at least 1, not {max_messages!r}", "max-messages")


class ConnectionConsumerImpl(NotCopied, ConnectionConsumer):
    """Takes messages of a destination and runs them in the sessions of a pool.

    Args:
        session: One of its own, CLIENT_ACKNOWLEDGE. It is closed with this.
        consume: Makes the consumer, on the session that is given.
        pool: Where server sessions come from.
        max_messages: The most to load at once.
    """

    def __init__(
        self,
        session: SessionImpl,
        consume: Callable[[Session], MessageConsumer],
        pool: ServerSessionPool,
        max_messages: int,
    ) -> None:
        self._pool = pool
        self._most = max_messages
        self._closing = threading.Event()
        self._loads: list[Load] = []
        """Loads whose run is not over."""
        self._asking = False
        """The pool is asked for a server session, which has no end."""
        self._session = session
        self._parts = session.parts
        self._lender = self._parts.lender = _LoadLender(session, self._make_room)
        try:
            consumer = consume(session)
            assert isinstance(consumer, ConsumerImpl)
        except BaseException:
            session.close()
            raise
        self._consumer: ConsumerImpl = consumer
        self._lender.consumer = consumer
        self._thread = threading.Thread(target=self._serve, name=f"{self._parts.state.name}-lending", daemon=True)
        self._thread.start()

    @property
    def server_session_pool(self) -> ServerSessionPool:
        """Return the pool; see ConnectionConsumer."""
        if self._closing.is_set() or self._parts.state.closing:
            raise IllegalStateException("the connection consumer is closed", "closed")
        self._parts.check_open()
        return self._pool

    def close(self) -> None:
        """End it: take back what nobody runs yet, and wait for what is run; see ConnectionConsumer."""
        if self._closing.is_set():
            return
        self._closing.set()
        lender, state = self._lender, self._parts.state
        deadline = Deadline(state.link.options.close_timeout_ms)
        for load in reversed(self._loads):
            if load.take_back():
                lender.keep(list(load.entries))
        lender.before_close()
        if not state.closing:
            self._consumer.close()
        if threading.current_thread() is not self._thread and not self._asking:
            self._thread.join(deadline.remaining())
        lender.before_close()
        # Its own listener may close it.
        orderly = state.changed.wait_until(
            lambda: all(load.over or load.session.dispatcher.is_own_thread for load in self._loads), deadline.remaining()
        )
        if not orderly:
            _log.warning("close of a connection consumer: a server session still runs its messages")
        state.changed.wait_until(lambda: lender.last_release or lender.lent or state.closing, deadline.remaining())
        if lender.last_release is not None:
            run(lender.settlement.await_release_steps(lender.last_release, deadline.remaining() or 0.1))
        self._close_session()

    def _make_room(self) -> None:
        """A server session has settled something: let more messages come, or end what waited for it."""
        self._consumer.make_room()
        self._close_session()

    def _close_session(self) -> None:
        """Close the session once nothing of it is lent any more."""
        state = self._parts.state
        with state.lock:
            over = self._closing.is_set() and not self._lender.lent and not state.closing
        if over:
            self._session.close()

    # ---- the thread -----------------------------------------------------------------------------------------------
    def _serve(self) -> None:
        failures = 0
        while not self._over_with():
            try:
                if self._take():
                    self._lend()
                failures = 0
            except BaseException as error:  # such as SystemExit: nothing of the application's may end the thread that lends
                if self._over_with():
                    return
                if not isinstance(error, JMSException):
                    _log.exception("a server session pool raised")
                    cause, error = error, JMSException(f"a server session pool raised {error!r}", "server-session-pool")
                    error.__cause__ = cause
                self._parts.connection.report(error)
                first, longest = _RETRY_S
                self._closing.wait(min(longest, first * 2.0 ** min(failures, 10)))
                failures += 1

    def _over_with(self) -> bool:
        """Whether no more will come: this is closed, or the connection or the consumer is lost, which is reported elsewhere."""
        state = self._parts.state
        return self._closing.is_set() or state.closing or state.link.lost is not None or self._consumer.cause is not None

    def _take(self) -> bool:
        """Take messages until there are enough, or no more waits here; wait for the first. False when there will be none."""
        state, consumer, lender = self._parts.state, self._consumer, self._lender
        if lender.taken:
            return True
        entry = consumer.pull(None, finish=False, watched=False)
        consumer.in_hand.entries = ()
        if entry is None:
            # Closed, or stopped while this one came.
            return False
        with state.lock:
            entries = [entry]
            while len(entries) < self._most and state.flowing and consumer.inbox.buffer:
                entries.append(state.ledger.take(consumer.inbox))
            lender.taken += lender.lend_delivered(entries)
        return True

    def _lend(self) -> None:
        """Have a server session run what is taken. What is not loaded stays taken."""
        self._asking = True
        try:
            server_session = self._pool.get_server_session()
            check_returned(server_session, "get_server_session")
        finally:
            self._asking = False
        try:
            load = self._load(server_session)
        except BaseException:
            # It knows its pool, and goes back to it when it has run: there is no other way.
            server_session.start()
            raise
        try:
            check_returned(server_session.start(), "start of a server session")
        except BaseException:
            if load is not None and load.take_back():
                self._lender.keep(list(load.entries))
            raise

    def _load(self, server_session: ServerSession) -> Load | None:
        session = server_session.session
        if not isinstance(session, SessionImpl) or session.parts.connection is not self._parts.connection:
            raise JMSException(
                "a server session has a session that this connection has not made, so its messages cannot run there",
                "server-session",
            )
        session.parts.check_open()
        entries = self._lender.next_load()
        if not entries:
            return None
        load = Load(session.loaded, self._lender, entries)
        self._loads = [*(one for one in self._loads if not one.over), load]
        return load
