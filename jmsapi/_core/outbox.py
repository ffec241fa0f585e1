"""What one session has sent and not yet heard of: order, errors without a caller, completion listeners.

Completion listeners run in a thread of their own, one at a time, in the order of the send calls (4.6.2.8-1 to 4.6.2.8-3),
whatever the order of the broker's answers. The session's lock guards the state; no lock is held while a listener runs.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi._core.errors_map import jms_error
from jmsapi.errors import JMSException
from jmsapi.spi import ErrorKind, ProviderError

if TYPE_CHECKING:
    from jmsapi._core.producer import ProducerImpl
    from jmsapi._core.waiting import Deadline
    from jmsapi.api import CompletionListener, Message

__all__ = ["Outbox", "Ticket"]

_log = logging.getLogger("jmsapi")


class Ticket:
    """One send: the token of the seam."""

    __slots__ = ("awaited", "done", "error", "listener", "message", "outbox", "producer")

    def __init__(
        self, outbox: Outbox, producer: ProducerImpl, message: Message, listener: CompletionListener | None, awaited: bool
    ) -> None:
        self.outbox = outbox
        self.producer = producer
        self.message = message
        self.listener = listener
        self.awaited = awaited
        """The sending thread waits for the answer."""
        self.done = False
        self.error: Exception | None = None

    def answered(self, error: Exception | None) -> None:
        """Take the broker's answer. Called on the provider's thread."""
        self.outbox.answered(self, error)


class Outbox:
    """The unanswered sends of one session.

    Args:
        lock: The session's lock; it guards everything here.
        changed: The session's condition.
        orphan: Takes an error that no caller and no listener will hear of.
        name: For the completion thread.
    """

    def __init__(
        self, lock: threading.Lock, changed: threading.Condition, orphan: Callable[[JMSException], None], name: str
    ) -> None:
        self._lock = lock
        self._changed = changed
        self._orphan = orphan
        self._name = name
        self._unanswered = 0
        self._watched = 0
        """Threads that wait for quiet, or for one answer."""
        self._order: deque[Ticket] = deque()
        """Asynchronous sends whose listener has not been called, in the order of sending."""
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._running: int | None = None
        self._told = 0
        """How many listeners were called, the running one included."""
        self._failure: Exception | None = None
        self.transacted = False

    def register(self, ticket: Ticket) -> bool:
        """Take note of a send that is about to be made; False when it comes too late. With the session's lock held."""
        if self._stopping:
            return False
        self._unanswered += 1
        ticket.producer.pending += 1
        if ticket.listener is not None:
            self._order.append(ticket)
            if self._thread is None:
                self._thread = threading.Thread(target=self._complete, name=self._name, daemon=True)
                self._thread.start()
        return True

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a send that the provider refused in the call itself (4.6.2.2-1: neither callback then)."""
        with self._lock:
            if ticket.done:
                return
            ticket.done = True
            self._unanswered -= 1
            ticket.producer.pending -= 1
            if ticket.listener is not None:
                self._order.remove(ticket)
            self._changed.notify_all()

    def answered(self, ticket: Ticket, error: Exception | None) -> None:
        """Take the broker's answer to one send."""
        with self._lock:
            if ticket.done:
                return
            ticket.error = error
            ticket.done = True
            self._unanswered -= 1
            if ticket.listener is None:
                ticket.producer.pending -= 1
            if self._watched or ticket.listener is not None:
                self._changed.notify_all()
            if error is None:
                return
            orphaned = not ticket.awaited and ticket.listener is None
            if orphaned and self.transacted:
                # The commit is the caller that hears of it.
                self._failure = self._failure or error
                orphaned = False
        if orphaned:
            self._orphan(jms_error(error, "send a message"))

    def wait_for(self, ticket: Ticket, timeout: float) -> None:
        """Wait for the answer to a synchronous send.

        Raises:
            JMSException: The broker refused it, or did not answer in time: then its fate is not known (code ``timeout``).
        """
        if not ticket.done:
            with self._lock:
                self._wait(lambda: ticket.done, timeout)
                if not ticket.done:
                    ticket.awaited = False
                    raise JMSException(
                        f"send a message: the broker did not confirm it within {timeout:.1f} s; it may or may not have arrived",
                        "timeout",
                    )
        if ticket.error is not None:
            raise jms_error(ticket.error, "send a message") from ticket.error

    def take_failure(self) -> Exception | None:
        """Return and forget the first error of the sends of this transaction."""
        with self._lock:
            failure, self._failure = self._failure, None
            return failure

    @property
    def in_listener(self) -> bool:
        """Whether the calling thread runs a completion listener of this session."""
        return self._running == threading.get_ident()

    def quiet(self, deadline: Deadline, producer: ProducerImpl | None = None) -> bool:
        """Wait until every send (of one producer) is answered and its completion listener has returned.

        Returns:
            False when time is up.
        """
        with self._lock:
            return self._wait(self._is_quiet if producer is None else lambda: not producer.pending, deadline.remaining())

    def close(self, deadline: Deadline) -> bool:
        """Wait for what is under way, fail the rest, end the thread; False when a listener is still running.

        Every completion listener is called exactly once: with its answer, or with an error that says it is not known.
        """
        with self._lock:
            running, told = self._running, self._told
        orderly = self.quiet(deadline)
        with self._lock:
            hangs = running is not None and self._running is not None and self._told == told
            if not orderly:
                for ticket in self._order:
                    if not ticket.done:
                        ticket.error = ProviderError(
                            ErrorKind.TIMEOUT, "closed before the broker confirmed it; it may or may not have arrived"
                        )
                        ticket.done = True
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return orderly
        # Time to tell what was not confirmed; for a listener that hangs there is only what is left of the deadline.
        thread.join(deadline.remaining() if hangs else max(1.0, deadline.remaining() or 0.0))
        return orderly and not thread.is_alive()

    def _wait(self, over: Callable[[], bool], timeout: float | None) -> bool:
        self._watched += 1
        try:
            return self._changed.wait_for(over, timeout)
        finally:
            self._watched -= 1

    def _is_quiet(self) -> bool:
        return not self._unanswered and not self._order and self._running is None

    def _due(self) -> bool:
        return self._stopping or bool(self._order and self._order[0].done)

    def _complete(self) -> None:
        while True:
            with self._lock:
                while not self._due():
                    self._changed.wait(60.0)
                if not (self._order and self._order[0].done):
                    return
                ticket = self._order.popleft()
                self._running = threading.get_ident()
                self._told += 1
            try:
                _tell(ticket)
            finally:
                with self._lock:
                    self._running = None
                    ticket.producer.pending -= 1
                    self._changed.notify_all()


def _tell(ticket: Ticket) -> None:
    listener = ticket.listener
    if listener is None:
        return
    try:
        if ticket.error is None:
            listener.on_completion(ticket.message)
        else:
            listener.on_exception(ticket.message, jms_error(ticket.error, "send a message"))
    except BaseException:  # such as SystemExit: nothing of the application's may end the thread that tells the others
        _log.exception("a completion listener raised")
