"""Connection consumers: messages of one destination, loaded into the sessions of a pool and run there.

A connection consumer has a session of its own that only receives, and lends what it takes to the pool's sessions.

Spec: 8.1 to 8.2.7, ASF.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.ledger import CLIENT, Entry, Inbox
from jmsapi._core.loading import Load
from jmsapi._core.session import SessionImpl
from jmsapi._core.waiting import Deadline
from jmsapi.api import ConnectionConsumer
from jmsapi.errors import IllegalStateException, JMSException
from jmsapi.spi import ProviderError

if TYPE_CHECKING:
    from jmsapi._core.connection import ConnectionImpl
    from jmsapi.api import MessageConsumer, ServerSession, ServerSessionPool, Session

__all__ = ["ConnectionConsumerImpl", "LendingSession"]

_log = logging.getLogger("jmsapi")
_RETRY_S = (0.1, 5.0)
"""First and longest wait after a pool has failed."""


class LendingSession(SessionImpl):
    """The session by which a connection consumer receives."""

    closes_last = True

    def __init__(self, connection: ConnectionImpl, mode: int, number: int) -> None:
        self.hand: list[Entry] = []
        """Messages that are taken and not lent yet. Guarded by the lock."""
        self.lent: set[Entry] = set()
        """Messages that another session has. Guarded by the lock."""
        self.released: Future[None] | None = None
        """The end of its consumer at the provider, once it is under way. Guarded by the lock."""
        super().__init__(connection, mode, number)

    @property
    def in_hand(self) -> int:
        """What is lent is in another session's hand."""
        return super().in_hand - len(self.lent)

    def begin_close(self) -> bool:
        """Give back what nobody has seen before the rest goes."""
        self.put_back()
        return super().begin_close()

    def put_back(self) -> None:
        """Put what is taken and not lent back in front of what waits."""
        with self.lock:
            hand, self.hand = self.hand, []
            plans = [self.ledger.put_back(entry) for entry in reversed(hand)]
        for plan in plans:
            self.carry_out(plan)

    def lend(self) -> list[Entry]:
        """Take what is in hand for a server session. Nothing when this session is closing."""
        with self.lock:
            if self.closing:
                return []
            # What was in hand when its link was lost comes again.
            hand = [entry for entry in self.hand if self.ledger.lend(entry)]
            self.hand = []
            self.lent.update(hand)
            return hand

    def returned(self, entries: list[Entry]) -> None:
        """What was lent is settled."""
        with self.lock:
            self.lent.difference_update(entries)
            idle = [entry.inbox for entry in entries if self.ledger.left(entry)]
            self.changed.notify_all()
        for inbox in idle:
            self.release(inbox)
        for consumer in list(self.consumers.values()):
            consumer.make_room()

    def release(self, inbox: Inbox) -> Future[None] | None:
        """End a closed consumer at the provider, whoever gives back the last of it; see SessionImpl."""
        released = super().release(inbox)
        if released is not None:
            with self.lock:
                self.released = released
                self.changed.notify_all()
        return released

    def unlend(self, entries: list[Entry]) -> None:
        """The server session could not be started: take them into the hand again."""
        with self.lock:
            self.lent.difference_update(entries)
            self.hand = [entry for entry in entries if self.ledger.unlend(entry)] + self.hand

    def interrupted(self, cause: ProviderError) -> None:
        """What is lent comes again, too."""
        with self.lock:
            for entry in self.lent:
                entry.lost = True
        super().interrupted(cause)


def _check_count(max_messages: object) -> None:
    if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 1:
        raise JMSException(f"max_messages is a number of at least 1, not {max_messages!r}", "max-messages")


