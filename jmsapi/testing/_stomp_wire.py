"""One client's socket at the loopback server: frames in, bytes and deliveries out.

All on the server's I/O thread, but ``put``. A delivery becomes bytes when there is room for it in the socket, so that a
client that does not read costs the memory of its messages once, not twice.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections import deque
from typing import Final, Protocol

from jmsapi.spi import Delivery, ErrorKind, ProviderError
from jmsapi.wire import IoLoop
from jmsapi_stomp.frames import Frame, FrameCutter

__all__ = ["Item", "ServerChannel", "WaitingBytes", "WireOwner"]

_LOG: Final = logging.getLogger("jmsapi.testing")
_READ: Final = 1 << 16
_TURNS: Final = 8
_JOIN: Final = 1 << 18
MOST_ANSWERS: Final = 100_000
"""Answers that may wait for a client to read them."""
_GREETING_LIMIT: Final = 1 << 16
"""Bytes of the largest first frame."""
_LINGER_S: Final = 1.0

Item = bytes | tuple[object, Delivery | None]
"""Bytes as they are to be written, or a delivery with what the owner knows its subscription by."""


class WaitingBytes:
    """What all clients together have sent and the server has not dealt with: unfinished frames, and frames behind a slow answer.

    Args:
        most: Bytes; the client with which they become more is cut off.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0


class WireOwner(Protocol):
    """The owner of a socket. All its methods are called on the I/O thread."""

    def on_frames(self, frames: list[Frame]) -> None:
        """Take the frames that one read brought."""

    @property
    def waiting(self) -> int:
        """Bytes of the frames that are still to be obeyed."""
        ...

    def on_broken(self, cause: ProviderError) -> None:
        """Take note that what came is no STOMP; the wire still takes an answer."""

    def on_gone(self) -> None:
        """Take note that the client has gone, or its stream has ended. Said once."""

    def encode(self, subscription: object, delivery: Delivery | None) -> bytes:
        """Return the frame of a delivery; nothing for one that is no longer wanted."""
        ...


class ServerChannel:
    """A channel of the server's loop.

    Args:
        loop: Whose channel it is.
        sock: Connected and not blocking.
        limit: Bytes; the largest frame taken from a client that has been let in.
        waiting: What the clients' bytes that wait are counted in.
        owner: Who is behind it.
    """

    def __init__(self, loop: IoLoop, sock: socket.socket, limit: int, waiting: WaitingBytes, owner: WireOwner) -> None:
        self._loop = loop
        self._socket: socket.socket | None = sock
        self._limit = limit
        self._cutter = FrameCutter(min(limit, _GREETING_LIMIT))
        self._waiting = waiting
        self._counted = 0
        self._owner = owner
        self._out: deque[Item] = deque()
        self._joined = b""
        self._offset = 0
        self._finishing = False
        self._deaf = False
        self._patience = MOST_ANSWERS
        self._heard_at = time.monotonic()
        self.written = 0
        """Bytes written so far."""
        loop.add(self, sock)

    @property
    def silence(self) -> float:
        """Seconds since something came."""
        return time.monotonic() - self._heard_at

    def let_in(self) -> None:
        """Take frames of any size up to the limit: the client has said who it is."""
        self._cutter.limit = self._limit

    def count(self, waiting: int) -> bool:
        """Count the bytes of this client that wait; False when all clients together have too many."""
        self._waiting.total += waiting - self._counted
        self._counted = waiting
        return self._waiting.total <= self._waiting.most

    def put(self, *items: Item) -> None:
        """Queue what is to be written. Any thread."""
        self._out.extend(items)
        if not self._loop.inside:
            self._loop.post(_look)

    def finish(self) -> None:
        """Write what is queued, tell the client that this was all, and close when it has closed or a second is over."""
        if not self._finishing and self._socket is not None:
            self._finishing = True
            self._loop.later(_LINGER_S, self.end)

    def end(self) -> None:
        """Close at once."""
        sock, self._socket = self._socket, None
        if sock is None:
            return
        self._loop.drop(self)
        self._out.clear()
        self._joined = b""
        self._cutter = FrameCutter(0)  # what the client had sent by half goes with it
        self.count(0)
        sock.close()
        self._owner.on_gone()

    def on_readable(self) -> bool:
        """Take what has come; True when the turn was cut short."""
        for _ in range(_TURNS):
            if self._socket is None:
                return False
            try:
                data = self._socket.recv(_READ)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if not data:
                self.end()
                return False
            self._heard_at = time.monotonic()
            if not self._finishing:
                self._feed(data)
            if len(data) < _READ:
                return False
        return True

    def _feed(self, data: bytes) -> None:
        try:
            frames = self._cutter.feed(data)
        except ProviderError as cause:
            self._owner.on_broken(cause)
            return
        if frames:
            self._owner.on_frames(frames)
        if self._socket is not None and not self.count(self._cutter.unfinished + self._owner.waiting):
            text = f"the server's clients have more than {self._waiting.most} bytes waiting, and this one sent the last of them"
            self._owner.on_broken(ProviderError(ErrorKind.RESOURCE, text, fatal=True))
            return
        if len(self._out) > self._patience:
            # Deliveries may be many, answers may not: frames come then, and nobody reads what is said to them.
            if sum(isinstance(item, bytes) for item in tuple(self._out)) > MOST_ANSWERS:
                _LOG.warning("a client is cut off: it does not read what it is answered")
                self.end()
            self._patience *= 2

    def flush(self) -> bool:
        """Write what the socket takes; True when something is left."""
        for _ in range(_TURNS):
            if self._socket is None:
                return False
            if not self._joined and not self._join():
                if self._finishing and not self._deaf:
                    self._deaf = True
                    with contextlib.suppress(OSError):
                        self._socket.shutdown(socket.SHUT_WR)
                return False
            try:
                sent = self._socket.send(memoryview(self._joined)[self._offset :])
            except BlockingIOError:
                return True
            except OSError:
                self.end()
                return False
            self.written += sent
            self._offset += sent
            if self._offset == len(self._joined):
                self._joined = b""
                self._offset = 0
        return True

    def _join(self) -> bool:
        pieces: list[bytes] = []
        size = 0
        while self._out and size < _JOIN:
            item = self._out.popleft()
            piece = item if isinstance(item, bytes) else self._owner.encode(*item)
            size += len(piece)
            pieces.append(piece)
        self._joined = b"".join(pieces)
        return bool(self._joined)


def _look() -> None:
    """Do nothing: the loop looks at all its channels at the end of each turn."""
