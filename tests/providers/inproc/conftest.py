"""A bench for the SPI: connections whose events are recorded, a broker of the test's own, a clock that is set by hand."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import jmsapi_inproc
from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
    SendResult,
)
from jmsapi_inproc.connection import InprocProvider
from jmsapi_inproc.options import InprocOptions

_names = itertools.count(1)
START_MS = 1_700_000_000_000


class HandTimer:
    """A timer of the hand clock."""

    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """Time that passes when the test says so; timers run inside ``advance``, in order."""

    def __init__(self) -> None:
        self._ms = float(START_MS)
        self._timers: list[HandTimer] = []
        self._jumped = 0.0

    @property
    def timers(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)

    def now_ms(self) -> int:
        return int(self._ms)

    def monotonic(self) -> float:
        return (self._ms - self._jumped) / 1000

    def call_later(self, delay: float, call: Callable[[], None]) -> HandTimer:
        timer = HandTimer(self._ms + delay * 1000, call)
        self._timers.append(timer)
        return timer

    def jump(self, ms: float) -> None:
        """Set the wall clock, which no timer notices."""
        self._ms += ms
        self._jumped += ms
        for timer in self._timers:
            timer.due += ms

    def advance(self, ms: float) -> None:
        end = self._ms + ms
        while True:
            self._timers = [timer for timer in self._timers if not timer.cancelled]
            due = min(self._timers, key=lambda timer: timer.due, default=None)
            if due is None or due.due > end:
                break
            self._timers.remove(due)
            self._ms = max(self._ms, due.due)
            due.call()
        self._ms = end


@dataclass
class Recorder:
    """The core's side of one connection: files everything, and checks credit and serial order."""

    deliveries: dict[Handle, list[Delivery]] = field(default_factory=dict)
    batches: list[tuple[Handle, int]] = field(default_factory=list)
    sent: list[SendResult] = field(default_factory=list)
    lost: list[ProviderError] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        with self.lock:
            self.deliveries.setdefault(consumer, []).extend(deliveries)
            self.batches.append((consumer, len(deliveries)))

    def on_sent(self, results: Sequence[SendResult]) -> None:
        with self.lock:
            self.sent.extend(results)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        raise AssertionError(f"the in-process broker ends nothing by itself: {cause}")

    def on_lost(self, cause: ProviderError) -> None:
        self.lost.append(cause)

    def on_resumed(self) -> None:
        raise AssertionError("the in-process link never resumes")


class Tap:
    """A consumer or browser with what came through it."""

    def __init__(self, line: Line, handle: Handle) -> None:
        self.line = line
        self.handle = handle
        self._read = 0

    def credit(self, n: int = 1) -> None:
        self.line.provider.credit(self.handle, n).result(0)

    def drain(self) -> None:
        self.line.provider.drain(self.handle).result(0)

    def new(self) -> list[Delivery]:
        """Return what came since the last look."""
        came = self.line.events.deliveries.get(self.handle, [])
        fresh = came[self._read :]
        self._read = len(came)
        return fresh

    def texts(self) -> list[Any]:
        """Return the bodies of what came since the last look."""
        return [delivery.envelope.body for delivery in self.new()]

    def take(self, n: int = 1000) -> list[Delivery]:
        """Give credit, return what came, take the rest of the credit back."""
        self.credit(n)
        self.drain()
        return self.new()

    def take_texts(self, n: int = 1000) -> list[Any]:
        return [delivery.envelope.body for delivery in self.take(n)]

    def settle(self, deliveries: Sequence[Delivery], outcome: Outcome = Outcome.ACCEPTED, tx: Handle | None = None) -> None:
        self.line.provider.settle([delivery.tag for delivery in deliveries], outcome, tx).result(0)

    def release(self) -> None:
        self.line.provider.release(self.handle).result(0)


class Line:
    """One open connection with one plain session and one transacted one."""

    def __init__(self, bench: Bench, **options: Any) -> None:
        self.bench = bench
        self.events = Recorder()
        self.provider = InprocProvider(InprocOptions(host=bench.name, **options), bench.clock)
        self.capabilities = self.provider.open(self.events).result(0)
        self.session = self.provider.open_session(transacted=False).result(0)
        self.transacted = self.provider.open_session(transacted=True).result(0)
        self._anonymous = self.provider.open_producer(self.session, None).result(0)
        self._tokens = itertools.count(1)

    def tap(self, where: Address | str, *, session: Handle | None = None, **spec: Any) -> Tap:
        address = Address(DestinationKind.QUEUE, where) if isinstance(where, str) else where
        return Tap(self, self.provider.open_consumer(session or self.session, ConsumerSpec(address, **spec)).result(0))

    def send(
        self, where: Address | str, *bodies: Any, tx: Handle | None = None, producer: Handle | None = None, **fields: Any
    ) -> None:
        """Send a text message for each body, and see each answered."""
        address = Address(DestinationKind.QUEUE, where) if isinstance(where, str) else where
        now = self.bench.clock.now_ms()
        for body in bodies:
            token = next(self._tokens)
            envelope = PlainEnvelope(MessageKind.TEXT, address, body, **{"timestamp": now, "delivery_time": now, **fields})
            self.provider.send(producer or self._anonymous, envelope, tx, token)
            assert self.events.sent[-1] == (token, None)

    def file(self, producer: Handle, where: Address, body: Any, tx: Handle | None, rng: random.Random) -> None:
        """Send one message of a random priority; the token is its body."""
        properties = {"half": rng.randint(0, 1)}
        envelope = PlainEnvelope(MessageKind.TEXT, where, body, properties, priority=rng.randint(0, 9))
        self.provider.send(producer, envelope, tx, body)

    def begin(self) -> Handle:
        return self.provider.begin(self.transacted).result(0)

    def commit(self, tx: Handle) -> None:
        self.provider.end(tx, commit=True).result(0)

    def roll_back(self, tx: Handle) -> None:
        self.provider.end(tx, commit=False).result(0)

    def close(self) -> None:
        self.provider.close().result(0)


class Bench:
    """One broker and the connections to it."""

    def __init__(self) -> None:
        self.name = f"bench-{next(_names)}"
        self.clock = HandClock()
        self.lines: list[Line] = []

    def connect(self, **options: Any) -> Line:
        line = Line(self, **options)
        self.lines.append(line)
        return line

    def queued(self, where: Address | str, **spec: Any) -> list[Any]:
        """Return the bodies a browser shows."""
        return self.lines[-1].tap(where, browse=True, **spec).take_texts()

    @staticmethod
    def topic(name: str) -> Address:
        return Address(DestinationKind.TOPIC, name)

    @staticmethod
    def queue(name: str) -> Address:
        return Address(DestinationKind.QUEUE, name)

    def end(self) -> None:
        """Close all connections, see that nothing ticks on, discard the broker."""
        for line in self.lines:
            line.close()
        assert self.clock.timers == 0, "a broker without connections keeps no timer"
        jmsapi_inproc.discard(self.name)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.end()


@pytest.fixture
def new_bench() -> Callable[[], Bench]:
    """Give the class, for a test that needs one bench after another and ends each itself."""
    return Bench


@pytest.fixture
def line(bench: Bench) -> Line:
    return bench.connect()
