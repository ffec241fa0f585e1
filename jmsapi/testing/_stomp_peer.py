"""One client of the loopback server: its greeting, its heart-beats, its faults and its end."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeVar

from jmsapi.spi import Handle, ProviderError
from jmsapi.testing._stomp_commands import WAIT_S, Commands
from jmsapi.testing._stomp_reading import broken, check_escapes, error_frame, read_greeting, shown
from jmsapi.testing._stomp_setting import Setting
from jmsapi.testing._stomp_wire import ServerChannel
from jmsapi.wire import IoLoop, Scheduled
from jmsapi_stomp.frames import Frame

__all__ = ["Peer"]

T = TypeVar("T")
_LOG: Final = logging.getLogger("jmsapi.testing")
_RECEIPT: Final = b"\nreceipt:"
_GREETING_S: Final = 30.0
_BEAT_MS: Final = 100


class Peer(Commands):
    """A client.

    Args:
        loop: The server's.
        setting: What it shares with other clients.
        number: Of the client, from 1.
        gone: Told once that it has gone.
    """

    def __init__(self, loop: IoLoop, setting: Setting, number: int, gone: Callable[[Peer], object]) -> None:
        super().__init__(loop, setting, number)
        self._gone = gone
        self._over = False
        """Nothing is obeyed any more."""
        self._told = False
        """The client has heard the last word."""
        self._frames: deque[Frame] = deque()
        """Frames that are still to be carried out."""
        self._timers: dict[str, Scheduled] = {}
        self.waiting = 0
        """Bytes of the frames that are still to be obeyed."""
        self._awaited: Future[Any] | None = None
        """The answer that has to come before the next frame is carried out."""

    def start(self, wire: ServerChannel) -> None:
        """Begin to listen; who says nothing for half a minute is let go."""
        self.wire = wire
        self._timers["greeting"] = self.loop.later(_GREETING_S, lambda: None if self.joined else self.wire.end())

    def on_frames(self, frames: list[Frame]) -> None:
        """Obey the frames that one read brought, in order."""
        self._frames.extend(frames)
        self.waiting += sum(len(frame.head) + len(frame.body) for frame in frames)
        self._go_on()

    def _go_on(self) -> None:
        while self._frames and self._awaited is None and not self._over:
            frame = self._frames.popleft()
            self.waiting -= len(frame.head) + len(frame.body)
            self._try(frame, partial(self._obey, frame))

    def _try(self, frame: Frame, step: Callable[[], None]) -> None:
        try:
            step()
        except ProviderError as cause:
            self._refuse(frame, cause)
        except Exception as fault:  # a fault of ours ends one client, not the server
            _LOG.exception("a fault of the loopback server ends the connection of client %d", self.number)
            self.fail(broken(f"a fault of the server: {fault!r}"))

    def when(self, done: Future[T], frame: Frame, then: Callable[[T], None]) -> None:
        """Go on with a frame when the broker has answered, and only then obey those behind it."""
        if done.done():
            then(done.result())
            return

        def answered() -> None:
            self._awaited = None
            if self.joined:
                self._try(frame, lambda: then(done.result()))
            self._go_on()

        # Only this client waits: the thread has others to serve.
        self._awaited = done
        done.add_done_callback(lambda _: self.loop.post(answered))

    def _obey(self, frame: Frame) -> None:
        if not self.joined:
            self._greet(frame)
            return
        check_escapes(frame)
        if frame.command == b"DISCONNECT":
            self._over = True
            self.confirm(frame, self.leave(orderly=True), self._part)
            return
        command = self.commands.get(frame.command)
        if command is None:
            raise broken(f"{shown(frame.command)} is no command")
        command(frame)

    def _part(self) -> None:
        """End a connection that the client has ended, when all that it sent is answered."""
        if not self._told:
            self._told = True
            self.wire.finish()

    def _greet(self, frame: Frame) -> None:
        greeting = read_greeting(frame, self.setting.login)
        provider = self.setting.make(greeting.client_id)
        try:
            provider.open(self).result(WAIT_S)
        except ProviderError as cause:
            raise ProviderError(cause.kind, cause.message, fatal=True) from cause
        self.join(provider)
        self.wire.let_in()
        server = f"jmsapi-loopback/{self.setting.behaviour.version}"
        lines = f"version:1.2\nserver:{server}\nsession:{self.number}\nheart-beat:{_BEAT_MS},{_BEAT_MS}\n"
        self.wire.put(f"CONNECTED\n{lines}\n\0".encode())
        if greeting.sends_ms:
            self._listen(max(greeting.sends_ms, _BEAT_MS) / 1000)
        if greeting.wants_ms:
            self._beat(max(greeting.wants_ms, _BEAT_MS) / 1000, -1)

    def _refuse(self, frame: Frame, cause: ProviderError) -> None:
        self.answers.tell(self.answers.line_up(frame.raw(_RECEIPT)), cause)

    def fail(self, cause: ProviderError, receipt: bytes | None = None) -> None:
        """Tell the client that the connection ends, and why."""
        if not self._told:
            self._over = self._told = True
            self.leave()
            self.answers.end()
            self.wire.put(error_frame(cause, receipt))
            self.wire.finish()

    def on_broken(self, cause: ProviderError) -> None:
        """Tell a client that what it sent is no STOMP, and end."""
        self.fail(cause)

    def on_gone(self) -> None:
        """Give back what a client held that has gone."""
        self._over = self._told = True
        self._frames.clear()
        self.waiting = 0
        # A timer would keep the client, and all that it had sent, until it is due.
        for timer in self._timers.values():
            timer.cancel()
        self.answers.end()
        self.leave()
        self._gone(self)

    def _beat(self, interval: float, written: int) -> None:
        """Write a line feed when nothing else was written for half the interval."""
        if self._over:
            return
        if written == self.wire.written:
            self.wire.put(b"\n")
        written = self.wire.written
        self._timers["beat"] = self.loop.later(interval / 2, lambda: self._beat(interval, written))

    def _listen(self, interval: float) -> None:
        """Take two intervals and a second without a sound for the end."""
        if self._over:
            return
        left = 2 * interval + 1.0 - self.wire.silence
        if left < 0:
            _LOG.info("client %d was silent for %.1f s: it is taken for dead", self.number, self.wire.silence)
            self.wire.end()
        else:
            self._timers["listen"] = self.loop.later(max(left, 0.01), lambda: self._listen(interval))

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """End the connection with the broker's reason: STOMP cannot say it of one subscription. Any thread."""
        self.loop.post(self.fail, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """End the connection: the broker is gone. Any thread."""
        self.loop.post(self.fail, cause)

    def on_resumed(self) -> None:
        """Go on: a provider that makes links again keeps every handle."""
        _LOG.debug("the broker of client %d is back", self.number)
