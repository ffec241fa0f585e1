"""Who waits for frames to be written: sends that need no more than that, and others. I/O thread only."""

from __future__ import annotations

from collections import deque

from jmsapi.spi import ProviderError, SendResult
from jmsapi_stomp.control import Done

__all__ = ["Written"]


class Written:
    """What is to be told when so many pieces have left."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, list[SendResult] | Done]] = deque()

    def await_sends(self, queued: int, tokens: list[object]) -> None:
        """Answer sends when ``queued`` pieces have left."""
        self._waiting.append((queued, [(token, None) for token in tokens]))

    def await_done(self, queued: int, done: Done) -> None:
        """Call ``done`` then."""
        self._waiting.append((queued, done))

    def left(self, total: int) -> list[SendResult]:
        """Take note that ``total`` pieces have left; return the answers to sends among them."""
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
        """Fail all that waits; return the answers to sends among it.

        Args:
            cause: What others are told.
            doubt: What sends are told.
        """
        waiting, self._waiting = self._waiting, deque()
        results: list[SendResult] = []
        for _, what in waiting:
            if callable(what):
                what(cause)
            else:
                results += [(token, doubt) for token, _ in what]
        return results
