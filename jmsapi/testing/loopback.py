"""A STOMP 1.2 server over the in-process broker, so that other processes can use it by the STOMP provider.

It is for tests and for trying things out: it listens on 127.0.0.1 only, and what its broker holds lives in this process.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import jmsapi
import jmsapi_inproc
from jmsapi import config
from jmsapi.spi import Clock, Delivery, ErrorKind, Events, Handle, Provider, ProviderError, SendResult, SystemClock
from jmsapi.testing._stomp_peer import Peer
from jmsapi.testing._stomp_reading import error_frame
from jmsapi.testing._stomp_setting import Setting
from jmsapi.testing._stomp_wire import ServerChannel, WaitingBytes
from jmsapi.wire import IoLoop
from jmsapi_stomp.loopback import LoopbackStomp
from jmsapi_stomp.options import StompOptions

__all__ = ["LoopbackServer"]

_LOG: Final = logging.getLogger("jmsapi.testing")
_BACKLOG: Final = 128
_PAUSE_S: Final = 0.1
_CLOSE_S: Final = 15.0


class LoopbackServer:
    """Serve an in-process broker to other processes over STOMP, on loopback.

    Made, it serves; a context manager, which closes it. ``url`` is for other processes and for connections of this one that
    are to go over the wire; ``inproc_url`` reaches the same queues and topics from inside this process.

        with LoopbackServer() as server:
            subprocess.run([sys.executable, "worker.py", server.url], check=True)

    Who goes without DISCONNECT gives back what it held, marked as redelivered. A client that promises heart-beats and is
    silent for two of them is taken for dead; one that promises none must close its socket.

    Args:
        name: Of the in-process broker, or its URL such as ``inproc:///path/file.db``, a file that stays open as long as the
            server; it then outlives the server. Without one the broker is new and ends with the server.
        port: To listen on; 0 for any that is free.
        user: With ``password``: who does not give both is refused.
        password: See ``user``.
        clock: Of a broker that is not there yet, for its delays and expirations.
        max_frame: Bytes; the largest frame taken. A client's first frame has at most 64 KiB.
        max_connections: How many clients may be connected; one more is refused.
        max_waiting: Bytes that all clients together may have sent and the server not dealt with, unfinished frames among them;
            the client with which they become more is cut off.
    Raises:
        IllegalArgumentException: A user without a password, or the reverse; a number that is not positive.
        JMSException: The URL is none (``bad-url``, ``bad-option``); the file cannot be used (``connection``, ``in-use``).
        OSError: The port is taken.
    Threads: any. One thread of its own for all clients, ended by ``close``.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        port: int = 0,
        user: str | None = None,
        password: str | None = None,
        clock: Clock | None = None,
        max_frame: int = LoopbackStomp.frame_limit,
        max_connections: int = 1000,
        max_waiting: int = 1 << 28,
    ) -> None:
        if (user is None) != (password is None):
            raise jmsapi.IllegalArgumentException("a loopback server takes a user and a password, or neither")
        if min(max_frame, max_connections, max_waiting) < 1:
            raise jmsapi.IllegalArgumentException("max_frame, max_connections and max_waiting are at least 1")
        word = os.urandom(6).hex()
        self._own_broker = name is None
        own = f"inproc://loopback-{word}"
        self._url = own if name is None else name if name.startswith("inproc:") else f"inproc://{quote(name, safe='')}"
        self._options = config.parse_url(self._url, {}, entries={"inproc": jmsapi_inproc.entry})
        self._clock = SystemClock() if clock is None else clock
        self._max_frame = max_frame
        self._max_connections = max_connections
        self._waiting = WaitingBytes(max_waiting)
        login = None if user is None or password is None else (user, password)
        behaviour = LoopbackStomp(StompOptions(scheme="stomp", host="127.0.0.1"), jmsapi.__version__)
        self._setting = Setting(self._make, self._clock, behaviour, login, word)
        self._numbers = itertools.count(1)
        self._peers: set[Peer] = set()
        self._closed: Future[None] = Future()
        self._closing = False
        self._listener: socket.socket | None = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        try:
            self._held = self._hold() if self._options.path else None
        except BaseException:
            self._listener.close()
            raise
        self._listener.setblocking(False)
        self._port = int(self._listener.getsockname()[1])
        self._door = _Door(self._accept)
        self._loop = IoLoop(SystemClock(), self._on_crash, _LOG)
        self._loop.start()
        self._loop.post(self._listen)

    @property
    def url(self) -> str:
        """The URL for ``jmsapi.connection_factory``, without credentials."""
        return f"stomp://127.0.0.1:{self._port}"

    @property
    def inproc_url(self) -> str:
        """The URL of the same broker for this process."""
        return self._url

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._peers)

    def close(self) -> None:
        """Cut all clients off and end; what they held goes back to the broker. Idempotent.

        Raises:
            JMSException: The server's thread did not end in 15 seconds.
        """
        if not self._closing:
            self._closing = True
            self._loop.post(self._end)
        try:
            self._closed.result(_CLOSE_S)
        except TimeoutError:
            raise jmsapi.JMSException(f"the loopback server did not end in {_CLOSE_S:.0f} s", "timeout") from None
        held, self._held = self._held, None
        if held is not None:
            held.close().result(_CLOSE_S)
        if self._own_broker:
            jmsapi_inproc.discard(self._options.host)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LoopbackServer({self.url!r}, {self.inproc_url!r})"

    def _hold(self) -> Provider:
        """Keep the broker of a file open: else the last client's end would close it, and the next one's beginning open it."""
        provider = self._make(None)
        try:
            provider.open(_Unheard()).result(_CLOSE_S)
        except ProviderError as error:
            raise jmsapi.JMSException(f"serve {self._url}: {error.message}", error.kind.value) from error
        return provider

    # all below on the I/O thread

    def _make(self, client_id: str | None) -> Provider:
        return jmsapi_inproc.entry.create(self._options.having(client_id=client_id), self._clock)

    def _listen(self) -> None:
        if self._listener is not None:
            self._loop.add(self._door, self._listener)

    def _accept(self) -> bool:
        """Let in a client that waits; False when none does."""
        if self._listener is None:
            return False
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError as cause:  # no more descriptors, most likely: look again later, not in a whirl
            _LOG.warning("no client can be let in for a moment: %s", cause)
            self._loop.drop(self._door)
            self._loop.later(_PAUSE_S, self._listen)
            return False
        if len(self._peers) >= self._max_connections:
            refused = ProviderError(ErrorKind.RESOURCE, f"the server has {len(self._peers)} clients and takes no more")
            with contextlib.suppress(OSError):
                sock.send(error_frame(refused, None))
            sock.close()
            return True
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(self._loop, self._setting, next(self._numbers), self._peers.discard)
        self._peers.add(peer)
        peer.start(ServerChannel(self._loop, sock, self._max_frame, self._waiting, peer))
        return True

    def _end(self) -> None:
        if self._listener is not None:
            self._loop.drop(self._door)
            self._listener.close()
            self._listener = None
        for peer in list(self._peers):
            peer.wire.end()
        self._loop.stop(self._say_closed)

    def _say_closed(self) -> None:
        with contextlib.suppress(InvalidStateError):
            self._closed.set_result(None)

    def _on_crash(self, fault: Exception) -> None:
        _LOG.error("the loopback server ends by a fault of its own: %r", fault)
        self._closing = True
        self._end()


class _Unheard(Events):
    """Hears nothing: it opens nothing, and when the broker is gone all clients are told by themselves."""

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Nothing was asked for."""

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Nothing was sent."""

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Nothing was opened."""

    def on_lost(self, cause: ProviderError) -> None:
        """Leave it to the next client to open the broker again."""

    def on_resumed(self) -> None:
        """Do nothing: a loopback server has no link that could be resumed."""


class _Door:
    """The listening socket as a channel of the loop."""

    def __init__(self, accept: Callable[[], bool]) -> None:
        self._accept = accept

    def on_readable(self) -> bool:
        """Let in all who wait."""
        while self._accept():
            continue
        return False

    def flush(self) -> bool:
        """Return that there is nothing to write."""
        return False
