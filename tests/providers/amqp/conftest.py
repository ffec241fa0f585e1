"""A bench for the SPI over AMQP: connections to a broker, their events recorded, the contract checked."""

from __future__ import annotations

import contextlib
import itertools
import logging
import select
import socket
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from jmsapi._emulation.checked import Checked
from jmsapi.spi import (
    Address,
    Body,
    Capabilities,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
    SendResult,
    SystemClock,
)
from jmsapi_amqp import entry
from jmsapi_amqp.options import AmqpOptions
from jmsapi_conformance.brokers import Broker

WAIT_S = 30.0
_tokens = itertools.count(1)


class Recorder:
    """Files events away, and lets a test wait for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deliveries: dict[Handle, list[Delivery]] = {}
        self._sent: dict[object, Exception | None] = {}
        self.batches: list[int] = []
        self.closed: list[tuple[Handle, ProviderError]] = []
        self.lost: list[ProviderError] = []
        self.threads: set[str] = set()

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        with self._changed:
            self.threads.add(threading.current_thread().name)
            self.batches.append(len(deliveries))
            self._deliveries.setdefault(consumer, []).extend(deliveries)
            self._changed.notify_all()

    def on_sent(self, results: Sequence[SendResult]) -> None:
        with self._changed:
            self._sent.update(results)
            self._changed.notify_all()

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        with self._changed:
            self.closed.append((handle, cause))
            self._changed.notify_all()

    def on_lost(self, cause: ProviderError) -> None:
        with self._changed:
            self.lost.append(cause)
            self._changed.notify_all()

    def on_resumed(self) -> None:
        raise AssertionError("this provider does not reconnect")

    def wait(self, ready: Callable[[], bool], what: str, seconds: float = WAIT_S) -> None:
        """Wait for a state."""
        with self._changed:
            assert self._changed.wait_for(ready, seconds), f"no {what} within {seconds} s"

    def take(self, consumer: Handle, n: int, seconds: float = WAIT_S) -> list[Delivery]:
        """Wait for ``n`` deliveries and take them."""
        mine = self._deliveries.setdefault(consumer, [])
        with self._changed:
            ready = self._changed.wait_for(lambda: len(mine) >= n, seconds)
            assert ready, f"{len(mine)} deliveries of {n} within {seconds} s: {[d.envelope.body for d in mine]}"
            taken, mine[:] = mine[:n], mine[n:]
            return taken

    def waiting(self, consumer: Handle) -> list[Delivery]:
        """Return what has come and was not taken."""
        with self._changed:
            return list(self._deliveries.get(consumer, []))

    def answer(self, token: object) -> Exception | None:
        """Wait for a send's answer."""
        self.wait(lambda: token in self._sent, f"answer to send {token}")
        return self._sent[token]


class Line:
    """One open connection at the SPI."""

    def __init__(self, options: AmqpOptions) -> None:
        self.options = options
        self.events = Recorder()
        self.wire = entry.create(options, SystemClock())
        self.provider = Checked(self.wire, options)
        self.capabilities: Capabilities
        self._sessions: dict[bool, Handle] = {}
        self._producer: Handle | None = None

    def open(self) -> Line:
        self.capabilities = self.provider.open(self.events).result(WAIT_S)
        return self

    def session(self, *, transacted: bool = False) -> Handle:
        if transacted not in self._sessions:
            self._sessions[transacted] = self.provider.open_session(transacted=transacted).result(WAIT_S)
        return self._sessions[transacted]

    def consumer(self, address: Address, *, credit: int = 0, **spec: Any) -> Handle:
        consumer = self.provider.open_consumer(self.session(), ConsumerSpec(address, **spec)).result(WAIT_S)
        if credit:
            self.provider.credit(consumer, credit).result(WAIT_S)
        return consumer

    def post(self, address: Address, body: Body = "x", tx: Handle | None = None, **fields: Any) -> object:
        """Send without waiting; return the token."""
        if self._producer is None:
            self._producer = self.provider.open_producer(self.session(), None).result(WAIT_S)
        kind = MessageKind.TEXT if body is None or isinstance(body, str) else MessageKind.BYTES
        token = next(_tokens)
        envelope = PlainEnvelope(fields.pop("kind", kind), address, body, **fields)
        self.provider.send(self._producer, envelope, tx, token)
        return token

    def send(self, address: Address, body: Body = "x", tx: Handle | None = None, **fields: Any) -> None:
        """Send and wait for the answer."""
        error = self.events.answer(self.post(address, body, tx, **fields))
        if error is not None:
            raise error

    def receive(self, consumer: Handle, n: int = 1, *, accept: bool = True, credit: bool = True) -> list[Delivery]:
        if credit:
            self.provider.credit(consumer, n).result(WAIT_S)
        deliveries = self.events.take(consumer, n)
        if accept:
            self.accept(deliveries)
        return deliveries

    def accept(self, deliveries: Sequence[Delivery], tx: Handle | None = None, outcome: Outcome = Outcome.ACCEPTED) -> None:
        self.provider.settle([delivery.tag for delivery in deliveries], outcome, tx).result(WAIT_S)

    def begin(self) -> Handle:
        return self.provider.begin(self.session(transacted=True)).result(WAIT_S)

    def end(self, tx: Handle, *, commit: bool = True) -> None:
        self.provider.end(tx, commit=commit).result(WAIT_S)

    def nothing_more(self, consumer: Handle) -> bool:
        """Ask for one more and return whether there is none."""
        self.provider.credit(consumer, 1).result(WAIT_S)
        self.provider.drain(consumer).result(WAIT_S)
        return not self.events.waiting(consumer)

    def close(self) -> None:
        self.provider.close().result(WAIT_S)


