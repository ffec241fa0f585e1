"""TLS before a broker that speaks none, on loopback, and certificates good and bad to try it with."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_READ = 65536
_WAIT_S = 30.0
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class TlsFront:
    """Takes TLS connections and passes what is in them to a broker. A context manager.

    Args:
        host: The broker's host.
        port: Its port.
        context: The server's side of TLS.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        self._target = (host, port)
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-front", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_WAIT_S)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                from_broker, to_broker = await asyncio.open_connection(*self._target)
                try:
                    await asyncio.gather(_pass(reader, to_broker), _pass(from_broker, writer))
                finally:
                    to_broker.close()
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _shut(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        while self._tasks:
            await asyncio.sleep(0.01)
        # Of a handshake that was cut off no task knows, only the loop: its transport closes when the loop has seen the end of it.
        watched = getattr(self._loop, "_selector").get_map()  # noqa: B009 - a part of asyncio that has no public name
        ends = self._loop.time() + _WAIT_S / 2
        while len(watched) > 1 and self._loop.time() < ends:  # the one that stays is the loop's own
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)  # transports close in a later turn of the loop

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(_WAIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_READ):
        writer.write(data)
        await writer.drain()
    writer.close()


class Certificates:
    """An authority in a folder, and certificates that it signed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca = folder / "ca.pem"
        self._openssl("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", "/CN=authority",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip

    def make(self, name: str, subject: str = "IP:127.0.0.1,DNS:localhost", days: int = 2) -> Path:
        """Sign a certificate, once for each name; its key is beside it, as .key.

        Args:
            name: File name, without suffix.
            subject: Alternative names of the subject.
            days: How long it is good from now; less than 0 for one that was.
        """
        made = self._folder / f"{name}.pem"
        if made.exists():
            return made
        # From Python 3.13 on a chain is held to RFC 5280: each certificate says whose key signed it.
        (self._folder / f"{name}.ext").write_text(
            f"subjectAltName={subject}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n", encoding="ascii"
        )
        self._openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-days", str(days), "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                      "-CAcreateserial", "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip
        return made

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True, timeout=60)


def server_context(certificate: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """Form the server's side of TLS.

    Args:
        certificate: With its key beside it.
        client_ca: Whose certificates clients must show; None for no matter.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
