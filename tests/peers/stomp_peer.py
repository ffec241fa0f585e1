"""A STOMP peer that does what a test's script says, on loopback. It reads frames by code of its own."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping

_UNESCAPE = {"\\n": "\n", "\\r": "\r", "\\c": ":", "\\\\": "\\"}
_WAIT_S = 30.0


class PeerGone(Exception):
    """The other side closed the connection."""


class PeerConnection:
    """One accepted connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._file = sock.makefile("rb")
        self.beats = 0

    def frame(self) -> tuple[str, dict[str, str], bytes]:
        """Read one frame: command, headers, body."""
        line = self._line()
        while not line:
            self.beats += 1
            line = self._line()
        command, headers = line.decode(), dict[str, str]()
        while line := self._line():
            name, _, value = line.decode().partition(":")
            headers.setdefault(self._plain(name), value if command == "CONNECT" else self._plain(value))
        if "content-length" in headers:
            body = self._file.read(int(headers["content-length"]))
            assert self._file.read(1) == b"\0"
        else:
            body = b""
            while (byte := self._file.read(1)) != b"\0":
                if not byte:
                    raise PeerGone
                body += byte
        return command, headers, body

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise PeerGone
        return line[:-1]

    @staticmethod
    def _plain(text: str) -> str:
        parts, index = "", 0
        while index < len(text):
            pair = text[index : index + 2]
            parts += _UNESCAPE.get(pair, text[index])
            index += 2 if pair in _UNESCAPE else 1
        return parts

    def expect(self, command: str) -> dict[str, str]:
        """Read one frame, which must be a ``command``; return its headers."""
        got, headers, _ = self.frame()
        assert got == command, f"{got} {headers}, not {command}"
        return headers

    def send(self, command: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Write one frame, ended as Classic and RabbitMQ do; header values go out as they are."""
        lines = "".join(f"{name}:{value}\n" for name, value in (headers or {}).items())
        self.raw(f"{command}\n{lines}\n".encode() + body + b"\0\n")

    def raw(self, data: bytes) -> None:
        """Write bytes."""
        self.socket.sendall(data)

    def welcome(self, server: str = "ActiveMQ-Artemis/2.56.0", beats: str = "0,0") -> dict[str, str]:
        """Take CONNECT and answer CONNECTED; return CONNECT's headers."""
        headers = self.expect("CONNECT")
        self.send("CONNECTED", {"version": "1.2", "server": server, "heart-beat": beats})
        return headers

    def confirm(self, command: str) -> dict[str, str]:
        """Take one frame and send its receipt."""
        headers = self.expect(command)
        self.send("RECEIPT", {"receipt-id": headers["receipt"]})
        return headers

    def serve(self, answer: Callable[[PeerConnection, str, dict[str, str], bytes], None] | None = None) -> None:
        """Confirm whatever asks for it until the other side leaves; ``answer`` may do more."""
        while True:
            try:
                command, headers, body = self.frame()
                if answer is not None:
                    answer(self, command, headers, body)
                if "receipt" in headers:
                    self.send("RECEIPT", {"receipt-id": headers["receipt"]})
            except (PeerGone, OSError, ValueError):
                return

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self.socket.close()


class StompPeer:
    """Listens on a free port and runs a script for each connection, in a thread of its own.

    Args:
        script: Called with each connection.
        tls: Wraps it in TLS.
    """

    def __init__(self, script: Callable[[PeerConnection], None], tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"stomp{'+ssl' if tls else ''}://127.0.0.1:{self.port}"
        self.faults: list[BaseException] = []
        self._connections: list[PeerConnection] = []
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, name="stomp-peer", daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._run, args=(sock,), name="stomp-peer-connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket) -> None:
        sock.settimeout(_WAIT_S)
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        connection = PeerConnection(sock)
        self._connections.append(connection)
        try:
            self._script(connection)
        except PeerGone:
            pass
        except BaseException as fault:
            if not self._closing:
                self.faults.append(fault)
        finally:
            connection.close()

    def close(self) -> None:
        """End everything, and raise what a script raised."""
        self._closing = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            try:
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in (self._acceptor, *self._threads):
            thread.join(_WAIT_S)
        if self.faults:
            raise self.faults[0]
