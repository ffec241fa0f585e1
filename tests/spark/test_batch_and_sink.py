"""``spark.read`` and ``write.format("jms")`` on real brokers, and what ``load()`` and ``save()`` refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jmsapi
import jmsapi.spark
from jmsapi.testing import LoopbackServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: the sockets of this process belong to Spark's gateway, and all of ours are in others."""
    yield


def test_browsing_leaves_the_messages_and_consuming_gives_them_again_until_they_are_released(
    spark: SparkSession, classic_place: Any, tmp_path: Path
) -> None:
    classic_place.send("a", "b", "c")
    look = spark.read.format("jms").options(**classic_place.options)
    assert [row.text for row in look.load().collect()] == ["a", "b", "c"]
    assert look.option("maxMessages", "2").load().count() == 2
    consume = spark.read.format("jms").options(
        **classic_place.options, readMode="consume", stagingLocation=str(tmp_path), loadId="monday"
    )
    frame = consume.load()
    assert sorted(row.text for row in frame.collect()) == ["a", "b", "c"]
    assert classic_place.left() == []
    assert frame.count() == 3
    assert sorted(row.text for row in consume.load().collect()) == ["a", "b", "c"], "another job, the same name"
    jmsapi.spark.release(str(tmp_path), "monday")
    with pytest.raises(Exception, match="released"):
        consume.load().collect()


def test_a_stream_is_written_to_a_queue_and_a_frame_to_another(
    spark: SparkSession, classic_place: Any, artemis_place: Any, tmp_path: Path
) -> None:
    classic_place.send("a", "b", "c")
    stream = spark.readStream.format("jms").options(**classic_place.options, stagingLocation=str(tmp_path / "staging")).load()
    writer = stream.writeStream.format("jms").options(**artemis_place.options)
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert classic_place.left() == []
    look = spark.read.format("jms").options(**artemis_place.options).load()
    look.write.format("jms").options(**classic_place.options).mode("append").save()
    assert sorted(artemis_place.left(3)) == ["a", "b", "c"]
    assert sorted(classic_place.left(3)) == ["a", "b", "c"]


def test_a_job_is_saved_once_alone_and_for_each_batch_of_a_stream(spark: Any, classic_place: Any, tmp_path: Path) -> None:
    once = {**classic_place.options, "delivery": "exactly-once", "stagingLocation": str(tmp_path / "staging")}
    name = classic_place.queue.replace(".", "-")
    frame = spark.createDataFrame([("a",), ("b",), ("c",)], "text string").repartition(2)
    for _ in range(2):
        frame.write.format("jms").options(**once, jobId=name).mode("append").save()
    assert sorted(classic_place.left(3)) == ["a", "b", "c"]
    (tmp_path / "in").mkdir()
    for text in ("one", "two"):
        (tmp_path / "in" / text).write_text(f"{text}\n", encoding="utf-8")

    def twice(batch: Any, number: int) -> None:
        for _ in range(2):
            rows = batch.withColumnRenamed("value", "text")
            rows.write.format("jms").options(**once, jobId=f"{name}-{number}").mode("append").save()

    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    query = lines.writeStream.foreachBatch(twice).option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
    assert query.start().awaitTermination(300)
    assert sorted(classic_place.left(2)) == ["one", "two"]


def test_a_job_with_one_name_for_all_batches_of_a_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for text in ("one", "two"):
        (tmp_path / "in" / text).write_text(f"{text}\n", encoding="utf-8")
    with LoopbackServer() as server:
        once = {"url": server.url, "queue": "q", "delivery": "exactly-once", "stagingLocation": str(tmp_path / "staging")}

        def save(batch: Any, number: int) -> None:
            for _ in range(2):
                batch.withColumnRenamed("value", "text").write.format("jms").options(**once, jobId="orders").mode("append").save()

        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
        query = lines.writeStream.foreachBatch(save).option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
        with pytest.raises(Exception, match=r"job 'orders' is done, in batch 0 of a stream, .* here it has those of batch 1"):
            query.start().awaitTermination(300)
        with jmsapi.connection_factory(server.url).create_context() as context:
            found = [message.get_body(str) for message in context.create_browser(context.create_queue("q"))]
    assert len(found) == 1


def test_load_says_at_once_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    good = {"url": "stomp://localhost:61613", "queue": "q", "username": "u", "password": "hunter2"}
    for change, text in (
        ({"leadMesages": "3"}, "did you mean leadMessages"),
        ({"url": "inproc://x"}, "lives in one process"),
        ({"url": "stomp://me:pw@localhost"}, "use username and password"),
        ({"selector": "price >"}, "price >"),
        ({"readMode": "steal"}, "readMode"),
    ):
        with pytest.raises(AnalysisException) as caught:
            spark.read.format("jms").options(**{**good, **change}).load()
        assert text in str(caught.value)
        assert "hunter2" not in str(caught.value) and "pw@" not in str(caught.value)


PIPELINE = """
[source]
SOURCE
stagingLocation = "/data/staging"
[transform]
sql = "SELECT text, properties['region'] AS region FROM messages"
[sink]
format = "parquet"
path = "/data/orders"
partitionBy = ["region"]
[run]
checkpoint = "/data/checkpoint"
"""


def test_a_pipeline_runs_from_a_queue_to_files_partitioned_by_a_property(spark: Any, classic_place: Any, tmp_path: Path) -> None:
    from jmsapi.spark.pipeline import read_pipeline, run_pipeline

    classic_place.send("kettle", "pot", region="EU")
    classic_place.send("pan", region="US")
    source = "\n".join(f'{name} = "{value}"' for name, value in classic_place.options.items())
    text = PIPELINE.replace("SOURCE", source).replace("/data/", f"{tmp_path}/")
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    lines: list[str] = []
    assert run_pipeline(read_pipeline(file), spark, lines.append) == 3
    assert "3 rows" in lines[0]
    rows = spark.read.parquet(str(tmp_path / "orders")).collect()
    assert sorted((row.region, row.text) for row in rows) == [("EU", "kettle"), ("EU", "pot"), ("US", "pan")]
