"""Connecting to a host by name: each of its addresses gets its share of the time, and the first that answers is taken.

After RFC 8305: addresses of the two families take turns, the next one is tried a quarter of a second after the one before, and
those tried earlier are still waited for. An address that takes the connection but not TLS is passed over for the others.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from typing import Any, Final

from jmsapi.wire.faults import connection_fault

__all__ = ["connect"]

_STAGGER_S: Final = 0.25
"""How long one address is waited for before the next is tried beside it."""
_UNDER_WAY: Final = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR})
Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


def connect(
    host: str, port: int, timeout: float, tls: Callable[[], ssl.SSLContext] | None = None, *, server_name: str | None = None
) -> socket.socket:
    """Connect, agree on TLS if asked for, and return a socket that does not block.

    Args:
        host: Name or address.
        port: Of TCP.
        timeout: Seconds for all of it, but for looking the name up, which the system cannot be made to break off.
        tls: Makes the context; called once, before anything is sent. None for plain TCP.
        server_name: What the certificate must name; ``host`` when left out.
    Raises:
        ProviderError: By the table of ``faults``: OPTION, SECURITY, CONNECTION or TIMEOUT. Nothing is left open.
    """
    context = None if tls is None else tls()
    deadline = time.monotonic() + timeout
    asked = f"connect to {host}:{port}"
    try:
        left = _in_turns(_addresses(host, port))
        while True:
            sock, used = _first_to_answer(left, deadline)
            left = [address for address in left if address is not used]
            share = (deadline - time.monotonic()) / (len(left) + 1)
            try:
                return _prepared(sock, context, server_name or host, time.monotonic() + share)
            except OSError as error:
                if not left or connection_fault(error, asked).kind.is_final:
                    raise
    except (OSError, ValueError) as error:
        raise connection_fault(error, asked) from error


def _addresses(host: str, port: int) -> list[Address]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _in_turns(addresses: list[Address]) -> list[Address]:
    """Return the addresses with the families taking turns, that of the first one first."""
    if not addresses:
        raise socket.gaierror(socket.EAI_NONAME, "no address belongs to it")
    first = [address for address in addresses if address[0] == addresses[0][0]]
    rest = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain.from_iterable(zip_longest(first, rest)) if address is not None]


def _first_to_answer(addresses: Sequence[Address], deadline: float) -> tuple[socket.socket, Address]:
    """Return the first connection that comes about, with its address; the other attempts are closed.

    Raises:
        OSError: That of the last attempt that failed, or TimeoutError.
    """
    waiting = list(addresses)
    last: OSError = TimeoutError("no address answered")
    with _attempts() as selector:
        next_at = time.monotonic()
        while waiting or selector.get_map():
            now = time.monotonic()
            if now >= deadline:
                raise TimeoutError("no address answered in time")
            if waiting and (now >= next_at or not selector.get_map()):
                try:
                    _begin(selector, waiting.pop(0))
                except OSError as error:
                    last = error
                    continue
                next_at = now + _STAGGER_S
            for key, _ in selector.select(max(0.0, min(deadline, next_at if waiting else deadline) - now)):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)  # nothing else is registered
                selector.unregister(sock)
                number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not number:
                    return sock, key.data
                sock.close()
                last = OSError(number, os.strerror(number))
    raise last


@contextmanager
def _attempts() -> Generator[selectors.BaseSelector]:
    """A selector whose sockets are closed with it."""
    with selectors.DefaultSelector() as selector:
        try:
            yield selector
        finally:
            for key in list(selector.get_map().values()):
                selector.unregister(key.fileobj)
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()


def _begin(selector: selectors.BaseSelector, address: Address) -> None:
    family, kind, protocol, _, where = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        number = sock.connect_ex(where)
        if number not in _UNDER_WAY:
            raise OSError(number, os.strerror(number))
        selector.register(sock, selectors.EVENT_WRITE, address)
    except BaseException:
        sock.close()
        raise


def _prepared(sock: socket.socket, context: ssl.SSLContext | None, server_name: str, deadline: float) -> socket.socket:
    """Return the socket ready for use, with TLS on it if there is a context; it is closed when that fails."""
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return sock
        secure = context.wrap_socket(sock, server_hostname=server_name, do_handshake_on_connect=False)
    except BaseException:
        sock.close()
        raise
    try:
        _shake_hands(secure, deadline)
    except BaseException:
        secure.close()
        raise
    return secure


def _shake_hands(sock: ssl.SSLSocket, deadline: float) -> None:
    """Agree on TLS by a deadline, however slowly the peer's part comes."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        while True:
            try:
                sock.do_handshake()
            except ssl.SSLWantReadError:
                selector.modify(sock, selectors.EVENT_READ)
            except ssl.SSLWantWriteError:
                selector.modify(sock, selectors.EVENT_WRITE)
            else:
                return
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not selector.select(remaining):
                raise TimeoutError("TLS was not agreed on in time")
