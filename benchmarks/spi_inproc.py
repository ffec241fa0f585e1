"""Measure the in-process provider at its SPI: what one thread can send, get delivered and settle.

Run: ``python benchmarks/spi_inproc.py [messages]``. Prints thousands of messages a second, the best of five rounds, and
how they compare with handing the same objects through ``queue.Queue``.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jmsapi_inproc
from jmsapi.spi import (
    NON_PERSISTENT,
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
    SystemClock,
    Tag,
)
from jmsapi_inproc.connection import InprocProvider
from jmsapi_inproc.options import InprocOptions

WINDOW = 1000
BODY = b"x" * 1024


class Rates(NamedTuple):
    """Messages a second, by the clock on the wall and by the processor time used: the latter bears a busy machine."""

    wall: float
    cpu: float


class StopWatch:
    """Measures from its making."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def rates(self) -> Rates:
        """Return the rates up to now."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        return Rates(self._messages / wall, self._messages / cpu)


class CountingEvents:
    """Counts what it is told, as the core would file it."""

    def __init__(self) -> None:
        self.tags: list[Tag] = []
        self.sent = 0

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        for tag, _, _ in deliveries:
            self.tags.append(tag)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        self.sent += len(results)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        raise cause

    def on_lost(self, cause: ProviderError) -> None:
        raise cause

    def on_resumed(self) -> None:
        raise AssertionError


class Waker(CountingEvents):
    """Hands each delivery to the consuming thread."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox: queue.SimpleQueue[Tag] = queue.SimpleQueue()

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        for tag, _, _ in deliveries:
            self.inbox.put(tag)


def envelope(address: Address) -> PlainEnvelope:
    return PlainEnvelope(
        MessageKind.BYTES, address, BODY, {}, "ID:1", 1_700_000_000_000, None, None, NON_PERSISTENT, None, 0, 1_700_000_000_000
    )


def handed_over(messages: int) -> Rates:
    """Put the same objects through ``queue.Queue``: what Python itself needs for one hand-over in one thread."""
    between: queue.Queue[PlainEnvelope] = queue.Queue(maxsize=1000)
    message = envelope(Address(DestinationKind.QUEUE, "q"))
    watch = StopWatch(messages)
    for _ in range(messages):
        between.put(message)
        between.get()
    return watch.rates()


