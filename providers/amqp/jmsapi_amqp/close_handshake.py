"""The orderly end of a connection that was asked for. Runs on the I/O thread.

What was sent is answered first; then the broker's own things are cleared away; then the connection is closed, and it counts
as closed when the broker has closed its side too. All of it within ``close_timeout_ms``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from jmsapi_amqp import engine
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.links import SenderLink

__all__ = ["CloseHandshake"]


class CloseHandshake:
    """Whether a connection is being closed, and how far that is.

    Args:
        context: The connection's.
        clear_away: Removes at the broker what would outlive the connection for a moment.
    """

    def __init__(self, context: ConnectionContext, clear_away: Callable[[], Coroutine[Any, None, None]]) -> None:
        self._context = context
        self._clear_away = clear_away
        self._future: Future[None] | None = None
        self._begun = False
        self.by = 0.0
        """When its time is up, on the monotonic clock."""
        self.answered = False
        """The broker has closed its side."""

    @property
    def asked(self) -> bool:
        """Whether an orderly close has begun."""
        return self._future is not None

    @property
    def waits(self) -> bool:
        """Whether the broker must still answer: until then the client id is taken, and what was delivered is still ours."""
        return self.asked and self._context.opened.done and not self.answered

    def ask(self, future: Future[None]) -> None:
        """Begin; the future is done at the end of the I/O thread."""
        self._future = future
        self.by = time.monotonic() + self._context.options.close_timeout_ms / 1000
        self.go_on()

    def go_on(self) -> None:
        """Close as soon as no send waits for an answer any more."""
        links = self._context.links.values()
        if not self.asked or any(isinstance(link, SenderLink) and (link.waiting or link.unanswered) for link in links):
            return
        if not self._begun:
            self._begun = True
            self._context.spawn(self._close())

    async def _close(self) -> None:
        context = self._context
        try:
            if context.opened.done:
                await self._clear_away()
        finally:
            if not context.ended:
                engine.connection_close(context.engine_connection)

    def done(self) -> None:
        """Tell who asked."""
        if self._future is not None:
            self._future.set_result(None)
