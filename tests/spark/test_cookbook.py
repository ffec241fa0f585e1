"""The pipelines of docs/spark-cookbook.md, run as they stand, on servers in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jmsapi
from jmsapi.testing import LoopbackServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
PAGE = Path(__file__).parents[2] / "docs" / "spark-cookbook.md"


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: the sockets of this process belong to Spark's gateway."""
    yield


class Kitchen:
    """Two brokers, a folder and a session: what a recipe needs."""

    def __init__(self, spark: Any, place: Path, servers: list[LoopbackServer]) -> None:
        self.spark, self.place = spark, place
        self.urls = [server.url for server in servers]

    def cook(self, number: int) -> None:
        """Run a recipe to its end."""
        page = PAGE.read_text(encoding="utf-8")
        found = re.search(rf"^## {number}\. .*?```python\n(.*?)```", page, flags=re.DOTALL | re.MULTILINE)
        assert found is not None
        names: dict[str, Any] = {
            "spark": self.spark,
            "place": str(self.place),
            "broker": {"url": self.urls[0]},
            "other": {"url": self.urls[1]},
        }
        exec(compile(found[1], f"recipe {number}", "exec"), names)
        query = names.get("query")
        if query is not None:
            assert query.awaitTermination(240), "the query does not end"

    def send(self, queue: str, *bodies: Any, at: int = 0, topic: bool = False, **properties: Any) -> None:
        with jmsapi.connection_factory(self.urls[at]).create_context() as context:
            producer = context.create_producer()
            for name, value in properties.items():
                producer.set_property(name, value)
            destination = context.create_topic(queue) if topic else context.create_queue(queue)
            for body in bodies:
                producer.send(destination, body)

    def received(self, queue: str, at: int = 0) -> list[jmsapi.Message]:
        with jmsapi.connection_factory(self.urls[at]).create_context() as context:
            consumer = context.create_consumer(context.create_queue(queue))
            return list(iter(lambda: consumer.receive(500), None))

    def texts(self, queue: str, at: int = 0) -> list[str]:
        return sorted(one.get_body(str) or "" for one in self.received(queue, at))

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.read.parquet(f"{self.place}/{name}").selectExpr(*columns).collect())


@pytest.fixture
def kitchen(spark: SparkSession, tmp_path: Path) -> Iterator[Kitchen]:
    with LoopbackServer() as first, LoopbackServer() as second:
        yield Kitchen(spark, tmp_path, [first, second])


def test_the_page_has_eight_recipes() -> None:
    assert len(re.findall(r"^## \d\. ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)) == 8


def test_1_a_queue_to_files(kitchen: Kitchen) -> None:
    kitchen.send("ORDERS", "kettle", "pot", region="EU")
    kitchen.cook(1)
    assert kitchen.rows("orders", "text", "region") == [("kettle", "EU"), ("pot", "EU")]
    assert len(list((kitchen.place / "orders").glob("day=*"))) == 1


def test_2_a_topic_to_counts(kitchen: Kitchen) -> None:
    kitchen.cook(2)
    for symbol, count in (("A", 3), ("B", 2)):
        kitchen.send("TICKS", *["tick"] * count, topic=True, symbol=symbol)
    kitchen.cook(2)
    totals: dict[str, int] = {}
    for symbol, count in kitchen.rows("counts", "symbol", "count"):
        totals[symbol] = totals.get(symbol, 0) + count
    assert totals == {"A": 3, "B": 2}


def test_3_two_brokers_joined(kitchen: Kitchen) -> None:
    kitchen.send("ORDERS", "kettle", order="1")
    kitchen.send("ORDERS", "pot", order="2")
    kitchen.send("PAYMENTS", "25.00", at=1, order="1")
    kitchen.cook(3)
    assert kitchen.rows("paid-orders", "order_id", "what", "paid") == [("1", "kettle", "25.00")]


def test_4_json_with_a_schema(kitchen: Kitchen) -> None:
    kitchen.send("ORDERS", json.dumps({"id": 1, "total": 2.5, "tags": ["a"]}), "no json")
    kitchen.cook(4)
    assert kitchen.rows("orders", "id", "total", "tags") == [(1, 2.5, ["a"])]
    assert kitchen.texts("ORDERS.BAD") == ["no json"]


def test_5_requests_answered(kitchen: Kitchen) -> None:
    with jmsapi.connection_factory(kitchen.urls[0]).create_context() as context:
        for item in ("kettle", "spoon"):
            message = context.create_text_message(item)
            message.jms_reply_to = context.create_queue("ANSWERS")
            message.jms_correlation_id = f"about {item}"
            context.create_producer().send(context.create_queue("PRICES"), message)
    kitchen.cook(5)
    found = {one.jms_correlation_id: json.loads(one.get_body(str) or "") for one in kitchen.received("ANSWERS")}
    assert found == {"about kettle": {"item": "kettle", "price": 25.0}, "about spoon": {"item": "spoon"}}


def test_6_dead_letters_to_a_table_and_back(kitchen: Kitchen) -> None:
    kitchen.send("DLQ", " kettle ", "pot")
    kitchen.cook(6)
    assert kitchen.rows("letters/2026-05-01", "text") == [(" kettle ",), ("pot",)]
    assert kitchen.texts("ORDERS") == ["kettle", "pot"]
    assert kitchen.received("DLQ") == []


def test_7_from_one_broker_to_another(kitchen: Kitchen) -> None:
    kitchen.send("ORDERS", "kettle", {"a": jmsapi.Long(1)}, b"\x00\x01", region="EU", count=jmsapi.Short(3))
    kitchen.cook(7)
    found = {type(one).__name__: one for one in kitchen.received("ORDERS", at=1)}
    assert len(found) == 3
    for message in found.values():
        assert message.get_string_property("region") == "EU"
        assert getattr(message.get_object_property("count"), "jms_type", "") == "short"
    [text] = [one for one in found.values() if isinstance(one, jmsapi.TextMessage)]
    [entries] = [one for one in found.values() if isinstance(one, jmsapi.MapMessage)]
    assert text.text == "kettle" and entries.get_long("a") == 1
    assert kitchen.received("ORDERS") == []


def test_8_exactly_once_from_queue_to_queue(kitchen: Kitchen) -> None:
    kitchen.send("ORDERS", *(f"m{number}" for number in range(200)))
    kitchen.cook(8)
    assert kitchen.texts("ORDERS.UPPER") == sorted(f"M{number}" for number in range(200))
    assert kitchen.received("ORDERS") == []