class ConnectionConsumerImpl(ConnectionConsumer):
    """Takes messages of a destination and runs them in the sessions of a pool.

    Args:
        connection: Its connection.
        consume: Makes the consumer, on the session that is given.
        pool: Where server sessions come from.
        max_messages: The most to load at once.
    """

    def __init__(
        self,
        connection: ConnectionImpl,
        consume: Callable[[Session], MessageConsumer],
        pool: ServerSessionPool,
        max_messages: int,
    ) -> None:
        if not callable(getattr(pool, "get_server_session", None)):
            raise JMSException(f"a connection consumer needs a pool with get_server_session, not {pool!r}", "server-session-pool")
        _check_count(max_messages)
        self._connection = connection
        self._pool = pool
        self._most = max_messages
        self._closing = threading.Event()
        self._loads: list[Load] = []
        """Those whose run is not over."""
        self._asking = False
        """The pool is asked for a server session, which has no end."""
        self._session = connection.add_session(LendingSession, CLIENT, None, None)
        try:
            consumer = consume(self._session)
            assert isinstance(consumer, ConsumerImpl)
        except BaseException:
            self._session.close()
            raise
        self._consumer: ConsumerImpl = consumer
        self._thread = threading.Thread(target=self._serve, name=f"{self._session.name}-lending", daemon=True)
        self._thread.start()

    @property
    def server_session_pool(self) -> ServerSessionPool:
        """Return the pool; see ConnectionConsumer."""
        if self._closing.is_set() or self._session.closing:
            raise IllegalStateException("the connection consumer is closed", "closed")
        self._session.check_open()
        return self._pool

    def close(self) -> None:
        """End it: take back what nobody runs yet, and wait for what is run; see ConnectionConsumer."""
        if self._closing.is_set():
            return
        self._closing.set()
        deadline = Deadline(self._session.link.options.close_timeout_ms)
        session = self._session
        for load in reversed(self._loads):
            if load.take_back():
                session.unlend(load.entries)
        session.put_back()
        if not session.closing:
            self._consumer.close()
        if threading.current_thread() is not self._thread and not self._asking:
            self._thread.join(deadline.remaining())
        session.put_back()
        with session.lock:
            # Its own listener may close it.
            orderly = session.changed.wait_for(
                lambda: all(load.over or load.session.dispatcher.is_own_thread for load in self._loads), deadline.remaining()
            )
        if not orderly:
            _log.warning("close of a connection consumer: a server session still runs its messages")
        with session.lock:
            session.changed.wait_for(lambda: session.released or session.lent or session.closing, deadline.remaining())
        if session.released is not None:
            session.await_release(session.released, deadline.remaining() or 0.1)
        self._close_session()

    def _close_session(self) -> None:
        """Close the session once nothing of it is lent any more."""
        session = self._session
        with session.lock:
            over = self._closing.is_set() and not session.lent and not session.closing
        if over:
            session.close()

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
                self._connection.report(error)
                first, longest = _RETRY_S
                self._closing.wait(min(longest, first * 2.0 ** min(failures, 10)))
                failures += 1

    def _over_with(self) -> bool:
        """Whether no more will come: closed, or the link or the broker has ended it, which others have told."""
        session = self._session
        return self._closing.is_set() or session.closing or session.link.lost is not None or self._consumer.cause is not None

    def _take(self) -> bool:
        """Take messages until there are enough, or no more waits here; wait for the first. False when there will be none."""
        session, consumer = self._session, self._consumer
        if session.hand:
            return True
        entry = consumer.pull(None, finish=False)
        if entry is None:
            # Closed, or stopped while this one came.
            return False
        with session.lock:
            session.hand.append(entry)
            while len(session.hand) < self._most and session.flowing and consumer.inbox.buffer:
                more = session.ledger.take(consumer.inbox)
                if more is None:
                    break
                session.hand.append(more)
        return True

    def _lend(self) -> None:
        """Have a server session run what is in hand. What is not lent stays in hand."""
        self._asking = True
        try:
            server_session = self._pool.get_server_session()
        finally:
            self._asking = False
        try:
            load = self._load(server_session)
        except BaseException:
            # It knows its pool, and goes back to it when it has run: there is no other way.
            server_session.start()
            raise
        try:
            server_session.start()
        except BaseException:
            if load is not None and load.take_back():
                self._session.unlend(load.entries)
            raise

    def _load(self, server_session: ServerSession) -> Load | None:
        session = server_session.session
        if not isinstance(session, SessionImpl) or session.connection is not self._connection:
            raise JMSException(
                "a server session has a session that this connection has not made, so its messages cannot run there",
                "server-session",
            )
        session.check_open()
        entries = self._session.lend()
        if not entries:
            return None
        load = Load(session, self._consumer, entries, lambda: self._over(entries))
        self._loads = [*(one for one in self._loads if not one.over), load]
        return load

    def _over(self, entries: list[Entry]) -> None:
        self._session.returned(entries)
        self._close_session()
