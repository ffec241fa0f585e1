"""Calls the listeners of a connection: problems go to the exception listener, interruptions to the connection listener.

Both are called from one thread of the connection, one after the other, in the order of what happened.

Spec: 4.3.8-1, 4.3.8-3 (one at a time), B.5.17-3.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi._callbacks import check_returned
from jmsapi.api import ExceptionListener

if TYPE_CHECKING:
    from jmsapi.api import ExceptionListenerLike
    from jmsapi.errors import JMSException

__all__ = ["ConnectionListener", "ListenerNotifier"]

_log = logging.getLogger("jmsapi")


class ConnectionListener:
    """What a connection with a ``failover:`` URL calls as its link is lost and made again. Override what is of interest.

    The exception listener is not called for any of this. It is called once, when the connection is lost for good.

    Threads: a thread of the connection, one call at a time, in the order of what happened; the whole API may be used.
    """

    def on_interrupted(self, cause: JMSException) -> None:
        """Take note that the link is lost and another one is being made.

        Args:
            cause: Why.
        """

    def on_attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        """Take note that a server was tried without success.

        Args:
            url: Which, without user and password.
            attempt: Which attempt of this interruption, from 1; one attempt tries every server of the list.
            cause: Why.
        """

    def on_resumed(self, url: str) -> None:
        """Take note that there is a link again, with all sessions, consumers and producers on it.

        Args:
            url: To which server, without user and password.
        """


class ListenerNotifier:
    """Calls the listeners of one connection in a thread of its own, started when there is something to report."""

    def __init__(self) -> None:
        self.listener: ExceptionListenerLike | None = None
        self.connection_listener: ConnectionListener | None = None
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def problem(self, error: JMSException, name: str) -> None:
        """Call the exception listener; without one, log the error."""
        if self.listener is None:
            if not self._closed:
                _log.error("no exception listener hears of: %s", error)
            return
        self._put(lambda: self._call_exception_listener(error), name)

    def _call_exception_listener(self, error: JMSException) -> None:
        listener = self.listener
        if listener is not None:
            call = listener.on_exception if isinstance(listener, ExceptionListener) else listener
            check_returned(call(error), "the exception listener")

    def interrupted(self, cause: JMSException, name: str) -> None:
        """Call the connection listener: the connection to the broker is lost."""
        self._call(lambda listener: listener.on_interrupted(cause), name)

    def attempt_failed(self, url: str, attempt: int, cause: JMSException, name: str) -> None:
        """Call the connection listener: an attempt to connect has failed."""
        self._call(lambda listener: listener.on_attempt_failed(url, attempt, cause), name)

    def resumed(self, url: str, name: str) -> None:
        """Call the connection listener: there is a connection to the broker again."""
        self._call(lambda listener: listener.on_resumed(url), name)

    def _call(self, call: Callable[[ConnectionListener], object], name: str) -> None:
        listener = self.connection_listener
        if listener is not None:
            self._put(lambda: check_returned(call(listener), "the connection listener"), name)

    def left_behind(self) -> None:
        """Start anew in a forked child, where the thread is not. Takes no lock."""
        self._changed = threading.Condition()
        self._waiting.clear()
        self._thread = None

    def _put(self, call: Callable[[], None], name: str) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread; what waits is still reported. A running listener is not waited for."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait(60.0)
                call = self._waiting.popleft()
            try:
                call()
            except BaseException:  # such as SystemExit: nothing of the application's may end this thread
                _log.exception("a listener of the connection raised")