def ready(messages: int, kind: DestinationKind, consumers: int, batch: int, selector: str | None = None) -> Rates:
    """Send to consumers with credit; settle and give credit back in batches of ``batch``."""
    jmsapi_inproc.discard("bench")
    sink = CountingEvents()
    provider = InprocProvider(InprocOptions(host="bench"), SystemClock())
    provider.open(sink).result()
    session = provider.open_session(transacted=False).result()
    address = Address(kind, "q")
    opened = [provider.open_consumer(session, ConsumerSpec(address, selector)).result() for _ in range(consumers)]
    for consumer in opened:
        provider.credit(consumer, WINDOW)
    producer = provider.open_producer(session, address).result()
    message = envelope(address)
    watch = StopWatch(messages)
    for number in range(messages):
        provider.send(producer, message, None, number)
        if len(sink.tags) >= batch:
            count = len(sink.tags)
            provider.settle(sink.tags, Outcome.ACCEPTED)
            sink.tags = []
            for consumer in opened:
                provider.credit(consumer, count // consumers)
    rates = watch.rates()
    provider.close().result()
    return rates


def stored(messages: int, batch: int, selector: str | None = None) -> Rates:
    """Send without credit, then take everything in batches."""
    jmsapi_inproc.discard("bench")
    sink = CountingEvents()
    provider = InprocProvider(InprocOptions(host="bench"), SystemClock())
    provider.open(sink).result()
    session = provider.open_session(transacted=False).result()
    address = Address(DestinationKind.QUEUE, "q")
    consumer = provider.open_consumer(session, ConsumerSpec(address, selector)).result()
    producer = provider.open_producer(session, address).result()
    message = envelope(address)
    watch = StopWatch(messages)
    for number in range(messages):
        provider.send(producer, message, None, number)
    for _ in range(0, messages, batch):
        provider.credit(consumer, batch)
        provider.settle(sink.tags, Outcome.ACCEPTED)
        sink.tags = []
    rates = watch.rates()
    provider.close().result()
    return rates


def transacted(messages: int, size: int) -> Rates:
    """Send and settle in transactions of ``size``."""
    jmsapi_inproc.discard("bench")
    sink = CountingEvents()
    provider = InprocProvider(InprocOptions(host="bench"), SystemClock())
    provider.open(sink).result()
    session = provider.open_session(transacted=True).result()
    address = Address(DestinationKind.QUEUE, "q")
    consumer = provider.open_consumer(session, ConsumerSpec(address)).result()
    provider.credit(consumer, size)
    producer = provider.open_producer(session, address).result()
    message = envelope(address)
    watch = StopWatch(messages)
    for _ in range(0, messages, size):
        tx = provider.begin(session).result()
        for number in range(size):
            provider.send(producer, message, tx, number)
        provider.settle(sink.tags, Outcome.ACCEPTED, tx)
        provider.credit(consumer, len(sink.tags))
        sink.tags = []
        provider.end(tx, commit=True).result()
    rates = watch.rates()
    provider.close().result()
    return rates


def two_threads(messages: int) -> Rates:
    """Send in one thread; in another take, settle and give credit back in batches of what has come."""
    jmsapi_inproc.discard("bench")
    sink = Waker()
    provider = InprocProvider(InprocOptions(host="bench"), SystemClock())
    provider.open(sink).result()
    session = provider.open_session(transacted=False).result()
    address = Address(DestinationKind.QUEUE, "q")
    consumer = provider.open_consumer(session, ConsumerSpec(address)).result()
    provider.credit(consumer, WINDOW)
    producer = provider.open_producer(session, address).result()
    message = envelope(address)

    def consume() -> None:
        rest = messages
        while rest:
            tags = [sink.inbox.get()]
            with contextlib.suppress(queue.Empty):
                while len(tags) < WINDOW // 2:
                    tags.append(sink.inbox.get_nowait())
            provider.settle(tags, Outcome.ACCEPTED)
            provider.credit(consumer, len(tags))
            rest -= len(tags)

    thread = threading.Thread(target=consume)
    watch = StopWatch(messages)
    thread.start()
    for number in range(messages):
        provider.send(producer, message, None, number)
    thread.join()
    rates = watch.rates()
    provider.close().result()
    return rates


def main(messages: int) -> None:
    """Print the table."""
    one, many = DestinationKind.QUEUE, DestinationKind.TOPIC
    cases: dict[str, Callable[[], Rates]] = {
        "queue.Queue, put and get": lambda: handed_over(messages),
        "queue, 1 consumer with credit, settle each": lambda: ready(messages, one, 1, 1),
        "queue, 1 consumer with credit, settle 100": lambda: ready(messages, one, 1, 100),
        "queue, 10 consumers with credit, settle 100": lambda: ready(messages, one, 10, 100),
        "queue, 1 consumer with a selector, settle 100": lambda: ready(messages, one, 1, 100, "JMSPriority = 4"),
        "topic, 1 subscriber with credit, settle 100": lambda: ready(messages, many, 1, 100),
        "queue, stored, then taken by 500": lambda: stored(messages, 500),
        "queue, transactions of 100": lambda: transacted(messages, 100),
        "queue, sender and consumer in two threads": lambda: two_threads(messages),
    }
    print(f"{'thousands of messages a second':50} {'wall':>7} {'cpu':>7}   cpu, of queue.Queue")
    first = 0.0
    for name, case in cases.items():
        rounds = [case() for _ in range(5)]
        wall, cpu = (max(column) / 1000 for column in zip(*rounds, strict=True))
        first = first or cpu
        print(f"{name:50} {wall:7.0f} {cpu:7.0f} {cpu / first:7.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
