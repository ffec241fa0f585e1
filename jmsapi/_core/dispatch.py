"""The session thread: runs the message listeners of one session, one at a time.

Spec: 4.4.14-1, 4.4.14-2 (serial), 4.3.4-7 and 4.3.5-2 (running listeners finish with full services), 4.5.2-2 to 4.5.2-6.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsapi._core.consumer import ConsumerImpl
    from jmsapi._core.session import SessionImpl
    from jmsapi._core.waiting import Deadline

__all__ = ["Dispatcher"]

_log = logging.getLogger("jmsapi")


class Dispatcher:
    """Runs listeners for a session. All state is guarded by the session's lock.

    Args:
        session: Whose listeners.
        changed: The session's condition.
        name: For the thread.
    """

    def __init__(self, session: SessionImpl, changed: threading.Condition, name: str) -> None:
        self._session = session
        self._changed = changed
        self._name = name
        self._ready: deque[ConsumerImpl] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self.running: ConsumerImpl | None = None
        """Whose listener runs now."""
        self._lent: threading.Thread | None = None
        """A thread of an application server that runs the session's own listener now."""

    def start(self) -> None:
        """Start the thread, once. With the lock held."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def offer(self, consumer: ConsumerImpl) -> None:
        """Put a consumer in line when it is open and has a listener and something for it. With the lock held."""
        if not consumer.in_line and _has_work(consumer):
            consumer.in_line = True
            self._ready.append(consumer)
            self._changed.notify_all()

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is this session's: the caller is inside a listener."""
        # Not by its ident: the next thread gets that of one that has ended.
        return threading.current_thread() in (self._thread, self._lent)

    def enter(self, consumer: ConsumerImpl) -> None:
        """The calling thread is about to run a listener of this session. With the lock held."""
        self.running, self._lent = consumer, threading.current_thread()

    def leave(self) -> None:
        """It has. With the lock held."""
        self.running = self._lent = None
        self._changed.notify_all()

    def idle(self, deadline: Deadline, consumer: ConsumerImpl | None = None) -> bool:
        """Wait until no listener (or not this consumer's) runs; False when time is up. With the lock held."""
        return self._changed.wait_for(
            lambda: self.running is None if consumer is None else self.running is not consumer, deadline.remaining()
        )

    def stop(self) -> None:
        """Let the thread end after the listener that runs. With the lock held."""
        self._stopping = True
        self._changed.notify_all()

    def join(self, deadline: Deadline) -> bool:
        """Wait for the thread's end; False when a listener is still running."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(deadline.remaining())
        return not thread.is_alive()

    def _next(self) -> ConsumerImpl | None:
        while self._ready and self._session.flowing:
            consumer = self._ready.popleft()
            consumer.in_line = False
            if _has_work(consumer):
                return consumer
        return None

    def _run(self) -> None:
        while True:
            with self._changed:
                while (consumer := self._next()) is None:
                    if self._stopping:
                        return
                    self._changed.wait(60.0)
                if self._stopping:
                    return
                self.running = consumer
                listener = consumer.listener
                entry = self._session.ledger.take(consumer.inbox)
            try:
                if entry is not None and listener is not None:
                    consumer.run_listener(listener, entry)
            except BaseException:  # such as SystemExit: nothing of the application's may end the thread that delivers the rest
                _log.exception("delivery to a listener failed in %s", self._name)
            finally:
                with self._changed:
                    self.running = None
                    self.offer(consumer)
                    self._changed.notify_all()


def _has_work(consumer: ConsumerImpl) -> bool:
    return consumer.listener is not None and bool(consumer.inbox.buffer) and not consumer.closed
