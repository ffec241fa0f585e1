"""The exactly-once sink over the in-process broker and a folder: a crash before every step, rivals, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi import Session
from jmsapi.errors import JMSException
from jmsapi.spark.ledger import SinkLedger, SinkProgress, _Move
from jmsapi.spark.options import SinkOptions
from jmsapi.spark.outbox import File, JobRows, Outbox
from jmsapi.spark.staging import LocalStore, take


class Crash(BaseException):
    """The process ends here."""


class LineSender:
    """Sends rows as text."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producer = session.create_producer(session.create_queue("out"))

    def send(self, row: Mapping[str, Any], duplicate_id: str | None = None) -> None:
        message = self._session.create_text_message(row["text"])
        message.set_string_property("duplicate_id", duplicate_id)
        self._producer.send(message)


def lines(data: memoryview) -> Iterator[Mapping[str, Any]]:
    for line in bytes(data).decode().splitlines():
        yield {"text": line}


class Sink:
    """A broker of its own, an outbox, and what a driver does with them."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.url = f"inproc://ledger-{uuid.uuid4().hex}"
        self.folder = folder
        self.outbox = Outbox(LocalStore(folder))
        take(self.outbox.store)
        given = {"url": self.url, "queue": "out", "transactionMessages": "3", "brokerRetryTimeout": "0ms", **options}
        self.options = SinkOptions.model_validate({**given, "delivery": "exactly-once"})
        # The broker lives as long as somebody is connected.
        self.context = jmsapi.connection_factory(self.url).create_context()
        self.context.start()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def stage(self, batch: int, *partitions: list[str]) -> list[tuple[int, File]]:
        self.outbox.open(batch)
        files: list[tuple[int, File]] = []
        for number, rows in enumerate(partitions):
            name = self.outbox.stage(batch, "\n".join(rows).encode())
            files.append((number, (name, len(rows))))
        return files

    def ledger(self, owner: str = "query", on_step: Callable[..., None] | None = None) -> SinkLedger:
        return SinkLedger(self.options, self.outbox, owner, LineSender, lines, on_step)

    def sent(self) -> list[str]:
        consumer = self.context.create_consumer(self.context.create_queue("out"))
        found: list[str] = []
        while (text := consumer.receive_body(str, 1)) is not None:
            found.append(text)
        consumer.close()
        return found

    def tokens(self, name: str = "jmsapi.ledger.query") -> list[SinkProgress | None]:
        browser = self.context.create_browser(self.context.create_queue(name))
        return [SinkProgress.decode(message) for message in browser]

    def put(self, text: str, name: str = "jmsapi.ledger.query") -> None:
        self.context.create_producer().send(self.context.create_queue(name), text)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # Processes crash here, the machine does not: nothing need reach the disk.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    # A broker in this process has given what it has at once.
    monkeypatch.setattr("jmsapi.spark.ledger._LOOK_MS", 20.0)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    with Sink(tmp_path) as sink:
        yield sink


BATCHES = [[["a1", "a2"], ["a3", "a4"]], [["b1"]], [], [["d1", "d2", "d3", "d4", "d5"], ["d6", "d7"]]]
ALL = [row for batch in BATCHES for partition in batch for row in partition]


def drive(sink: Sink, done: set[int], on_step: Callable[..., None], *, fewer: bool) -> None:
    """Commit all batches that are not, as Spark does after a start; a replay may have other partitions."""
    for batch, partitions in enumerate(BATCHES):
        if batch in done:
            continue
        shaped = [[row for partition in partitions for row in partition]] if fewer and partitions else partitions
        on_step("tasks", batch, 0, 0)
        files = sink.stage(batch, *shaped)
        sink.ledger(on_step=on_step).commit(batch, files)
        on_step("commit log", batch, 0, 0)
        done.add(batch)


def crash(folder: Path, at: int) -> str | None:
    """Send everything, with a crash before one step; return its name, or None when there are not so many."""
    names: list[str] = []

    def once(name: str, *_: int) -> None:
        names.append(name)
        if len(names) == at:
            raise Crash

    with Sink(folder) as sink:
        done: set[int] = set()
        try:
            drive(sink, done, once, fewer=False)
        except Crash:
            drive(sink, done, lambda *_: None, fewer=True)
        sent = sink.sent()
        assert sent == ALL, f"crashed before step {at}, {names[-1]}"
        assert sink.tokens() == [SinkProgress(sink.tokens()[0].id, 4)]  # type: ignore[union-attr]
        assert [name for name in sink.outbox.store.list("s") if not name.startswith(".")] == []
    return names[at - 1] if at <= len(names) else None


def test_a_crash_before_any_step_of_the_sink_loses_and_doubles_nothing(tmp_path: Path) -> None:
    steps: list[str] = []
    while (name := crash(tmp_path / str(len(steps)), len(steps) + 1)) is not None:
        steps.append(name)
    assert set(steps) >= {"tasks", "fix", "send", "settle", "settled", "clear", "cleared", "commit log"}
    assert len(steps) > 30


class MovesTheTokenApart(_Move):
    """Commits the rows, then the token."""

    def _move(self, token: SinkProgress | None) -> None:
        self._ledger.step("settle", self._batch, self._number)
        self._session.commit()
        super()._move(token)


class ForgetsHowFarItIs(_Move):
    """Begins a batch anew."""

    def _take(self) -> SinkProgress | None:
        token = super()._take()
        if token is None or token.batch != self._batch or self._number:
            return token
        return SinkProgress(token.id, token.batch, 0, token.manifest)


class FixesABatchAgain(Outbox):
    """Lets a replay say what a batch consists of."""

    def fix(self, batch: int, files: Sequence[tuple[int, File]], job: JobRows | None = None) -> None:
        self.store.delete(f"s/{batch:09d}/manifest.json")
        super().fix(batch, files, job)


class DeletesBeforeTheEnd(Outbox):
    """Deletes when a batch is fixed what earlier ones and this one had."""

    def open(self, batch: int) -> None:
        self.clear(batch)
        super().open(batch)


@pytest.mark.parametrize("mutant", [MovesTheTokenApart, ForgetsHowFarItIs, FixesABatchAgain, DeletesBeforeTheEnd])
def test_the_crashes_notice_a_rule_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: type[Any]) -> None:
    if issubclass(mutant, Outbox):
        monkeypatch.setitem(globals(), "Outbox", mutant)
    else:
        monkeypatch.setattr("jmsapi.spark.ledger._Move", mutant)
    at = 1
    with pytest.raises((AssertionError, JMSException)):
        while crash(tmp_path / str(at), at) is not None:
            at += 1


def test_a_zombie_and_its_successor_take_turns_and_each_row_is_sent_once(tmp_path: Path) -> None:
    with Sink(tmp_path, transactionMessages="1", brokerRetryTimeout="30s") as sink:
        rows = [f"r{number}" for number in range(60)]
        files = [sink.stage(0, rows), sink.stage(0, rows[:20], rows[20:])]
        together = threading.Barrier(2, timeout=30)
        turns: list[int] = []

        def committer(number: int) -> None:
            def on_step(name: str, *_: int) -> None:
                if name == "fix":
                    together.wait()
                elif name == "settled":
                    turns.append(number)

            sink.ledger(on_step=on_step).commit(0, files[number])

        with ThreadPoolExecutor(2) as pool:
            for one in [pool.submit(committer, number) for number in range(2)]:
                one.result(60)
        assert sorted(sink.sent()) == sorted(rows)
        assert set(turns) == {0, 1}, "both moved the token"


def test_a_zombie_that_holds_the_token_makes_its_successor_wait_and_then_fail_by_name(sink: Sink) -> None:
    rows = ["a", "b", "c", "d"]
    files = sink.stage(0, rows)
    refused: list[str | None] = []

    def successor(name: str, batch: int, claim: int, number: int) -> None:
        if (name, number) == ("settle", 0):
            with pytest.raises(JMSException, match="another process holds it") as caught:
                sink.ledger().commit(0, [])
            refused.append(caught.value.error_code)

    sink.ledger(on_step=successor).commit(0, files)
    assert refused == ["ledger-held"]
    assert sink.sent() == rows


def test_what_a_batch_consists_of_is_fixed_by_the_first_commit(sink: Sink) -> None:
    def die(name: str, batch: int, claim: int, number: int) -> None:
        if (name, number) == ("settled", 0):
            raise Crash

    with pytest.raises(Crash):
        sink.ledger(on_step=die).commit(0, sink.stage(0, ["a", "b", "c", "d"]))
    sink.ledger().commit(0, sink.stage(0, ["other", "rows"]))
    assert sink.sent() == ["a", "b", "c", "d"]
    sink.ledger().commit(0, sink.stage(0, ["a batch", "that is sent"]))
    assert sink.sent() == []


def test_a_batch_that_is_sent_in_part_is_not_guessed_when_its_rows_are_gone(sink: Sink) -> None:
    def die(name: str, batch: int, claim: int, number: int) -> None:
        if (name, number) == ("settled", 0):
            raise Crash

    with pytest.raises(Crash):
        sink.ledger(on_step=die).commit(0, sink.stage(0, ["a", "b", "c", "d"]))
    manifest = sink.outbox.manifest(0)
    assert manifest is not None
    sink.outbox.store.delete(f"s/000000000/{manifest.files[0][1][0]}")
    for _ in range(2):
        with pytest.raises(JMSException, match="are not in the staging location") as caught:
            sink.ledger().commit(0, [])
        assert caught.value.error_code == "staging-lost"
    sink.outbox.clear(0)
    with pytest.raises(JMSException, match="sent in part"):
        sink.ledger().commit(0, sink.stage(0, ["x"]))
    assert sink.sent() == ["a", "b", "c"]
    assert len(sink.tokens()) == 1, "the token is back"


def test_an_outbox_and_a_ledger_are_for_one_query(sink: Sink, tmp_path: Path) -> None:
    sink.ledger().commit(0, sink.stage(0, ["a"]))
    with pytest.raises(JMSException, match="used by another query") as caught:
        sink.ledger(owner="other").commit(0, sink.stage(0, ["b"]))
    assert caught.value.error_code == "staging-reused"
    # The same query, whose staging location is gone.
    sink.outbox = Outbox(LocalStore(tmp_path / "new"))
    take(sink.outbox.store)
    for _ in range(2):
        with pytest.raises(JMSException, match="staging location that is gone") as caught:
            sink.ledger().commit(0, sink.stage(0, ["b"]))
        assert caught.value.error_code == "ledger-reused"
    assert sink.sent() == ["a"]


def test_a_message_that_is_no_token_is_refused_and_left_where_it_was(sink: Sink) -> None:
    sink.put("hello")
    sink.put(json.dumps({"token": 1}))
    for _ in range(2):
        with pytest.raises(JMSException, match="somebody else"):
            sink.ledger().commit(0, sink.stage(0, ["a"]))
    assert len(sink.tokens()) == 3 and sink.sent() == []


def test_a_token_of_a_start_that_died_early_is_dropped(sink: Sink) -> None:
    sink.put(SinkProgress("orphan").encode())
    sink.ledger().commit(0, sink.stage(0, ["a"]))
    assert sink.sent() == ["a"]
    assert [token.batch for token in sink.tokens() if token] == [1]


def test_a_job_that_is_run_again_sends_nothing_and_leaves_no_token(sink: Sink) -> None:
    for _ in range(2):
        sink.ledger().commit(0, sink.stage(0, ["a", "b"], ["c", "d"]), last=True)
    assert sink.sent() == ["a", "b", "c", "d"]
    assert sink.tokens() == []
    assert sink.outbox.done and sink.outbox.store.list("s") == []


def job(*rows: str, run: str = "") -> JobRows:
    return sum((JobRows.of({"text": row}, run) for row in rows), JobRows(run=run))


@pytest.mark.parametrize(
    ("first", "again", "told"),
    [
        (job("a", "b"), job("c", "d", "e"), "with 2 rows, .* here it has 3 rows"),
        (job("a", "b"), job("a", "c"), "not all the same"),
        (job("a", "b"), job(), "here it has 0 rows"),
        (job("a", run="query/3"), job("b", run="query/4"), "in batch 3 of a stream, .* here it has those of batch 4"),
        (job("a", run="query/3"), job("a", run="other/3"), "in batch 3 of a stream"),
        (job("a"), replace(job("a"), place="the queue 'other'"), "here it has rows for the queue 'other'"),
        (job("a", run="query/3"), replace(job("a", run="query/3"), place="the queue 'other'"), "rows for the queue 'other'"),
        (job("a"), replace(job("a"), url="stomp://other"), "here it has rows for stomp://other"),
        (job("a"), job("a", run="query/0"), "here it has those of batch 0"),
    ],
)
def test_a_name_of_a_job_that_comes_again_with_other_rows_is_refused(
    sink: Sink, first: JobRows, again: JobRows, told: str
) -> None:
    sink.ledger().commit(0, sink.stage(0, ["a", "b"][: first.rows]), last=True, job=first)
    with pytest.raises(JMSException, match=told) as caught:
        sink.ledger().commit(0, sink.stage(0, ["x"]), last=True, job=again)
    assert caught.value.error_code == "job-reused"
    assert sink.sent() == ["a", "b"][: first.rows] and sink.tokens() == []


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (job("a", "b"), job("b", "a")),
        (job("a", "b", run="query/3"), replace(job("made anew", run="query/3"), url="stomp://took-over")),
    ],
    ids=["in another order", "a batch that is replayed"],
)
def test_the_same_job_again_is_said_to_send_nothing(
    sink: Sink, first: JobRows, again: JobRows, caplog: pytest.LogCaptureFixture
) -> None:
    sink.ledger().commit(0, sink.stage(0, ["a", "b"]), last=True, job=first)
    assert not caplog.records
    sink.ledger().commit(0, sink.stage(0, ["b"], ["a"]), last=True, job=again)
    assert "was done before: nothing is sent" in caplog.text
    assert sink.sent() == ["a", "b"]


@pytest.mark.parametrize(("again", "refused"), [(job("w", "x", "y", "z"), False), (job("w", "x"), True)])
def test_a_job_that_goes_on_sends_what_it_began_with_and_says_so_when_that_is_not_all(
    sink: Sink, again: JobRows, refused: bool
) -> None:
    def die(name: str, batch: int, claim: int, number: int) -> None:
        if (name, number) == ("settled", 0):
            raise Crash

    with pytest.raises(Crash):
        sink.ledger(on_step=die).commit(0, sink.stage(0, ["a", "b", "c", "d"]), last=True, job=job("a", "b", "c", "d"))
    files = sink.stage(0, ["w", "x", "y", "z"][: again.rows])
    with pytest.raises(JMSException, match="with 4 rows") if refused else contextlib.nullcontext():
        sink.ledger().commit(0, files, last=True, job=again)
    assert sink.sent() == ["a", "b", "c", "d"] and sink.tokens() == []


def test_an_empty_batch_connects_to_nothing(tmp_path: Path) -> None:
    with Sink(tmp_path) as sink:
        sink.ledger().commit(0, [])
        assert sink.outbox.binding() is None and sink.tokens() == []


def test_each_row_has_a_duplicate_id_that_a_replay_gives_it_again(sink: Sink) -> None:
    sink.ledger().commit(3, sink.stage(3, ["a", "b"], ["c"]))
    consumer = sink.context.create_consumer(sink.context.create_queue("out"))
    messages = [consumer.receive(1000) for _ in range(3)]
    found = [message.get_string_property("duplicate_id") for message in messages if message is not None]
    assert len({(one or "").rpartition("-")[0].rpartition("-")[0] for one in found}) == 1, (
        "the batch is named, whatever its number"
    )
    assert [(one or "").split("-")[-2:] for one in found] == [["0", "0"], ["0", "1"], ["1", "0"]]


def test_a_batch_is_not_fixed_to_files_that_are_not_there(sink: Sink) -> None:
    files = [*sink.stage(0, ["a"]), (1, ("d-on-another-machine.arrow", 2))]
    with pytest.raises(JMSException, match="1 of 2 staged files") as caught:
        sink.ledger().commit(0, files)
    assert caught.value.error_code == "staging-unshared"
    assert sink.outbox.manifest(0) is None
    # The replay stages where everybody sees it.
    sink.ledger().commit(0, sink.stage(0, ["a"], ["b", "c"]))
    assert sink.sent() == ["a", "b", "c"]
