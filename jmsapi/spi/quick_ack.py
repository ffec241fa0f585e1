"""Saying at once that bytes have come, so that a broker's next ones are not held back."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

__all__ = ["acknowledge_at_once"]

_OPTION: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)


def acknowledge_at_once(sock: socket.socket) -> None:
    """Have the kernel acknowledge what has come without delay; does nothing where a kernel (other than Linux) cannot.

    A broker that writes small pieces one by one and leaves Nagle's algorithm on (ActiveMQ Classic, unless its connector says
    ``transport.tcpNoDelay=true``) waits before each piece for the acknowledgement of the one before, which kernels put off
    for 40 ms. Linux falls back to that by itself, so a provider calls this after each read.

    A connection that has ended meanwhile is no error here: what has been read counts, and the next read tells of the end.

    Args:
        sock: Of TCP, or TLS over it.
    """
    if _OPTION is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, _OPTION, 1)
