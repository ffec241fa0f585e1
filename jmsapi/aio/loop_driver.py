"""The driver that runs the operations of the core in an event loop: where one waits, its task does, and no thread.

What an operation waits for calls when it is over, on a provider's thread and perhaps under a session's lock, so that only puts
the waiting task into a line. One call of the loop wakes all that stand in the line by then.

Cancelling a task raises ``CancelledError`` inside the operation, at the place where it waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from jmsapi._core.waiting import PendingWait, Steps
from jmsapi.aio.loop_deadlines import LoopDeadlines
from jmsapi.errors import IllegalStateException, JMSException

__all__ = ["LoopDriver"]

_log: Final = logging.getLogger("jmsapi")
_BURST: Final = 64
"""Operations in a row that need not wait, after which other tasks of the loop have their turn."""
R = TypeVar("R")


class LoopDriver:
    """Runs operations of one connection in one event loop.

    Args:
        loop: It calls every method, but for ``_hand_over``.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines = LoopDeadlines(loop)
        self._due: deque[asyncio.Future[bool]] = deque()
        self._called = False
        """The loop has been asked to wake what is due, and has not begun."""
        self._call = self._hand_over
        self._without_wait = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    # ---- running --------------------------------------------------------------------------------------------------
    async def run(self, steps: Steps[R]) -> R:
        """Run an operation in the calling task; what a wait raises, cancellation included, is raised inside the operation."""
        self.check_loop()
        if self.others_turn():
            await asyncio.sleep(0)
        return await self.go_on(steps)

    def others_turn(self) -> bool:
        """Count an operation that begins; True when so many have not waited that other tasks are to have their turn."""
        self._without_wait += 1
        if self._without_wait <= _BURST:
            return False
        self._without_wait = 0
        return True

    async def go_on(self, steps: Steps[R]) -> R:
        """Run what comes next of an operation that has begun in the calling task; see ``run``."""
        try:
            wait: PendingWait[Any] = next(steps)
            while True:
                try:
                    waiter = self.begin(wait)
                    if waiter is not None:
                        try:
                            await waiter
                        finally:
                            self.end(wait, waiter)
                    outcome = wait.outcome()
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:
                    wait = steps.throw(error)
                else:
                    wait = steps.send(outcome)
        except StopIteration as end:
            value: R = end.value
            return value

    async def finish(self, steps: Steps[R], longest_s: float | None = None) -> R:
        """Run an operation to its end even if the calling task is cancelled, which goes on only then.

        Args:
            steps: The operation.
            longest_s: Seconds that it may go on after the task was cancelled; None for an operation that has an end of its own.
        """
        self.check_loop()
        task = self._begin(self.run(steps))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                if cancelled is None and longest_s is not None:
                    self._loop.call_later(longest_s, task.cancel)
                cancelled = error
        if cancelled is None:
            return task.result()
        if not task.cancelled() and task.exception() is not None:
            _log.debug("what a cancelled task was finishing has failed: %s", task.exception())
        raise cancelled

    async def open(self, steps: Steps[R], undo: Callable[[R], Steps[None]]) -> R:
        """Run an operation that opens something; if the calling task is cancelled, it is closed as soon as it is open.

        Args:
            steps: The operation.
            undo: Returns the operation that closes what has been opened.
        """
        self.check_loop()
        task = self._begin(self.run(steps))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._begin(self._undo(task, undo))
            raise

    async def _undo(self, task: asyncio.Task[R], undo: Callable[[R], Steps[None]]) -> None:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            with suppress(JMSException):
                await self.run(undo(task.result()))

    def to_close_with(self) -> LoopDriver:
        """Return what closes: this driver, or when its loop is closed already one of the loop that runs.

        Raises:
            IllegalStateException: It is another loop that runs, and its own is not closed.
        """
        if self._loop.is_closed():
            return LoopDriver(asyncio.get_running_loop())
        self.check_loop()
        return self

    async def settle(self) -> None:
        """Wait for what goes on after its caller was cancelled. When the connection is closed."""
        others = self._tasks - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)

    def check_loop(self) -> None:
        """Raise IllegalStateException when it is another loop that runs."""
        if asyncio.get_running_loop() is not self._loop:
            raise IllegalStateException("the context was opened in another event loop, and belongs to it", "wrong-loop")

    def _begin(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        task = self._loop.create_task(work)
        # The loop itself holds its tasks weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- waiting --------------------------------------------------------------------------------------------------
    def begin(self, wait: PendingWait[Any]) -> asyncio.Future[bool] | None:
        """Return what a task awaits until a wait is over, or its time is; None when it is over now. Then comes ``end``.

        No coroutine, since each message would have to pass through it twice.
        """
        waiter: asyncio.Future[bool] = self._loop.create_future()
        if not wait.subscribe(self._call, waiter):
            return None
        self._without_wait = 0
        timeout = wait.timeout
        if timeout is not None:
            self._deadlines.add(waiter, timeout)
        return waiter

    def end(self, wait: PendingWait[Any], waiter: asyncio.Future[bool]) -> None:
        """Go on after a wait, which is given up if its time is over, or the task is cancelled."""
        timeout = wait.timeout
        if timeout is not None:
            self._deadlines.remove(waiter, timeout)
        if waiter.cancelled() or not waiter.done() or not waiter.result():
            wait.give_up()

    def _hand_over(self, waiter: asyncio.Future[bool]) -> None:
        """Have a task woken. On any thread, perhaps under a session's lock."""
        self._due.append(waiter)
        if not self._called:
            self._called = True
            if asyncio._get_running_loop() is self._loop:
                self._loop.call_soon(self._wake_all)
                return
            # A loop that is closed has nobody to wake.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        # First this: what is put into the line from now on asks again.
        self._called = False
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_result(True)
