"""A socket, TLS on it if asked for, and proton's transport behind it: bytes in, bytes out.

Spec of the trust: the certificate's chain and the host's name are both checked unless an option says otherwise.
"""

from __future__ import annotations

import logging
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jmsapi.spi import acknowledge_at_once
from jmsapi.wire import connect, tls_context
from jmsapi_amqp import engine
from jmsapi_amqp.engine import Pointer

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["DEFAULT_PORTS", "AmqpWire"]

_LOG: Final = logging.getLogger("jmsapi.amqp")
_READ: Final = 1 << 18
_WRITE: Final = 1 << 18
_ALL: Final = 512
"""Bytes below which the engine has written all that it had: the smallest frame size that a peer may ask for."""
DEFAULT_PORTS: Final = {"amqp": 5672, "amqps": 5671}


class AmqpWire:
    """The bytes of one connection. Used on the I/O thread only."""

    def __init__(self, options: AmqpOptions, transport: Pointer) -> None:
        self._options = options
        self._transport = transport
        self._output = engine.Output(transport)
        self._socket: socket.socket | None = None
        self._tls = False
        self.where = f"{options.host}:{options.port or DEFAULT_PORTS.get(options.scheme, 5672)}"
        self.wants_write = False
        self.received = 0
        """Bytes that have come."""

    def connect(self, timeout: float) -> socket.socket:
        """Connect, and agree on TLS if the scheme is ``amqps``.

        Raises:
            ProviderError: OPTION, SECURITY, CONNECTION or TIMEOUT.
        """
        options = self._options
        port = options.port or DEFAULT_PORTS.get(options.scheme, 5672)
        self._tls = options.scheme == "amqps"
        # The certificate must name the URL's host, whatever the virtual host is called: it is what the user trusts.
        self._socket = connect(options.host, port, timeout, (lambda: tls_context(options, _LOG)) if self._tls else None)
        return self._socket

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None

    def read(self) -> bool:
        """Give the engine what has come; False when the peer has closed.

        Raises:
            OSError: The link broke.
        """
        sock = self._socket
        if sock is None:
            return False
        while True:
            try:
                data = sock.recv(_READ)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            if not data:
                return False
            acknowledge_at_once(sock)
            self.received += len(data)
            if not self._push(data):
                return False
            # TLS may hold decrypted bytes that no select on the socket tells of.
            if not self._tls:
                return True

    def _push(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            taken = engine.transport_push(self._transport, view)
            if taken < 0:
                return False
            if taken == 0 and engine.transport_capacity(self._transport) < 0:
                return False
            view = view[taken:]
        return True

    def write(self) -> bool:
        """Write what the engine has, as far as the socket takes it; False when the engine has closed its side.

        Raises:
            OSError: The link broke.
        """
        transport = self._transport
        sock = self._socket
        self.wants_write = False
        while True:
            pending = engine.transport_pending(transport)
            if pending < 0:
                return False
            if pending == 0 or sock is None:
                return True
            data = self._output.peek(min(pending, _WRITE))
            if data is None:
                return False
            try:
                sent = sock.send(data)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self.wants_write = True
                return True
            engine.transport_pop(transport, sent)
            if sent < len(data):
                self.wants_write = True
                return True
            if sent < _ALL:
                return True
