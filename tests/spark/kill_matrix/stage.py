"""Runs one case of the matrix on one broker, and counts."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import jmsapi
from jmsapi_conformance.brokers import Broker

from .cases import Case
from .jobs import do

__all__ = ["Account", "InSession", "Program", "Stage"]

_ANSWER_S = 240.0
_HELD_S = 60.0
_TRIES = 6
_SUCCESSOR_S = 10.0
"""Longer than a query needs to come to its commit; a zombie that goes on earlier is a zombie all the same."""
_ROWS = 100
SOURCE = {
    "leadMessages": "150",
    "roundMessages": "100",
    "parallelism": "2",
    "maxMessagesPerBatch": "850",
    "pollTimeout": "500ms",
    # A busy machine: a claim that ends early does not come to where it is to die.
    "idleGap": "400ms",
}


@dataclass(frozen=True)
class Account:
    """What became of the messages of a case."""

    lost: int
    duplicated: int
    met: bool
    """The process came to the place where it was to die; what was to live on went on from there."""

    @property
    def text(self) -> str:
        """Show it."""
        return f"{self.lost}/{self.duplicated}" if self.met else "never came there"

    def keeps(self, case: Case) -> bool:
        """Tell whether what is promised holds."""
        return self.met and self.lost == 0 and (self.duplicated == 0 or case.job == "least")


class Driver(Protocol):
    """Does jobs, see ``jobs``."""

    crash_at: Path

    def begin(self, job: dict[str, Any]) -> None:
        """Begin a job; starts a program that has ended."""
        ...

    def poll(self) -> dict[str, Any] | None:
        """Return the answer when there is one; ``{"error": "killed"}`` when the program was killed."""
        ...


class InSession:
    """Does jobs in the session of a test; only what dies by itself can be killed there."""

    def __init__(self, spark: Any, crash_at: Path) -> None:
        self._spark = spark
        self._answer: dict[str, Any] | None = None
        self.crash_at = crash_at

    def begin(self, job: dict[str, Any]) -> None:
        """Do a job."""
        self._answer = do(self._spark, job)

    def poll(self) -> dict[str, Any] | None:
        """Return its answer."""
        return self._answer


class Program:
    """Does jobs in a program of its own, which may be killed.

    Args:
        folder: Where its programs write; each in a folder of its own, for one that was killed may still have children.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self.crash_at = folder / "crash_at"
        self.crash_at.mkdir(parents=True)

    def begin(self, job: dict[str, Any]) -> None:
        """Send a job."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()

    def poll(self) -> dict[str, Any] | None:
        """Return the answer when there is one."""
        try:
            line = self._lines.get(timeout=0.1)
        except queue.Empty:
            return None
        if line is None:
            self.close()
            return {"error": "killed", "rows": []}
        return json.loads(line.removeprefix("answer ")) if line.startswith("answer ") else None

    def _start(self) -> None:
        place = self._folder / uuid.uuid4().hex[:8]
        place.mkdir()
        (place / "crash_at").symlink_to(self.crash_at)
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(Path(__file__).with_name("driver.py")), str(place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Whoever interrupts the matrix ends its programs by name, not all of them by a signal of the terminal.
                start_new_session=True,
            )
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=_read, args=(self._process.stdout, self._lines), name="kill-matrix-reader")
        self._reader.start()

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            # The ids of its own machine and its own process.
            with contextlib.suppress(FileNotFoundError):
                for one in (self.crash_at / "driver").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(one), signal.SIGKILL)
            process.kill()
            process.wait(30)
        if self._reader is not None:
            self._reader.join(30)
        process.stdout.close()


def _read(stream: Any, lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


class Stage:
    """One case on one broker.

    Args:
        case: What to do.
        url: The broker, credentials included.
        driver: Does the jobs.
        folder: For all that the case writes.
        broker: One that may be killed, for cases that do.
    """

    def __init__(self, case: Case, url: str, driver: Driver, folder: Path, broker: Broker | None = None) -> None:
        self._case = case
        self._url = url
        self._driver = driver
        self._folder = folder
        self._broker = broker
        self._queue = f"kill.{uuid.uuid4().hex}"
        parts = urlsplit(url)
        self._port = parts.port
        place = {"url": f"{parts.scheme}://{parts.hostname}:{parts.port}", "queue": self._queue}
        if case.failover:
            place["url"] = f"failover:({place['url']})"
        if parts.username:
            place |= {"username": parts.username, "password": parts.password or ""}
        self._job: dict[str, Any] = {"kind": "source", "folder": str(folder), "partitions": 2}
        if case.job == "source":
            self._job["options"] = {**place, **SOURCE, **case.options}
        else:
            delivery = "exactly-once" if case.job == "once" else "at-least-once"
            self._job["kind"] = "sink"
            self._job["options"] = {**place, "delivery": delivery, "transactionMessages": str(_ROWS), **case.options}
        self._texts = [f"m{number:05d}" for number in range(case.messages)]
        self._rival: int | None = None

    def run(self) -> Account:
        """Run it to its end and count."""
        self._prepare()
        crash_at = self._driver.crash_at
        do_this = f"drop {self._port}" if self._case.do == "drop" else self._case.do
        for place in self._case.at:
            (crash_at / place).write_text(do_this, encoding="utf-8")
        if self._case.meanwhile == "stop":
            self._job["stop"] = str(crash_at / "held")
        error = self._do(self._job)
        self._job.pop("stop", None)
        self._job["partitions"] = self._case.replay_partitions
        tries = 0
        while error is not None:
            tries += 1
            if tries > _TRIES:
                raise RuntimeError(f"{self._case.name}: does not recover: {error}")
            error = self._do(self._job)
        self._release()
        if self._case.meanwhile:
            # What was given back only now.
            while (error := self._do(self._job)) is not None and tries < _TRIES:
                tries += 1
        found = self._delivered()
        marks = [f"met-{place}" for place in self._case.at] + ["went-on"] * (self._case.do in ("zombie", "drop"))
        met = all((crash_at / mark).exists() for mark in marks)
        for file in crash_at.iterdir():
            if file.name != "driver":
                file.unlink()
        counted, expected = Counter(found), Counter(self._texts)
        assert not counted.keys() - expected.keys(), "messages that nobody sent"
        return Account((expected - counted).total(), (counted - expected).total(), met)

    def _prepare(self) -> None:
        self._folder.mkdir(parents=True)
        if self._case.job == "source":
            with jmsapi.connection_factory(self._url).create_context(jmsapi.JMSContext.SESSION_TRANSACTED) as context:
                producer = context.create_producer()
                for text in self._texts:
                    producer.send(context.create_queue(self._queue), text)
                context.commit()
            return
        (self._folder / "in").mkdir()
        size = len(self._texts) // 4
        for number in range(4):
            text = "\n".join(self._texts[number * size : (number + 1) * size])
            (self._folder / "in" / f"{number}.txt").write_text(text, encoding="utf-8")

    def _do(self, job: dict[str, Any]) -> str | None:
        """Do a job; return how it failed."""
        return self._answer(job)["error"]

    def _answer(self, job: dict[str, Any]) -> dict[str, Any]:
        self._driver.begin(job)
        until = time.monotonic() + _ANSWER_S
        began = time.monotonic()
        held = self._driver.crash_at / "held"
        while (answer := self._driver.poll()) is None:
            if time.monotonic() > until:
                raise RuntimeError(f"{self._case.name}: no answer after {_ANSWER_S:.0f} s")
            if self._rival is None and held.exists() and self._case.do != "zombie":
                self._rival = int(held.read_text())
                with self._meanwhile():
                    self._go()
            elif self._rival is not None and self._case.job == "once" and time.monotonic() - began > _SUCCESSOR_S:
                # A zombie whose successor waits for what it holds.
                self._go()
        if self._rival is None and held.exists():
            self._rival = int(held.read_text())
        return answer

    @contextlib.contextmanager
    def _meanwhile(self) -> Iterator[None]:
        """Do what happens while a process waits, and after it goes on."""
        if self._case.meanwhile == "broker":
            assert self._broker is not None, "a broker to kill"
            self._broker.kill()
            yield
            self._broker.restart(ready_s=120)
            return
        if self._case.meanwhile == "other claim":
            self._until(lambda: any('"end":2' in slot.read_text() for slot in self._folder.glob("staging/b/*/*.slot")), 20)
        yield

    def _release(self) -> None:
        """Let a zombie go on to its end."""
        self._go()
        if self._rival is None or self._case.do != "zombie":
            return
        rival = self._rival
        if not self._until(lambda: not Path(f"/proc/{rival}").exists(), _HELD_S):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rival, signal.SIGKILL)

    def _go(self) -> None:
        (self._driver.crash_at / "go").touch()

    def _until(self, ready: Callable[[], bool], longest_s: float) -> bool:
        until = time.monotonic() + longest_s
        while time.monotonic() < until:
            with contextlib.suppress(FileNotFoundError):
                if ready():
                    return True
            time.sleep(0.05)
        return False

    def _delivered(self) -> list[str]:
        """Return what reached the sink, and what is left on the queue."""
        rows: list[str] = []
        if self._case.job == "source":
            rows = self._answer({"kind": "rows", "folder": str(self._folder)})["rows"]
        expected = len(self._texts) - len(rows)
        with jmsapi.connection_factory(self._url).create_context() as context:
            consumer = context.create_consumer(context.create_queue(self._queue))
            while (text := consumer.receive_body(str, 5_000 if expected > 0 else 700)) is not None:
                rows.append(text)
                expected -= 1
        shutil.rmtree(self._folder, ignore_errors=True)
        return rows
