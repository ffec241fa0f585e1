"""Proof that a stored broker loses and doubles nothing, whatever becomes of its process or its disk.

    python -m tests.stress.store_proof [--kills N] [--messages N]      (make store-proof)

| row | what is done | what must be |
|---|---|---|
| transfer | kill -9 at random moments of a transfer in transactions, to and fro | each message in one of the queues, once |
| sends | kill -9 at random moments of single sends | all that were confirmed, at most one that was not |
| XA | kill -9 at random moments of a two-phase transfer to a SQLite table | each message in queue or table, once |
| full disk | a file system of 96 MiB, filled; half taken out, twice | all that was confirmed, nothing that was refused |

The disk is that of the temporary folder. A process that is killed takes its memory with it, not what it has written: this is
about the order of writing, and not about what a disk does with a lost supply.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection as End
from pathlib import Path

import jmsapi
from jmsapi import JMSContext, JMSError, Queue, TextMessage
from tests.stress.store_xa import settle, table_of, transfer_by_xa

PATIENCE_MS = 20_000


def main() -> int:
    """Run all rows and print the table; 1 when something was lost or doubled."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}")
    bad = 0
    print(f"{'':<12}{'kills':>7}{'messages':>10}{'lost':>6}{'doubled':>9}{'seconds':>9}", flush=True)
    for name, row in (("transfer", transfer), ("sends", sends), ("XA", xa), ("full disk", full_disk)):
        with tempfile.TemporaryDirectory(prefix="jmsapi-proof-") as folder:
            begun = time.monotonic()
            try:
                kills, messages, lost, doubled = row(Path(folder), options.kills, options.messages, rng)
            except LeftOut as why:
                print(f"{name:<12}LEFT OUT: {why}")
                continue
            bad += lost + doubled
            seconds = time.monotonic() - begun
            print(f"{name:<12}{kills:>7}{messages:>10}{lost:>6}{doubled:>9}{seconds:>9.1f}", flush=True)
    return 1 if bad else 0


class LeftOut(Exception):
    """A row that cannot be run here."""


Found = tuple[int, int, int, int]
"""Kills, messages, lost, doubled."""


def context(file: Path, mode: int = JMSContext.AUTO_ACKNOWLEDGE) -> JMSContext:
    """Connect to the broker of a file."""
    return jmsapi.connection_factory(f"inproc://{file}").create_context(mode)


def fill(file: Path, name: str, messages: int) -> None:
    """Send numbers to a queue."""
    with context(file, JMSContext.SESSION_TRANSACTED) as session:
        producer, queue = session.create_producer(), session.create_queue(name)
        for i in range(messages):
            producer.send(queue, str(i))
            if i % 500 == 499:
                session.commit()
        session.commit()


def drain(file: Path, *names: str) -> Counter[int]:
    """Take everything from queues and count each number."""
    found: Counter[int] = Counter()
    with context(file, JMSContext.SESSION_TRANSACTED) as session:
        for name in names:
            consumer = session.create_consumer(session.create_queue(name))
            while (message := consumer.receive_no_wait()) is not None:
                assert isinstance(message, TextMessage)
                found[int(message.text or "")] += 1
            session.commit()
    return found


def verdict(kills: int, messages: int, found: Counter[int], wanted: int) -> Found:
    """Compare what is there with the numbers from 0."""
    lost = sum(number not in found for number in range(wanted))
    return kills, messages, lost, sum(count - 1 for count in found.values())


def killed(work: Callable[[End], None], delay: float) -> list[int]:
    """Run work in a process of its own and kill it; return what it said it had done.

    It says -1 when it begins.
    """
    ours, theirs = Pipe()
    child = os.fork()
    if not child:
        ours.close()
        try:
            work(theirs)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    theirs.close()
    said: list[int] = []
    try:
        said.append(ours.recv())
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        while True:
            said.append(ours.recv())
    except EOFError:
        pass
    finally:
        ours.close()
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, "the process failed by itself"
    return said[1:]


