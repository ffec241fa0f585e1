"""From rows to messages: every kind of column, what is refused when a write begins, and rows that cannot be messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.source import JmsDataSource
from jmsapi.spark.variant import encode_variant
from jmsapi.testing import LoopbackServer

MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
KINDS = {
    "int": "integer",
    "bigint": "long",
    "smallint": "short",
    "tinyint": "byte",
    "map<string,string>": MAP,
    "array<string>": {"type": "array", "elementType": "string", "containsNull": True},
    "struct<a:int,b:string>": {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "b", "type": "string", "nullable": True, "metadata": {}},
        ],
    },
}


def frame(**columns: str) -> StructType:
    fields = [{"name": name, "type": KINDS.get(kind, kind), "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return StructType.fromJson({"type": "struct", "fields": fields})


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


class Out:
    """A queue, and what is written to it."""

    def __init__(self, server: LoopbackServer, name: str) -> None:
        self.url, self.name = server.url, name

    def write(self, kinds: dict[str, str], rows: dict[str, Any], **options: str) -> Any:
        source = JmsDataSource({"url": self.url, "queue": self.name, **options})
        writer = source.writer(frame(**kinds), overwrite=False)
        return writer.write(iter([pa.record_batch(rows)]))

    def messages(self, queue: str | None = None) -> list[jmsapi.Message]:
        with jmsapi.connection_factory(self.url).create_context() as context:
            consumer = context.create_consumer(context.create_queue(queue or self.name))
            return list(iter(lambda: consumer.receive(300), None))


@pytest.fixture
def out(server: LoopbackServer, request: pytest.FixtureRequest) -> Out:
    return Out(server, request.node.name)


def text(message: jmsapi.Message) -> str | None:
    return message.get_body(str)


def test_a_value_as_kafka_has_it_is_a_text_or_bytes(out: Out) -> None:
    out.write({"value": "string"}, {"value": ["v", None]})
    out.write({"value": "binary"}, {"value": pa.array([b"v"], pa.binary())})
    first, empty, third = out.messages()
    assert (text(first), text(empty), third.get_body(bytes)) == ("v", None, b"v")


def test_a_row_without_a_body_is_of_the_kind_of_the_one_column_there_is(out: Out) -> None:
    out.write({"bytes": "binary"}, {"bytes": pa.array([None, b"a"], pa.binary())})
    assert [message.get_body(bytes) for message in out.messages()] == [b"", b"a"]
    out.write({"text": "string"}, {"text": pa.array([None], pa.string())})
    assert [text(message) for message in out.messages()] == [None]
    out.write({"text": "string", "bytes": "binary"}, {"text": ["a", None], "bytes": [None, b"b"]})
    assert [type(message).__name__[:5] for message in out.messages()] == ["TextM", "Bytes"]


def test_a_struct_or_an_array_is_json(out: Out) -> None:
    struct = pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    out.write({"value": "struct<a:int,b:string>"}, {"value": struct})
    out.write({"value": "array<string>"}, {"value": pa.array([["a", "b"]])})
    assert [json.loads(text(one) or "") for one in out.messages()] == [{"a": 1, "b": "x"}, ["a", "b"]]


def test_all_other_columns_are_a_body_of_json(out: Out) -> None:
    kinds = {
        "id": "bigint",
        "total": "decimal(10,2)",
        "day": "date",
        "at": "timestamp",
        "raw": "string",
        "tags": "map<string,string>",
    }
    del kinds["raw"]
    rows = {
        "id": pa.array([1], pa.int64()),
        "total": pa.array([Decimal("2.50")]),
        "day": pa.array([date(2026, 5, 1)]),
        "at": pa.array([datetime(2026, 5, 1, 12, tzinfo=UTC)]),
        "tags": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        "priority": pa.array([7], pa.int32()),
        "picture": pa.array([b"\x00\x01"]),
    }
    out.write({**kinds, "priority": "int", "picture": "binary"}, rows, otherColumns="json")
    [message] = out.messages()
    assert json.loads(text(message) or "") == {
        "id": 1,
        "total": 2.5,
        "day": "2026-05-01",
        "at": "2026-05-01T12:00:00+00:00",
        "tags": {"a": "b"},
        "picture": base64.b64encode(b"\x00\x01").decode(),
    }
    assert message.jms_priority == 7


def test_all_other_columns_are_properties_of_their_types(out: Out) -> None:
    kinds = {
        "text": "string",
        "id": "bigint",
        "count": "int",
        "good": "boolean",
        "rate": "double",
        "total": "decimal(10,2)",
        "none": "string",
    }
    rows = {
        "text": ["x"],
        "id": pa.array([1], pa.int64()),
        "count": pa.array([2], pa.int32()),
        "good": [True],
        "rate": [0.5],
        "total": [Decimal("2.50")],
        "none": pa.array([None], pa.string()),
    }
    out.write(kinds, rows, otherColumns="properties")
    [message] = out.messages()
    found = {name: message.get_object_property(name) for name in message.property_names if not name.startswith("JMSX")}
    assert found == {"id": 1, "count": 2, "good": True, "rate": 0.5, "total": "2.50"}
    assert found["id"].jms_type == "long"


@pytest.mark.parametrize(
    ("kinds", "options", "said"),
    [
        ({"text": "string", "total": "double"}, {}, "otherColumns=properties"),
        ({"text": "int"}, {}, "is string, not int; cast it"),
        ({"text": "string", "a-b": "string"}, {"otherColumns": "properties"}, "'a-b' cannot be properties"),
        ({"text": "string", "JMSXGroupID": "string"}, {"otherColumns": "properties"}, "'JMSXGroupID' cannot be properties"),
        ({"text": "string", "id": "int"}, {"otherColumns": "json"}, "otherColumns=json makes the body"),
        ({"id": "int"}, {"otherColumns": "properties"}, "needs a column text, bytes or value"),
        ({"text": "string"}, {"deadLetterQueue": "q"}, "is the queue that the rows go to"),
        ({"text": "string", "properties": "string"}, {}, "'properties' of the jms sink is map<string,string>, not string"),
        ({"text": "string", "correlation_id": "int"}, {"deadLetterQueue": "d"}, "'correlation_id' of the jms sink is string"),
        ({"text": "string", "delivery_mode": "int"}, {"deadLetterQueue": "d"}, "'delivery_mode' of the jms sink is string"),
        ({"a": "interval month"}, {"otherColumns": "json"}, "'a' of the jms sink has an interval of months"),
        ({"text": "string", "a": "interval year to month"}, {"otherColumns": "properties"}, "has an interval of months"),
        ({"text": "string"}, {"duplicateIdProperty": "JMSType"}, "duplicateIdProperty begins with JMS"),
    ],
)
def test_what_cannot_be_written_is_refused_when_the_write_begins(
    kinds: dict[str, str], options: dict[str, str], said: str
) -> None:
    with pytest.raises(JMSException, match=said):
        JmsDataSource({"url": "stomp://127.0.0.1:1", "queue": "q", **options}).writer(frame(**kinds), overwrite=False)


def variant(body: Any) -> Any:
    value, metadata = encode_variant(body)
    kind = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
    return pa.array([{"value": value, "metadata": metadata}], kind)


# {"price": 2.5} as Spark's parse_json writes it: a decimal.
DECIMAL = {"value": b"\x02\x01\x00\x00\x06\x20\x01\x19\x00\x00\x00", "metadata": b"\x01\x01\x00\x05price"}


@pytest.mark.parametrize(("types", "expected"), [({}, 2.5), ({"price": "double"}, 2.5), ({"price": "float"}, 2.5)])
def test_a_fraction_of_parsed_json_is_a_double_unless_said_otherwise(out: Out, types: dict[str, str], expected: float) -> None:
    kind = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
    rows = {
        "value": pa.array([DECIMAL], kind),
        "value_types": pa.array([list(types.items())], pa.map_(pa.string(), pa.string())),
    }
    out.write({"value": "variant", "value_types": "map<string,string>"}, rows)
    [message] = out.messages()
    assert isinstance(message, jmsapi.MapMessage)
    price: Any = message.get_object("price")
    assert price == expected
    assert getattr(price, "jms_type", "double") == (types.get("price") or "double")


def entries(name: str, value: str) -> Any:
    return pa.array([[(name, value)]], pa.map_(pa.string(), pa.string()))


MAPS = "map<string,string>"
BAD_ROWS: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"priority": "int"}, {"priority": pa.array([12], pa.int32())}, "column 'priority': ValueError"),
    ({"properties": MAPS}, {"properties": entries("a-b", "secret")}, "column 'properties.a-b'"),
    (
        {"properties": MAPS, "property_types": MAPS},
        {"properties": entries("n", "secret"), "property_types": entries("n", "int")},
        "column 'properties.n': ValueError",
    ),
    ({"body_type": "string"}, {"body_type": ["secret"]}, "column 'body_type'"),
    ({"delivery_mode": "string"}, {"delivery_mode": ["secret"]}, "column 'delivery_mode'"),
    ({"reply_to": "string"}, {"reply_to": ["secret://x"]}, "column 'reply_to'"),
    ({"time_to_live": "bigint"}, {"time_to_live": pa.array([-5], pa.int64())}, "column 'time_to_live': ValueError"),
    ({"time_to_live": "double"}, {"time_to_live": [1e300]}, "column 'time_to_live'"),
    ({"delivery_delay": "bigint"}, {"delivery_delay": pa.array([-5], pa.int64())}, "column 'delivery_delay'"),
    ({"bytes": "binary"}, {"bytes": [b"secret"]}, "columns 'text' and 'bytes': a message has one body"),
    (
        {"body_type": "string", "bytes": "binary"},
        {"text": pa.array([None], pa.string()), "body_type": ["text"], "bytes": [b"secret"]},
        "column 'text'",
    ),
]


@pytest.mark.parametrize(("kinds", "rows", "said"), BAD_ROWS, ids=[said for _, _, said in BAD_ROWS])
def test_an_error_names_the_column_and_no_value(out: Out, kinds: dict[str, str], rows: dict[str, Any], said: str) -> None:
    with pytest.raises(JMSException) as caught:
        out.write({"text": "string", **kinds}, {"text": ["secret"], **rows})
    assert caught.value.error_code == "bad-row"
    assert said in str(caught.value) and "secret" not in str(caught.value)
    assert out.messages() == []


BAD_NAME = "queue://secret\x00name"


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize(
    ("kinds", "rows"),
    [
        ({"destination": "string"}, {"destination": ["queue://{name}", BAD_NAME]}),
        ({"time_to_live": "bigint"}, {"time_to_live": pa.array([0, -1], pa.int64())}),
        ({"delivery_delay": "double"}, {"delivery_delay": [0.0, 1e200]}),
    ],
    ids=["destination", "time_to_live", "delivery_delay"],
)
def test_what_only_a_broker_would_refuse_is_the_row_s_own_fault_and_waits_for_nobody(
    out: Out, kinds: dict[str, str], rows: dict[str, Any], delivery: str, tmp_path: Path
) -> None:
    [column] = kinds
    if column == "destination":
        rows = {column: [one.replace("{name}", out.name) for one in rows[column]]}
    place = {"url": out.url} if column == "destination" else {"url": out.url, "queue": out.name}
    # Whoever took it for trouble with the broker would wait for so long.
    place |= {"delivery": delivery, "brokerRetryTimeout": "10m"}
    if delivery == "exactly-once":
        place |= {"stagingLocation": str(tmp_path), "jobId": "monday"}
    batch = pa.record_batch({"text": ["a", "b"], **rows})
    source = JmsDataSource(place)
    with pytest.raises(JMSException, match=f"column '{column}'") as caught:
        source.writer(frame(text="string", **kinds), overwrite=False).write(iter([batch]))
    assert caught.value.error_code == "bad-row" and "secret" not in str(caught.value)
    dead = f"{out.name}.dead"
    writer = JmsDataSource({**place, "deadLetterQueue": dead}).writer(frame(text="string", **kinds), overwrite=False)
    writer.commit([writer.write(iter([batch]))])
    assert [text(one) for one in out.messages()] == ["a"]
    [letter] = out.messages(dead)
    assert json.loads(text(letter) or "")["text"] == "b"


def test_a_row_that_only_the_wire_refuses_is_taken_out_of_a_batch_that_is_fixed(out: Out, tmp_path: Path) -> None:
    place = {"url": out.url, "queue": out.name, "delivery": "exactly-once", "stagingLocation": str(tmp_path), "jobId": "monday"}
    batch = pa.record_batch({"text": ["a", "b", "c"], "correlation_id": ["1", "secret\0", "3"]})

    def save(**more: str) -> None:
        options = {**place, "transactionMessages": "1", **more}
        writer = JmsDataSource(options).writer(frame(text="string", correlation_id="string"), overwrite=False)
        writer.commit([writer.write(iter([batch]))])

    for _ in range(2):
        with pytest.raises(JMSException, match=r"batch 0: .* has a NUL.* with deadLetterQueue it goes on") as caught:
            save()
        assert caught.value.error_code == "bad-row" and "secret" not in str(caught.value)
    dead = f"{out.name}.dead"
    save(deadLetterQueue=dead)
    assert [text(one) for one in out.messages()] == ["a", "c"]
    assert len(out.messages(dead)) == 1


def test_decimals_in_json_keep_all_their_digits(out: Out) -> None:
    exact = Decimal("12345678901234567890.1234567890")
    rows = {
        "a": pa.array([exact], pa.decimal128(38, 10)),
        "b": pa.array(
            [{"c": [Decimal("0.10"), exact, None], "d": 'x"y'}],
            pa.struct([("c", pa.list_(pa.decimal128(38, 10))), ("d", pa.string())]),
        ),
    }
    out.write({"a": "decimal(38,10)", "b": "array<string>"}, rows, otherColumns="json")
    [message] = out.messages()
    assert text(message) is not None
    found = json.loads(text(message) or "", parse_float=Decimal)
    assert found == {"a": exact, "b": {"c": [Decimal("0.1"), exact, None], "d": 'x"y'}}


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_rows_that_cannot_be_messages_go_to_the_dead_letter_queue(
    out: Out, delivery: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead = f"{out.name}.dead"
    options = {"deadLetterQueue": dead, "delivery": delivery}
    if delivery == "exactly-once":
        options |= {"stagingLocation": str(tmp_path), "jobId": "monday"}
    source = JmsDataSource({"url": out.url, "queue": out.name, **options})
    writer = source.writer(frame(text="string", priority="int"), overwrite=False)
    rows = pa.record_batch({"text": ["a", "b", "c"], "priority": pa.array([4, 12, None], pa.int32())})
    writer.commit([writer.write(iter([rows]))])
    assert [text(one) for one in out.messages()] == ["a", "c"]
    [letter] = out.messages(dead)
    assert json.loads(text(letter) or "") == {"text": "b", "priority": 12}
    assert letter.get_string_property("jmsapi_error") == "column 'priority': ValueError"
    assert delivery == "exactly-once" or "1 of 3 rows cannot be messages" in caplog.text
