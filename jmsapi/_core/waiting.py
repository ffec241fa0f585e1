"""Waiting: what an operation waits for, and the driver that blocks a thread until it is there.

An operation that waits is written once, as a generator (``Steps``) that yields what it waits for: the answer of a provider
(``AnswerWait``) or a condition of a session (``ConditionWait``). A driver waits and sends the outcome back in. ``run`` blocks the
calling thread with ``block``. Another driver, say of an event loop, has ``subscribe`` call it with a token of its own when the
wait is over, waits for that at most ``timeout`` seconds, calls ``give_up()`` if it was not called by then, and goes on with
``outcome()``.

What runs once a message (send, receive, a listener's call, the acknowledgement in AUTO mode) does not pass through here.
"""

from __future__ import annotations

import sys
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, Final, Generic, TypeVar

from jmsapi._core.blocking_call_warning import warn_in_event_loop
from jmsapi._core.errors_map import jms_error
from jmsapi.errors import JMSException

__all__ = ["AnswerWait", "ConditionWait", "Deadline", "PendingWait", "StateCondition", "Steps", "Window", "result", "run"]

T = TypeVar("T")
W = TypeVar("W")
_ENDING: Final = "the interpreter is ending, and nobody is there any more who could answer"
_SLICE_S: Final = 60.0
"""The longest wait without a look."""