class Relay:
    """Passes bytes between clients and a broker until it is told otherwise; can speak TLS to the clients; loopback only."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._target = (host, port)
        self._tls = tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._stalled = threading.Event()
        self._ended = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept, name="relay", daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="relay", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls is not None:
                client.settimeout(5)
                client = self._tls.wrap_socket(client, server_side=True)
            broker = socket.create_connection(self._target, 5)
        except OSError:
            client.close()
            return
        self._pairs.append((client, broker))
        with contextlib.suppress(OSError, ValueError):
            self._pass(client, broker)
        for end in (client, broker):
            end.close()

    def _pass(self, client: socket.socket, broker: socket.socket) -> None:
        while not self._ended.is_set():
            waiting = isinstance(client, ssl.SSLSocket) and client.pending() > 0
            ready = [client] if waiting else select.select([client, broker], [], [], 0.05)[0]
            for end in [] if self._stalled.is_set() else ready:
                data = end.recv(65536)
                if not data:
                    return
                (broker if end is client else client).sendall(data)

    def stall(self) -> None:
        """Pass nothing any more, and close nothing."""
        self._stalled.set()

    def cut(self) -> None:
        """Close every connection."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._ended.set()
        self.cut()
        # An accept that waits is woken by a connection, on every system.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        self._server.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def relay() -> Iterator[Callable[..., Relay]]:
    """Give a function that puts a relay before a broker."""
    relays: list[Relay] = []

    def start(broker: Broker, tls: ssl.SSLContext | None = None) -> Relay:
        url = urlsplit(broker.url("amqp"))
        relays.append(Relay(url.hostname or "127.0.0.1", url.port or 5672, tls))
        return relays[-1]

    yield start
    for one in relays:
        one.close()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with an authority (ca.pem), a server's certificate for localhost and a client's (each .pem and .key)."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)

    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", "ca.key", "-out", "ca.pem",
    )  # fmt: skip
    for name, host in (("server", "localhost"), ("client", "somebody")):
        # From Python 3.13 on a chain is held to RFC 5280: each certificate says whose key signed it.
        (folder / f"{name}.ext").write_text(
            f"subjectAltName=DNS:{host}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n", encoding="ascii"
        )
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(
            "x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-extfile", f"{name}.ext", "-out", f"{name}.pem",
        )  # fmt: skip
    return folder


@pytest.fixture
def dial() -> Iterator[Callable[..., Line]]:
    """Give a function that opens connections to a broker or a URL; they are closed at the end."""
    lines: list[Line] = []

    def connect(where: Broker | str, **options: Any) -> Line:
        if isinstance(where, str):
            url, given = urlsplit(where), {}
        else:
            url, given = urlsplit(where.url("amqp")), {"user": where.user, "password": where.password}
        defaults = {"scheme": url.scheme, "host": url.hostname, "port": url.port}
        line = Line(AmqpOptions.model_validate(defaults | given | options))
        lines.append(line)
        return line.open()

    yield connect
    for line in lines:
        line.close()


@pytest.fixture(autouse=True)
def contract(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the SPI's contract was broken."""
    yield
    broken = [record.getMessage() for record in caplog.get_records("call") if record.name == "jmsapi.contract"]
    assert not broken, broken
    faults = [r.getMessage() for r in caplog.get_records("call") if r.name == "jmsapi.amqp" and r.levelno >= logging.ERROR]
    assert not faults, faults


@pytest.fixture
def queue() -> Address:
    """Give the address of a queue nobody else uses."""
    return Address(DestinationKind.QUEUE, f"amqp.q.{uuid.uuid4().hex}")


@pytest.fixture
def topic() -> Address:
    """Give the address of a topic nobody else uses."""
    return Address(DestinationKind.TOPIC, f"amqp.t.{uuid.uuid4().hex}")


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Give a function that waits for a state nobody notifies of."""

    def wait(ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not ready():
            assert time.monotonic() < deadline, "the state was not reached"
            time.sleep(0.01)

    return wait
