"""The writers as Spark's processes use them, pickled, on real brokers; without Spark's own machine."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from jmsapi.errors import JMSException
from jmsapi.spark.source import JmsDataSource
from jmsapi.testing import FaultProxy


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
    with pytest.raises(JMSException, match="KeyError in one of its columns"):
        writer.write(iter([rows]))
    assert list(tmp_path.rglob("*.arrow")) == [] == list(tmp_path.rglob("manifest.json"))


def test_a_stream_stages_beside_its_checkpoint(tmp_path: Path) -> None:
    source = JmsDataSource(
        {"url": "stomp://127.0.0.1:1", "queue": "q", "delivery": "exactly-once", "checkpointLocation": "file:/ck/"}
    )
    writer: Any = source.streamWriter(columns("text"), overwrite=False)
    assert writer._place == "/ck/jms-sink"
    with pytest.raises(JMSException, match="stagingLocation is missing"):
        JmsDataSource({"url": "stomp://127.0.0.1:1", "queue": "q", "delivery": "exactly-once"}).streamWriter(
            columns("text"), False
        )


def test_artemis_drops_what_a_task_sends_again_with_its_duplicate_ids(artemis_place: Any) -> None:
    options = {**artemis_place.options, "duplicateIdProperty": "_AMQ_DUPL_ID", "jobId": artemis_place.queue.replace(".", "-")}
    write(options, ["a", "b", "c"])
    write(options, ["a", "b", "c", "d"])
    assert artemis_place.left(4) == ["a", "b", "c", "d"]
    rows = pa.record_batch({"text": ["x", "again"], "duplicate_id": [f"{artemis_place.queue}-x"] * 2})
    single = JmsDataSource({**options, "transactionMessages": "1"})
    single.writer(columns("text", "duplicate_id"), overwrite=False).write(iter([rows]))
    assert artemis_place.left(1) == ["x"]


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
