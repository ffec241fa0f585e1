"""A control frame that waits for its turn or its answer."""

from __future__ import annotations

from collections.abc import Callable

from jmsapi.spi import ProviderError
from jmsapi_stomp.loop import Scheduled

__all__ = ["Done", "Request"]

Done = Callable[[ProviderError | None], object]
"""Told that something is done, or what went wrong."""


class Request:
    """A control frame that waits for its turn or its answer."""

    __slots__ = ("asked", "command", "done", "doubtful", "first", "headers", "receipt", "timer")

    def __init__(
        self, asked: str, command: str, headers: list[tuple[str, str]], done: Done, doubtful: bool, first: bytes
    ) -> None:
        self.asked = asked
        self.command = command
        self.headers = headers
        self.first = first
        self.done = done
        self.doubtful = doubtful
        self.receipt = ""
        self.timer: Scheduled | None = None
