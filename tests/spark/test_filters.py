"""Spark's filters become a selector where both mean the same, and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
)
from test_readers import schema, texts

import jmsapi
from jmsapi.selector import compile_selector
from jmsapi.spark.filters import condition
from jmsapi.spark.source import JmsDataSource
from jmsapi.testing import LoopbackServer

NOON = datetime(2026, 5, 1, 12, 0, 0, 1500, tzinfo=UTC)
MS = 1777636800001


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (EqualTo(("type",), "it's"), "JMSType = 'it''s'"),
        (In(("type",), ("a", "b")), "JMSType IN ('a', 'b')"),
        (IsNull(("type",)), "JMSType IS NULL"),
        (IsNotNull(("type",)), "JMSType IS NOT NULL"),
        (EqualTo(("priority",), 4), "JMSPriority = 4"),
        (GreaterThan(("priority",), 4), "JMSPriority > 4"),
        (EqualTo(("delivery_mode",), "non-persistent"), "JMSDeliveryMode = 'NON_PERSISTENT'"),
        (GreaterThan(("timestamp",), NOON), f"JMSTimestamp > {MS}"),
        (GreaterThanOrEqual(("timestamp",), NOON), f"JMSTimestamp >= {MS + 1}"),
        (LessThan(("timestamp",), NOON), f"JMSTimestamp < {MS + 1}"),
        (LessThanOrEqual(("timestamp",), NOON), f"JMSTimestamp <= {MS}"),
        (EqualTo(("timestamp",), NOON), None),
        (GreaterThan(("timestamp",), NOON.replace(tzinfo=None)), None),
        (EqualTo(("priority",), 12), None),
        (EqualTo(("type",), 5), None),
        (GreaterThan(("type",), "a"), None),
        (In(("type",), ("a", 1)), None),
        (EqualTo(("text",), "x"), None),
        (EqualTo(("properties", "region"), "US"), None),
        (StringContains(("type",), "x"), None),
    ],
    ids=str,
)
def test_a_filter_and_its_selector(given: Any, expected: str | None) -> None:
    assert condition(given) == expected
    if expected is not None:
        compile_selector(expected)


def test_a_browser_asks_the_broker_for_less() -> None:
    with LoopbackServer() as server:
        with jmsapi.connection_factory(server.url).create_context() as context:
            for word, priority in (("a", 4), ("b", 7), ("a", 9)):
                producer = context.create_producer()
                producer.jms_type, producer.priority = word, priority
                producer.send(context.create_queue("q"), f"{word}{priority}")
        source = JmsDataSource({"url": server.url, "queue": "q", "pushdown": "true", "selector": "JMSPriority > 4"})
        reader: Any = source.reader(schema("text"))
        filters = [EqualTo(("type",), "a"), EqualTo(("text",), "never")]
        assert list(reader.pushFilters(filters)) == filters, "Spark looks at each again"
        assert texts(reader, reader.partitions()) == ["a9"]


def test_a_reader_that_is_not_asked_to_push_has_no_such_method_of_its_own() -> None:
    options = {"url": "stomp://127.0.0.1:1", "queue": "q"}
    assert "pushFilters" not in {
        name for one in type(JmsDataSource(options).reader(schema("text"))).__mro__[:1] for name in vars(one)
    }
    assert "pushFilters" in vars(type(JmsDataSource({**options, "pushdown": "true"}).reader(schema("text"))))
