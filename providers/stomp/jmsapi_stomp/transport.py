"""stomp.py's transport and connection, with frames cut and joined by us.

What stomp.py does here: CONNECT and DISCONNECT of STOMP 1.2, protocol versions, its connection's state. What we do in its
place, and why:

- one I/O thread serves all sockets of a connection, so that a slow listener or a long decode never stops heart-beats;
- sends are queued and joined, one write a wake-up; stomp.py writes each frame by itself; a thread that may not go on before its
  frame has left writes it itself while the I/O thread sleeps;
- an end of stream over TLS ends the connection: stomp.py 9.0.0 takes it for "nothing yet" and spins
  (``test_an_end_of_stream_over_tls_is_noticed``);
- the TLS context is ours: stomp.py cannot check the chain without the host name, and falls back to plain text when it
  looks the host up under another name;
- the reason of a failed connect is kept; stomp.py logs it and raises an empty ``ConnectFailedException``.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from jmsapi.spi import ErrorKind, ProviderError, acknowledge_at_once
from jmsapi.wire import IoLoop, connect, connection_fault
from jmsapi_stomp._stompy import BaseConnection, Connection12, Protocol12, Transport
from jmsapi_stomp.frames import Frame, FrameCutter
from jmsapi_stomp.wire_behaviour import WireBehaviour

__all__ = ["StompTransport", "StompyConnection", "TransportEvents"]

_READ: Final = 1 << 18
_FIRST_LIMIT: Final = 1 << 16
"""Bytes of the largest frame before it is known which broker the peer is: CONNECTED or ERROR."""
_JOIN: Final = 1 << 18
_TURNS: Final = 8


class TransportEvents(Protocol):
    """Takes what a transport reads, and what becomes of what it writes. All calls are made on the I/O thread."""

    def on_frames(self, frames: list[Frame]) -> None:
        """Take what one read brought."""

    def on_alive(self) -> None:
        """Record that something came, if only a heart-beat."""

    def on_written(self, total: int) -> None:
        """Take the number of queued pieces that have been written by now."""

    def on_end(self, cause: ProviderError) -> None:
        """Take the end of the stream. Called once."""


class _Frame(Protocol):
    cmd: str
    headers: Mapping[str, object]


class StompTransport(Transport):
    """A stomp.py transport whose socket is served by our loop.

    Args:
        loop: Serves the socket.
        wire: Takes what comes.
        address: Host and port.
        tls: None for plain TCP.
        timeout: Seconds, for connecting and the TLS handshake.
        limit: Bytes, the largest frame taken once the broker is known.
    """

    def __init__(
        self,
        loop: IoLoop,
        wire: TransportEvents,
        address: tuple[str, int],
        *,
        tls: Callable[[], ssl.SSLContext] | None,
        timeout: float,
        limit: int,
        vhost: str | None,
    ) -> None:
        super().__init__(
            [address],
            prefer_localhost=False,
            try_loopback_connect=False,
            reconnect_attempts_max=1,
            vhost=vhost,
            auto_decode=False,
        )
        self._loop = loop
        self._wire = wire
        self._address = address
        self._tls = tls
        self._timeout = timeout
        self._limit = limit
        self._cutter = FrameCutter(min(limit, _FIRST_LIMIT), "max_received")
        self._writing = threading.Lock()
        """Held by whoever writes to the socket or closes it."""
        self._queue: deque[bytes] = deque()
        self._joined = b""
        self._offset = 0
        self._count = 0
        self._written = 0
        self.queued = 0
        """Pieces queued so far."""
        self.ended_in_order = False
        """The peer closed a connection without TLS by an end of stream."""
        self._write_failed = False
        """The system has told of a reset once, to a write: a read then sees an end of stream."""

    def start(self) -> None:
        """Connect, blocking, and have the loop serve the socket. Any thread."""
        self.running = True
        self.attempt_connection()
        if self._loop.inside:
            self._serve()
        else:
            self._loop.post(self._serve)

    def _serve(self) -> None:
        if self.socket is not None and not self._loop.add(self, self.socket):
            self._end(ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True))

    def attempt_connection(self) -> None:
        """Connect and agree on TLS.

        Raises:
            ProviderError: OPTION, SECURITY, CONNECTION or TIMEOUT, with the reason.
        """
        self.socket = connect(*self._address, self._timeout, self._tls)
        self.current_host_and_port = self._address

    def transmit(self, frame: _Frame) -> None:
        """Queue a frame that stomp.py made; its headers are escaped already."""
        lines = "".join([f"{name}:{value}\n" for name, value in frame.headers.items() if value is not None])
        self.send(f"{frame.cmd}\n{lines}\n\0".encode())

    def send(self, encoded_frame: bytes) -> None:
        """Queue one encoded frame. Any thread; the loop writes it at the end of its turn."""
        if self._loop.inside:
            self.queue(encoded_frame)
        else:
            self._loop.post(self.queue, encoded_frame)

    def queue(self, encoded_frame: bytes) -> None:
        """Queue one encoded frame. I/O thread only."""
        self._queue.append(encoded_frame)
        self.queued += 1

    def queue_all(self, encoded_frames: list[bytes]) -> None:
        """Queue many encoded frames. I/O thread only."""
        self._queue.extend(encoded_frames)
        self.queued += len(encoded_frames)

    def adapt(self, behaviour: WireBehaviour) -> None:
        """Cut frames as the broker writes them; see ``FrameCutter``. I/O thread only."""
        self._cutter.ends_in_line_feed = behaviour.frames_end_in_line_feed
        self._cutter.nul_in_headers = behaviour.nul_in_headers
        self._cutter.distrusted = behaviour.distrusted_length
        self._cutter.last_counts = behaviour.last_counts
        self._cutter.limit = self._limit

    def stop(self) -> None:
        """Return at once: stomp.py would wait for a thread that is not there."""

    def on_readable(self) -> bool:
        """Read all there is, or as much as one turn allows."""
        sock = self.socket
        if sock is None:
            return False
        for _ in range(_TURNS):
            try:
                data = sock.recv(_READ)
                acknowledge_at_once(sock)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return False
            except OSError as cause:
                self._end(connection_fault(cause, f"read from {self._name}"))
                return False
            if not data:
                self.ended_in_order = self._tls is None and not self._write_failed
                text = f"the broker at {self._name} closed the connection"
                self._end(ProviderError(ErrorKind.CONNECTION, text, fatal=True))
                return False
            self._wire.on_alive()
            try:
                frames = self._cutter.feed(data)
            except ProviderError as fault:
                self._end(fault)
                return False
            if frames:
                self._wire.on_frames(frames)
            if self._cutter.fault is not None and self.socket is not None:
                self._end(self._cutter.fault)
            if self.socket is None:
                return False
            if len(data) < _READ and self._tls is None:
                return False
        return True

    def write_now(self, data: bytes, first: Callable[[], object] | None = None) -> int | None:
        """Write from any thread, ahead of what the loop is about to queue, if nothing waits to be written.

        Args:
            data: What to write.
            first: Called before the broker can answer, and before the connection can end.
        Returns:
            How many bytes were written; of fewer than all, but of some, the loop writes the rest, before whatever is queued.
            0 when the socket is full or broken. None, and nothing is called, when something waits, the socket is closed, or
            TLS is spoken, which one thread at a time has to itself.
        """
        if self._tls is not None or not self._writing.acquire(blocking=False):
            return None
        try:
            if self.socket is None or self._queue or self._joined:
                return None
            if first is not None:
                first()
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                return 0
            except OSError:  # the loop will meet it as well, if only as an end of stream
                self._write_failed = True
                return 0
            if 0 < sent < len(data):
                self._joined, self._offset, self._count = data, sent, 0
        finally:
            self._writing.release()
        if 0 < sent < len(data):
            self._loop.post(self.flush)
        return sent

    def flush(self) -> bool:
        """Join what is queued and write it; True when the socket is full."""
        while True:
            try:
                with self._writing:
                    if self.socket is None or not (self._joined or self._queue):
                        return False
                    if not self._write():
                        return True
            except OSError as cause:
                self._broken(cause)
                return False
            self._wire.on_written(self._written)

    def _write(self) -> bool:
        """Write one piece; False when the socket took only a part, or nothing."""
        if not self._joined:
            self._join()
        try:
            data = memoryview(self._joined)[self._offset :] if self._offset else self._joined
            sent = self.socket.send(data) if self.socket is not None else 0
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self._offset += sent
        if self._offset < len(self._joined):
            return False
        self._joined = b""
        self._offset = 0
        self._written += self._count
        return True

    def _join(self) -> None:
        queue = self._queue
        if len(queue) == 1:
            self._joined = queue.popleft()
            self._count = 1
            return
        pieces: list[bytes] = []
        size = 0
        while queue and size < _JOIN:
            piece = queue.popleft()
            pieces.append(piece)
            size += len(piece)
        self._joined = b"".join(pieces)
        self._count = len(pieces)

    def _broken(self, cause: OSError) -> None:
        """Read what the broker sent before it closed: answers count, and its ERROR is the better reason."""
        self._write_failed = True
        while self.on_readable():
            continue
        if self.socket is not None:
            self._end(connection_fault(cause, f"write to {self._name}"))

    @property
    def frames_cut(self) -> int:
        """How many frames have come so far."""
        return self._cutter.count

    @property
    def idle(self) -> bool:
        """Whether everything queued has been written."""
        return not self._queue and not self._joined

    @property
    def _name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _end(self, cause: ProviderError) -> None:
        self.disconnect_socket()
        self._wire.on_end(cause)

    def disconnect_socket(self) -> None:
        """Close the socket. I/O thread only."""
        with self._writing:
            sock, self.socket = self.socket, None
            self._queue.clear()
            self._joined = b""
            self._offset = 0
            if sock is not None:
                self._loop.drop(self)
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()
        self.running = False
        self.current_host_and_port = None
        self.set_connected(False)


class StompyConnection(Connection12):
    """A stomp.py STOMP 1.2 connection over our transport; heart-beats are ours."""

    def __init__(self, transport: StompTransport) -> None:
        BaseConnection.__init__(self, transport)
        Protocol12.__init__(self, transport, heartbeats=(0, 0), auto_content_length=False)
