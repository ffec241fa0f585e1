"""What the Spark source and sink cost beside plain loops on the same broker, as ratios taken in one run.

    python benchmarks/spark/run.py [--batches N] [--batch N] [--rounds N] [--only ROW,ROW] [URL ...]

Each URL is a broker; without one, the Classic over STOMP and the Artemis over AMQP that ``JMSAPI_<BROKER>_URLS`` name. The
double, a STOMP peer in a process of its own with an endless queue, is always measured: there broker and disk are not the limit.
Texts of 1 KiB, local[2]. A stream's rate is rows by the time of its triggers (``triggerExecution``), the first batch left out,
in which processes start; its sink is ``noop``. A missed bound is marked, and the exit code is 1 then.

| row | what is measured | bound |
|---|---|---|
| one claim | a stream on the double, ``parallelism=1``, rounds of 1000 | 20,000/s |
| two claims | the same with two claims, beside one | 1.3 |
| ingest | a stream that empties a queue, beside a loop in CLIENT_ACKNOWLEDGE, 200 a time | 0.8; AMQP: 0.6, or 20,000/s |
| latency | median ms from sending a lone message until a batch has it | 400 |
| claim | a claim's processor time a message, beside the loop of ingest, in one process without Spark | 1.15 |
| read all | processor time a row of reading what a claim staged, every column | 25 us |
| read three | the same with message_id, timestamp and text | 8 us |
| sink | ``write.format("jms")``, beside a producer with the same transactions of 1000 | 0.9 |
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jmsapi
import jmsapi.spark
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.rows import COLUMNS
from jmsapi.spark.schema import read_rows

TEXT = "x" * 1024
ROUND = 1000
# As many as Classic hands out before it waits for an acknowledgement: a plain loop of more would stall there.
ACKNOWLEDGED = 200
WAIT_S = 300.0
LONE = 11
DOUBLE = Path(__file__).with_name("double.py")


@dataclass(frozen=True)
class SparkRow:
    """One line: a figure and what it is held against, by a bound from below or above."""

    name: str
    ours: float
    base: float = 0.0
    least: float | None = None
    """Of the ratio; of the figure itself without a base."""
    enough: float | None = None
    """A figure that is enough whatever the ratio."""
    most: float | None = None
    unit: str = "/s"

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        if self.most is not None:
            return self.ours <= self.most * (self.base or 1.0)
        if self.enough is not None and self.ours >= self.enough:
            return True
        return self.least is None or self.ours >= self.least * (self.base or 1.0)

    def __str__(self) -> str:
        base = f"base {self.base:>9,.0f}{self.unit}" if self.base else " " * 16
        ratio = f"{self.ours / self.base:>6.2f} x" if self.base else " " * 8
        bound = self.most if self.most is not None else self.least
        words = "" if bound is None else f"   bound {bound:,g}{'' if self.met else ' MISSED'}"
        return f"  {self.name:<12} {base}   jmsapi {self.ours:>9,.0f}{self.unit} {ratio}{words}"


class BenchmarkQueue:
    """A broker and a queue of its own on it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.amqp = parts.scheme == "amqp"
        self.queue = f"bench.{uuid.uuid4().hex}"
        self.options = {"url": f"{parts.scheme}://{parts.hostname}:{parts.port}", "queue": self.queue}
        if parts.username is not None:
            self.options |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}

    def fill(self, messages: int) -> float:
        """Send texts in transactions of 1000 and return the rate."""
        factory = jmsapi.connection_factory(self.url)
        with factory.create_context(session_mode=jmsapi.JMSContext.SESSION_TRANSACTED) as context:
            producer, queue = context.create_producer(), context.create_queue(self.queue)
            begin = time.perf_counter()
            for number in range(messages):
                producer.send(queue, TEXT)
                if number % ROUND == ROUND - 1:
                    context.commit()
            context.commit()
            return messages / (time.perf_counter() - begin)

    def loop(self, messages: int) -> float:
        """Receive and read texts, acknowledged 200 at a time, and return the rate."""
        factory = jmsapi.connection_factory(self.url, prefetch=ROUND)
        with factory.create_context(session_mode=jmsapi.JMSContext.CLIENT_ACKNOWLEDGE) as context:
            consumer = context.create_consumer(context.create_queue(self.queue))
            begin = time.perf_counter()
            for number in range(messages):
                message = consumer.receive(WAIT_S * 1000)
                assert message is not None, "messages are missing"
                message.get_body(str)
                if number % ACKNOWLEDGED == ACKNOWLEDGED - 1:
                    context.acknowledge()
            context.acknowledge()
            return messages / (time.perf_counter() - begin)

    def loop_cost(self, messages: int) -> float:
        """Return the processor time of the loop, in microseconds a message."""
        self.fill(messages)
        factory = jmsapi.connection_factory(self.url, prefetch=ROUND)
        with factory.create_context(session_mode=jmsapi.JMSContext.CLIENT_ACKNOWLEDGE) as context:
            consumer = context.create_consumer(context.create_queue(self.queue))
            begin = time.process_time()
            for number in range(messages):
                message = consumer.receive(timeout_ms=WAIT_S * 1000)
                assert message is not None, "messages are missing"
                message.get_body(str)
                if number % ACKNOWLEDGED == ACKNOWLEDGED - 1:
                    context.acknowledge()
            context.acknowledge()
            return (time.process_time() - begin) / messages * 1e6

    def claim_costs(self, messages: int) -> list[float]:
        """Return the processor time of a claim, and of reading its rows with all columns and with three; in microseconds each."""
        self.fill(messages)
        three = ("message_id", "timestamp", "text")
        with tempfile.TemporaryDirectory(prefix="jmsapi-bench-") as folder:
            given = {**self.options, "stagingLocation": f"{folder}/staging", "roundMessages": str(ROUND), "idleGap": "5s"}
            engine = Engine(read_options(SourceOptions, {**given, "maxBytesPerBatch": "1g", "claimTimeout": "300s"}))
            engine.log.open_batch(1)
            times = [time.process_time()]
            assert engine.claim.run(1, 0, messages, first_wait_ms=WAIT_S * 1000).rows == messages
            times.append(time.process_time())
            engine.receivers.close()
            files = engine.log.content(1, 0)
            sum(len(batch) for batch in read_rows(files[:1], 1, 0, COLUMNS, "PERMISSIVE"))  # modules are loaded
            times.append(time.process_time())
            for columns in (COLUMNS, three):
                assert sum(len(batch) for batch in read_rows(files, 1, 0, columns, "PERMISSIVE")) == messages
                times.append(time.process_time())
        spent = [after - before for before, after in itertools.pairwise(times)]
        return [seconds / messages * 1e6 for seconds in (spent[0], *spent[2:])]


