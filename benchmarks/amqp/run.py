"""What the AMQP provider costs beside proton's MessagingHandler and the Java client, as ratios taken in one run.

    python benchmarks/amqp/run.py [--messages N] [--rounds N] [--memory N] [URL]

The URL is a broker, ``amqp://user:password@host:port``; without one the first of ``JMSAPI_ARTEMIS_URLS`` is measured. Each
message is a persistent text of 1 KiB with three properties, which are read again. Medians over the rounds; the Java client
has two more before, since it warms up slowly. It is left out, loudly, where there is no Maven or no JDK.

| row | what is measured |
|---|---|
| async send | sends with a completion listener, 1,000 on their way at most |
| listener, receive loop | a filled queue through a message listener, through ``receive``; AUTO: each ack is written first |
| ... dups-ok | the same in DUPS_OK, whose acks go in batches, as the others' do: so this is held against them |
| transacted | the same in transactions of 100 messages, against the untransacted rate of the same API |
| SPI | the provider without the core |
| sync send | one send after the other, each confirmed, against proton's BlockingSender |
| memory | growth of the process after the first tenth of the messages, all sent and received (``--memory``) |

A missed bound is marked, and the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import jmsapi
from jmsapi import CompletionListener, Connection, DeliveryMode, Message, MessageListener, Session
from jmsapi.spi import (
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    SendResult,
    SystemClock,
)
from jmsapi_amqp import entry
from jmsapi_amqp.options import AmqpOptions

TEXT = "x" * 1024
HERE = Path(__file__).parent
WINDOW = 1000
BATCH = 100
WAIT_S = 120.0
JAVA_WARM_UP = 2
SYNC_MOST = 1.2
GROWTH_MOST_MB = 20.0


class Bounds(NamedTuple):
    """The least that a row's ratios may be."""

    handler: float | None = None
    java: float | None = None
    plain: float | None = None


NO_BOUNDS = Bounds()


@dataclass
class Figures:
    """What was measured of one contender: rates by row, and processor time a message."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: str, rate: float, cpu: float | None = None) -> None:
        """Note one round."""
        self.rates.setdefault(row, []).append(rate)
        if cpu is not None:
            self.cpu.setdefault(row, []).append(cpu)

    def rate(self, row: str) -> float | None:
        """Return the median rate of a row."""
        return statistics.median(self.rates[row]) if row in self.rates else None

    def cost(self, row: str) -> float | None:
        """Return the median processor time of a row, in microseconds a message."""
        return statistics.median(self.cpu[row]) * 1e6 if row in self.cpu else None


def main() -> int:
    """Measure and print the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", default=None)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=100_000, metavar="N", help="watch memory over N messages; 0 leaves it out")
    given = parser.parse_args()
    url = given.url or next((one for one in os.environ.get("JMSAPI_ARTEMIS_URLS", "").split(",") if one.startswith("amqp")), None)
    if url is None:
        parser.error("no broker: give an amqp URL, or set JMSAPI_ARTEMIS_URLS")
    queue = f"benchmark.{uuid.uuid4().hex}"
    api, spi = Figures(), Figures()
    factory = jmsapi.connection_factory(url)
    for _ in range(given.rounds):
        with factory.create_connection() as connection:
            connection.start()
            through_api(connection, queue, given.messages, api)
        through_spi(url, queue, given.messages, spi)
    with factory.create_connection() as connection:
        connection.start()
        latency = single_sends(connection, queue + ".single")
    handler, blocking = measured_handler(url, queue, given.messages, given.rounds)
    java = measured_java(url, queue, given.messages, given.rounds)
    met = page(api, spi, handler, java)
    ratio = latency / blocking
    print(
        f"\nsync send, median: jmsapi {latency:.0f} us, proton BlockingSender {blocking:.0f} us, ratio {ratio:.2f}"
        f"{_missed(SYNC_MOST - ratio)}"
    )
    met = met and ratio <= SYNC_MOST
    if given.memory:
        with factory.create_connection() as connection:
            connection.start()
            grown = growth(connection, queue, given.memory)
        print(f"memory growth over {given.memory:,} messages: {grown:.1f} MB{_missed(GROWTH_MOST_MB - grown)}")
        met = met and grown <= GROWTH_MOST_MB
    return 0 if met else 1


