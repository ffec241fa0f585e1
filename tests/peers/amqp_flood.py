"""A broker over AMQP, written by hand, that says what is needed until a client is at some stage, and then pours out one thing.

proton's engine, of which the other peer is made, keeps the rules; this one breaks them.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import socket
import ssl
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable

BEGIN, ATTACH = 0x11, 0x12
OTHER_ROLE = {0x41: b"\x42", 0x42: b"\x41"}


def frame(body: bytes, channel: int = 0, kind: int = 0) -> bytes:
    return struct.pack(">IBBH", 8 + len(body), 2, kind, channel) + body


def uint(number: int) -> bytes:
    return b"\x70" + struct.pack(">I", number)


def text(value: str, code: bytes = b"\xa1") -> bytes:
    return code + bytes([len(value)]) + value.encode()


def described(code: int, *fields: bytes) -> bytes:
    body = b"".join(fields)
    return b"\x00\x53" + bytes([code]) + b"\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body


MECHANISMS = frame(described(0x40, b"\xf0" + struct.pack(">II", 15, 1) + text("ANONYMOUS", b"\xa3")), kind=1)
WELCOME = frame(described(0x44, b"\x50\x00"), kind=1)
OPEN = frame(described(0x10, text("flood"), b"\x40", uint(1 << 20), b"\x60\xff\xff"))


def begin(channel: int, *, answers: bool) -> bytes:
    mine = b"\x60" + struct.pack(">H", channel) if answers else b"\x40"
    return frame(described(BEGIN, mine, uint(0), uint(1 << 30), uint(1 << 30)), channel)


def attach(name: bytes, handle: bytes, role: bytes) -> bytes:
    end = (described(0x28, text("q")), described(0x29, text("q")))
    return frame(described(ATTACH, name, handle, role, b"\x50\x02", b"\x50\x00", *end, b"\x40", b"\x40", uint(0)))


def reset(sock: socket.socket) -> None:
    """Reset a connection as soon as all that was written has come to the other side: what has not would be dropped."""
    while int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
        time.sleep(0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class AmqpFlood:
    """The broker.

    Args:
        stage: When it begins to pour: ``mechanisms``, ``session`` or ``consumer``.
        what: Makes the piece of a number.
        last: The number of the piece behind which it is silent; it resets the connection at once if it is told to. None to go on.
        tls: The server's side of TLS; None for none.
    """

    def __init__(
        self,
        stage: str,
        what: Callable[[int], bytes],
        *,
        last: int | None = None,
        resets: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._stage = stage
        self._what = what
        self._last = last
        self._resets = resets
        self._tls = tls
        self.sent = 0
        """Bytes poured out."""
        self.ends = threading.Event()
        """Set before the pieces up to the last are sent."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._server]
        scheme = "amqp" if tls is None else "amqps"
        self.url = f"{scheme}://127.0.0.1:{self._server.getsockname()[1]}?broker=artemis"
        self._thread = threading.Thread(target=self._run, name="amqp-flood", daemon=True)
        self._thread.start()

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # of a socket that is closed meanwhile
            client = self._server.accept()[0]
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            self._sockets.append(client)
            self._serve(client)
            if self._last is not None:
                self.ends.set()
                client.sendall(b"".join(map(self._what, range(self._last + 1))))
                if self._resets:
                    reset(client)
                return
            for number in itertools.count(0, 100):
                piece = b"".join(map(self._what, range(number, number + 100)))
                client.sendall(piece)
                self.sent += len(piece)

    def _serve(self, client: socket.socket) -> None:
        """Answer what is asked until the stage is reached."""
        client.sendall(b"AMQP\x03\x01\x00\x00" + MECHANISMS)
        if self._stage == "mechanisms":
            return
        client.sendall(WELCOME + b"AMQP\x00\x01\x00\x00" + OPEN)
        data = b""
        while came := client.recv(65536):
            data += came
            while len(data) >= 8:
                size = 8 if data.startswith(b"AMQP") else int.from_bytes(data[:4])
                if len(data) < size:
                    break
                one, data = data[:size], data[size:]
                if self._answer(client, one):
                    return

    def _answer(self, client: socket.socket, one: bytes) -> bool:
        code = one[10] if len(one) > 10 and not one.startswith(b"AMQP") and one[5] == 0 else 0
        if code == BEGIN:
            client.sendall(begin(int.from_bytes(one[6:8]), answers=True))
            return self._stage == "session"
        if code != ATTACH:
            return False
        body = one[8:]
        at = 6 if body[3] == 0xC0 else 12
        end = at + 2 + body[at + 1]
        rest = end + (1 if body[end] == 0x43 else 2)
        client.sendall(attach(body[at:end], body[end:rest], OTHER_ROLE[body[rest]]))
        return self._stage == "consumer" and body[rest] == 0x41
