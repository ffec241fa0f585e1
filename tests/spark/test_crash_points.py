"""A crash before every single step, over the in-process broker and a folder: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.staging import LocalStore


class Crash(BaseException):
    """The process ends here."""


class Checkpoint:
    """What Spark and a sink keep over restarts of a driver that does one thing at a time."""

    def __init__(self, options: SourceOptions, folder: Path) -> None:
        self.options = options
        self.store = LocalStore(folder)
        self.offsets: list[dict[str, Any]] = []
        self.commits: set[int] = set()
        self.sink: dict[int, list[str]] = {}

    def run(self, on_step: Callable[..., None]) -> None:
        """Start a driver; it ends when nothing more comes, or by a crash."""
        engine = Engine(self.options, self.store, on_step)
        try:
            self._drive(engine, on_step)
        finally:
            engine.receivers.close()

    def _drive(self, engine: Engine, on_step: Callable[..., None]) -> None:
        stream = engine.stream()
        last = len(self.offsets) - 1
        if last >= 0 and last not in self.commits:
            self._batch(engine, stream, self.offsets[last - 1] if last else stream.initial(), last)
        while True:
            start = self.offsets[-1] if self.offsets else stream.initial()
            end = stream.latest(start)
            if stream.last.trouble is not None:
                raise stream.last.trouble
            if end == start:
                return
            on_step("log the offset", end["seq"], 0, 0)
            self.offsets.append(end)
            if len(self.offsets) > 1:
                on_step("seal", end["seq"], 0, 0)
                stream.commit(self.offsets[-2])
            self._batch(engine, stream, start, len(self.offsets) - 1)

    def _batch(self, engine: Engine, stream: Any, start: dict[str, Any], number: int) -> None:
        rows: list[str] = []
        for work in stream.partitions(start, self.offsets[number]):
            for batch in Engine(self.options, self.store, engine.on_step).read(work, ["text"]):
                rows += batch.column("text").to_pylist()
        engine.on_step("write the sink", number, 0, 0)
        assert self.sink.setdefault(number, rows) == rows, "a replay is the same"
        engine.on_step("commit", number, 0, 0)
        self.commits.add(number)


OPTIONS = {
    "queue": "q",
    "leadMessages": "3",
    "roundMessages": "2",
    "parallelism": "2",
    "maxMessagesPerBatch": "7",
    "pollTimeout": "2ms",
    "firstWait": "2ms",
    "idleGap": "2ms",
}
MESSAGES = [f"m{number}" for number in range(10)]


def crash(folder: Path, at: int) -> str | None:
    """Deliver everything, with a crash before one step; return its name, or None when there are not so many."""
    url = f"inproc://crash-{uuid.uuid4().hex}"
    checkpoint = Checkpoint(SourceOptions.model_validate({"url": url, **OPTIONS}), folder)
    names: list[str] = []

    def once(name: str, *_: int) -> None:
        names.append(name)
        if len(names) == at:
            raise Crash

    # An in-process broker lives as long as somebody is connected.
    with jmsapi.connection_factory(url).create_context() as context:
        producer = context.create_producer()
        for message in MESSAGES:
            producer.send(context.create_queue("q"), message)
        try:
            checkpoint.run(once)
        except Crash:
            checkpoint.run(lambda *_: None)
    delivered = sorted(row for rows in checkpoint.sink.values() for row in rows)
    assert delivered == sorted(MESSAGES), f"crashed before step {at}, {names[-1]}"
    return names[at - 1] if at <= len(names) else None


@pytest.mark.timeout(300)
def test_a_crash_before_any_step_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Processes crash here, the machine does not: nothing need reach the disk.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    steps: list[str] = []
    while (name := crash(tmp_path / str(len(steps)), len(steps) + 1)) is not None:
        steps.append(name)
    assert set(steps) >= {"connect", "write", "append", "acknowledge", "confirm", "end", "plan", "read", "seal", "commit"}
    assert len(steps) > 45
