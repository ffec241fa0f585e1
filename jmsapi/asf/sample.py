"""A fixed number of server sessions, each with a thread of its own that sleeps until it is to run.

Spec: 8.2.2, 8.2.3, 8.2.6, ASF-20 to ASF-46.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from jmsapi._callbacks import check_callback
from jmsapi.api import Connection, MessageListenerLike, ServerSession, ServerSessionPool, Session
from jmsapi.errors import IllegalArgumentException, IllegalStateException, JMSException

__all__ = ["SampleServerSession", "SampleServerSessionPool"]

_log = logging.getLogger("jmsapi")
_numbers = itertools.count(1)
_END_S: Final = 30.0
"""Longest wait for a listener when a server session is closed."""


class SampleServerSession(ServerSession):
    """A session with a thread of its own, which runs it whenever it is started.

    Args:
        session: The session, with its listener; closed with this object.
        pool: Told by ``finished`` after each run; None for one without a pool.
        name: Of the thread.
    Threads: any.
    Spec: ASF-20 to ASF-23, ASF-37 to ASF-44.
    """

    def __init__(self, session: Session, pool: SampleServerSessionPool | None = None, name: str | None = None) -> None:
        self._session = session
        self._pool = pool
        self._changed = threading.Condition()
        self._ready = False
        self._quit = False
        self.in_use = False
        """Whether it is out of its pool, which alone writes it, under its lock; without a pool, this object after a run."""
        self._thread = threading.Thread(target=self._serve, name=name or f"jmsapi-server-session-{next(_numbers)}", daemon=True)
        self._thread.start()

    @property
    def session(self) -> Session:
        """Give the one session that it was built with; see ServerSession."""
        return self._session

    def start(self) -> None:
        """Have the thread run the session once; see ServerSession.

        Raises:
            IllegalStateException: It is closed.
        """
        with self._changed:
            if self._quit:
                raise IllegalStateException("the server session is closed", "closed")
            self._ready = True
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread after the run that is under way, and close the session; closed already, do nothing.

        A listener that does not return is waited for 30 seconds. What the session raises is logged.
        """
        with self._changed:
            self._quit = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_S)
        try:
            self._session.close()
        except JMSException as error:
            _log.warning("%s: its session could not be closed: %s", self._thread.name, error)

    def _serve(self) -> None:
        while True:
            with self._changed:
                # A wake-up alone is no reason to run.
                while not self._ready and not self._quit:
                    self._changed.wait(60.0)
                if self._quit:
                    return
                self._ready = False
            try:
                self._session.run()
            except BaseException:  # such as SystemExit: nothing of the application's may end the thread that runs the rest
                _log.exception("%s: a run failed", self._thread.name)
            finally:
                # Whatever happened: else the pool would shrink.
                if self._pool is None:
                    self.in_use = False
                else:
                    self._pool.finished(self)


def _check_capacity(capacity: object) -> None:
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise IllegalArgumentException(f"a pool has a capacity of at least 1, not {capacity!r}")


class SampleServerSessionPool(ServerSessionPool):
    """A fixed number of server sessions, all made at once; a context manager, which closes it.

    Args:
        connection: Makes the sessions; the connection consumers of the pool must be made by it, too.
        capacity: How many server sessions, at least 1.
        listener: Called once for each session, without arguments, for a listener of its own: most often its class.
        session_mode: Of each session; AUTO_ACKNOWLEDGE unless said otherwise. A listener of a transacted one commits.
    Raises:
        IllegalArgumentException: The capacity is not a number of at least 1, or the listener not callable.
        JMSException: A session cannot be made; those made before it are closed.
    Threads: any.
    Spec: 8.2.3-1 to 8.2.3-3, ASF-24 to ASF-36, ASF-45, ASF-46.
    """

    def __init__(
        self,
        connection: Connection,
        capacity: int,
        listener: Callable[[], MessageListenerLike],
        session_mode: int = Session.AUTO_ACKNOWLEDGE,
    ) -> None:
        _check_capacity(capacity)
        if not callable(listener):
            raise IllegalArgumentException(f"a pool makes its listeners from a class or a function, not {listener!r}")
        check_callback(listener, "what makes the pool's listeners")
        self._changed = threading.Condition()
        self._closed = False
        self._server_sessions: list[SampleServerSession] = []
        number = next(_numbers)
        try:
            for n in range(capacity):
                self._server_sessions.append(self._make(connection, listener, session_mode, f"jmsapi-pool-{number}-{n}"))
        except BaseException as error:
            self.close()
            if isinstance(error, JMSException) or not isinstance(error, Exception):
                raise
            raise JMSException(f"a server session of the pool could not be made: {error!r}", "server-session-pool") from error

    def _make(
        self, connection: Connection, listener: Callable[[], MessageListenerLike], mode: int, name: str
    ) -> SampleServerSession:
        session = connection.create_session(mode)
        try:
            session.message_listener = listener()
            return SampleServerSession(session, self, name)
        except BaseException:
            session.close()
            raise

    def get_server_session(self) -> ServerSession:
        """Take the first one that is not in use, waiting while there is none; see ServerSessionPool.

        Raises:
            JMSException: The pool is closed, or is closed meanwhile.
        """
        with self._changed:
            while True:
                if self._closed:
                    raise JMSException("the server session pool is shut down", "closed")
                for one in self._server_sessions:
                    if not one.in_use:
                        one.in_use = True
                        return one
                self._changed.wait(60.0)

    def finished(self, server_session: SampleServerSession) -> None:
        """Take note that a run has ended: the server session can be had again."""
        with self._changed:
            server_session.in_use = False
            self._changed.notify()

    def close(self) -> None:
        """Wake who waits, and close every server session with its session; closed already, do nothing.

        Runs that are under way end first.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for one in self._server_sessions:
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
