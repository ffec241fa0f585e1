"""Rules of a stream over the in-process broker and a folder: whose staging area, what is kept, who shares a subscription."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.staging import LocalStore
from jmsapi.spark.stream import Stream

QUICK = {"pollTimeout": "3ms", "firstWait": "3ms", "idleGap": "3ms", "parallelism": "2"}
Offset = dict[str, Any]


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def url() -> Iterator[str]:
    url = f"inproc://rules-{uuid.uuid4().hex}"
    # The broker lives as long as somebody is connected.
    with jmsapi.connection_factory(url).create_context():
        yield url


def send(url: str, *texts: str, topic: bool = False) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        for text in texts:
            context.create_producer().send(context.create_topic("t") if topic else context.create_queue("q"), text)


class Source:
    """A driver and its tasks, in one process."""

    def __init__(self, url: str, folder: Path, **options: str) -> None:
        place = {} if "topic" in options else {"queue": "q"}
        given = {"url": url, **QUICK, **place, **options}
        self.engine = Engine(SourceOptions.model_validate(given), LocalStore(folder))
        self.stream: Stream[Any] = self.engine.stream()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.receivers.close()

    def read(self, start: Offset, end: Offset) -> list[str]:
        """Read a batch, one task after the other."""
        works = self.stream.partitions(start, end)
        batches = [batch for work in works for batch in self.engine.read(work, ["text"])]
        return [text for batch in batches for text in batch.column("text").to_pylist()]


def test_a_new_checkpoint_on_a_used_staging_area_is_refused_or_adopts_what_is_staged(url: str, tmp_path: Path) -> None:
    send(url, "a", "b")
    with Source(url, tmp_path) as first:
        start = first.stream.initial()
        end = first.stream.latest(start)
        assert first.read(start, end) == ["a", "b"]
    # The checkpoint is deleted before any sink has the rows; they are acknowledged.
    send(url, "c")
    with Source(url, tmp_path) as again:
        start = again.stream.initial()
        with pytest.raises(JMSException, match="onStagingReuse=adopt") as caught:
            again.stream.latest(start)
        assert caught.value.error_code == "staging-reused"
    with Source(url, tmp_path, onStagingReuse="adopt") as heir:
        start = heir.stream.initial()
        end = heir.stream.latest(start)
        assert heir.read(start, end) == ["a", "b"]
        last = heir.stream.latest(end)
        assert heir.read(end, last) == ["c"]


def test_a_lead_that_no_checkpoint_knows_is_delivered_by_the_next_start(url: str, tmp_path: Path) -> None:
    send(url, "a")
    with Source(url, tmp_path) as first:
        first.stream.latest(first.stream.initial())
    # Killed before Spark wrote the offset: its first checkpoint is still to come.
    with Source(url, tmp_path) as again:
        start = again.stream.initial()
        assert again.read(start, again.stream.latest(start)) == ["a"]


def test_batches_that_are_kept_can_be_read_again_and_older_ones_fail_or_warn(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[Offset] = []
    with Source(url, tmp_path, keepBatches="1") as source:
        ends.append(source.stream.initial())
        for text in "abc":
            send(url, text)
            ends.append(source.stream.latest(ends[-1]))
            assert source.read(ends[-2], ends[-1]) == [text]
            source.stream.commit(ends[-1])
        assert source.read(ends[2], ends[3]) == ["c"], "sealed, and kept"
        with pytest.raises(JMSException, match="older than the staging area") as caught:
            source.read(ends[1], ends[2])
        assert caught.value.error_code == "staging-sealed"
    assert len(list((tmp_path / "b").iterdir())) == 1
    with (
        Source(url, tmp_path, keepBatches="1", failOnDataLoss="false") as source,
        caplog.at_level(logging.WARNING, "jmsapi.spark"),
    ):
        assert source.read(ends[1], ends[3]) == ["c"]
    assert "going on without these rows" in caplog.text


def test_two_queries_on_one_staging_area_notice_each_other(url: str, tmp_path: Path) -> None:
    send(url, "a")
    with Source(url, tmp_path) as one, Source(url, tmp_path) as two:
        start = one.stream.initial()
        end = one.stream.latest(start)
        assert one.read(start, end) == ["a"]
        send(url, "b")
        assert two.read(start, end) == ["a"], "a restart of the same query, from the same checkpoint"
        with pytest.raises(JMSException, match="another query uses this staging area") as caught:
            one.stream.latest(end)
        assert caught.value.error_code == "staging-shared"
        assert two.read(end, two.stream.latest(end)) == ["b"]


def test_claims_share_a_durable_subscription(url: str, tmp_path: Path) -> None:
    options = {"topic": "t", "subscription": "spark", "leadMessages": "2", "roundMessages": "2", "maxMessagesPerBatch": "8"}
    found: list[str] = []
    with Source(url, tmp_path, **options) as source:
        start = source.stream.initial()
        send(url, "before anybody was subscribed", topic=True)
        assert source.stream.latest(start) == start, "the first look makes the subscription"
        send(url, *(f"m{number}" for number in range(10)), topic=True)
        claims: list[int] = []
        while (end := source.stream.latest(start)) != start:
            claims.append(end["claims"])
            found += source.read(start, end)
            source.stream.commit(end)
            start = end
    assert sorted(found) == [f"m{number}" for number in range(10)]
    assert max(claims) == 2, "several claims at a time"
