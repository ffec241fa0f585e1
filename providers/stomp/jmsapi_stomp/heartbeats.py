"""Heart-beats of one connection, both ways. I/O thread only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from jmsapi.spi import Clock, ErrorKind, ProviderError
from jmsapi.wire import IoLoop, Scheduled
from jmsapi_stomp.transport import StompTransport

__all__ = ["Heartbeats"]

_LOG: Final = logging.getLogger("jmsapi.stomp")


class Heartbeats:
    """Writes our heart-beats, and notices when the peer's stay away.

    Args:
        loop: Its timers.
        clock: The time.
        transport: Where heart-beats are written.
        silent: Called once, when nothing has come for too long.
    """

    def __init__(self, loop: IoLoop, clock: Clock, transport: StompTransport, silent: Callable[[ProviderError], None]) -> None:
        self._loop = loop
        self._clock = clock
        self._transport = transport
        self._silent = silent
        self._alive_at = clock.monotonic()
        self._beaten = 0
        self._timers: dict[str, Scheduled] = {}

    def alive(self) -> None:
        """Record that something came."""
        self._alive_at = self._clock.monotonic()

    def start(self, ours_ms: int, *, sends_ms: int, wants_ms: int) -> None:
        """Begin, as both sides have agreed.

        Args:
            ours_ms: What we offered and asked for, in milliseconds; 0 for nothing.
            sends_ms: The longest time between two signs of life that the peer promises.
            wants_ms: The longest time between two signs of life that the peer wants from us.
        """
        if ours_ms and wants_ms:
            self._beat(max(ours_ms, wants_ms) / 1000)
        if ours_ms and sends_ms:
            self._listen(max(ours_ms, sends_ms) / 1000)
        elif ours_ms:
            _LOG.warning("the broker sends no heart-beats: a connection that stalls is noticed only when a request times out")

    def stop(self) -> None:
        """End."""
        for timer in self._timers.values():
            timer.cancel()

    def _beat(self, interval: float) -> None:
        """Write a line feed when nothing else was written for half the interval."""
        if self._beaten == self._transport.queued and self._transport.idle:
            self._transport.queue(b"\n")
        self._beaten = self._transport.queued
        self._timers["beat"] = self._loop.later(interval / 2, lambda: self._beat(interval))

    def _listen(self, interval: float) -> None:
        """End the connection after two intervals and a second in which nothing came."""
        patience = 2 * interval + 1.0
        silent = self._clock.monotonic() - self._alive_at
        if silent > patience:
            text = f"nothing came from the broker for {silent:.1f} s, not even heart-beats"
            self._silent(ProviderError(ErrorKind.CONNECTION, text, fatal=True))
            return
        self._timers["listen"] = self._loop.later(max(patience - silent, 0.1), lambda: self._listen(interval))