def _missed(margin: float) -> str:
    return "" if margin >= 0 else "  MISSED"


def page(api: Figures, spi: Figures, handler: Figures, java: Figures | None) -> bool:
    """Print the table: rates, processor time, ratios with their bounds; return whether all bounds are met."""
    print(f"{'':<22}{'rate/s':>10}{'us cpu':>9}{'of handler':>18}{'of its cpu':>12}{'of qpid-jms':>18}{'of plain':>18}")
    met = True

    def ratio(ours: float, theirs: float | None, least: float | None) -> str:
        nonlocal met
        if not theirs:
            return ""
        if least is None:
            return f"{ours / theirs:.2f}"
        missed = ours / theirs < least
        met = met and not missed
        return f"{ours / theirs:.2f} >= {least:g}{' MISSED' if missed else ''}"

    def line(
        name: str, figures: Figures, row: str, against: str | None, bounds: Bounds = NO_BOUNDS, plain: str | None = None
    ) -> None:
        rate, cost = figures.rate(row), figures.cost(row)
        if rate is None:
            return
        cells = [f"{rate:,.0f}", f"{cost:.1f}" if cost is not None else ""]
        theirs, theirs_cost = (handler.rate(against), handler.cost(against)) if against else (None, None)
        cells.append(ratio(rate, theirs, bounds.handler))
        cells.append(f"{theirs_cost / cost:.2f}" if theirs_cost and cost else "")
        cells.append(ratio(rate, java.rate(against) if java is not None and against else None, bounds.java))
        cells.append(ratio(rate, figures.rate(plain) if plain else None, bounds.plain))
        print(f"{name:<22}" + "".join(cell.rjust(width) for cell, width in zip(cells, (10, 9, 18, 12, 18, 18), strict=True)))

    line("async send", api, "send", "send", Bounds(handler=1.1, java=0.6))
    line("listener", api, "listener", "receive", NO_BOUNDS)
    line("receive loop", api, "receive", "receive", NO_BOUNDS)
    line("listener, dups-ok", api, "lazy listener", "receive", Bounds(handler=1.5, java=0.6))
    line("receive loop, dups-ok", api, "lazy receive", "receive", Bounds(handler=1.5, java=0.6))
    line("transacted send", api, "tx send", None, Bounds(plain=0.5), "send")
    line("transacted receive", api, "tx receive", None, Bounds(plain=0.5), "receive")
    line("SPI send", spi, "send", "send")
    line("SPI receive", spi, "receive", "receive")
    line("MessagingHandler send", handler, "send", "send")
    line("MessagingHandler recv", handler, "receive", "receive")
    if java is not None:
        line("qpid-jms send", java, "send", "send")
        line("qpid-jms receive", java, "receive", "receive")
    return met


class RateWatch:
    """Measures from its making: rate by the clock, processor time of this process a message."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def read(self) -> tuple[float, float]:
        """Return messages a second and seconds of processor time a message."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        return self._messages / wall, cpu / self._messages


# ---------------------------------------------------------------- jmsapi


