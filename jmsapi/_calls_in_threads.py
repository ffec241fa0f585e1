"""Blocking calls that an event loop leaves to a thread; they are done to their end even if the task that waits is cancelled."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

__all__ = ["finish_in_thread"]

R = TypeVar("R")


async def finish_in_thread(call: Callable[[], R], threads: Executor | None = None) -> R:
    """Run a blocking call in a thread. A task that is cancelled meanwhile goes on when the call has returned.

    Args:
        call: What to call, with the context variables of the calling task.
        threads: Of these; None for those of the event loop.
    Raises:
        BaseException: What the call raised; a task that was cancelled gets ``CancelledError``, with that as its cause.
    """
    # Not with the module: who does not use an event loop does not pay for it.
    import asyncio

    here = contextvars.copy_context()
    work = asyncio.get_running_loop().run_in_executor(threads, functools.partial(here.run, call))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return work.result()
    raise cancelled from work.exception()
