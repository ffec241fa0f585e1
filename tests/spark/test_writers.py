"""The writers as Spark's processes use them, pickled, on real brokers; without Spark's own machine."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from links import Relay
from pyspark.sql.types import StructType

import jmsapi
from jmsapi.errors import JMSException, JMSSecurityException
from jmsapi.spark.sending import Task
from jmsapi.spark.source import JmsDataSource
from jmsapi.testing import FaultProxy, LoopbackServer


def columns(*names: str) -> StructType:
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in names]
    return StructType.fromJson({"type": "struct", "fields": fields})


def texts(*rows: str) -> Any:
    return pa.record_batch({"text": pa.array(rows, pa.string())})


def write(options: dict[str, str], *partitions: list[str]) -> None:
    """Write a frame as Spark does."""
    writer = JmsDataSource(options).writer(columns("text"), overwrite=False)
    messages: list[Any] = []
    for number, rows in enumerate(partitions):
        message = pickle.loads(pickle.dumps(writer)).write(iter([texts(*rows[:2]), texts(*rows[2:])]))
        messages.append(replace(message, partition=number) if options.get("delivery") else message)
    pickle.loads(pickle.dumps(writer)).commit(pickle.loads(pickle.dumps(messages)))


def test_a_job_is_written_once_however_often_it_runs(place: Any, tmp_path: Path) -> None:
    options = {
        **place.options,
        "delivery": "exactly-once",
        "stagingLocation": str(tmp_path),
        "jobId": place.queue.replace(".", "-"),
        "transactionMessages": "3",
    }
    write(options, ["a", "b", "c", "d"], ["e", "f", "g"])
    write(options, ["a", "b", "c", "d", "e", "f", "g"])
    assert place.left(7) == ["a", "b", "c", "d", "e", "f", "g"]
    with pytest.raises(JMSException, match="nothing but these is sent under its name") as caught:
        write(options, ["tomorrow's"])
    assert caught.value.error_code == "job-reused"
    with pytest.raises(JMSException, match="here it has rows for the queue 'elsewhere'"):
        write({**options, "queue": "elsewhere"}, ["a", "b", "c", "d", "e", "f", "g"])
    ledger = {**place.options, "queue": f"jmsapi.ledger.{options['jobId']}"}
    place.queue = ledger["queue"]
    assert place.left() == [], "the token goes with the job"


def test_exactly_once_is_refused_by_name_without_transactions_that_hold(
    rabbitmq_place: Any, artemis_place: Any, tmp_path: Path
) -> None:
    once = {"delivery": "exactly-once", "stagingLocation": str(tmp_path), "jobId": "refused"}
    scheme, place = artemis_place.broker.url("stomp").split("://")
    artemis_over_stomp = {**artemis_place.options, "url": f"{scheme}://{place.split('@')[-1]}"}
    for options in (rabbitmq_place.options, artemis_over_stomp, {**artemis_over_stomp, "provider.emulate": "tx"}):
        with pytest.raises(JMSException, match="needs transactions that take a message and send others as one") as caught:
            write({**options, **once}, ["a"])
        assert caught.value.error_code == "unsupported"
    assert not (tmp_path / "job-refused" / "ledger.json").exists(), "nothing was begun"
    assert rabbitmq_place.left() == [] == artemis_place.left()


def test_a_row_that_cannot_be_sent_fails_its_task_and_leaves_the_batch_open(tmp_path: Path) -> None:
    options = {"url": "stomp://127.0.0.1:1", "queue": "q", "delivery": "exactly-once", "stagingLocation": str(tmp_path)}
    rows = pa.record_batch({"text": ["good", None], "body_type": ["text", "map"]})
    writer = JmsDataSource({**options, "jobId": "monday"}).writer(columns("text", "body_type"), overwrite=False)
    with pytest.raises(JMSException, match="column 'value': KeyError"):
        writer.write(iter([rows]))
    assert list(tmp_path.rglob("*.arrow")) == [] == list(tmp_path.rglob("manifest.json"))


def test_a_stream_stages_beside_its_checkpoint(tmp_path: Path) -> None:
    source = JmsDataSource(
        {"url": "stomp://127.0.0.1:1", "queue": "q", "delivery": "exactly-once", "checkpointLocation": f"file:{tmp_path}/ck/"}
    )
    writer: Any = source.streamWriter(columns("text"), overwrite=False)
    assert writer._place == f"{tmp_path}/ck/jms-sink"
    with pytest.raises(JMSException, match="stagingLocation is missing"):
        JmsDataSource({"url": "stomp://127.0.0.1:1", "queue": "q", "delivery": "exactly-once"}).streamWriter(
            columns("text"), False
        )


def test_artemis_drops_what_a_task_sends_again_and_the_sink_says_how_much(
    artemis_place: Any, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**artemis_place.options, "duplicateIdProperty": "_AMQ_DUPL_ID"}
    writer = JmsDataSource(options).writer(columns("text"), overwrite=False)
    pickle.loads(pickle.dumps(writer)).write(iter([texts("a", "b", "c")]))
    # The task died after its commit and is run again.
    told = pickle.loads(pickle.dumps(writer)).write(iter([texts("a", "b", "c", "d")]))
    assert artemis_place.left(4) == ["a", "b", "c", "d"]
    assert (told.messages, told.dropped) == (4, 3)
    writer.commit([told, None])
    assert "the broker dropped 3 of 4 rows" in caplog.text
    rows = pa.record_batch({"text": ["x", "again"], "duplicate_id": [f"{artemis_place.queue}-x"] * 2})
    single = JmsDataSource({**options, "transactionMessages": "1"})
    told = single.writer(columns("text", "duplicate_id"), overwrite=False).write(iter([rows]))
    assert artemis_place.left(1) == ["x"]
    assert told.dropped == 1


@pytest.mark.parametrize("name", ["sinkId", "jobId", None])
def test_rows_of_another_run_are_no_duplicates_whatever_sink_and_job_are_called(artemis_place: Any, name: str | None) -> None:
    options = {**artemis_place.options, "duplicateIdProperty": "_AMQ_DUPL_ID", **({name: "nightly"} if name else {})}
    write(options, ["a", "b", "c"])
    write(options, ["d", "e"])
    assert artemis_place.left(5) == ["a", "b", "c", "d", "e"]


def test_a_stream_with_a_new_checkpoint_begins_with_ids_of_its_own() -> None:
    options = {"url": "stomp://127.0.0.1:1", "queue": "q", "sinkId": "orders"}
    writer = JmsDataSource(options).streamWriter(columns("text"), overwrite=False)
    old, new = Task("query-1", 0, 0), Task("query-2", 0, 0)
    assert writer._run(old) == writer._run(old), "after a restart they are the same"
    assert len({writer._run(old), writer._run(new), writer._run(replace(old, batch=1))}) == 3


@pytest.mark.parametrize("shape", ["{}", "failover:({})"], ids=["one url", "failover"])
@pytest.mark.parametrize("at", ["deliver", "delivered"])
def test_a_broker_that_goes_away_is_waited_for(monkeypatch: pytest.MonkeyPatch, shape: str, at: str) -> None:
    with LoopbackServer() as server, Relay(urlsplit(server.url).port or 0) as relay:

        def on_step(name: str, seq: int, claim: int, number: int) -> None:
            if (name, number) == (at, 1):
                relay.closed = True
                relay.cut()
                threading.Timer(1.5, lambda: setattr(relay, "closed", False)).start()

        monkeypatch.setattr("jmsapi.spark.sink.step_hook", lambda: on_step)
        options = {"url": shape.format(relay.url(server.url)), "queue": "q", "transactionMessages": "2"}
        write(options, ["a", "b", "c", "d", "e"])
        with jmsapi.connection_factory(server.url).create_context() as context:
            consumer = context.create_consumer(context.create_queue("q"))
            assert [consumer.receive_body(str, 1000) for _ in range(6)] == ["a", "b", "c", "d", "e", None]


def test_a_broker_that_stays_away_and_one_that_refuses_fail(classic_place: Any) -> None:
    away = {"url": "stomp://127.0.0.1:1", "queue": "q", "brokerRetryTimeout": "100ms"}
    with pytest.raises(JMSException) as caught:
        write(away, ["a"])
    assert caught.value.error_code == "connection"
    refused = {**classic_place.options, "password": "wrong-one"}
    with pytest.raises(JMSSecurityException) as refusal:
        write(refused, ["a"])
    assert "wrong-one" not in str(refusal.value)
    missing = {**classic_place.options, "password": "env:NOT_SET_ANYWHERE"}
    with pytest.raises(JMSException, match="NOT_SET_ANYWHERE is not set"):
        write(missing, ["a"])


def test_a_duplicate_id_needs_a_property_to_go_to() -> None:
    source = JmsDataSource({"url": "stomp://127.0.0.1:1", "queue": "q"})
    with pytest.raises(JMSException, match="needs the option duplicateIdProperty"):
        source.writer(columns("text", "duplicate_id"), overwrite=False)
    named = JmsDataSource({"url": "stomp://127.0.0.1:1", "queue": "q", "duplicateIdProperty": "dup"})
    assert named.writer(columns("text", "duplicate_id"), overwrite=False) is not None


@pytest.mark.parametrize("shape", ["{}", "failover:({})"], ids=["one url", "failover"])
@pytest.mark.parametrize("known", [True, False], ids=["before a commit", "while a commit is answered"])
def test_a_job_goes_on_where_a_broken_link_cut_it_off(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, shape: str
) -> None:
    cuts: list[int] = []
    with FaultProxy(place.full_url) as proxy:

        def on_step(name: str, seq: int, claim: int, number: int) -> None:
            if name == "settle" and number in (0, 2) and len(cuts) < 2:
                cuts.append(number)
                if known:
                    proxy.cut()
                else:
                    proxy.cut_after(1, "to_client")

        monkeypatch.setattr("jmsapi.spark.sink.step_hook", lambda: on_step)
        scheme, _, rest = proxy.url.partition("://")
        options = {
            **place.options,
            "url": shape.format(f"{scheme}://{rest.rpartition('@')[2]}"),
            "delivery": "exactly-once",
            "stagingLocation": str(tmp_path),
            "jobId": place.queue.replace(".", "-"),
            "transactionMessages": "2",
            "brokerRetryTimeout": "60s",
            "provider.request_timeout_ms": "5000",
        }
        rows = [f"m{number}" for number in range(9)]
        write(options, rows)
    assert len(cuts) == 2
    assert place.left(9) == rows
