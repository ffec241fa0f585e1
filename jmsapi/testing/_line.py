"""A connection's way to its broker, on which a call can be held up: what comes later waits behind it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from jmsapi.spi import Clock, ProviderError, answered, failed

__all__ = ["Line"]

T = TypeVar("T")


class _Step:
    """One call that is held up, or waits behind one."""

    __slots__ = ("act", "answer", "lost", "ready")

    def __init__(self, act: Callable[[], Future[Any]], ready: bool, lost: Callable[[ProviderError], None] | None) -> None:
        self.act = act
        self.answer: Future[Any] = Future()
        self.lost = lost
        self.ready = ready


class Line:
    """Calls in their order.

    Args:
        clock: By which a delay lasts.
        count: Told how many calls more (or, negative, fewer) are held up.
    """

    def __init__(self, clock: Clock, count: Callable[[int], None]) -> None:
        self._clock = clock
        self._count = count
        self._lock = threading.Lock()
        self._steps: deque[_Step] = deque()
        self._running = False

    def call(
        self,
        act: Callable[[], Future[T]],
        seconds: float = 0.0,
        *,
        behind: Callable[[], Future[T]] | None = None,
        lost: Callable[[ProviderError], None] | None = None,
    ) -> Future[T]:
        """Make a call now, or when its time has come and those before it are through.

        Args:
            act: The call.
            seconds: How long it is held up.
            behind: The call as it is made when it cannot be made at once; ``act`` when left out.
            lost: Told instead of the future when the link is lost before it is made.
        """
        with self._lock:
            if not self._steps and not seconds:
                step = None
            else:
                step = _Step(behind or act, not seconds, lost)
                self._steps.append(step)
        if step is None:
            return act()
        self._count(1)
        if seconds:
            self._clock.call_later(seconds, lambda: self._due(step))
        return step.answer

    def flush(self) -> None:
        """End all delays."""
        with self._lock:
            for step in self._steps:
                step.ready = True
        self._run()

    def abandon(self, error: Callable[[], ProviderError]) -> None:
        """Make none of these calls any more: the link is lost."""
        with self._lock:
            steps = list(self._steps)
            self._steps.clear()
        self._count(-len(steps))
        for step in steps:
            if step.lost is not None:
                step.lost(error())
            else:
                step.answer.set_exception(error())

    def _due(self, step: _Step) -> None:
        step.ready = True
        self._run()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._running or not self._steps or not self._steps[0].ready:
                    return
                # It stays in its place while it is made, so that nothing overtakes it.
                self._running = True
                step = self._steps[0]
            try:
                answered(_asked(step.act), lambda value: value, answer=step.answer)
            finally:
                with self._lock:
                    self._running = False
                    made = bool(self._steps) and self._steps[0] is step
                    if made:
                        self._steps.popleft()
                if made:
                    self._count(-1)


def _asked(act: Callable[[], Future[Any]]) -> Future[Any]:
    try:
        return act()
    except ProviderError as error:
        return failed(error)
