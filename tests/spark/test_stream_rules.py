"""Rules of a stream over the in-process broker and a folder: whose staging area, what is kept, who shares a subscription."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from links import Relay

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.batch import ConsumeReader
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.staging import LocalStore, take
from jmsapi.spark.stream import BatchPlan, Stream
from jmsapi.testing import LoopbackServer

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


def test_a_task_on_a_machine_with_a_folder_of_its_own_consumes_nothing_and_says_why(url: str, tmp_path: Path) -> None:
    send(url, *(f"m{number}" for number in range(6)))
    with Source(url, tmp_path / "shared", leadMessages="2", parallelism="1") as driver, Source(url, tmp_path / "own") as worker:
        start = driver.stream.initial()
        works = driver.stream.partitions(start, driver.stream.latest(start))
        worker_area = LocalStore(tmp_path / "own")
        for _ in ("not there", "another one"):
            with pytest.raises(JMSException, match="on the machine") as caught:
                list(worker.engine.read(works[1], ["text"]))
            assert caught.value.error_code == "staging-unshared"
            take(worker_area)
        # Another attempt runs where the folder is shared.
        assert len([row for work in works for batch in driver.engine.read(work, ["text"]) for row in batch.to_pylist()]) == 6


def test_a_staging_area_that_vanishes_is_said_before_anything_is_consumed(url: str, tmp_path: Path) -> None:
    send(url, *(f"m{number}" for number in range(8)))
    mount, elsewhere = tmp_path / "mount", tmp_path / "elsewhere"
    with Source(url, mount, leadMessages="2", maxMessagesPerBatch="4") as source:
        first = source.stream.latest(source.stream.initial())
        found = source.read(source.stream.initial(), first)
        source.stream.commit(first)
        # A network folder that is not mounted any more: an empty folder of this machine is there.
        mount.rename(elsewhere)
        mount.mkdir()
        for _ in "attempts":
            with pytest.raises(JMSException, match="is not there on the machine") as caught:
                source.stream.latest(first)
            assert caught.value.error_code == "staging-unshared"
        assert not any(mount.iterdir())
        mount.rmdir()
        elsewhere.rename(mount)
        second = source.stream.latest(first)
        assert found + source.read(first, second) == [f"m{number}" for number in range(8)]


def test_starts_are_counted_without_a_file_for_each(url: str, tmp_path: Path) -> None:
    sources = [Source(url, tmp_path) for _ in range(5)]
    start = sources[0].stream.initial()
    for source in sources:
        source.stream.latest(start)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    with pytest.raises(JMSException, match="has started later"):
        send(url, "a")
        sources[0].stream.latest(start)
    for source in sources:
        source.engine.receivers.close()


def test_an_older_checkpoint_than_the_staging_area_fails_or_warns_and_goes_on(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[Offset] = []
    with Source(url, tmp_path) as source:
        ends.append(source.stream.initial())
        for text in "abcd":
            send(url, text)
            ends.append(source.stream.latest(ends[-1]))
            assert source.read(ends[-2], ends[-1]) == [text]
            source.stream.commit(ends[-1])
    send(url, "new")
    # The checkpoint comes back from a copy that was made after the second batch.
    with Source(url, tmp_path) as restored, pytest.raises(JMSException, match="older than the staging area") as caught:
        restored.stream.latest(ends[2])
    assert caught.value.error_code == "staging-sealed"
    with Source(url, tmp_path, failOnDataLoss="false") as restored:
        end = restored.stream.latest(ends[2])
        assert restored.read(ends[2], end) == ["new"]
    assert "going on without these rows" in caplog.text


@pytest.mark.parametrize("hours", [1, -1])
def test_available_now_leaves_nothing_because_a_clock_is_off(
    url: str, tmp_path: Path, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ours is behind by as much as the producer's is ahead.
    monkeypatch.setattr("jmsapi.spark.receiving.time.time_ns", lambda real=time.time_ns: real() - hours * 3_600 * 10**9)
    send(url, *(f"m{number}" for number in range(30)))
    found: list[str] = []
    with Source(url, tmp_path, leadMessages="5", maxMessagesPerBatch="5") as source:
        offset = source.stream.initial()
        source.stream.until((time.time() - hours * 3600) * 1000)
        while (end := source.stream.latest(offset)) != offset:
            found += source.read(offset, end)
            source.stream.commit(end)
            offset = end
    assert found == [f"m{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("rows", "claims", "caps"), [(5, 2, [3, 2]), (10, 8, [2, 2, 1, 1, 1, 1, 1, 1]), (7, 4, [2, 2, 2, 1]), (6, 0, [])]
)
def test_rows_are_shared_out_to_the_last(rows: int, claims: int, caps: list[int]) -> None:
    plan = BatchPlan.share(rows, claims)
    assert BatchPlan.decode(memoryview(plan.encode())) == plan
    assert [plan.cap_of(number) for number in range(claims)] == caps


def test_a_batch_is_no_larger_than_asked_for(url: str, tmp_path: Path) -> None:
    send(url, *(f"m{number}" for number in range(60)))
    sizes: list[int] = []
    with Source(url, tmp_path, leadMessages="5", maxMessagesPerBatch="16", parallelism="4") as source:
        offset = source.stream.initial()
        while (end := source.stream.latest(offset)) != offset:
            sizes.append(len(source.read(offset, end)))
            source.stream.commit(end)
            offset = end
    assert max(sizes) == 16 and sum(sizes) == 60


def test_a_claim_ends_in_time_though_messages_trickle_in(url: str, tmp_path: Path) -> None:
    stop = threading.Event()

    def trickle() -> None:
        with jmsapi.connection_factory(url).create_context() as context:
            while not stop.wait(0.01):
                context.create_producer().send(context.create_queue("q"), "x")

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        with Source(url, tmp_path, claimTimeout="500ms", pollTimeout="2s", idleGap="400ms", leadMessages="100000") as source:
            began = time.monotonic()
            source.stream.latest(source.stream.initial())
            assert source.stream.last.rows > 0
            assert time.monotonic() - began < 5, "two seconds for the first message, and half a second"
    finally:
        stop.set()
        thread.join(10)


def test_tasks_that_cannot_reach_the_broker_are_told_of_and_fail_the_query_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LoopbackServer() as server, Relay(int(server.url.rpartition(":")[2])) as relay:
        relay.closed = True
        send(server.url, *(f"m{number}" for number in range(40)))
        options = {"leadMessages": "2", "parallelism": "2", "brokerRetryTimeout": "200ms", "connectTimeout": "1s"}
        options |= {"pollTimeout": "20s", "firstWait": "10s", "idleGap": "1s"}  # for a slow machine
        with Source(server.url, tmp_path, **options) as driver, Source(relay.url(server.url), tmp_path, **options) as worker:
            offset = driver.stream.initial()
            with pytest.raises(JMSException, match="no task has reached the broker") as caught:
                for _ in range(8):
                    end = driver.stream.latest(offset)
                    works = driver.stream.partitions(offset, end)
                    assert sum(len(batch) for work in works for batch in worker.engine.read(work, ["text"])) == 2
                    offset = end
                    time.sleep(0.1)
            assert caught.value.error_code == "executors-cut-off"
            assert driver.stream.before["claimsInTrouble"] >= 1
            assert driver.stream.before["rows"] == 2
    assert "none of 2 tasks of batch 1 reached the broker" in caplog.text


def test_what_waiting_does_not_mend_fails_at_once_in_the_lead_and_in_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer() as server:
        send(server.url, *(f"m{number}" for number in range(6)))
        secret = {"username": "u", "password": "env:OF_THE_DRIVER", "leadMessages": "2", "parallelism": "1"}
        secret |= {"pollTimeout": "20s", "firstWait": "10s", "idleGap": "1s"}  # for a slow machine
        with Source(server.url, tmp_path, **secret) as source:
            start = source.stream.initial()
            with pytest.raises(JMSException, match="OF_THE_DRIVER is not set"):
                source.stream.latest(start)
            monkeypatch.setenv("OF_THE_DRIVER", "pw")
            works = source.stream.partitions(start, source.stream.latest(start))
            source.engine.receivers.close()
            monkeypatch.delenv("OF_THE_DRIVER")
            for _ in "attempts":
                with pytest.raises(JMSException, match="OF_THE_DRIVER is not set") as caught:
                    list(source.engine.read(works[1], ["text"]))
                assert caught.value.error_code == "missing-variable"
            # It was a machine without the variable; another attempt has it.
            monkeypatch.setenv("OF_THE_DRIVER", "pw")
            assert sum(len(batch) for batch in source.engine.read(works[1], ["text"])) == 4


def test_a_load_fails_when_the_broker_is_away_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with LoopbackServer() as server, Relay(int(server.url.rpartition(":")[2])) as relay:
        send(server.url, *(f"m{number}" for number in range(500)))
        relay.closed = True
        options = {
            "url": relay.url(server.url),
            "queue": "q",
            "readMode": "consume",
            "stagingLocation": str(tmp_path),
            "loadId": "monday",
            "parallelism": "1",
            "roundMessages": "100",
            "connectTimeout": "2s",
        }
        reader = ConsumeReader(read_options(SourceOptions, options), ("text",))
        with pytest.raises(JMSException) as caught:
            load(reader)
        assert caught.value.error_code == "connection"
        relay.closed = False

        def break_once(one: Relay) -> None:
            if one.down > 30_000:
                one.on_down = lambda _: None
                one.cut()

        relay.on_down = break_once
        with pytest.raises(JMSException):
            load(reader)
        assert sorted(load(reader)) == sorted(f"m{number}" for number in range(500))
        assert len(load(reader)) == 500, "fixed now"


def load(reader: ConsumeReader) -> list[str]:
    return [text for one in reader.partitions() for batch in reader.read(one) for text in batch.column("text").to_pylist()]
