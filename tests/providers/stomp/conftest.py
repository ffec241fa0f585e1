"""A bench for the SPI over STOMP: connections to a broker or a scripted peer, their events recorded, the contract checked."""

from __future__ import annotations

import importlib.util
import itertools
import logging
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
    Clock,
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
from jmsapi_conformance.brokers import Broker
from jmsapi_stomp import entry
from jmsapi_stomp.options import StompOptions

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

    def __init__(self, options: StompOptions, clock: Clock) -> None:
        self.options = options
        self.events = Recorder()
        self.wire = entry.create(options, clock)
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


@pytest.fixture
def dial() -> Iterator[Callable[..., Line]]:
    """Give a function that opens connections to a broker or a URL; they are closed at the end."""
    lines: list[Line] = []

    def connect(where: Broker | str, **options: Any) -> Line:
        if isinstance(where, str):
            url, given = urlsplit(where), {}
        else:
            url, given = urlsplit(where.url("stomp")), {"user": where.user, "password": where.password}
        # Long graces, for these tests run beside others: where nothing comes is not what they measure.
        defaults = {"scheme": url.scheme, "host": url.hostname, "port": url.port, "drain_ms": 300}
        clock = options.pop("clock", SystemClock())
        line = Line(StompOptions.model_validate(defaults | given | options), clock)
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
    faults = [r.getMessage() for r in caplog.get_records("call") if r.name == "jmsapi.stomp" and r.levelno >= logging.ERROR]
    assert not faults, faults


@pytest.fixture
def queue() -> Address:
    """Give the address of a queue nobody else uses."""
    return Address(DestinationKind.QUEUE, f"stomp.q.{uuid.uuid4().hex}")


@pytest.fixture
def topic() -> Address:
    """Give the address of a topic nobody else uses."""
    return Address(DestinationKind.TOPIC, f"stomp.t.{uuid.uuid4().hex}")


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Give a function that waits for a state nobody notifies of."""

    def wait(ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not ready():
            assert time.monotonic() < deadline, "the state was not reached"
            time.sleep(0.01)

    return wait


def _peer_module() -> Any:
    path = Path(__file__).parents[2] / "peers" / "stomp_peer.py"
    spec = importlib.util.spec_from_file_location("stomp_peer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def peer() -> Iterator[Callable[..., Any]]:
    """Give a function that starts a scripted peer; what its script raises fails the test."""
    peers: list[Any] = []
    module = _peer_module()

    def start(script: Callable[[Any], None], tls: Any = None) -> Any:
        peers.append(module.StompPeer(script, tls))
        return peers[-1]

    yield start
    for one in peers:
        one.close()
