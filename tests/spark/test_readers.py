"""The readers and writers as Spark's processes use them, pickled and all, on real brokers; without Spark's own machine."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import DataType, StructType

import jmsapi
import jmsapi.spark
from jmsapi.errors import JMSException, JMSSecurityException
from jmsapi.spark.schema import DDL
from jmsapi.spark.source import JmsDataSource
from jmsapi.testing import LoopbackServer
from pyspark_jms import DefaultSource

TYPES = {"bigint": "long", "int": "integer", "map<string,string>": None}
MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}


def schema(*names: str) -> StructType:
    """Return the whole schema or some columns of it, as Spark hands it over."""
    columns = dict(column.split(" ", 1) for column in DDL.split(", "))
    fields = [
        {"name": name, "type": MAP if kind.startswith("map") else TYPES.get(kind, kind), "nullable": True, "metadata": {}}
        for name, kind in columns.items()
        if not names or name in names
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def texts(reader: Any, partitions: Any) -> list[str]:
    """Read partitions as tasks do, from a pickled reader."""
    found: list[str] = []
    for partition in partitions:
        for batch in pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(partition))):
            found += batch.column("text").to_pylist()
    return found


@pytest.mark.parametrize("limit", [ReadMaxRows(15), ReadAllAvailable()], ids=["limited", "all"])
def test_a_stream_is_planned_read_replayed_and_sealed(each_place: Any, tmp_path: Path, limit: Any) -> None:
    each_place.send(*(f"m{number}" for number in range(25)))
    options = {
        **each_place.options,
        "stagingLocation": str(tmp_path / "staging"),
        "leadMessages": "5",
        "roundMessages": "4",
        "pollTimeout": "300ms",
    }
    source = pickle.loads(pickle.dumps(JmsDataSource(options)))
    assert source.schema() == DDL
    reader = source.streamReader(schema=schema())
    assert reader.getDefaultReadLimit() == ReadMaxRows(100_000)
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    found: list[str] = []
    while (end := reader.latestOffset(start, limit)) != start:
        partitions = reader.partitions(start, end)
        rows = texts(reader, partitions)
        assert texts(reader, partitions) == rows, "a second action reads the same"
        found += rows
        reader.commit(end)
        with pytest.raises(JMSException, match="older than the staging area"):
            reader.partitions(start, end)
        start = end
    assert sorted(found) == sorted(f"m{number}" for number in range(25))
    assert each_place.left() == []
    reader.stop()


def test_the_progress_tells_of_what_waits_and_of_the_batch_before(tmp_path: Path) -> None:
    with LoopbackServer() as server:
        with jmsapi.connection_factory(server.url).create_context() as context:
            for number in range(12):
                context.create_producer().send(context.create_queue("q"), str(number))
        options = {"url": server.url, "queue": "q", "stagingLocation": str(tmp_path / "staging"), "leadMessages": "5"}
        reader = JmsDataSource({**options, "maxMessagesPerBatch": "5", "pollTimeout": "300ms"}).streamReader(schema=schema())
        told: list[Any] = []
        start = reader.initialOffset()
        while (end := reader.latestOffset(start, ReadMaxRows(5))) != start:
            told.append(reader.reportLatestOffset())
            reader.partitions(start, end)
            start = end
        reader.stop()
    assert [(one["lead"], one["moreWaiting"], one["brokerAway"]) for one in told] == [
        (5, True, False),
        (5, True, False),
        (2, False, False),
    ]
    assert "before" not in told[0]
    assert told[2]["before"] == {"batch": 2, "rows": 5, "inDoubt": 0, "duplicatesDropped": 0, "claimsInTrouble": 0}


def test_available_now_ends_although_a_producer_goes_on(place: Any, tmp_path: Path) -> None:
    place.send("before")
    options = {**place.options, "stagingLocation": str(tmp_path), "pollTimeout": "300ms"}
    reader = JmsDataSource(options).streamReader(schema("text"))
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    place.send("after")
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert sorted(texts(reader, reader.partitions(start, end))) == ["after", "before"]
    place.send("much later")
    assert reader.latestOffset(end, ReadMaxRows(100)) == end
    reader.stop()
    assert place.left(1) == ["much later"]


def test_a_stream_waits_for_a_broker_that_is_away_but_not_with_a_wrong_password(classic_place: Any, tmp_path: Path) -> None:
    wrong = {**classic_place.options, "password": "hunter2", "stagingLocation": str(tmp_path / "a")}
    reader = JmsDataSource(wrong).streamReader(schema("text"))
    with pytest.raises(JMSSecurityException) as caught:
        reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    assert "hunter2" not in str(caught.value)
    away = {"url": "stomp://127.0.0.1:1", "queue": "q", "stagingLocation": str(tmp_path / "b"), "brokerRetryTimeout": "1ms"}
    reader = JmsDataSource(away).streamReader(schema("text"))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(1)) == start, "first it waits"
    with pytest.raises(jmsapi.JMSException):
        reader.latestOffset(start, ReadMaxRows(1))


def test_a_durable_subscription_is_read_by_one_claim_after_the_other(classic_place: Any, tmp_path: Path) -> None:
    topic = f"{classic_place.queue}.topic"
    options = {name: value for name, value in classic_place.options.items() if name != "queue"} | {
        "topic": topic,
        "subscription": "spark",
        "subscriptionType": "durable",
        "clientId": topic,
        "stagingLocation": str(tmp_path),
        "leadMessages": "2",
        "pollTimeout": "300ms",
    }
    reader = JmsDataSource(options).streamReader(schema("text"))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(100)) == start, "the first look makes the subscription"
    with jmsapi.connection_factory(classic_place.full_url).create_context() as context:
        producer = context.create_producer()
        for number in range(6):
            producer.send(context.create_topic(topic), f"m{number}")
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert end["claims"] == 1
    assert sorted(texts(reader, reader.partitions(start, end))) == [f"m{number}" for number in range(6)]
    reader.stop()
    with jmsapi.connection_factory(classic_place.full_url, client_id=topic).create_context() as context:
        context.unsubscribe("spark")


def test_claims_share_a_durable_subscription(artemis_place: Any, tmp_path: Path) -> None:
    topic = f"{artemis_place.queue}.topic"
    options = {name: value for name, value in artemis_place.options.items() if name != "queue"} | {
        "topic": topic,
        "subscription": "spark",
        "stagingLocation": str(tmp_path),
        "leadMessages": "2",
        "roundMessages": "2",
        "pollTimeout": "300ms",
    }
    reader = JmsDataSource(options).streamReader(schema("text"))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(100)) == start, "the first look makes the subscription"
    with jmsapi.connection_factory(artemis_place.full_url).create_context() as context:
        producer = context.create_producer()
        for number in range(12):
            producer.send(context.create_topic(topic), f"m{number}")
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert end["claims"] == 2
    partitions = reader.partitions(start, end)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda one: texts(reader, [one]), partitions))
    assert sorted(text for rows in found for text in rows) == sorted(f"m{number}" for number in range(12))
    reader.stop()
    with jmsapi.connection_factory(artemis_place.full_url).create_context() as context:
        context.unsubscribe("spark")


def test_a_list_of_brokers_is_tried_in_turn(classic_place: Any, tmp_path: Path) -> None:
    classic_place.send("a", "b")
    options = {
        **classic_place.options,
        "url": f"failover:(stomp://127.0.0.1:1,{classic_place.options['url']})",
        "stagingLocation": str(tmp_path),
        "pollTimeout": "2s",
    }
    reader = JmsDataSource(options).streamReader(schema("text"))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(100))
    assert texts(reader, reader.partitions(start, end)) == ["a", "b"]
    reader.stop()


def test_a_batch_looks_and_consumes(place: Any, tmp_path: Path) -> None:
    place.send("a", "b", "c")
    browse = JmsDataSource({**place.options, "maxMessages": "2"}).reader(schema("text", "ingest_row"))
    assert texts(browse, browse.partitions()) == ["a", "b"]
    options = {**place.options, "readMode": "consume", "stagingLocation": str(tmp_path), "loadId": "monday"}
    consume = JmsDataSource(options).reader(schema("text"))
    assert sorted(texts(consume, consume.partitions())) == ["a", "b", "c"]
    assert place.left() == []
    again = JmsDataSource({**options, "parallelism": "7"}).reader(schema("text"))
    assert sorted(texts(again, again.partitions())) == ["a", "b", "c"], "whatever the options now say"
    jmsapi.spark.release(str(tmp_path), "monday")
    with pytest.raises(JMSException, match="released"):
        again.partitions()


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_every_kind_of_message_can_be_read_and_written_again(place: Any, tmp_path: Path, delivery: str) -> None:
    with jmsapi.connection_factory(place.full_url).create_context() as context:
        queue, producer = context.create_queue(place.queue), context.create_producer()
        producer.set_property("small", jmsapi.Short(3)).set_property("price", 1.5).set_jms_type("order")
        producer.set_jms_correlation_id("c-1").set_priority(7)
        entries = context.create_map_message()
        entries.set_byte("y", 1)
        entries.set_string("s", "text")
        entries.set_bytes("b", b"12")
        items = context.create_stream_message()
        items.write_int(4)
        items.write_string("five")
        for body in ("words", b"bytes", entries, items):
            producer.send(queue, body)
    look = JmsDataSource(place.options).reader(schema())
    batches = [batch for partition in look.partitions() for batch in look.read(partition)]
    copy = f"{place.queue}.copy"
    options = {**place.options, "queue": copy, "delivery": delivery, "stagingLocation": str(tmp_path)}
    writer = JmsDataSource({**options, "jobId": copy.replace(".", "-")}).writer(schema=schema(), overwrite=False)
    writer.commit([pickle.loads(pickle.dumps(writer)).write(iter(batches))])
    with jmsapi.connection_factory(place.full_url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(copy))
        found: list[Any] = [consumer.receive(10_000) for _ in range(4)]
        text, data, entries, items = found
        assert text.get_body(str) == "words" and data.get_body(bytes) == b"bytes"
        assert {name: entries.get_object(name) for name in entries.map_names} == {"y": 1, "s": "text", "b": b"12"}
        assert type(entries.get_object("y")) is jmsapi.Byte
        assert [items.read_object(), items.read_object()] == [4, "five"]
        for message in found:
            assert (message.jms_type, message.jms_correlation_id, message.jms_priority) == ("order", "c-1", 7)
            assert type(message.get_object_property("small")) is jmsapi.Short
            assert message.get_object_property("price") == 1.5
    assert len(place.left(4)) == 4, "looked at, not taken"


def test_rows_can_say_where_they_go_and_a_bad_one_leaves_nothing_of_its_transaction(classic_place: Any) -> None:
    options = {name: value for name, value in classic_place.options.items() if name != "queue"}
    rows = pa.record_batch({"destination": [classic_place.queue, f"queue://{classic_place.queue}"], "text": ["a", "b"]})
    JmsDataSource(options).writer(schema("destination", "text"), overwrite=False).write(iter([rows]))
    assert classic_place.left(2) == ["a", "b"]
    maps = pa.map_(pa.string(), pa.string())
    bad = pa.record_batch(
        {
            "text": pa.array(["good", "bad"]),
            "properties": pa.array([[], [("price", "cheap")]], maps),
            "property_types": pa.array([[], [("price", "int")]], maps),
        }
    )
    writer = JmsDataSource(classic_place.options).writer(schema("text", "properties", "property_types"), overwrite=False)
    with pytest.raises(JMSException, match=r"column 'properties\.price': ValueError"):
        writer.write(iter([bad]))
    assert classic_place.left() == []


def test_what_cannot_be_read_or_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    options = {"url": "stomp://localhost:61613", "queue": "q"}
    source = JmsDataSource(options)
    staged = JmsDataSource({**options, "stagingLocation": str(tmp_path)})
    wrong: DataType = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "text", "type": "long", "nullable": True, "metadata": {}}]}
    )
    unknown = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "txt", "type": "string", "nullable": True, "metadata": {}}]}
    )
    for call, text in (
        (lambda: source.streamReader(schema()).initialOffset(), "stagingLocation"),
        (lambda: source.streamReader(unknown).initialOffset(), "stagingLocation"),
        (lambda: staged.streamReader(unknown).initialOffset(), "no column 'txt'"),
        (lambda: source.reader(wrong), "is string, not bigint"),
        (lambda: source.reader(unknown), "no column 'txt'"),
        (lambda: source.reader(StructType(schema("text").fields * 2)), "'text' of the jms source is selected twice"),
        (lambda: source.writer(unknown, overwrite=False), "no column 'txt'"),
        (lambda: source.writer(schema("priority"), overwrite=False), "text, bytes or value"),
        (lambda: source.writer(schema("text"), overwrite=True), "append"),
        (lambda: JmsDataSource({**options, "readMode": "consume", "stagingLocation": "/x"}).reader(schema()), "loadId"),
        (lambda: DefaultSource({"url": "inproc://x", "queue": "q"}).schema(), "lives in one process"),
    ):
        with pytest.raises(JMSException, match=text):
            call()
