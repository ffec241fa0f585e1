"""A worker of an asynchronous callback: a task in place of a thread.

It takes messages and has the callback called in the event loop. What settles a delivery may wait for the broker, so that is done
by the very code of a worker with a thread, in one of a few threads that all of them share.

Spec: MDB-44 to MDB-70.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from typing import TYPE_CHECKING

from jmsapi._callbacks import check_returned
from jmsapi.aio.loop_driver import LoopDriver
from jmsapi.errors import JMSException
from jmsapi.listener.message_driven_context import CURRENT
from jmsapi.listener.runtime_endpoint import AsyncCallbackEndpoint
from jmsapi.listener.workers import PAUSE, ContainerWorker

if TYPE_CHECKING:
    from jmsapi._core.endpoint import Entry, SharedReceiver
    from jmsapi.api import Message
    from jmsapi.listener.workers import WorkerOwner

__all__ = ["TaskWorker"]


class TaskWorker(ContainerWorker):
    """One task of a container.

    Args:
        owner: Its container.
        receiver: Where messages come from.
        name: Of the task.
    Raises:
        JMSException: Its session cannot be made.
    Threads: any; its work is done in the loop of asynchronous callbacks.
    """

    def __init__(self, owner: WorkerOwner, receiver: SharedReceiver, name: str) -> None:
        self._loop = owner.callback_loop
        super().__init__(owner, receiver, name)
        self._name = name
        self._task: asyncio.Task[BaseException | None] | None = None
        """The callback that runs."""
        self._stop = asyncio.Event()

    def _make_callback(self) -> AsyncCallbackEndpoint:
        owner = self._owner
        self._async_callback = AsyncCallbackEndpoint(
            owner.definition, owner.instances, self._context, self._commit, self._rollback, self._loop.in_thread
        )
        return self._async_callback

    # ---- its life -------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Let it work; see ContainerWorker."""
        try:
            self._loop.begin(self._work_on)
        except RuntimeError as error:
            # The loop in which the deployment was started is closed.
            self._owner.problem(JMSException(f"{self._name}: {error}", "closed"))
            self._owner.loop_ended()
            self._owner.gone(self)

    @property
    def runs_here(self) -> bool:
        """Whether the caller is in its callback, or keeps its loop from running; see ContainerWorker."""
        return CURRENT.get() is self._context or self._loop.is_here

    def told_to_stop(self, cut_in_s: float) -> None:
        """Its container stops; see ContainerWorker."""
        self._loop.call_soon(lambda: self._told_here(cut_in_s))

    def _told_here(self, cut_in_s: float) -> None:
        self._stop.set()
        asyncio.get_running_loop().call_later(cut_in_s, self._cut_here)

    def cut(self) -> None:
        """Cancel its callback; see ContainerWorker."""
        self._loop.call_soon(self._cut_here)

    def _cut_here(self) -> None:
        if self._task is not None and not self._task.done() and not self._task.cancelling():
            self._cut = True
            self._task.cancel()

    def join(self, timeout_s: float) -> None:
        """Return at once: a task that has said that it goes does nothing more; see ContainerWorker."""

    # ---- the task -------------------------------------------------------------------------------------------------
    async def _work_on(self) -> None:
        work, owner = self._work, self._owner
        driver = LoopDriver(asyncio.get_running_loop())
        try:
            while not self._spoiled:
                taken = await driver.run(work.take_steps(self._most, self._idle_s, self._gather_s))
                if taken is None or (not taken and owner.may_go(self)):
                    return
                if not taken:
                    continue
                self.busy = True
                try:
                    await self._handle_async(taken)
                except Exception as error:
                    self._spoiled = True
                    owner.problem(error)
                finally:
                    self.busy = False
                    work.leave()
                if self._spoiled or self._pauses:
                    await self._pause(PAUSE.seconds(max(0, self._pauses - 1)))
        except JMSException as error:
            owner.problem(error)
        except asyncio.CancelledError:
            owner.loop_ended()
            raise
        finally:
            await self._loop.in_thread(self._end)

    def _end(self) -> None:
        # What is not settled by now comes again.
        self.close()
        self._work.free_groups()
        self._owner.gone(self)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            pass

    async def _handle_async(self, taken: list[Entry]) -> None:
        messages, instead = self._readable(taken)
        if instead is not None:
            await self._loop.in_thread(instead)
            return
        # What settles it has the context variables of the callback, so that a trace that began there ends there.
        variables = contextvars.copy_context()
        self._task = task = self._loop.task(self._call(messages), variables)
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                # The loop is being ended, and nobody has stopped the deployment.
                cancelled = error
                self._cut_here()
        failure = asyncio.CancelledError() if task.cancelled() else task.exception() or task.result()
        if failure is None and not self._transacted and not self._owner.stopping.is_set():
            # Nothing of this waits.
            variables.run(self._conclude, taken, None)
        else:
            await self._loop.in_thread(lambda: variables.run(self._conclude_in_thread, taken, failure))
        if cancelled is not None:
            raise cancelled

    async def _call(self, messages: list[Message]) -> BaseException | None:
        """Call the callback; return what would end the loop, and with it all callbacks of the deployment, if it were raised."""
        endpoint = self._endpoint
        try:
            check_returned(endpoint.before_delivery(), "before_delivery")  # type: ignore[func-returns-value]
            result: object = endpoint.on_message(messages if self._batch else messages[0])
            if inspect.isawaitable(result):
                await result
            self._async_callback.check_awaited()
        except (SystemExit, KeyboardInterrupt) as error:
            return error
        return None

    def _conclude_in_thread(self, taken: list[Entry], failure: BaseException | None) -> None:
        self._work.enter_thread()
        self._conclude(taken, failure)
