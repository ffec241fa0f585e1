"""Sessions to borrow: a few connections that stay open, and a session of its own for whoever asks.

A session is cheap to make on a connection that is there, so none is used twice: what one borrower sets, opens or leaves
unfinished cannot be seen by the next.

    pool = SessionPool(factory, sessions=20)

    def place(order):
        with pool.session() as session:
            session.create_producer(orders).send(session.create_text_message(order))

Spec: field report B17.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from jmsapi._core.container import outside_container
from jmsapi._not_copied import NotCopied
from jmsapi.api import Connection, ConnectionFactory, Session
from jmsapi.errors import IllegalArgumentException, IllegalStateException, JMSException
from jmsapi.values import Timeout

__all__ = ["SessionPool"]

_log = logging.getLogger("jmsapi")
_FIRST: Final = "a session pool"


class _Shared:
    """One connection of the pool, and how many sessions of it are out."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.out = 0
        self.broken: JMSException | None = None
        connection.exception_listener = self.broke

    def broke(self, exception: JMSException) -> None:
        """The connection has told of trouble that no caller hears of."""
        self.broken = exception


class SessionPool(NotCopied):
    """Lends sessions of a few connections; a context manager, which closes it.

    A connection is made when it is first needed, and made anew when it has told of trouble or cannot make sessions any more;
    sessions that are out end with the connection they belong to.

    Args:
        factory: Makes the connections. With a client id there can be one only.
        sessions: The most that are out at a time, at least 1.
        connections: How many connections they share, at least 1 and at most as many as sessions.
        wait_ms: The longest wait for a session while all are out, in milliseconds or as a timedelta; 0 for none.
        user_name: For the connections; None for the factory's.
        password: Goes with it.
    Raises:
        IllegalArgumentException: A number is out of its range.
    Threads: any number at once.
    Spec: field report B17.
    """

    def __init__(
        self,
        factory: ConnectionFactory,
        *,
        sessions: int = 8,
        connections: int = 1,
        wait_ms: Timeout = 30_000,
        user_name: str | None = None,
        password: str | None = None,
    ) -> None:
        _check_count("sessions", sessions)
        _check_count("connections", connections)
        if connections > sessions:
            raise IllegalArgumentException(f"{_FIRST} of {sessions} sessions has no use for {connections} connections")
        self._factory = factory
        self._login = (user_name, password)
        self._most = sessions
        self._connections = connections
        self._wait_s = _seconds(wait_ms)
        self._changed = threading.Condition()
        self._out = 0
        self._shared: list[_Shared] = []
        self._making = threading.Lock()
        """Held while a connection is made, so that many who come at once do not make many."""
        self._closed = False

    @property
    def borrowed(self) -> int:
        """How many sessions are out."""
        return self._out

    @property
    def open_connections(self) -> int:
        """How many connections the pool has now."""
        return len(self._shared)

    @contextmanager
    def session(self, session_mode: int = Session.AUTO_ACKNOWLEDGE) -> Generator[Session]:
        """Lend a session for a ``with`` block. Its connection is started.

        At the end of the block it is closed with all that was made from it: an open transaction rolls back, messages that
        are not acknowledged go back.

        Args:
            session_mode: One of the four modes.
        Raises:
            IllegalStateException: The pool is closed.
            JMSException: Code ``timeout``: all sessions are out. Or the connection or the session cannot be made.
        Threads: the session belongs to the thread that uses it, as every session.
        """
        self._enter()
        try:
            shared, session = self._make(session_mode)
            try:
                yield session
            finally:
                self._give_back(shared, session)
        finally:
            with self._changed:
                self._out -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Close the connections and the sessions that are out, and tell who waits for one; closed already, do nothing."""
        with self._changed:
            self._closed = True
            shared, self._shared = self._shared, []
            self._changed.notify_all()
        for one in shared:
            _close(one.connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SessionPool of {self._factory!r}: {self._out} of {self._most} sessions out, {len(self._shared)} connections>"

    # ---- inside ---------------------------------------------------------------------------------------------------
    def _enter(self) -> None:
        end = time.monotonic() + self._wait_s
        with self._changed:
            while self._out >= self._most and not self._closed:
                left = end - time.monotonic()
                if left <= 0:
                    raise JMSException(f"all {self._most} sessions of the pool are out, for {self._wait_s:g} s", "timeout")
                self._changed.wait(left)
            self._check_open()
            self._out += 1

    def _check_open(self) -> None:
        if self._closed:
            raise _closed_error()

    def _make(self, mode: int) -> tuple[_Shared, Session]:
        while True:
            shared, fresh = self._pick()
            try:
                return shared, shared.connection.create_session(mode)
            except BaseException as error:
                self._leave(shared)
                # The connection may have been lost without a word: then another one can do it.
                if fresh or not isinstance(error, JMSException) or not _is_over(shared.connection):
                    raise
                self._drop(shared, error)

    def _pick(self) -> tuple[_Shared, bool]:
        """Return the connection with the fewest sessions out, made if need be, and whether it was made now."""
        with self._making:
            with self._changed:
                self._check_open()
                broken = [one for one in self._shared if one.broken is not None]
            for one in broken:
                self._drop(one, one.broken)
            with self._changed:
                full = len(self._shared) >= self._connections
                if self._shared and (full or any(one.out == 0 for one in self._shared)):
                    return self._least(), False
            connection = self._connect()
            with self._changed:
                if not self._closed:
                    shared = _Shared(connection)
                    shared.out = 1
                    self._shared.append(shared)
                    return shared, True
            _close(connection)
            raise _closed_error()

    def _least(self) -> _Shared:
        shared = min(self._shared, key=lambda one: one.out)
        shared.out += 1
        return shared

    def _connect(self) -> Connection:
        user, password = self._login
        # It outlives the callback of a container that happens to need it first.
        with outside_container():
            connection = self._factory.create_connection(*((user, password) if user is not None else ()))
        try:
            connection.start()
        except BaseException:
            _close(connection)
            raise
        return connection

    def _leave(self, shared: _Shared) -> None:
        with self._changed:
            shared.out -= 1

    def _drop(self, shared: _Shared, why: JMSException | None) -> None:
        """Take a connection out of the pool; sessions of it that are out go on as far as they can."""
        with self._changed:
            if shared not in self._shared:
                return
            self._shared.remove(shared)
            last = shared.out == 0
        _log.info("a session pool takes a new connection in place of one that has told: %s", why)
        if last:
            _close(shared.connection)

    def _give_back(self, shared: _Shared, session: Session) -> None:
        try:
            session.close()
        except JMSException as error:
            _log.warning("a borrowed session could not be closed: %s", error)
            shared.broken = shared.broken or error
        with self._changed:
            shared.out -= 1
            last = shared.out == 0 and shared not in self._shared
        if last:
            _close(shared.connection)


def _closed_error() -> IllegalStateException:
    return IllegalStateException("the session pool is closed", "closed")


def _check_count(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise IllegalArgumentException(f"{_FIRST} has {name} of at least 1, not {number!r}")


def _seconds(wait_ms: object) -> float:
    seconds = wait_ms.total_seconds() if isinstance(wait_ms, timedelta) else None
    if isinstance(wait_ms, int | float) and not isinstance(wait_ms, bool):
        seconds = wait_ms / 1000
    if seconds is None or not seconds >= 0:
        raise IllegalArgumentException(f"{_FIRST} waits for 0 milliseconds or more, or for a timedelta, not {wait_ms!r}")
    return seconds


def _is_over(connection: Connection) -> bool:
    """Whether a connection is of no more use."""
    try:
        _ = connection.meta_data
    except JMSException:
        return True
    return False


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except JMSException as error:
        _log.warning("a connection of a session pool could not be closed: %s", error)
