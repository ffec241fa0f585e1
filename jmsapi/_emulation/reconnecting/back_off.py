"""When to try again, and which servers in which order: one run for one trouble.

An attempt tries each server once, the one that served last first. Between attempts the wait grows. A link that does not hold
for a second has not ended the trouble: its run goes on where it was, so that a server that takes us and drops us is not
stormed.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jmsapi.spi.options import FailoverOptions

__all__ = ["BackOff"]

HELD_S: Final = 1.0


class BackOff:
    """The attempts of one connection.

    Args:
        options: How often, how long.
        chance: For jitter and the order of servers.
    """

    def __init__(self, options: FailoverOptions, chance: random.Random | None = None) -> None:
        self._options = options
        self._chance = chance or random.Random()
        self._first = 0
        self._resumed_at: float | None = None
        self.attempts = 0
        """Attempts of this run that were begun."""

    def begin(self, now: float) -> None:
        """A link is lost: begin a run, or go on with the last one if the link held for less than a second."""
        if self._resumed_at is None or now - self._resumed_at >= HELD_S:
            self.attempts = 0
        self._resumed_at = None

    def exhausted(self, *, startup: bool) -> bool:
        """Return whether no further attempt is allowed."""
        most = self._options.max_reconnect_attempts
        if startup:
            first = self._options.startup_max_reconnect_attempts
            # A connection is tried once, whatever the options of reconnecting are.
            most = first if first >= 0 else most
            most = max(most, 1) if most >= 0 else most
        return 0 <= most <= self.attempts

    def wait_s(self, *, startup: bool) -> float:
        """Return how long to wait before the next attempt, in seconds."""
        options = self._options
        if not self.attempts:
            wait_ms = 0.0 if startup else float(options.initial_reconnect_delay_ms)
        elif not options.use_reconnect_back_off:
            wait_ms = float(options.reconnect_delay_ms)
        else:
            # By way of the logarithm, as the power itself may be too large for a float; e^50 ms is beyond every ceiling.
            growth = min((self.attempts - 1) * math.log(options.reconnect_back_off_multiplier), 50.0)
            wait_ms = options.reconnect_delay_ms * math.exp(growth)
        wait_ms = min(wait_ms, float(options.max_reconnect_delay_ms))
        return wait_ms / 1000 * self._chance.uniform(1 - options.jitter, 1 + options.jitter)

    def next_attempt(self) -> list[int]:
        """Begin an attempt: return the servers to try, by their place in the list."""
        self.attempts += 1
        count = len(self._options.servers)
        order = [(self._first + step) % count for step in range(count)]
        if self._options.randomize:
            self._chance.shuffle(order)
        return order

    def succeeded(self, server: int, now: float, *, startup: bool) -> None:
        """Begin anew: a server has been reached."""
        if startup:
            self.attempts = 0
        self._first = server
        self._resumed_at = now
