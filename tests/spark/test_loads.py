"""``readMode=consume`` takes all that was there when it began, and what it has taken is not released before it is over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Place
from links import SlowWay, sent
from test_readers import schema, texts

import jmsapi
import jmsapi.spark
from jmsapi.errors import JMSException
from jmsapi.spark.engine import Engine, limits_of
from jmsapi.spark.loads import LOAD_SEQ, load_store
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.source import JmsDataSource
from jmsapi.spark.staging import take
from jmsapi.spark.stream import BatchPlan, ReadTask
from jmsapi.testing import LoopbackServer
from jmsapi_conformance.brokers import Broker


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def send(server: LoopbackServer, count: int) -> list[str]:
    sent = [f"m{number}" for number in range(count)]
    with jmsapi.connection_factory(server.url).create_context() as context:
        producer = context.create_producer()
        for text in sent:
            producer.send(context.create_queue("q"), text)
    return sent


def options_of(server: LoopbackServer, tmp_path: Path, **more: str) -> dict[str, str]:
    given = {"url": server.url, "queue": "q", "readMode": "consume", "stagingLocation": str(tmp_path), "loadId": "monday"}
    return {**given, "roundMessages": "50", "firstWait": "2s", **more}


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of claims run so fast that their time is over as soon as something came."""
    monkeypatch.setattr("jmsapi.spark.engine.clock_ms", lambda: time.monotonic() * 10_000_000)


@pytest.mark.usefixtures("hurried")
def test_a_load_takes_all_that_was_there_however_long_that_takes(server: LoopbackServer, tmp_path: Path) -> None:
    sent = send(server, 400)
    reader = JmsDataSource(options_of(server, tmp_path, parallelism="2", idleGap="300ms")).reader(schema("text"))
    assert sorted(texts(reader, reader.partitions())) == sorted(sent)


@pytest.mark.broker
def test_a_way_to_the_broker_that_takes_its_time_is_not_the_end_of_a_queue(artemis: Broker, tmp_path: Path) -> None:
    place = Place(artemis.url("amqp"), artemis)
    texts_sent = sent(place.full_url, place.queue, 400)
    with SlowWay(int(place.full_url.rpartition(":")[2]), 0.06) as way:
        options = {
            **place.options,
            "url": f"amqp://127.0.0.1:{way.port}",
            "readMode": "consume",
            "stagingLocation": str(tmp_path),
            "loadId": "monday",
            "parallelism": "1",
            "roundMessages": "100",
        }
        reader = JmsDataSource(options).reader(schema("text"))
        found = texts(reader, reader.partitions())
    assert [one.split()[0] for one in found] == texts_sent
    assert place.left() == []


@pytest.mark.usefixtures("hurried")
def test_a_time_that_is_given_ends_it_all_the_same(server: LoopbackServer, tmp_path: Path) -> None:
    send(server, 400)
    reader = JmsDataSource(options_of(server, tmp_path, parallelism="1", claimTimeout="10s")).reader(schema("text"))
    assert len(texts(reader, reader.partitions())) <= 50


@pytest.mark.usefixtures("hurried")
def test_what_is_sent_meanwhile_does_not_keep_a_load_going(server: LoopbackServer, tmp_path: Path) -> None:
    store = load_store(str(tmp_path), "monday")
    mark = take(store)
    engine = Engine(read_options(SourceOptions, options_of(server, tmp_path, parallelism="1")), load=store)
    engine.log.open_batch(LOAD_SEQ)
    engine.fix_plan(LOAD_SEQ, BatchPlan(1, 1000))
    send(server, 400)
    rows: Any = engine.read(ReadTask(LOAD_SEQ, 0, 1000, mark), ["text"])
    assert 0 < sum(batch.num_rows for batch in rows) <= 50


def test_no_default_ends_a_load_by_its_bytes(server: LoopbackServer, tmp_path: Path) -> None:
    default = read_options(SourceOptions, options_of(server, tmp_path))
    given = read_options(SourceOptions, options_of(server, tmp_path, maxBytesPerBatch="256m"))
    assert limits_of(default, load=False) == limits_of(given, load=False) == limits_of(given, load=True)
    assert limits_of(default, load=True).claim_bytes > 1 << 50


def test_a_load_that_is_not_over_is_not_released(server: LoopbackServer, tmp_path: Path) -> None:
    sent = send(server, 200)
    options = options_of(server, tmp_path, parallelism="2", maxMessages="200")
    reader = JmsDataSource(options).reader(schema("text"))
    first, second = reader.partitions()
    found = texts(reader, [first])
    assert found
    with pytest.raises(JMSException, match="is not over: 1 of its 2 tasks have not ended") as caught:
        jmsapi.spark.release(str(tmp_path), "monday")
    assert caught.value.error_code == "bad-staging"
    assert sorted(found + texts(reader, [second])) == sorted(sent)
    assert texts(reader, [first]) == found, "nothing was deleted"
    jmsapi.spark.release(str(tmp_path), "monday")
    jmsapi.spark.release(str(tmp_path), "monday")
    with pytest.raises(JMSException, match="released"):
        reader.partitions()


@pytest.mark.parametrize(
    "more",
    [{"queue": "other"}, {"selector": "JMSPriority > 4"}, {"url": "stomp://127.0.0.1:1"}],
    ids=lambda more: next(iter(more)),
)
def test_a_name_of_a_load_is_for_one_queue(server: LoopbackServer, tmp_path: Path, more: dict[str, str]) -> None:
    send(server, 3)
    reader = JmsDataSource(options_of(server, tmp_path)).reader(schema("text"))
    assert len(texts(reader, reader.partitions())) == 3
    with pytest.raises(JMSException, match=r"'monday' reads the queue 'q' at .*, and here it is to read the queue") as caught:
        JmsDataSource({**options_of(server, tmp_path), **more}).reader(schema("text")).partitions()
    assert caught.value.error_code == "staging-reused"


@pytest.mark.parametrize("name", ["", "tuesday", "../load-monday", "x/../load-monday", "monday/"])
def test_a_name_that_no_load_can_have_is_no_path(server: LoopbackServer, tmp_path: Path, name: str) -> None:
    reader = JmsDataSource(options_of(server, tmp_path)).reader(schema("text"))
    reader.partitions()
    with pytest.raises(JMSException, match="there is no load"):
        jmsapi.spark.release(str(tmp_path), name)
