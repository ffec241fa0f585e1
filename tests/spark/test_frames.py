"""Messages are staged as they came and decoded where rows are read: on each broker and wire what is read is what was received."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import stomp
from proton import Message as AmqpMessage
from proton import symbol
from proton.utils import BlockingConnection

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.rows import COLUMNS, RowReader, Taken, columns_of, taken_of
from jmsapi.spark.schema import STAGED, ArrowCodec, batch_of, ids_of, read_rows
from jmsapi.spark.stream import ReadTask
from jmsapi.testing import LoopbackServer
from jmsapi_conformance.brokers import KINDS, Broker

WIRES = [pytest.param(f"{kind} {wire}", marks=pytest.mark.broker) for kind in KINDS for wire in ("stomp", "amqp")]


@pytest.fixture(params=["loopback", *WIRES])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "loopback":
        with LoopbackServer() as server:
            yield server.url
        return
    kind, wire = request.param.split()
    broker: Broker = request.getfixturevalue(kind)
    yield broker.url(wire)


def kinds_of(context: jmsapi.JMSContext) -> Iterator[jmsapi.Message]:
    """Make a message of each kind, and texts that are hard to carry."""
    yield context.create_text_message("plain")
    yield context.create_text_message("Grüße \U0001f600 \n\n a:b\\c \x01")
    yield context.create_text_message(None)
    yield context.create_text_message("")
    data = context.create_bytes_message()
    data.write_bytes(b"\n\n\x00\xff" * 5)
    yield data
    entries = context.create_map_message()
    for name, value in (("n", 1), ("long", jmsapi.Long(2**40)), ("text", "ü"), ("real", 2.5), ("raw", b"\x00"), ("none", None)):
        entries.set_object(name, value)
    yield entries
    items = context.create_stream_message()
    for value in (1, "x", None, True, jmsapi.Float(0.5)):
        items.write_object(value)
    yield items
    yield context.create_object_message({"a": [1, 2]})
    yield context.create_message()


def staged(url: str, fill: Callable[[jmsapi.JMSContext, jmsapi.Queue], int]) -> list[tuple[Taken, jmsapi.Message]]:
    """Send messages and take them as a claim does, but keep them."""
    found: list[tuple[Taken, jmsapi.Message]] = []
    with jmsapi.connection_factory(url).create_context() as context:
        queue = context.create_queue(f"frames.{uuid.uuid4().hex}")
        consumer = context.create_consumer(queue)
        count = fill(context, queue)
        while len(found) < count:
            message = consumer.receive(20_000)
            assert message is not None, f"{len(found)} of {count}"
            form = jmsapi.wire_form(message)
            name, times = message.jms_message_id, message.get_int_property("JMSXDeliveryCount")
            one = jmsapi.WireMessage(name, message.jms_timestamp, times, *(form or ("", b"")), None if form else message)
            found.append((taken_of(one, time.time_ns() // 1000), message))
    return found


def rows(data: memoryview, columns: Sequence[str] = COLUMNS) -> list[dict[str, Any]]:
    return [row for batch in read_rows([(data, frozenset())], 1, 0, columns, "PERMISSIVE") for row in batch.to_pylist()]


def as_received(found: Sequence[tuple[Taken, jmsapi.Message]]) -> list[dict[str, Any]]:
    """Return the rows of messages whose objects are at hand."""
    columns = columns_of([message for _, message in found], [one.received_us for one, _ in found], COLUMNS)
    made: list[dict[str, Any]] = batch_of(columns, STAGED).to_pylist()
    return made


def file_of(found: Sequence[tuple[Taken, jmsapi.Message]]) -> memoryview:
    return ArrowCodec().encode([one for one, _ in found])


def test_a_kept_message_that_cannot_be_decoded_at_all_is_a_row_with_its_bytes_and_stops_no_other() -> None:
    broker = {"product": "x", "version": "1", "queue-prefix": "", "topic-prefix": ""}
    how = "amqp:" + json.dumps({"broker": broker, "near": [0, "q"], "options": {}})
    sound = b"\x00\x53\x77\xa1\x04good"
    broken = b"\x00\x53\x73\xc0\xff\x05too short"
    count, at = 3, 1_700_000_000_000_000
    data = ArrowCodec().encode(
        [Taken(f"ID:{number}", at, at, count, how, wire, None, 0) for number, wire in enumerate((sound, broken, sound))]
    )
    found = rows(data)
    assert [row["text"] for row in found] == ["good", None, "good"]
    assert [row["error"] is None for row in found] == [True, False, True]
    assert found[1]["raw"] == found[1]["bytes"] == broken
    assert (found[1]["message_id"], found[1]["delivery_count"]) == ("ID:1", count)
    assert rows(data, ["text", "bytes"])[1] == {"text": None, "bytes": broken}
    assert rows(data, ["priority", "properties"])[1]["priority"] is None
    where = [(data, frozenset[str]())]
    assert sum(len(one) for one in read_rows(where, 1, 0, ["text"], "DROPMALFORMED")) == 2
    with pytest.raises(JMSException, match="FAILFAST"):
        list(read_rows(where, 1, 0, ["text"], "FAILFAST"))


def test_what_is_read_later_is_what_was_received(url: str) -> None:
    def fill(context: jmsapi.JMSContext, queue: jmsapi.Queue) -> int:
        producer = context.create_producer()
        producer.set_property("region", "EU: ü").set_property("count", jmsapi.Long(7)).set_property("flag", True)
        producer.set_jms_type("order").set_jms_correlation_id("c:1").set_jms_reply_to(context.create_queue("answers"))
        producer.set_priority(7).set_time_to_live(600_000)
        messages = list(kinds_of(context))
        for message in messages:
            producer.send(queue, message)
        return len(messages)

    found = staged(url, fill)
    assert all(one.message is None for one, _ in found)
    data = file_of(found)
    expected = as_received(found)
    assert [row["error"] for row in expected] == [None] * len(found)
    assert {row["body_type"] for row in expected} == {"text", "bytes", "map", "stream", "object", "message"}
    assert rows(data) == expected
    assert ids_of(data) == [one.message_id for one, _ in found]
    for columns in (["text"], ["message_id", "timestamp"], ["properties", "value", "redelivered"], ["delivery_count", "bytes"]):
        assert rows(data, columns) == [{name: row[name] for name in columns} for row in expected]
    password = url.rpartition("@")[0].rpartition(":")[2]
    for one, _ in found:
        how = one.how or ""
        assert "host" not in how and "127.0.0.1" not in how and "password" not in how
        assert f'"{password}"' not in how


@pytest.mark.broker
def test_what_strangers_send_is_read_later_as_it_was_received(each_place: Any) -> None:
    for wire in ("stomp", "amqp"):
        url = each_place.broker.url(wire)

        def fill(context: jmsapi.JMSContext, queue: jmsapi.Queue, wire: str = wire) -> int:
            return (strange_frames if wire == "stomp" else strange_messages)(each_place.broker, queue.queue_name)

        found = staged(url, fill)
        expected, later = as_received(found), rows(file_of(found))
        for before, after in zip(expected, later, strict=True):
            # Who says only how long a message lives leaves it to each reader's clock when that ends.
            ends = [row.pop("expiration") for row in (before, after)]
            assert ends == [None, None] or abs((ends[0] - ends[1]).total_seconds()) < 60
        assert later == expected


def strange_frames(broker: Broker, queue: str) -> int:
    """Send frames that no client of ours would: other character sets, repeated headers, no length."""
    kind = "/queue/" if "rabbit" in broker.kind else ""
    host, _, port = broker.url("stomp").rpartition("@")[2].rpartition(":")
    connection = stomp.Connection([(host, int(port))], vhost="/", auto_content_length=False)
    user, _, password = broker.url("stomp").partition("://")[2].rpartition("@")[0].partition(":")
    connection.connect(user, password, wait=True)
    texts = [
        ("text/plain;charset=iso-8859-1", "Grüße".encode("latin-1")),
        ("text/plain", "ü".encode()),
        ("application/json", b"{}"),
    ]
    for content_type, body in texts:
        connection.send(f"{kind}{queue}", body, content_type=content_type, headers={"own": "a:b", "persistent": "true"})
    connection.disconnect()
    return len(texts)


def strange_messages(broker: Broker, queue: str) -> int:
    """Send messages that JMS has no form for, and with a time to live and no time of expiry."""
    messages = [
        AmqpMessage(body={"a": [1, {"b": 2}]}),
        AmqpMessage(body=[1, [2, "x"], None]),
        AmqpMessage(body=b"\xff\xfe", content_type="text/plain", inferred=True),
        AmqpMessage(body="x", properties={"n": 5}, ttl=600.0, annotations={symbol("x-opt-mine"): "y"}),
    ]
    connection = BlockingConnection(broker.url("amqp"), allowed_mechs="PLAIN")
    sender = connection.create_sender(f"/queues/{queue}" if "rabbit" in broker.kind else queue)
    for message in messages:
        sender.send(message)
    connection.close()
    return len(messages)


READ = """
import sys
from pathlib import Path
from jmsapi.spark.schema import read_rows
data = memoryview(Path(sys.argv[1]).read_bytes())
for batch in read_rows([(data, frozenset())], 1, 0, ["text", "properties"], "PERMISSIVE"):
    print(batch.to_pylist())
