"""What the parts of a reconnecting connection share: its phase, its link of the moment, its sessions, and the guard over them.

Phases: CONNECTING (no link yet), UP, DOWN (a link was lost, another one is being made), ENDED (given up), CLOSED.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import TYPE_CHECKING

from jmsapi.spi import Clock, ErrorKind, Events, ProviderError

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting.epoch import Epoch
    from jmsapi._emulation.reconnecting.records import SessionRecord
    from jmsapi.spi.options import FailoverOptions, ProviderOptions

__all__ = ["ConnectionState", "Phase"]


class Phase(Enum):
    """Where the connection is."""

    CONNECTING = 1
    UP = 2
    DOWN = 3
    ENDED = 4
    CLOSED = 5


class ConnectionState:
    """The state of one connection. ``guard`` is held for moments, never while a provider or the core is called.

    Args:
        options: Those of the connection.
        failover: Its part about reconnecting.
        clock: Time.
    """

    def __init__(self, options: ProviderOptions, failover: FailoverOptions, clock: Clock) -> None:
        self.guard = threading.Lock()
        self.clock = clock
        self.options = options
        self.failover = failover
        self.phase = Phase.CONNECTING
        self.epoch: Epoch | None = None
        """The link of the moment; None while there is none."""
        self.sessions: dict[SessionRecord, None] = {}
        self.events: Events | None = None
        """Where events go; set by ``open``."""
        self.end_cause: Exception | None = None
        """Why it was given up."""
        self.lost_at = 0.0
        """When the last link was lost, in the clock's seconds."""

    @property
    def above(self) -> Events:
        """Where events go; known from ``open`` on."""
        if self.events is None:
            raise ProviderError(ErrorKind.PROTOCOL, "an event before open was called")
        return self.events

    @property
    def is_up(self) -> bool:
        """Whether there is a link."""
        return self.phase is Phase.UP

    @property
    def usable(self) -> bool:
        """Whether there is a link, or may be one again."""
        return self.phase in (Phase.UP, Phase.DOWN)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.phase is Phase.CLOSED

    @property
    def is_over(self) -> bool:
        """Whether it was closed or given up."""
        return self.phase in (Phase.CLOSED, Phase.ENDED)

    def why_not(self) -> ProviderError:
        """Return why it is not usable."""
        if self.is_closed:
            return ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
        if isinstance(self.end_cause, ProviderError):
            return self.end_cause
        return ProviderError(ErrorKind.CLOSED, "the connection is not open", fatal=True)

    def check_usable(self) -> None:
        """Raise ProviderError when there will be no link any more."""
        if not self.usable:
            raise self.why_not()

    @property
    def grace_s(self) -> float:
        """How long the broker may take to notice that our last link is dead, in seconds."""
        grace = self.failover.client_id_grace_ms
        return (2 * self.options.silence_ms if grace is None else grace) / 1000

    @property
    def in_grace(self) -> bool:
        """Whether the broker may still think that our last link lives."""
        return self.phase is Phase.DOWN and self.clock.monotonic() - self.lost_at <= self.grace_s