@contextmanager
def stream(spark: SparkSession, options: dict[str, str], write: Callable[[Any], Any]) -> Iterator[Any]:
    """Run a stream with staging area and checkpoint of its own."""
    folder = Path(tempfile.mkdtemp(prefix="jmsapi-bench-"))
    frame = spark.readStream.format("jms").options(**options, stagingLocation=f"{folder}/staging").load()
    query = write(frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint")).start()
    try:
        yield query
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)


def rate_of(query: Any, wanted: Callable[[list[Any]], bool]) -> float:
    """Wait for batches and return rows a second of all but the first."""
    deadline = time.monotonic() + WAIT_S
    batches: list[Any] = []
    while not wanted(batches):
        assert time.monotonic() < deadline, f"only {[batch['numInputRows'] for batch in batches]} rows"
        assert not query.awaitTermination(0.2), "the stream ended"
        batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
    later = batches[1:]
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in later) / 1000
    return float(sum(batch["numInputRows"] for batch in later)) / seconds


def on_double(spark: SparkSession, port: str, claims: int, size: int, batches: int) -> float:
    """Return the rate of a stream on the double."""
    options = {
        "url": f"stomp://127.0.0.1:{port}",
        "queue": "q",
        "parallelism": str(claims),
        "roundMessages": str(ROUND),
        "leadMessages": str(ROUND),
        "maxMessagesPerBatch": str(claims * size + ROUND),
        "claimTimeout": "60s",
    }
    with stream(spark, options, lambda writer: writer.format("noop")) as query:
        return rate_of(query, lambda done: len(done) > batches)


def ingest(spark: SparkSession, place: BenchmarkQueue, size: int, batches: int) -> float:
    """Return the rate of a stream that empties a queue."""
    options = place.options | {"parallelism": "2", "maxMessagesPerBatch": str(size), "roundMessages": str(ROUND)}
    messages = size * (batches + 1)
    place.fill(messages)
    with stream(spark, options, lambda writer: writer.format("noop")) as query:
        return rate_of(query, lambda done: sum(batch["numInputRows"] for batch in done) >= messages)


def looped(place: BenchmarkQueue, size: int, batches: int) -> float:
    """Return the rate of the plain loop on as many messages."""
    messages = size * (batches + 1)
    place.fill(messages)
    return place.loop(messages)


