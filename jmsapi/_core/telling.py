"""What a connection tells by itself: problems to the exception listener, interruptions to the connection listener.

Both are called from one thread of the connection, one after the other, in the order of what happened.

Spec: 4.3.8-1, 4.3.8-3 (one at a time), B.5.17-3.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi.api import ExceptionListener

if TYPE_CHECKING:
    from jmsapi.api import ExceptionListenerLike
    from jmsapi.errors import JMSException

__all__ = ["ConnectionListener", "Telling"]

_log = logging.getLogger("jmsapi")


class ConnectionListener:
    """What a connection with a ``failover:`` URL calls as its link is lost and made again. Override what is of interest.

    The exception listener hears nothing of all this: it is called once, when the connection is lost for good.

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


class Telling:
    """Calls the listeners of one connection in a thread of its own, started when there is something to tell."""

    def __init__(self) -> None:
        self.listener: ExceptionListenerLike | None = None
        self.watcher: ConnectionListener | None = None
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def problem(self, error: JMSException, name: str) -> None:
        """Tell the exception listener; without one, the log."""
        if self.listener is None:
            if not self._closed:
                _log.error("no exception listener hears of: %s", error)
            return
        self._put(lambda: self._tell_problem(error), name)

    def _tell_problem(self, error: JMSException) -> None:
        listener = self.listener
        if isinstance(listener, ExceptionListener):
            listener.on_exception(error)
        elif listener is not None:
            listener(error)

    def interrupted(self, cause: JMSException, name: str) -> None:
        """Tell the connection listener that the link is lost."""
        self._watched(lambda watcher: watcher.on_interrupted(cause), name)

    def attempt_failed(self, url: str, attempt: int, cause: JMSException, name: str) -> None:
        """Tell the connection listener of an attempt."""
        self._watched(lambda watcher: watcher.on_attempt_failed(url, attempt, cause), name)

    def resumed(self, url: str, name: str) -> None:
        """Tell the connection listener that there is a link again."""
        self._watched(lambda watcher: watcher.on_resumed(url), name)

    def _watched(self, tell: Callable[[ConnectionListener], None], name: str) -> None:
        watcher = self.watcher
        if watcher is not None:
            self._put(lambda: tell(watcher), name)

    def _put(self, tell: Callable[[], None], name: str) -> None:
        with self._changed:
            if self._closed:
                return
            self._waiting.append(tell)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread; what waits is still told. A running listener is not waited for."""
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
                tell = self._waiting.popleft()
            try:
                tell()
            except BaseException:  # such as SystemExit: nothing of the application's may end the thread that tells the rest
                _log.exception("a listener of the connection raised")