class Counting(CompletionListener, MessageListener):
    """Counts answers and messages."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self.done = threading.Event()

    def _one(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.done.set()

    def on_completion(self, message: Message) -> None:
        """Count an answer."""
        self._one()

    def on_exception(self, message: Message, exception: Exception) -> None:
        """Fail the run."""
        raise exception

    def on_message(self, message: Message) -> None:
        """Read and count a message."""
        read(message)
        self._one()


def read(message: Message | None) -> None:
    """Read what was written."""
    if message is None or message.get_body(str) != TEXT or message.get_int_property("a") != 1:
        raise AssertionError("the wrong message")


def through_api(connection: Connection, queue: str, messages: int, figures: Figures) -> None:
    """Send and receive by the public API, each way there is."""
    figures.add("send", *send_all(connection, queue, messages))
    figures.add("listener", *listen(connection, queue, messages))
    send_all(connection, queue, messages)
    figures.add("receive", *receive_all(connection, queue, messages))
    send_all(connection, queue, messages)
    figures.add("lazy listener", *listen(connection, queue, messages, Session.DUPS_OK_ACKNOWLEDGE))
    send_all(connection, queue, messages)
    figures.add("lazy receive", *receive_all(connection, queue, messages, mode=Session.DUPS_OK_ACKNOWLEDGE))
    figures.add("tx send", *send_all(connection, queue, messages, batch=BATCH))
    figures.add("tx receive", *receive_all(connection, queue, messages, batch=BATCH))


def send_all(connection: Connection, queue: str, messages: int, batch: int = 0) -> tuple[float, float]:
    """Send, in transactions of ``batch`` if it is not 0."""
    with connection.create_session(transacted=batch > 0) as session:
        producer = session.create_producer(session.create_queue(queue))
        producer.delivery_mode = DeliveryMode.PERSISTENT
        counting = Counting(messages)
        watch = RateWatch(messages)
        for number in range(1, messages + 1):
            message = session.create_text_message(TEXT)
            message.set_int_property("a", 1)
            message.set_string_property("b", "two")
            message.set_double_property("c", 3.5)
            if not batch:
                producer.send(message, completion_listener=counting)
                continue
            producer.send(message)
            if number % batch == 0:
                session.commit()
        if batch:
            session.commit()
        elif not counting.done.wait(WAIT_S):
            raise TimeoutError("the sends were not answered")
        return watch.read()


def listen(connection: Connection, queue: str, messages: int, mode: int = Session.AUTO_ACKNOWLEDGE) -> tuple[float, float]:
    """Receive through a listener."""
    with connection.create_session(mode) as session:
        counting = Counting(messages)
        consumer = session.create_consumer(session.create_queue(queue))
        watch = RateWatch(messages)
        consumer.message_listener = counting
        if not counting.done.wait(WAIT_S):
            raise TimeoutError("the messages did not come")
        return watch.read()


def receive_all(
    connection: Connection, queue: str, messages: int, batch: int = 0, mode: int = Session.AUTO_ACKNOWLEDGE
) -> tuple[float, float]:
    """Receive in a loop, in transactions of ``batch`` if it is not 0."""
    with connection.create_session(Session.SESSION_TRANSACTED if batch else mode) as session:
        consumer = session.create_consumer(session.create_queue(queue))
        watch = RateWatch(messages)
        for number in range(1, messages + 1):
            read(consumer.receive(30_000))
            if batch and number % batch == 0:
                session.commit()
        if batch:
            session.commit()
        return watch.read()


def single_sends(connection: Connection, queue: str, sends: int = 500) -> float:
    """Return the median time of a confirmed send, in microseconds."""
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(queue))
        took: list[float] = []
        for _ in range(sends):
            message = session.create_text_message(TEXT)
            begin = time.perf_counter()
            producer.send(message)
            took.append(time.perf_counter() - begin)
        return statistics.median(took) * 1e6


def growth(connection: Connection, queue: str, messages: int) -> float:
    """Return how much the process grew after the first tenth of the messages, in MB."""
    part = max(1, messages // 10)
    before = 0.0
    for number in range(10):
        send_all(connection, queue, part)
        receive_all(connection, queue, part)
        if number == 0:
            before = resident()
    return resident() - before


def resident() -> float:
    """Return the memory this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# ---------------------------------------------------------------- the SPI


