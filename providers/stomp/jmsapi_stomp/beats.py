"""Heart-beats of one connection, both ways. All on the I/O thread."""

from __future__ import annotations

from collections.abc import Callable

from jmsapi.spi import Clock, ErrorKind, ProviderError
from jmsapi_stomp.loop import IoLoop, Scheduled
from jmsapi_stomp.transport import StompTransport

__all__ = ["Beats"]


class Beats:
    """Says that we live, and notices when the peer does not.

    Args:
        loop: For timers.
        clock: Time.
        transport: What beats are written to.
        silent: Told once that nothing has come for too long.
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
        """Take note that something came."""
        self._alive_at = self._clock.monotonic()

    def start(self, ours_ms: int, *, sends_ms: int, wants_ms: int) -> None:
        """Begin, as both sides have agreed.

        Args:
            ours_ms: What we offered and asked for; 0 for nothing.
            sends_ms: How often the peer says something.
            wants_ms: How often it wants to hear something.
        """
        if ours_ms and wants_ms:
            self._beat(max(ours_ms, wants_ms) / 1000)
        if ours_ms and sends_ms:
            self._listen(max(ours_ms, sends_ms) / 1000)

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
        """Take two intervals and a second without a sound for the end."""
        patience = 2 * interval + 1.0
        silent = self._clock.monotonic() - self._alive_at
        if silent > patience:
            text = f"nothing came from the broker for {silent:.1f} s, not even heart-beats"
            self._silent(ProviderError(ErrorKind.CONNECTION, text, fatal=True))
            return
        self._timers["listen"] = self._loop.later(max(patience - silent, 0.1), lambda: self._listen(interval))
