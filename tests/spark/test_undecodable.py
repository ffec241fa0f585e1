"""What foreign senders put on a queue and JMS has no form for: the row says so and has all the bytes, so nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import stomp
from conftest import Place
from proton import Described, Message, byte, symbol, timestamp, ulong
from proton.utils import BlockingConnection

import jmsapi
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions, read_options
from jmsapi.spark.stream import ReadTask

BAD = {
    "a time of sending after all times": Message(body="x", creation_time=1e15),
}
SOUND = {
    "a map in a map": (Message(body={"a": [1, {"b": 2}]}), "map", None),
    "a list in a list": (Message(body=[1, [2, "x"], None]), "stream", None),
    "a time after all times": (Message(body=timestamp(10**18)), "object", b"1000000000000000000"),
    "a described value": (Message(body=Described(symbol("x"), "y")), "object", b'"y"'),
    "a text message that is not UTF-8": (
        Message(body=b"\xff\xfe", content_type="text/plain", annotations={symbol("x-opt-jms-msg-type"): byte(5)}, inferred=True),
        "bytes",
        b"\xff\xfe",
    ),
    "data that is no text in its character set": (
        Message(body=b"\xff\xfe", content_type="text/plain", inferred=True),
        "bytes",
        b"\xff\xfe",
    ),
    "no body": (Message(body=None), "bytes", b""),
    "a number as id": (Message(id=ulong(5), body="x"), "text", None),
    "bytes as id": (Message(id=b"\x01\x02", body="x"), "text", None),
}


def rows_of(place: Place, folder: Path, count: int) -> list[dict[str, Any]]:
    """Claim and read what a queue has."""
    options = {**place.options, "stagingLocation": str(folder), "idleGap": "500ms", "firstWait": "5s"}
    engine = Engine(read_options(SourceOptions, options))
    engine.log.open_batch(1)
    columns = ("message_id", "body_type", "text", "bytes", "value", "properties", "error", "raw")
    found = [row for batch in engine.read(ReadTask(1, 0, count), columns) for row in batch.to_pylist()]
    assert place.left() == []
    return found


@pytest.mark.broker
def test_what_another_amqp_sender_made_is_a_row_with_all_its_bytes(artemis_place: Place, tmp_path: Path) -> None:
    # A consumer makes it a queue; a sender that says nothing of its kind would make it a topic.
    assert artemis_place.left() == []
    connection = BlockingConnection(artemis_place.full_url, allowed_mechs="PLAIN")
    sender = connection.create_sender(artemis_place.queue)
    for message in (*BAD.values(), *(message for message, _, _ in SOUND.values())):
        sender.send(message)
    connection.close()
    rows = rows_of(artemis_place, tmp_path, len(BAD) + len(SOUND))
    assert len(rows) == len(BAD) + len(SOUND)
    for name, row in zip(BAD, rows, strict=False):
        assert row["error"], name
        assert row["raw"], name
        assert row["text"] == "x", "the rest of it is read"
    for (name, (_, kind, data)), row in zip(SOUND.items(), rows[len(BAD) :], strict=True):
        assert row["error"] is None and row["raw"] is None, name
        assert (row["body_type"], row["bytes"]) == (kind, data), name
        assert row["bytes"] is not None or row["text"] is not None or row["value"] is not None, name


@pytest.mark.broker
def test_a_stomp_body_that_cannot_be_read_is_a_row_with_its_bytes(rabbitmq_place: Place, tmp_path: Path) -> None:
    # A frame of a jmsapi client whose body was cut.
    connection = stomp.Connection([("127.0.0.1", int(rabbitmq_place.full_url.rpartition(":")[2]))], vhost="/")
    connection.connect(rabbitmq_place.user, rabbitmq_place.password, wait=True)
    headers = {"JMS_PY_type": "Map", "transformation": "none", "persistent": "true"}
    connection.send(f"/queue/{rabbitmq_place.queue}", '{"a": {"t": "int", "v"', headers=headers)
    connection.disconnect()
    [row] = rows_of(rabbitmq_place, tmp_path, 1)
    assert row["error"]
    assert row["raw"].startswith(b"MESSAGE\n")
    assert row["bytes"] == b'{"a": {"t": "int", "v"'


def test_a_message_that_came_by_no_wire_has_none() -> None:
    with jmsapi.connection_factory("inproc://no-wire").create_context() as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, "x")
        message = context.create_consumer(queue).receive(1000)
        assert message is not None and jmsapi.wire_bytes(message) is None
        assert jmsapi.wire_bytes(context.create_text_message("never sent")) is None
