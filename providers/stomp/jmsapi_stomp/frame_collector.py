"""Messages for the provider itself, collected until a coroutine that waits for some has as many as it wants."""

from __future__ import annotations

from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi.wire import IoLoop, Promise
from jmsapi_stomp.frames import Frame

__all__ = ["FrameCollector"]


class FrameCollector:
    """Keeps what comes for one consumer. I/O thread only.

    Args:
        loop: Tells when time is up.
        timeout_s: Longest wait for the next message, in seconds.
    """

    def __init__(self, loop: IoLoop, timeout_s: float) -> None:
        self._loop: Final = loop
        self._timeout_s: Final = timeout_s
        self._frames: list[Frame] = []
        self._wanted = 0
        self._wait: Promise[None] | None = None
        self._lost: ProviderError | None = None

    def take(self, frame: Frame) -> bool:
        """Keep a message; see ``StompConsumer.handler``."""
        self._frames.append(frame)
        if self._wait is not None and len(self._frames) >= self._wanted:
            self._wait.resolve(None)
        return False

    def lost(self, cause: ProviderError) -> None:
        """End the wait: nothing more will come."""
        self._lost = cause
        if self._wait is not None:
            self._wait.fail(cause)

    async def next(self, count: int, asked: str) -> list[Frame]:
        """Take the next messages, waiting for them.

        Args:
            count: How many.
            asked: What is waited for, to begin an error's text with.
        Raises:
            ProviderError: TIMEOUT, none came for a time; why the consumer has ended.
        """
        while len(self._frames) < count:
            await self._more(count, asked)
        taken, self._frames = self._frames[:count], self._frames[count:]
        return taken

    async def _more(self, count: int, asked: str) -> None:
        """Wait for all of them, or for time to be up after which some have come."""
        if self._lost is not None:
            raise self._lost
        had = len(self._frames)
        self._wanted, self._wait = count, Promise()
        wait = self._wait
        timer = self._loop.later(self._timeout_s, lambda: wait.resolve(None))
        try:
            await wait
        finally:
            self._wait = None
            timer.cancel()
        if len(self._frames) == had:
            seconds = f"{self._timeout_s:g} s"
            raise ProviderError(ErrorKind.TIMEOUT, f"{asked}: {had} of {count} messages came, and no more in {seconds}")
