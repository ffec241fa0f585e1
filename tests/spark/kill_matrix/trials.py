"""Rows of the matrix that need no kill: what the way to the broker, a clock or a folder does to a stream.

Planned and read as Spark does, in this process, with default options but for the sizes that make many batches.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options

from .stage import Account

sys.path.insert(0, str(Path(__file__).parent.parent))
from links import ROUNDS, Relay, account, breaking, dead_letters, read_through, sent

__all__ = ["TRIALS", "Trial"]

_HOUR_S = 3600


@dataclass(frozen=True)
class Trial:
    """One row."""

    row: int
    what: str
    run: Callable[[str, str, Path], Account]
    """Called with the broker's URL, one at which it can be browsed, and a folder."""

    @property
    def name(self) -> str:
        """Return a name for the trial."""
        return f"{self.row} {self.what}"


def _place(url: str, queue: str) -> dict[str, str]:
    parts = urlsplit(url)
    place = {"url": f"{parts.scheme}://{parts.hostname}:{parts.port}", "queue": queue}
    return place | ({"username": parts.username, "password": parts.password or ""} if parts.username else {})


def _left(url: str, queue: str) -> list[str]:
    found: list[str] = []
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(queue))
        while (text := consumer.receive_body(str, 2000)) is not None:
            found.append(text)
    return found


def links(
    url: str, browsed: str, folder: Path, *, silent_s: float, failover: bool, times: int = 25, messages: int = 4000
) -> Account:
    """Break the way to the broker so many times, at random moments."""
    queue = f"trial.{uuid.uuid4().hex}"
    texts = sent(url, queue, messages)
    with Relay(urlsplit(url).port or 0) as relay, breaking(relay, times, silent_s, seed=3) as over:
        options = _place(url, queue) | {"url": relay.url(url, failover=failover)}
        found = read_through(options, folder, over)
        met = relay.links > times / 2
    return Account(*account(texts, found, _left(url, queue), dead_letters(browsed, queue)), met)


def clock(url: str, browsed: str, folder: Path, *, ahead_s: int) -> Account:
    """Read with AvailableNow what a producer has sent whose clock is off; messages on the queue afterwards count as lost."""
    queue = f"trial.{uuid.uuid4().hex}"
    texts = sent(url, queue, 500)
    # Ours is off the other way.
    with mock.patch("jmsapi.spark.receiving.time.time_ns", partial(_off, time.time_ns, ahead_s)):
        now_ms = (time.time() - ahead_s) * 1000
        found = read_through(_place(url, queue), folder, lambda: True, until_ms=now_ms)
    return Account(*account(texts, found, []), met=True)


def _off(real: Callable[[], int], ahead_s: int) -> int:
    return real() - ahead_s * 10**9


def unshared(url: str, browsed: str, folder: Path) -> Account:
    """Let each task be tried first on a machine that has a folder of its own by that name."""
    queue = f"trial.{uuid.uuid4().hex}"
    texts = sent(url, queue, 1000)
    driver, worker = (
        Engine(read_options(SourceOptions, {**ROUNDS, **_place(url, queue), "stagingLocation": str(folder / name)}))
        for name in ("shared", "own")
    )
    worker.stream().initial()
    stream, refused, found = driver.stream(), 0, list[str]()
    offset = stream.initial()
    while (end := stream.latest(offset)) != offset:
        for work in stream.partitions(offset, end):
            try:
                list(worker.read(work, ("text",)))
            except JMSException as error:
                refused += error.error_code == "staging-unshared"
            found += [text for batch in driver.read(work, ("text",)) for text in batch.column("text").to_pylist()]
        stream.commit(end)
        offset = end
    for engine in (driver, worker):
        engine.receivers.close()
    return Account(*account(texts, found, _left(url, queue), dead_letters(browsed, queue)), met=refused > 1)


TRIALS = (
    *(
        Trial(
            row,
            f"{what}, 25 times at random{', failover: URL' if failover else ''}",
            partial(links, silent_s=s, failover=failover),
        )
        for row, what, s in (
            (18, "the link breaks", 0.0),
            (19, "the way to the broker goes silent for 0.15 s, then breaks", 0.15),
        )
        for failover in (False, True)
    ),
    Trial(20, "a producer's clock an hour ahead, AvailableNow", partial(clock, ahead_s=_HOUR_S)),
    Trial(20, "a producer's clock an hour behind, AvailableNow", partial(clock, ahead_s=-_HOUR_S)),
    Trial(21, "tasks on a machine that does not share the store", unshared),
)