def transfer(folder: Path, kills: int, messages: int, rng: random.Random) -> Found:
    """Move messages from one queue to the other and back, and kill the process in between."""
    file = folder / "broker.db"
    fill(file, "a", messages)
    for _ in range(kills):
        size = rng.choice((1, 10, 100))

        def work(end: End, size: int = size) -> None:
            with context(file, JMSContext.SESSION_TRANSACTED) as session:
                end.send(-1)
                ways = [("a", "b"), ("b", "a")]
                while True:
                    for source, target in ways:
                        move(session, session.create_queue(source), session.create_queue(target), size)

        killed(work, rng.expovariate(1 / 0.15))
    return verdict(kills, messages, drain(file, "a", "b"), messages)


def move(session: JMSContext, source: Queue, target: Queue, size: int) -> None:
    """Move everything, a few in each transaction."""
    producer = session.create_producer()
    with session.create_consumer(source) as consumer:
        while True:
            for _ in range(size):
                message = consumer.receive_no_wait()
                if message is None:
                    session.commit()
                    return
                producer.send(target, message)
            session.commit()


def sends(folder: Path, kills: int, messages: int, rng: random.Random) -> Found:
    """Send one by one and kill the process in between."""
    file = folder / "broker.db"
    confirmed: set[int] = set()
    sent = 0
    for _ in range(kills):

        def work(end: End, first: int = sent) -> None:
            with context(file) as session:
                producer, queue = session.create_producer(), session.create_queue("q")
                end.send(-1)
                number = first
                while True:
                    producer.send(queue, str(number))
                    end.send(number)
                    number += 1

        said = killed(work, rng.expovariate(1 / 0.1))
        # One more may have been written whose confirmation was not told any more: its number is not used again.
        sent = (said[-1] if said else sent - 1) + 2
        confirmed.update(said)
    found = drain(file, "q")
    return kills, len(confirmed), len(confirmed - set(found)), sum(count - 1 for count in found.values())


def xa(folder: Path, kills: int, messages: int, rng: random.Random) -> Found:
    """Move messages from a queue to a table under two-phase commit, and kill the process in between."""
    file, table = folder / "broker.db", folder / "second.db"
    fill(file, "a", messages)

    def work(end: End) -> None:
        transfer_by_xa(file, table, "a", lambda: end.send(-1))

    done = 0
    for _ in range(kills):
        killed(work, rng.expovariate(1 / 0.15))
        done += 1
    settle(file, table)
    return verdict(done, messages, drain(file, "a") + Counter(table_of(table)), messages)


def full_disk(folder: Path, _kills: int, _messages: int, rng: random.Random) -> Found:
    """Fill a small file system, see sends refused, take half out without any more room and with some, and look."""
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    ):
        raise LeftOut("a file system of its own can be mounted by root only")
    try:
        file, ballast = folder / "broker.db", folder / "ballast"
        confirmed: list[int] = []
        refused = number = 0
        with context(file) as session:
            producer, queue = session.create_producer(), session.create_queue("q")
            for makes_room in (False, True):
                with contextlib.suppress(OSError):
                    ballast.write_bytes(b"x" * rng.randrange(24_000_000))
                refusals = 0
                while refusals < 5:
                    try:
                        producer.send(queue, str(number).ljust(50_000))
                        confirmed.append(number)
                    except JMSError:
                        refusals += 1
                        refused += 1
                    number += 1
                if makes_room:
                    ballast.unlink()
                consumer = session.create_consumer(queue)
                for _ in range(len(confirmed) // 2):
                    message = consumer.receive(PATIENCE_MS)
                    assert isinstance(message, TextMessage)
                    confirmed.remove(int(message.text or ""))
                consumer.close()
        assert refused, "the disk was never full"
        found = drain(file, "q")
        lost = sum(one not in found for one in confirmed)
        return 0, number, lost, sum(found.values()) - sum(one in found for one in confirmed)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
