"""What becomes of the parts of a message in a row, sound or not; and the variant form that Spark reads back."""

from __future__ import annotations

import string
import time
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

import jmsapi
from jmsapi.errors import JMSException
from jmsapi.spark.rows import COLUMNS, Taken, columns_of, taken_of
from jmsapi.spark.schema import ArrowCodec, browsed_rows, ids_of, newest_ms, read_rows
from jmsapi.spark.variant import encode_variant, java_type


def plain(message: jmsapi.Message) -> Taken:
    """Take a message that came by no wire."""
    return taken_of(
        jmsapi.WireMessage(message.jms_message_id, message.jms_timestamp, 1, "", b"", message), time.time_ns() // 1000
    )


def received(fill: Any) -> jmsapi.Message:
    """Return a message after its way through a broker."""
    with jmsapi.connection_factory(f"inproc://rows-{uuid.uuid4().hex}").create_context() as context:
        queue = context.create_queue("q")
        context.create_producer().send(queue, fill(context))
        message = context.create_consumer(queue).receive(5000)
        assert message is not None
        return message


def row_of(message: jmsapi.Message) -> dict[str, Any]:
    return {name: column[0] for name, column in columns_of([message], [1], COLUMNS).items()}


names = st.text(string.ascii_letters, min_size=1, max_size=8)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-128, 127).map(jmsapi.Byte),
    st.integers(-(2**15), 2**15 - 1).map(jmsapi.Short),
    st.integers(-(2**31), 2**31 - 1).map(jmsapi.Int),
    st.integers(-(2**63), 2**63 - 1).map(jmsapi.Long),
    st.floats(width=32, allow_nan=False).map(jmsapi.Float),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=100),
    st.binary(max_size=100),
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, values, max_size=12))
def test_spark_reads_a_map_as_it_was_written(body: dict[str, Any]) -> None:
    value, metadata = encode_variant(body)
    assert VariantVal(value, metadata).toPython() == body


@settings(max_examples=60, deadline=None)
@given(st.lists(values, max_size=300))
def test_spark_reads_a_stream_as_it_was_written(body: list[Any]) -> None:
    value, metadata = encode_variant(body)
    assert VariantVal(value, metadata).toPython() == body


def test_a_large_map_is_read_back() -> None:
    body = {f"name{number}": "x" * number for number in range(700)}
    value, metadata = encode_variant(body)
    assert VariantVal(value, metadata).toPython() == body


def test_a_value_that_jms_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        java_type(set())


def test_half_a_character_costs_a_row_its_text_but_keeps_the_bytes() -> None:
    message = received(lambda context: context.create_text_message("good"))

    # What we send is checked; what others sent is not.
    class Foreign(type(message)):  # type: ignore[misc]
        __slots__ = ()

        @property
        def text(self) -> str:
            return "good \ud800 bad"

    message.__class__ = Foreign
    row = row_of(message)
    assert row["text"] is None
    assert row["bytes"] == "good \ud800 bad".encode("utf-8", "surrogatepass")
    assert row["error"] == "text: UnicodeEncodeError"
    assert columns_of([message], [1], ["text"])["text"] == (None,)
    data = ArrowCodec().encode([plain(message)])
    where = [(data, frozenset[str]())]
    assert [batch.num_rows for batch in read_rows(where, 1, 0, ["error"], "PERMISSIVE")] == [1]
    assert list(read_rows(where, 1, 0, ["error"], "DROPMALFORMED")) == []
    with pytest.raises(JMSException, match="FAILFAST"):
        list(read_rows(where, 1, 0, ["error"], "FAILFAST"))


def test_a_part_that_cannot_be_read_costs_that_part_only() -> None:
    class Broken:
        def __init__(self, message: jmsapi.Message) -> None:
            self._message = message

        @property
        def jms_priority(self) -> int:
            raise KeyError("no such header")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._message, name)

    broken: Any = Broken(received(lambda context: context.create_text_message("text")))
    row = row_of(broken)
    assert row["error"] == "priority: KeyError"
    assert row["priority"] is None and row["message_id"] is not None


def test_rows_keep_their_numbers_whatever_is_left_out() -> None:
    messages = [received(lambda context, n=number: context.create_text_message(f"m{n}")) for number in range(4)]
    rows = [plain(message) for message in messages]
    data = ArrowCodec("none").encode(rows)
    first = rows[0].message_id
    assert first is not None and ids_of(data) == [row.message_id for row in rows]
    assert newest_ms(data) == max(message.jms_timestamp for message in messages)
    files = [(data, frozenset([first])), (data, frozenset[str]())]
    columns = ["text", "ingest_batch", "ingest_claim", "ingest_row"]
    found = [one for batch in read_rows(files, 7, 2, columns, "PERMISSIVE") for one in batch.to_pylist()]
    assert [one["text"] for one in found] == ["m1", "m2", "m3", "m0", "m1", "m2", "m3"]
    assert [one["ingest_row"] for one in found] == list(range(7))
    assert {(one["ingest_batch"], one["ingest_claim"]) for one in found} == {(7, 2)}
    assert browsed_rows(messages, [1, 2, 3, 4], ["text", "ingest_row"], "PERMISSIVE").to_pylist()[0] == {
        "text": "m0",
        "ingest_row": None,
    }
