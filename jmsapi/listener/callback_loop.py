"""Where asynchronous callbacks run: an event loop, and a few threads for what their container does that blocks."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from jmsapi._calls_in_threads import finish_in_thread

__all__ = ["CallbackLoop"]

_log: Final = logging.getLogger("jmsapi.listener")
_THREADS: Final = 8
"""They commit, roll back and give up, so there are only as many as may be at that at one time."""
R = TypeVar("R")


class CallbackLoop:
    """The event loop of one deployment: that which started it, or one of its own with a thread, once it is needed.

    Threads: any, but for the coroutines, which are the loop's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._users = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        """Held here, since the loop itself holds its tasks weakly."""

    # ---- its life -------------------------------------------------------------------------------------------------
    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let callbacks run in the loop that starts the deployment."""
        with self._lock:
            if self._loop is None:
                self._loop = loop

    def enter(self) -> None:
        """A container begins to use it."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """A container has ended. With the last one the loop's own thread ends, as soon as no callback runs any more."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            loop, thread, threads = self._loop, self._thread, self._threads
            self._threads = None
        if threads is not None:
            threads.shutdown(wait=False)
        if loop is not None and thread is not None:
            with suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(self._end(loop), loop)

    @staticmethod
    async def _end(loop: asyncio.AbstractEventLoop) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await loop.shutdown_asyncgens()
        loop.stop()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="jmsapi-listener-loop", daemon=True)
                self._thread.start()
            return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    @property
    def is_here(self) -> bool:
        """Whether the calling thread runs the loop."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    # ---- what runs in it ------------------------------------------------------------------------------------------
    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a task run; its coroutine is made in the loop.

        Raises:
            RuntimeError: The loop is closed.
        """
        self._started().call_soon_threadsafe(lambda: self.task(work()))

    def task(self, work: Coroutine[Any, Any, R], context: contextvars.Context | None = None) -> asyncio.Task[R]:
        """Make a task, in the loop.

        Args:
            work: What it does.
            context: The context variables that it has; None for a copy of those here.
        """
        made = asyncio.get_running_loop().create_task(work, context=context)
        self._tasks.add(made)
        made.add_done_callback(self._tasks.discard)
        return made

    def call_soon(self, call: Callable[[], object]) -> None:
        """Have a function called in the loop, if that still runs."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(call)

    async def in_thread(self, call: Callable[[], R]) -> R:
        """Run what blocks in a thread, to its end even if the calling task is cancelled, which goes on then."""
        with self._lock:
            late = not self._users
            threads = self._threads or ThreadPoolExecutor(_THREADS, thread_name_prefix="jmsapi-listener-settling")
            if not late:
                self._threads = threads
        try:
            return await finish_in_thread(call, threads)
        finally:
            if late:
                # Of a callback that was left running when its container ended, which nobody would end again.
                threads.shutdown(wait=False)

    def result_of(self, work: Awaitable[R]) -> Future[R]:
        """Have something awaited, with the context variables of the calling thread."""
        done: Future[R] = Future()

        async def awaited() -> None:
            try:
                done.set_result(await work)
            except BaseException as error:
                done.set_exception(error)

        def begin(loop: asyncio.AbstractEventLoop) -> None:
            task = self.task(awaited())
            # Whoever waits may give up.
            done.add_done_callback(lambda _: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None)

        loop = self._started()
        loop.call_soon_threadsafe(functools.partial(begin, loop), context=contextvars.copy_context())
        return done
