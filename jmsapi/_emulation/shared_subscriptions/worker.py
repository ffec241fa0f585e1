"""A thread that does what has to wait, one thing after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from jmsapi.spi import ErrorKind, ProviderError, fail, failed, resolve

__all__ = ["JobThread"]

T = TypeVar("T")


class JobThread:
    """Runs jobs on a thread of its own, which begins with the first job.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._guard = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ended = False

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Run a job after those before it; the future has what it returns or raises."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                resolve(answer, job())
            except Exception as error:  # of whatever kind: whoever waits for the job gets it
                fail(answer, error)

        with self._guard:
            if self._ended:
                return failed(ProviderError(ErrorKind.CLOSED, "the connection is closed"))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            self._jobs.put(run)
        return answer

    def end(self) -> None:
        """Take no more jobs; the thread ends after those it has."""
        with self._guard:
            if not self._ended:
                self._ended = True
                self._jobs.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