"""


@pytest.mark.parametrize("wire", ["stomp", "amqp"])
@pytest.mark.broker
def test_another_process_reads_what_was_staged_without_the_broker(artemis: Broker, wire: str, tmp_path: Path) -> None:
    def fill(context: jmsapi.JMSContext, queue: jmsapi.Queue) -> int:
        context.create_producer().set_property("n", 5).send(queue, "hello")
        return 1

    (tmp_path / "file").write_bytes(file_of(staged(artemis.url(wire), fill)))
    told = subprocess.run([sys.executable, "-c", READ, str(tmp_path / "file")], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    assert "'text': 'hello'" in told.stdout and "('n', '5')" in told.stdout


def test_only_what_is_selected_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackServer() as server:
        with jmsapi.connection_factory(server.url).create_context() as context:
            for number in range(5):
                context.create_producer().send(context.create_queue("q"), f"m{number}")
        options = {"url": server.url, "queue": "q", "stagingLocation": str(tmp_path)}
        engine = Engine(read_options(SourceOptions, options))
        engine.log.open_batch(1)
        monkeypatch.setattr("jmsapi.spark.rows._body", lambda *_: pytest.fail("a body was decoded"))
        monkeypatch.setattr("jmsapi.spark.rows._properties", lambda *_: pytest.fail("properties were decoded"))
        batches = list(engine.read(ReadTask(1, 0, 5), ["message_id", "timestamp", "priority", "ingest_row"]))
        assert [row["ingest_row"] for batch in batches for row in batch.to_pylist()] == list(range(5))
        # None of these is a part of the frame that has to be read.
        monkeypatch.setattr(jmsapi, "wire_reader", lambda how: pytest.fail("a frame was decoded"))
        assert sum(len(one) for one in engine.read(ReadTask(1, 0, 5), ["message_id", "timestamp", "received_at"])) == 5


def test_messages_of_no_wire_are_staged_as_rows() -> None:
    def fill(context: jmsapi.JMSContext, queue: jmsapi.Queue) -> int:
        messages = list(kinds_of(context))
        for message in messages:
            context.create_producer().send(queue, message)
        return len(messages)

    found = staged(f"inproc://frames-{uuid.uuid4().hex}", fill)
    assert all(one.how is None for one, _ in found)
    assert rows(file_of(found)) == as_received(found)
    assert all(one.delivery_count == 1 for one, _ in found)
    # A round may have both kinds.
    with LoopbackServer() as server:
        mixed = [*found, *staged(server.url, fill)]
        assert rows(file_of(mixed)) == as_received(mixed)


@pytest.mark.parametrize(("how", "code"), [("nobody:{}", "unknown-scheme"), ("inproc:{}", "unsupported")])
def test_a_frame_that_nobody_reads_is_refused_by_name(how: str, code: str) -> None:
    with pytest.raises(JMSException, match=how.partition(":")[0]) as caught:
        jmsapi.wire_reader(how)
    assert caught.value.error_code == code


def test_a_row_says_the_same_whether_it_was_read_from_the_envelope_or_by_way_of_a_message(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(context: jmsapi.JMSContext, queue: jmsapi.Queue) -> int:
        producer = context.create_producer()
        values = (True, jmsapi.Byte(-3), jmsapi.Short(7), 5, jmsapi.Long(2**40), jmsapi.Float(0.1), 1e20, "\U0001f600 \x01", None)
        for number, value in enumerate(values):
            producer.set_property(f"p{number}", value)
        producer.set_property("JMSXGroupID", "g").set_property("JMSXGroupSeq", 3)
        messages = list(kinds_of(context))
        for number, message in enumerate(messages):
            if number % 2:
                message.jms_correlation_id = "ü:1"
            if number % 3 == 0:
                message.jms_reply_to = context.create_temporary_topic()
            producer.set_time_to_live(600_000 if number % 2 else 0).send(queue, message)
        return len(messages)

    data = file_of(staged(url, fill))
    by_message = 0
    read = RowReader.read

    def counted(reader: RowReader, message: Any) -> tuple[Any, ...]:
        nonlocal by_message
        by_message += 1
        return read(reader, message)

    monkeypatch.setattr(RowReader, "read", counted)
    selections = (COLUMNS, ["text", "bytes"], ["properties"], ["timestamp", "priority", "reply_to"], ["value", "value_types"])
    quick = [rows(data, columns) for columns in selections]
    assert by_message == 0, "nothing of these is out of the ordinary"
    monkeypatch.setattr("jmsapi.spark.frames._rows", lambda frames, reader: (reader.read(frames.message(n)) for n in range(9)))
    assert [rows(data, columns) for columns in selections] == quick
    assert by_message == 9 * len(selections)


def test_frames_of_a_provider_that_is_not_here_are_no_rows_with_an_error() -> None:
    data = ArrowCodec().encode([Taken("ID:1", 1, 1, 1, "nobody:{}", b"x", None, 0)])
    with pytest.raises(JMSException, match="nobody"):
        rows(data, ["text"])
