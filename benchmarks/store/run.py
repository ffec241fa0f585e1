"""What a stored broker does in a second, beside queue libraries over SQLite on the same work.

    python benchmarks/store/run.py [--messages N] [--open N] [--folder FOLDER]

| row | what is measured |
|---|---|
| transactions of 100 | PERSISTENT 1 KiB texts sent in transactions of 100, by one session and by four |
| single, one thread / 16 threads | PERSISTENT sends, each on disk before it returns |
| transfer | received from one queue and sent to another, in transactions of 100 |
| opening | a file with a million messages: time until the first message is read and all is closed, and memory kept |

``persist-queue`` and ``litequeue`` put the same texts; litequeue is set to ``synchronous = FULL`` as the others are, so each
puts every message on the disk before it says so. Threads share one queue, each as its manual says. The pace of single sends is
that of the disk's ``fsync``, which is measured, too.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jmsapi
import jmsapi_inproc
from jmsapi import JMSContext
from jmsapi_inproc.store.rows import COLUMNS
from jmsapi_inproc.store.schema import add_functions

TEXT = "x" * 1024
BATCH = 100
THREADS = 16


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--open", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jmsapi-bench-", dir=given.folder) as name:
        folder = Path(name)
        print(f"fsync {fsync_ms(folder):.2f} ms")
        # Few single ones: each waits for the disk.
        single, many = max(200, given.messages // 100), given.messages // 5
        ours = Jms(folder)
        batches = median(lambda: ours.batches(given.messages, 1))
        four = median(lambda: ours.batches(given.messages, 4))
        one = median(lambda: ours.singles(single, 1))
        sixteen = median(lambda: ours.singles(many, THREADS))
        transfer = ours.transfer(given.messages)
        others = [Persist(folder), Lite(folder)]
        best = {
            "batches": max(median(lambda other=other: other.batches(given.messages, 1)) for other in others),
            "four": max(median(lambda other=other: other.batches(given.messages, 4)) for other in others),
            "one": max(median(lambda other=other: other.singles(single, 1)) for other in others),
            "sixteen": max(median(lambda other=other: other.singles(single * 2, THREADS)) for other in others),
        }
        took, grown = opening(folder, given.open)
        rows = [
            ("transactions of 100, one session", batches, best["batches"], ""),
            ("transactions of 100, four sessions", four, best["four"], ""),
            ("single, one thread", one, best["one"], ""),
            ("single, 16 threads", sixteen, best["sixteen"], f"{sixteen / one:.1f} of one thread"),
            ("transfer in transactions of 100", transfer, 0.0, ""),
        ]
        print(f"{'':<36}{'a second':>10}{'best other':>12}{'ratio':>8}")
        for title, rate, other, note in rows:
            beside = f"{other:>12,.0f}{rate / other:>8.2f}" if other else ""
            print(f"{title:<36}{rate:>10,.0f}{beside}  {note}".rstrip())
        print(f"{f'opening {given.open:,} messages':<36}{took:>9.2f} s, {grown:.1f} MB more memory with the first message read")
    return 0


def median(run: Callable[[], float]) -> float:
    """Return the middle of three rates."""
    return statistics.median(run() for _ in range(3))


def fsync_ms(folder: Path, n: int = 50) -> float:
    """Return how long the disk takes for a page."""
    with (folder / "sync").open("wb", buffering=0) as file:
        begun = time.perf_counter()
        for _ in range(n):
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
        return (time.perf_counter() - begun) / n * 1000


def in_threads(n: int, work: Callable[[], None]) -> float:
    """Run work in threads side by side; return the seconds."""
    threads = [threading.Thread(target=work) for _ in range(n)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


class Jms:
    """A stored broker."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "broker.db"
        self._factory = jmsapi.connection_factory(f"inproc://{self._file}")

    def batches(self, messages: int, sessions: int) -> float:
        """Send in transactions."""
        each = messages // sessions // BATCH

        def work() -> None:
            with self._factory.create_context(JMSContext.SESSION_TRANSACTED) as context:
                producer, queue = context.create_producer(), context.create_queue("a")
                for _ in range(each):
                    for _ in range(BATCH):
                        producer.send(queue, TEXT)
                    context.commit()

        with self._factory.create_context() as kept:
            kept.create_queue("a")
            kept.start()
            return each * sessions * BATCH / in_threads(sessions, work)

    def singles(self, messages: int, threads: int) -> float:
        """Send one by one."""
        each = messages // threads

        def work() -> None:
            with self._factory.create_context() as context:
                producer, queue = context.create_producer(), context.create_queue("b")
                for _ in range(each):
                    producer.send(queue, TEXT)

        with self._factory.create_context() as kept:
            kept.start()
            return each * threads / in_threads(threads, work)

    def transfer(self, messages: int) -> float:
        """Receive and send in transactions."""
        with self._factory.create_context(JMSContext.SESSION_TRANSACTED) as context:
            producer, source, target = context.create_producer(), context.create_queue("a"), context.create_queue("c")
            consumer = context.create_consumer(source)
            begun = time.perf_counter()
            for _ in range(messages // BATCH):
                for _ in range(BATCH):
                    message = consumer.receive(30_000)
                    assert message is not None
                    producer.send(target, message)
                context.commit()
            return messages / (time.perf_counter() - begun)


class Persist:
    """persist-queue's FIFOSQLiteQueue."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = iter(range(1000))

    def _queue(self, auto_commit: bool) -> object:
        import persistqueue

        return persistqueue.SQLiteQueue(
            str(self._folder / f"persist-{next(self._numbers)}"), multithreading=True, auto_commit=auto_commit
        )

    def batches(self, messages: int, sessions: int) -> float:
        """Put and commit."""
        queue = self._queue(False)
        each, lock = messages // sessions // BATCH, threading.Lock()

        def work() -> None:
            for _ in range(each):
                with lock:  # its transaction is that of all threads
                    for _ in range(BATCH):
                        queue.put(TEXT)  # type: ignore[attr-defined]
                    queue.task_done()  # type: ignore[attr-defined]

        return each * sessions * BATCH / in_threads(sessions, work)

    def singles(self, messages: int, threads: int) -> float:
        """Put one by one."""
        queue = self._queue(True)
        each = messages // threads
        return each * threads / in_threads(threads, lambda: [queue.put(TEXT) for _ in range(each)] and None)  # type: ignore[attr-defined]


class Lite:
    """litequeue's LiteQueue."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = iter(range(1000))

    def _queue(self) -> object:
        from litequeue import LiteQueue

        queue = LiteQueue(str(self._folder / f"lite-{next(self._numbers)}.db"))
        queue.conn.execute("PRAGMA synchronous = FULL")
        return queue

    def batches(self, messages: int, sessions: int) -> float:
        """Put in transactions."""
        queue = self._queue()
        each, lock = messages // sessions // BATCH, threading.Lock()

        def work() -> None:
            for _ in range(each):
                with lock, queue.transaction("IMMEDIATE"):  # type: ignore[attr-defined]
                    for _ in range(BATCH):
                        queue.put(TEXT)  # type: ignore[attr-defined]

        return each * sessions * BATCH / in_threads(sessions, work)

    def singles(self, messages: int, threads: int) -> float:
        """Put one by one."""
        queue = self._queue()
        each, lock = messages // threads, threading.Lock()

        def work() -> None:
            for _ in range(each):
                with lock:
                    queue.put(TEXT)  # type: ignore[attr-defined]

        return each * threads / in_threads(threads, work)


OPENING = """
import sys, time
from pathlib import Path
import jmsapi

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def first(url):
    with jmsapi.connection_factory(url).create_context() as context:
        assert context.create_consumer(context.create_queue("a")).receive(30_000) is not None

with jmsapi.connection_factory(sys.argv[1] + ".small").create_context() as context:  # all that is imported when it is needed
    context.create_producer().send(context.create_queue("a"), "x")
first(sys.argv[1] + ".small")
before = resident()
begun = time.perf_counter()
first(sys.argv[1])
print(time.perf_counter() - begun, resident() - before)
"""


def opening(folder: Path, messages: int) -> tuple[float, float]:
    """Return the seconds until the first message of a large file is read, and by how many MB the process grew."""
    file = folder / "large.db"
    factory = jmsapi.connection_factory(f"inproc://{file}")
    with factory.create_context() as context:
        context.create_producer().send(context.create_queue("a"), "x" * 200)
    jmsapi_inproc.discard(file)
    # Copies of the first row, as many sends would have left them.
    database = sqlite3.connect(file)
    columns = [row[1] for row in database.execute("PRAGMA table_info(message)")][1:]
    copied = ", ".join(columns)
    add_functions(database)
    database.execute(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages}) "
        f"INSERT INTO message (key, {copied}) SELECT (SELECT min(key) FROM message) + n.i, {copied} FROM message, n"
    )
    database.execute(f"UPDATE message SET checksum = message_checksum({', '.join(COLUMNS)})")
    database.commit()
    database.close()
    done = subprocess.run([sys.executable, "-c", OPENING, f"inproc://{file}"], capture_output=True, text=True, check=True)
    took, grown = done.stdout.split()
    return float(took), float(grown) / 1e6


if __name__ == "__main__":
    raise SystemExit(main())
