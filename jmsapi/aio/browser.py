"""The queue browser of an asyncio context."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from jmsapi._core.browser import Browsed, BrowserImpl
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.waiting import Steps
from jmsapi._not_copied import NotCopied
from jmsapi.aio.loop_driver import LoopDriver
from jmsapi.api import Message, Queue
from jmsapi.errors import JMSException, to_runtime

__all__ = ["AsyncQueueBrowser"]


class AsyncQueueBrowser(NotCopied):
    """Shows what is in a queue and takes nothing, as ``QueueBrowser`` does; each ``async for`` is a new look.

    Args:
        browser: The browser that does the work.
        driver: Runs its operations.
    """

    def __init__(self, browser: BrowserImpl, driver: LoopDriver) -> None:
        self._browser = browser
        self._driver = driver

    @property
    @runtime
    def queue(self) -> Queue:
        """Return the queue; see QueueBrowser."""
        return self._browser.queue

    @property
    @runtime
    def message_selector(self) -> str | None:
        """Return the selector's text, or None; see QueueBrowser."""
        return self._browser.message_selector

    @property
    @runtime
    def enumeration(self) -> AsyncIterator[Message]:
        """Start a new look at the queue; see QueueBrowser."""
        self._browser.check_open()
        return self._look()

    def __aiter__(self) -> AsyncIterator[Message]:
        """Start a new look at the queue."""
        return self.enumeration

    async def _look(self) -> AsyncIterator[Message]:
        try:
            browsed = await self._driver.open(self._browser.begin_look_steps(), self._end_steps)
            try:
                while browsed.more:
                    await self._driver.run(self._browser.look_further_steps(browsed))
                    while browsed.deliveries:
                        yield self._browser.shown(browsed)
            finally:
                self._browser.end_look(browsed)
        except JMSException as error:
            raise to_runtime(error) from error

    def _end_steps(self, browsed: Browsed) -> Steps[None]:
        self._browser.end_look(browsed)
        return
        yield

    async def close(self) -> None:
        """Close the browser; see QueueBrowser."""
        try:
            self._driver.check_loop()
        except JMSException as error:
            raise to_runtime(error) from error
        self._browser.close()

    async def __aenter__(self) -> Self:
        """Give the browser itself."""
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """Close the browser, whether the block ended or raised."""
        await self.close()
