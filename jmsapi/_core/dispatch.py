"""The session thread: runs the message listeners of one session, one at a time.

Spec: 4.4.14-1, 4.4.14-2 (serial), 4.3.4-7 and 4.3.5-2 (running listeners finish with full services), 4.5.2-2 to 4.5.2-6.
"""

from __future__ import annotations

import logging
import threading

from jmsapi._core.session_state import SessionConsumer, SessionState
from jmsapi._core.waiting import ConditionWait, Deadline, Steps
from jmsapi.spi.label import message_label

__all__ = ["Dispatcher"]

_log = logging.getLogger("jmsapi")


class Dispatcher:
    """Runs listeners for a session. All state is guarded by the session's lock.

    Args:
        state: The session's.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._changed = state.changed
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._ended = False
        """The thread has called its last listener."""
        self.running: SessionConsumer | None = None
        """The consumer whose listener runs now."""
        self._other_thread: threading.Thread | None = None
        """A thread of an application server or container that runs a listener of this session now."""

    def start(self) -> None:
        """Start the thread, once. With the lock held."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name=self._state.name, daemon=True)
            self._thread.start()

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is this session's: the caller is inside a listener."""
        # Not by its ident: the next thread gets that of one that has ended.
        return threading.current_thread() in (self._thread, self._other_thread)

    def enter(self, consumer: SessionConsumer) -> None:
        """The calling thread is about to run a listener of this session. With the lock held."""
        self.running, self._other_thread = consumer, threading.current_thread()

    def leave(self) -> None:
        """The calling thread has run its listener. With the lock held."""
        self.running = self._other_thread = None
        self._changed.notify_all()

    def left_behind(self) -> None:
        """Take note that the thread is not in this process, which was forked while it ran. Takes no lock."""
        self.running = self._other_thread = None
        self._ended = True

    def idle_steps(self, deadline: Deadline, consumer: SessionConsumer | None = None) -> Steps[bool]:
        """Wait until no listener (or not this consumer's) runs; False when time is up."""
        idle: bool = yield ConditionWait(
            self._changed,
            lambda: self.running is None if consumer is None else self.running is not consumer,
            deadline.remaining(),
        )
        return idle

    def stop(self) -> None:
        """Let the thread end after the listener that runs. With the lock held."""
        self._stopping = True
        self._changed.notify_all()

    def join_steps(self, deadline: Deadline) -> Steps[bool]:
        """Wait for the thread's end; False when a listener is still running."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        ended: bool = yield ConditionWait(self._changed, lambda: self._ended, deadline.remaining())
        if ended:
            thread.join(1.0)
        return ended

    def _run(self) -> None:
        state = self._state
        consumer: SessionConsumer | None = None
        while True:
            with self._changed:
                if consumer is not None:
                    # The listener has returned; under one lock with what comes next.
                    self.running = None
                    state.offer(consumer)
                    self._changed.notify_all()
                while (consumer := state.next_ready()) is None and not self._stopping:
                    self._changed.wait(60.0)
                if consumer is None or self._stopping:
                    self._ended = True
                    self._changed.notify_all()
                    return
                self.running = consumer
                listener = consumer.listener
                entry = state.ledger.take(consumer.inbox) if consumer.inbox.buffer else None
            try:
                if entry is not None and listener is not None:
                    consumer.run_listener(listener, entry)
            except BaseException:  # such as SystemExit: nothing of the application's may end the thread that delivers the rest
                label = "a delivery" if entry is None else message_label(entry.delivery.envelope)
                _log.exception("%s: %s could not be given to its listener", state.name, label)