def latency(spark: SparkSession, place: BenchmarkQueue) -> float:
    """Return the median of the milliseconds from sending a message until a batch has it."""
    seen = threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        if batch.count():
            seen.set()

    times: list[float] = []
    with (
        stream(spark, place.options, lambda writer: writer.foreachBatch(take)),
        jmsapi.connection_factory(place.url).create_context() as context,
    ):
        producer, queue = context.create_producer(), context.create_queue(place.queue)
        for _ in range(LONE):
            seen.clear()
            begin = time.perf_counter()
            producer.send(queue, TEXT)
            assert seen.wait(WAIT_S), "a lone message did not arrive"
            times.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.5)  # what is measured is an idle stream
    return statistics.median(times[1:])


def sink(spark: SparkSession, place: BenchmarkQueue, messages: int) -> float:
    """Return the rate of a batch write with two tasks; the queue is emptied afterwards."""
    rows = spark.range(messages, numPartitions=2).select(F.lit(TEXT).alias("text"))
    begin = time.perf_counter()
    rows.write.format("jms").options(**place.options, transactionMessages=str(ROUND)).mode("append").save()
    rate = messages / (time.perf_counter() - begin)
    place.loop(messages)
    return rate


def produced(place: BenchmarkQueue, messages: int) -> float:
    """Return the rate of a plain producer; the queue is emptied afterwards."""
    rate = place.fill(messages)
    place.loop(messages)
    return rate


def medians(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """Take figures in turn, several times, and return the median of each."""
    figures = [[measure() for measure in measures] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*figures, strict=True)]


def session(folder: str) -> SparkSession:
    """Start Spark on two cores."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.python.authenticate.socketTimeout": "120s",
    }
    builder: Any = SparkSession.builder
    spark: SparkSession = builder.master("local[2]").appName("benchmark").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    jmsapi.spark.register(spark)
    return spark


def given() -> Iterator[str]:
    """Return the brokers of the environment that the bounds speak of."""
    for broker, scheme in (("CLASSIC", "stomp"), ("ARTEMIS", "amqp")):
        for url in os.environ.get(f"JMSAPI_{broker}_URLS", "").split(","):
            if url.startswith(f"{scheme}:"):
                yield url


def main() -> int:
    """Measure and print the table; 1 when a bound was missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--batches", type=int, default=3, metavar="N", help="batches that count, beside the first")
    parser.add_argument(
        "--batch", type=int, default=20_000, metavar="N", help="messages of a claim on the double, of a batch elsewhere"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each figure is taken")
    parser.add_argument("--only", metavar="ROW,ROW", help="measure these rows only: double, ingest, cost, latency, sink")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else ["double", "ingest", "cost", "latency", "sink"]
    size, batches, rounds = options.batch, options.batches, options.rounds
    met = True

    def show(row: SparkRow) -> None:
        nonlocal met
        met &= row.met
        print(row, flush=True)

    with tempfile.TemporaryDirectory(prefix="jmsapi-bench-") as folder:
        spark = session(folder)
        if "double" in only:
            print("double", flush=True)
            with subprocess.Popen([sys.executable, str(DOUBLE)], stdout=subprocess.PIPE, text=True) as peer:
                assert peer.stdout is not None
                port = peer.stdout.readline().strip()
                on_double(spark, port, 1, ROUND, 1)  # Spark compiles what it runs often
                one, two = medians(rounds, *(partial(on_double, spark, port, claims, size, batches) for claims in (1, 2)))
                peer.terminate()
            show(SparkRow("one claim", one, least=20_000))
            show(SparkRow("two claims", two, one, least=1.3))
        for url in options.urls or list(given()):
            place = BenchmarkQueue(url)
            with jmsapi.connection_factory(url).create_connection() as connection:
                meta = connection.meta_data
                print(f"{urlsplit(url).scheme} on {meta.jms_provider_name} {meta.provider_version}", flush=True)
            if "ingest" in only:
                base, ours = medians(rounds, partial(looped, place, size, batches), partial(ingest, spark, place, size, batches))
                show(SparkRow("ingest", ours, base, least=0.6 if place.amqp else 0.8, enough=20_000 if place.amqp else None))
            if "cost" in only:
                pairs = [(place.loop_cost(size), *place.claim_costs(size)) for _ in range(rounds)]
                base, claim, whole, three = map(statistics.median, zip(*pairs, strict=True))
                show(SparkRow("claim", claim, base, most=1.15, unit=" us"))
                show(SparkRow("read all", whole, most=25, unit=" us"))
                show(SparkRow("read three", three, most=8, unit=" us"))
            if "latency" in only:
                show(SparkRow("latency", latency(spark, place), most=400, unit=" ms"))
            if "sink" in only:
                sink(spark, place, ROUND)  # processes start
                base, ours = medians(rounds, partial(produced, place, size), partial(sink, spark, place, size))
                show(SparkRow("sink", ours, base, least=0.9))
        spark.stop()
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
