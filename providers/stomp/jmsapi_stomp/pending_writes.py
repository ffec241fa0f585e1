"""Frames whose sender waits until they have been written: sends without a receipt, and others. I/O thread only."""

from __future__ import annotations

from collections import deque

from jmsapi.spi import ProviderError, SendResult
from jmsapi_stomp.answers import Done

__all__ = ["PendingWrites"]


class PendingWrites:
    """Who is to be answered when so many queued pieces have been written."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, list[SendResult] | Done]] = deque()

    def await_sends(self, queued: int, tokens: list[object]) -> None:
        """Answer sends when ``queued`` pieces have been written."""
        self._waiting.append((queued, [(token, None) for token in tokens]))

    def await_done(self, queued: int, done: Done) -> None:
        """Call ``done`` when ``queued`` pieces have been written."""
        self._waiting.append((queued, done))

    def written(self, total: int) -> list[SendResult]:
        """Record that ``total`` pieces have been written; return the answers to sends among them."""
        results: list[SendResult] = []
        waiting = self._waiting
        while waiting and waiting[0][0] <= total:
            what = waiting.popleft()[1]
            if callable(what):
                what(None)
            else:
                results += what
        return results

    def fail(self, cause: ProviderError, doubt: ProviderError) -> list[SendResult]:
        """Fail everything that waits; return the answers to sends among it.

        Args:
            cause: The error of others.
            doubt: The error of sends.
        """
        waiting, self._waiting = self._waiting, deque()
        results: list[SendResult] = []
        for _, what in waiting:
            if callable(what):
                what(cause)
            else:
                results += [(token, doubt) for token, _ in what]
        return results