class ProviderEvents:
    """Events of the SPI, counted."""

    def __init__(self, expected: int) -> None:
        self.provider: Provider | None = None
        self.room = threading.Semaphore(WINDOW)
        self.sent, self.received = threading.Event(), threading.Event()
        self._unsent = self._unreceived = expected
        self._used = 0

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Read, settle and top up."""
        assert self.provider is not None
        self.provider.settle([delivery.tag for delivery in deliveries], Outcome.ACCEPTED)
        for delivery in deliveries:
            if delivery.envelope.body != TEXT or delivery.envelope.properties["a"] != 1:
                raise AssertionError("the wrong message")
        self._used += len(deliveries)
        self._unreceived -= len(deliveries)
        if self._used >= WINDOW // 2:
            self.provider.credit(consumer, self._used)
            self._used = 0
        if self._unreceived <= 0:
            self.received.set()

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Count answers."""
        self._unsent -= len(results)
        self.room.release(len(results))
        if self._unsent <= 0:
            self.sent.set()

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Fail the run."""
        raise cause

    def on_lost(self, cause: ProviderError) -> None:
        """Fail the run."""
        raise cause

    def on_resumed(self) -> None:
        """Hear of what cannot be: nothing reconnects here."""


def through_spi(url: str, queue: str, messages: int, figures: Figures) -> None:
    """Send and receive without the core."""
    parts = urlsplit(url)
    options = AmqpOptions.model_validate(
        {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port, "user": parts.username, "password": parts.password}
    )
    events = ProviderEvents(messages)
    provider = entry.create(options, SystemClock())
    events.provider = provider
    provider.open(events).result(WAIT_S)
    try:
        session = provider.open_session(transacted=False).result(WAIT_S)
        address = Address(DestinationKind.QUEUE, queue)
        producer = provider.open_producer(session, address).result(WAIT_S)
        watch = RateWatch(messages)
        for number in range(messages):
            envelope = PlainEnvelope(
                MessageKind.TEXT, address, TEXT, {"a": 1, "b": "two", "c": 3.5}, f"ID:benchmark-{number}", 1_700_000_000_000
            )
            events.room.acquire()
            provider.send(producer, envelope, None, number)
        events.sent.wait(WAIT_S)
        figures.add("send", *watch.read())
        consumer = provider.open_consumer(session, ConsumerSpec(address)).result(WAIT_S)
        watch = RateWatch(messages)
        provider.credit(consumer, WINDOW)
        events.received.wait(WAIT_S)
        figures.add("receive", *watch.read())
    finally:
        provider.close().result(WAIT_S)


# ---------------------------------------------------------------- others


def measured_handler(url: str, queue: str, messages: int, rounds: int) -> tuple[Figures, float]:
    """Run handler.py; return its figures and the median time of a blocking send."""
    parts = urlsplit(url)
    command = [
        sys.executable, str(HERE / "handler.py"), f"{parts.hostname}:{parts.port or 5672}", parts.username or "",
        parts.password or "", queue, str(messages), str(rounds), "500",
    ]  # fmt: skip
    lines = output(command)
    figures = Figures()
    for line in lines[:-1]:
        send, receive, send_cpu, receive_cpu = map(float, line.split())
        figures.add("send", send, send_cpu / messages)
        figures.add("receive", receive, receive_cpu / messages)
    return figures, float(lines[-1])


def measured_java(url: str, queue: str, messages: int, rounds: int) -> Figures | None:
    """Build and run Bench.java; None when that cannot be done here."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        print("LEFT OUT: qpid-jms, since there is no Maven or no JDK", file=sys.stderr)
        return None
    parts = urlsplit(url)
    with tempfile.TemporaryDirectory() as folder:
        jars = f"{folder}/jars"
        pom = str(HERE / "java" / "pom.xml")
        output(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"])
        output(["javac", "-cp", f"{jars}/*", "-d", folder, str(HERE / "java" / "Bench.java")])
        where = f"amqp://{parts.hostname}:{parts.port or 5672}"
        command = ["java", "-Xmx512m", "-cp", os.pathsep.join([folder, f"{jars}/*"]), "Bench", where, parts.username or ""]
        lines = output([*command, parts.password or "", queue, str(messages), str(rounds + JAVA_WARM_UP)])
    figures = Figures()
    for line in lines[JAVA_WARM_UP:]:
        send, receive = map(float, line.split())
        figures.add("send", send)
        figures.add("receive", receive)
    return figures


def output(command: list[str]) -> list[str]:
    """Run a program and return what it printed, by line."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-2000:]}")
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    sys.exit(main())