class Deadline:
    """A point in time that several waits share.

    Args:
        timeout_ms: From now; None for no end.
        monotonic: Seconds that never go back; the machine's unless somebody keeps another time.
    """

    __slots__ = ("_end", "_monotonic")

    def __init__(self, timeout_ms: float | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = None if timeout_ms is None else monotonic() + timeout_ms / 1000

    def remaining(self) -> float | None:
        """Return the seconds left, never negative; None for no end."""
        return None if self._end is None else max(0.0, self._end - self._monotonic())

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and self._monotonic() >= self._end


class StateCondition:
    """The condition of a session's state, under the session's lock, whose changes can also call somebody once.

    Not Python's own: there a handler of a signal that raises while a wait takes the lock again leaves a caller who believes that
    he holds it, and who then releases it for another thread. ``wait_until`` waits with no lock.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock
        self._waiters: set[threading.Lock] = set()
        self._callers: dict[object, dict[Callable[[], None], Callable[[], bool]]] = {}
        """By whom they concern, so that ten thousand of them cost nothing when something comes for one."""

    def __enter__(self) -> None:
        """Take the lock."""
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.lock.release()

    def wait(self, timeout: float) -> None:
        """Wait for a change, at most so many seconds. With the lock held; for threads that no signal interrupts."""
        waiter = self._waiter()
        self.lock.release()
        try:
            waiter.acquire(timeout=timeout)
        finally:
            self.lock.acquire()
            self._waiters.discard(waiter)

    def wait_until(self, predicate: Callable[[], object], timeout: float | None) -> bool:
        """Wait until a predicate of the state holds; return whether it does. Without the lock; a signal may interrupt it.

        Args:
            predicate: Evaluated with the lock held.
            timeout: Seconds; None for ever.
        Raises:
            JMSException: The interpreter is ending.
        """
        deadline = Deadline(None if timeout is None else timeout * 1000)
        while True:
            with self.lock:
                if predicate():
                    return True
                waiter = self._waiter()
            if sys.is_finalizing():
                raise JMSException(_ENDING, "connection")
            try:
                left = deadline.remaining()
                if not waiter.acquire(timeout=_SLICE_S if left is None else min(left, _SLICE_S)) and deadline.passed:
                    with self.lock:
                        return bool(predicate())
            finally:
                # One step, so that it needs no lock.
                self._waiters.discard(waiter)

    def _waiter(self) -> threading.Lock:
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.add(waiter)
        return waiter

    def notify_all(self, concern: object = None) -> None:
        """Wake the threads that wait, and call those whose predicate has become true. With the lock held.

        Args:
            concern: Whom alone the change concerns; None for everybody.
        """
        if self._waiters:
            waiters = tuple(self._waiters)
            self._waiters.clear()
            for waiter in waiters:
                waiter.release()
        if not self._callers:
            return
        for whom in [*self._callers] if concern is None else [concern]:
            callers = self._callers.get(whom, {})
            for call in [call for call, predicate in callers.items() if predicate()]:
                self.cancel(call, whom)
                call()

    def call_once(self, predicate: Callable[[], bool], call: Callable[[], None], concern: object = None) -> None:
        """Have a function called once, as soon as the predicate is true, perhaps now. With the lock held.

        Args:
            predicate: Of the session's state.
            call: It runs with the session's lock held, perhaps on a provider's thread, so it only takes note.
            concern: Whose changes the predicate depends on, beside those that concern everybody.
        """
        if predicate():
            call()
        else:
            self._callers.setdefault(concern, {})[call] = predicate

    def cancel(self, call: Callable[[], None], concern: object = None) -> None:
        """Do not call it any more. With the lock held."""
        callers = self._callers.get(concern)
        if callers is not None:
            callers.pop(call, None)
            if not callers:
                del self._callers[concern]


class PendingWait(Generic[T]):
    """What an operation waits for."""

    __slots__ = ()

    timeout: float | None
    """Longest wait in seconds, from when it is yielded; None for ever."""

    @abstractmethod
    def block(self) -> T:
        """Wait in this thread, and return or raise the outcome."""

    @abstractmethod
    def subscribe(self, call: Callable[[W], None], token: W) -> bool:
        """Have a function called when the wait is over, perhaps under a lock: it only takes note. False when it is over now.

        Args:
            call: It may come once even when this returns False.
            token: What it is called with; apart, since one object less for each of thousands of waits is felt.
        """

    @abstractmethod
    def outcome(self) -> T:
        """Return or raise what the operation goes on with, when the wait is over or given up."""

    def give_up(self) -> None:
        """Time is up, or the caller has stopped waiting."""


class AnswerWait(PendingWait[T]):
    """The answer of a provider.

    Args:
        answer: The provider's future.
        timeout: Seconds.
        asked: What was asked, to begin an error's text with.
    """

    __slots__ = ("_answer", "_asked", "timeout")

    def __init__(self, answer: Future[T], timeout: float | None, asked: str) -> None:
        self._answer = answer
        self._asked = asked
        self.timeout = timeout

    def block(self) -> T:
        """Wait for the answer; see ``result``."""
        return result(self._answer, self.timeout, self._asked)

    def subscribe(self, call: Callable[[W], None], token: W) -> bool:
        """Have a function called when the answer is there."""
        if self._answer.done():
            return False
        self._answer.add_done_callback(lambda _: call(token))
        return True

    def outcome(self) -> T:
        """Return the answer, or raise as ``result`` does."""
        if not self._answer.done():
            raise _no_answer(self._asked, self.timeout)
        return result(self._answer, 0.0, self._asked)


class ConditionWait(PendingWait[bool]):
    """A condition of a session; its outcome is whether it became true in time.

    Args:
        changed: The session's condition.
        predicate: What is to become true; evaluated under the session's lock.
        timeout: Seconds; None for ever.
        concern: Whose changes it depends on; see ``StateCondition``.
    """

    __slots__ = ("_call", "_changed", "_concern", "_predicate", "_true", "timeout")

    def __init__(
        self, changed: StateCondition, predicate: Callable[[], bool], timeout: float | None, concern: object = None
    ) -> None:
        self._changed = changed
        self._concern = concern
        self._predicate = predicate
        self._call: Callable[[], None] | None = None
        self._true = False
        """It was true when the subscriber was called."""
        self.timeout = timeout

    def block(self) -> bool:
        """Wait until it is true or time is up."""
        return self._changed.wait_until(self._predicate, self.timeout)

    def subscribe(self, call: Callable[[W], None], token: W) -> bool:
        """Have a function called once the condition has become true."""
        with self._changed.lock:
            if self._predicate():
                self._true = True
                return False
            self._call = partial(call, token)
            self._changed.call_once(self._predicate, self._became_true, self._concern)
            return True

    def _became_true(self) -> None:
        self._true = True
        if self._call is not None:
            self._call()

    def outcome(self) -> bool:
        """Return whether it is true, or was when the subscriber was called."""
        if self._true:
            return True
        with self._changed.lock:
            return self._predicate()

    def give_up(self) -> None:
        """Take the subscriber off the condition."""
        with self._changed.lock:
            self._changed.cancel(self._became_true, self._concern)


Steps = Generator[PendingWait[Any], Any, T]
"""An operation that waits: it yields what it waits for, is sent the outcome, and returns its result."""


def run(steps: Steps[T]) -> T:
    """Run an operation, blocking the calling thread where it waits.

    Whatever a wait raises is raised inside the operation, also what a signal's handler has raised.
    """
    warn_in_event_loop()
    try:
        wait = next(steps)
        while True:
            try:
                outcome = wait.block()
            except BaseException as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(outcome)
    except StopIteration as end:
        value: T = end.value
        return value


def result(future: Future[T], timeout: float | None, asked: str) -> T:
    """Wait for a provider's answer.

    Args:
        future: The provider's promise.
        timeout: Seconds.
        asked: What was asked, for the error's text.
    Raises:
        JMSException: The provider failed, or did not answer in time (code ``timeout``).
    """
    if not future.done() and sys.is_finalizing():
        raise JMSException(f"{asked}: {_ENDING}", "connection")
    try:
        return future.result(timeout)
    except FutureTimeout as error:
        if future.done():
            raise jms_error(error, asked) from error
        raise _no_answer(asked, timeout) from None
    except Exception as error:
        if not future.done() or (not future.cancelled() and future.exception() is not error):
            # Not the provider's: a signal's handler has ended the wait.
            raise
        raise jms_error(error, asked) from error


def _no_answer(asked: str, timeout: float | None) -> JMSException:
    return JMSException(f"{asked}: no answer within {timeout or 0.0:.1f} s", "timeout")


class Window:
    """How many sends of a connection may be unanswered."""

    __slots__ = ("_free", "_lock", "_queue", "_ready", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._lock = threading.Lock()
        self._ready = StateCondition(self._lock)
        self._queue: deque[Future[None]] = deque()

    def enter_at_once(self) -> bool:
        """Take a place if one is free and nobody stands in line; False if not."""
        with self._lock:
            if self._queue or self._free <= 0:
                return False
            self._free -= 1
            return True

    def place(self) -> Future[None]:
        """Return a future that is done when it has taken a place, for a driver that does not block; it may be cancelled."""
        place: Future[None] = Future()
        with self._lock:
            self._queue.append(place)
            self._give_places()
        return place

    def _give_places(self) -> None:
        while self._queue and self._free > 0:
            place = self._queue.popleft()
            if place.set_running_or_notify_cancel():
                self._free -= 1
                place.set_result(None)

    @property
    def taken(self) -> int:
        """How many are unanswered."""
        return self._size - self._free

    def left_behind(self) -> None:
        """Let a forked child pass, where no thread of its parent gives its place back. Takes no lock."""
        self._lock = threading.Lock()
        self._ready = StateCondition(self._lock)
        self._free = max(self._free, 1)

    def enter(self, timeout: float) -> bool:
        """Take a place, waiting for one at most ``timeout`` seconds; False when there was none."""
        deadline: Deadline | None = None
        while True:
            with self._lock:
                if self._free > 0:
                    self._free -= 1
                    return True
            deadline = deadline or Deadline(timeout * 1000)
            if not self._ready.wait_until(lambda: self._free > 0, deadline.remaining()):
                return False

    def leave(self, n: int = 1) -> None:
        """Give places back."""
        with self._lock:
            self._free += n
            if self._queue:
                self._give_places()
            self._ready.notify_all()
