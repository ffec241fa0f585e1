"""What one session has sent and the broker has not answered: order, errors without a caller, completion listeners.

Completion listeners run in a thread of their own, one at a time, in the order of the send calls (4.6.2.8-1 to 4.6.2.8-3),
whatever the order of the broker's answers. The session's lock guards the state; no lock is held while a listener runs.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from jmsapi._callbacks import check_returned
from jmsapi._core.errors_map import jms_error
from jmsapi._core.session_state import SessionState
from jmsapi._core.waiting import ConditionWait, Deadline, PendingWait, Steps
from jmsapi.api import CompletionListener, Message
from jmsapi.errors import JMSException
from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["PendingSend", "PendingSends", "SendingProducer"]

_log = logging.getLogger("jmsapi")
W = TypeVar("W")
_TAKEN_BACK_S = 0.25
"""How long a provider is given to say that it took a send back, which asks nothing of the broker."""


class SendingProducer(Protocol):
    """The part of a producer that pending sends need."""

    pending: int
    """Sends whose answer, or whose completion listener, is still to come back. Guarded by the session's lock."""


class PendingSend(PendingWait[None]):
    """One send: the token that goes to the provider and comes back with its answer, and what a driver waits for.

    As a wait it has no condition to be evaluated, since there are thousands of them at a time.
    """

    __slots__ = ("awaited", "call", "done", "error", "listener", "message", "producer", "registered", "sends", "timeout", "token")

    def __init__(
        self, sends: PendingSends, producer: SendingProducer, message: Message, listener: CompletionListener | None, awaited: bool
    ) -> None:
        self.sends = sends
        self.producer = producer
        self.message = message
        self.listener = listener
        self.awaited = awaited
        """The sending thread waits for the answer."""
        self.registered = False
        """Whether the send counts as unanswered until it is done."""
        self.done = False
        self.error: Exception | None = None
        self.call: Callable[[Any], None] | None = None
        """Called once with the token when it is answered, on the provider's thread: of a driver that does not block."""
        self.token: object = None
        self.timeout: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the broker has answered that it has the message."""
        return self.done and self.error is None

    @property
    def wants_answer(self) -> bool:
        """Whether somebody is told what the broker answers; see ``Provider.send``."""
        return self.awaited or self.listener is not None

    def answered(self, error: Exception | None) -> None:
        """Take the broker's answer. Called on the provider's thread."""
        self.sends.answered(self, error)

    def within(self, seconds: float) -> Self:
        """Return the wait for its answer, which lasts so long at most."""
        self.timeout = seconds
        return self

    def block(self) -> None:
        """Wait until it is answered or time is up."""
        self.sends.is_answered(self, self.timeout)

    def subscribe(self, call: Callable[[W], None], token: W) -> bool:
        """Have a function called when it is answered."""
        # Without the lock: whoever answers says so first and calls then, so that one of the two sees the other.
        self.token = token
        self.call = call
        return not self.done

    def outcome(self) -> None:
        """Return nothing: ``done`` says whether it is answered."""

    def give_up(self) -> None:
        """Have nobody called."""
        self.call = None


class PendingSends:
    """The unanswered sends of one session.

    Args:
        state: The session's; its lock guards everything here.
        unreported: Takes an error that no caller and no listener gets.
    """

    def __init__(self, state: SessionState, unreported: Callable[[JMSException], None]) -> None:
        self._state = state
        self.lock = state.lock
        self._changed = state.changed
        self._unreported = unreported
        self._unanswered = 0
        self._awaited = 0
        """Threads that wait for one answer."""
        self._quiet_awaited = 0
        """Callers that wait for quiet."""
        self._order: deque[PendingSend] = deque()
        """Asynchronous sends whose listener has not been called, in the order of sending."""
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._ended = False
        """The thread has called its last listener."""
        self._running: int | None = None
        self._called = 0
        """How many listeners were called, the running one included."""
        self.in_transactions = False
        """The commit raises for a send that failed."""

    def left_behind(self) -> None:
        """Forget what the parent of this forked process has sent: the answers come to the parent. Takes no lock."""
        self._unanswered = self._awaited = self._quiet_awaited = 0
        self._order.clear()
        self._running = None
        self._ended = True

    def register(self, send: PendingSend) -> None:
        """Record a send that is about to be made, unless it comes too late. With the session's lock held."""
        if self._stopping:
            return
        send.registered = True
        self._unanswered += 1
        send.producer.pending += 1
        if send.listener is not None:
            self._order.append(send)
            if self._thread is None:
                self._thread = threading.Thread(target=self._complete, name=f"{self._state.name}-completion", daemon=True)
                self._thread.start()

    def withdraw(self, send: PendingSend) -> None:
        """Forget a send that the provider refused in the call itself (4.6.2.2-1: neither callback then)."""
        with self.lock:
            if send.done or not send.registered:
                return
            send.done = True
            self._unanswered -= 1
            send.producer.pending -= 1
            if send in self._order:
                self._order.remove(send)
            self._changed.notify_all()

    def answered(self, send: PendingSend, error: Exception | None) -> None:
        """Take the broker's answer to one send."""
        unreported = False
        with self.lock:
            if send.done:
                return
            send.error = error
            send.done = True
            self._unanswered -= 1
            if send.listener is None:
                send.producer.pending -= 1
            if self._quiet_awaited or send.listener is not None:
                self._changed.notify_all()
            elif self._awaited:
                self._changed.notify_all(send)
            call, send.call = send.call, None
            if error is not None and not send.awaited and send.listener is None:
                unreported = not self.in_transactions
                if self.in_transactions:
                    self._state.not_sent(error)
        if call is not None:
            # Without the lock, for which the thread that is woken would have to wait at once.
            call(send.token)
        if error is not None and unreported:
            self._unreported(jms_error(error, f"send {_label(send.message)}"))

    def wait_for(self, send: PendingSend, timeout: float, take_back: Callable[[PendingSend], None]) -> None:
        """Wait for the answer to a synchronous send.

        Args:
            send: Which.
            timeout: Seconds.
            take_back: Asks for a send back of which no answer came in time; if it was not written, that is answered.
        Raises:
            JMSException: The broker refused it; it was not written in time and will not be (code ``timeout``); or it was, and not
                answered in time, so that its fate is not known (``in-doubt``).
        """
        if not send.done and not self.is_answered(send, timeout):
            take_back(send)
            if not self.is_answered(send, _TAKEN_BACK_S):
                with self.lock:
                    if not send.done:
                        raise _not_confirmed(send, timeout)
        if send.error is not None:
            raise jms_error(send.error, "send a message") from send.error

    def is_answered(self, send: PendingSend, seconds: float | None) -> bool:
        """Wait for the answer to one send, blocking; False when time is up."""
        with self.lock:
            self._awaited += 1
        try:
            return self._changed.wait_until(lambda: send.done, seconds)
        finally:
            with self.lock:
                self._awaited -= 1

    def answer_steps(self, send: PendingSend, timeout: float, take_back: Callable[[PendingSend], None]) -> Steps[None]:
        """Wait for the answer to a synchronous send, by a driver that does not block; see ``wait_for``."""
        error: BaseException | None = None
        try:
            yield send.within(timeout)
        except GeneratorExit:
            raise
        except BaseException as given_up:
            error = given_up
        yield from self.unanswered_steps(send, error, timeout, take_back)

    def unanswered_steps(
        self, send: PendingSend, error: BaseException | None, timeout: float, take_back: Callable[[PendingSend], None]
    ) -> Steps[None]:
        """Do what comes after the wait for an answer, which may be there or not.

        Args:
            send: Which.
            error: What has ended the wait, to be raised; None: the answer, or the time.
            timeout: How long it was, in seconds.
            take_back: See ``wait_for``.
        """
        if error is not None or not send.done:
            take_back(send)
            try:
                yield send.within(_TAKEN_BACK_S)
            except GeneratorExit:
                raise
            except BaseException as again:
                error = again
        if error is not None:
            # The caller waits no longer, and is to be told what it may have sent.
            raise error from self._fate(send)
        with self.lock:
            if not send.done:
                raise _not_confirmed(send, timeout)
        if send.error is not None:
            raise jms_error(send.error, "send a message") from send.error

    def _fate(self, send: PendingSend) -> JMSException:
        """Return what has become of a send for whose answer nobody waits any longer."""
        with self.lock:
            if not send.done:
                return _not_confirmed(send, None)
        if send.error is None:
            return JMSException("send a message: the broker has it", "done")
        return jms_error(send.error, "send a message")

    @property
    def in_listener(self) -> bool:
        """Whether the calling thread runs a completion listener of this session."""
        return self._running == threading.get_ident()

    @property
    def quiet(self) -> bool:
        """Whether every send is answered and its completion listener has returned."""
        with self.lock:
            return self._is_quiet()

    def quiet_steps(self, deadline: Deadline, producer: SendingProducer | None = None) -> Steps[bool]:
        """Wait until every send (of one producer) is answered and its completion listener has returned.

        Returns:
            False when time is up.
        """
        over: Callable[[], bool] = self._is_quiet if producer is None else lambda: not producer.pending
        with self.lock:
            if over():
                return True
            self._quiet_awaited += 1
        try:
            quiet: bool = yield ConditionWait(self._changed, over, deadline.remaining())
            return quiet
        finally:
            with self.lock:
                self._quiet_awaited -= 1

    def close_steps(self, deadline: Deadline) -> Steps[None]:
        """Wait for what is under way, fail the rest, end the thread.

        Every completion listener is called exactly once: with its answer, or with an error that says it is not known.
        """
        with self.lock:
            running, called = self._running, self._called
        orderly = yield from self.quiet_steps(deadline)
        if not orderly:
            yield from self._take_back_steps()
        with self.lock:
            hangs = running is not None and self._running is not None and self._called == called
            if not orderly:
                for send in self._order:
                    if not send.done:
                        send.error = ProviderError(
                            ErrorKind.IN_DOUBT, "closed before the broker confirmed it; it may or may not have arrived"
                        )
                        send.done = True
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return
        # Time to report what was not confirmed; for a listener that hangs there is only what is left of the deadline.
        left = deadline.remaining() if hangs else max(1.0, deadline.remaining() or 0.0)
        ended = yield ConditionWait(self._changed, lambda: self._ended, left)
        if ended and thread is not threading.current_thread():
            thread.join(1.0)

    def _take_back_steps(self) -> Steps[None]:
        """Have what was never written answered, which is not in doubt: it was not sent, and will not be."""
        with self.lock:
            late = [send for send in self._order if not send.done]
        for send in late:
            self._state.link.take_back(send)
        if late:
            yield ConditionWait(self._changed, lambda: all(send.done for send in late), _TAKEN_BACK_S)

    def _is_quiet(self) -> bool:
        return not self._unanswered and not self._order and self._running is None

    def _due(self) -> bool:
        return self._stopping or bool(self._order and self._order[0].done)

    def _complete(self) -> None:
        send: PendingSend | None = None
        while True:
            with self.lock:
                if send is not None:
                    # Its listener has returned; under one lock with what comes next.
                    self._running = None
                    send.producer.pending -= 1
                    self._changed.notify_all()
                    send = None  # its message is not kept while there is none to come
                while not self._due():
                    self._changed.wait(60.0)
                if not (self._order and self._order[0].done):
                    self._ended = True
                    self._changed.notify_all()
                    return
                send = self._order.popleft()
                self._running = threading.get_ident()
                self._called += 1
            _call_listener(send)


def _not_confirmed(send: PendingSend, timeout: float | None) -> JMSException:
    """Return the error of a send without an answer: time was up, or (None) the caller has stopped waiting."""
    send.awaited = False
    within = "when the wait for it was given up" if timeout is None else f"within {timeout:.1f} s"
    return JMSException(f"send a message: the broker did not confirm it {within}; it may or may not have arrived", "in-doubt")


def _call_listener(send: PendingSend) -> None:
    listener = send.listener
    if listener is None:
        return
    try:
        if send.error is None:
            result: object = listener.on_completion(send.message)  # type: ignore[func-returns-value]
        else:
            result = listener.on_exception(send.message, jms_error(send.error, "send a message"))  # type: ignore[func-returns-value]
        check_returned(result, "the completion listener")
    except BaseException:  # such as SystemExit: nothing of the application's may end this thread
        _log.exception("the completion listener %r raised on %s", listener, _label(send.message))


def _label(message: Message) -> str:
    return f"message {message.jms_message_id or 'without an id'} of {message.jms_destination}"
