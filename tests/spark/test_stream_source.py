"""``spark.readStream.format("jms")`` on real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Look for no leaks: the sockets of this process belong to Spark's gateway, and all of ours are in others."""
    yield


def start(spark: SparkSession, options: dict[str, str], folder: Path, **more: str) -> Any:
    """Start a stream into files that ends with what is there."""
    stream = spark.readStream.format("jms").options(**options, stagingLocation=str(folder / "staging"), **more).load()
    return (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "lake"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def lake(spark: SparkSession, folder: Path) -> list[Any]:
    """Return the rows of the files, in their order."""
    return spark.read.parquet(str(folder / "lake")).orderBy("ingest_batch", "ingest_claim", "ingest_row").collect()


SMALL = {"leadMessages": "5", "roundMessages": "4", "parallelism": "2", "maxMessagesPerBatch": "15"}


@pytest.mark.timeout(600)
def test_a_queue_is_read_into_files_once(spark: SparkSession, place: Any, tmp_path: Path) -> None:
    place.send(*(f"m{number}" for number in range(25)), region="EU")
    query = start(spark, place.options, tmp_path, **SMALL)
    assert query.awaitTermination(300)
    rows = lake(spark, tmp_path)
    assert sorted(row.text for row in rows) == sorted(f"m{number}" for number in range(25))
    assert {row.properties["region"] for row in rows} == {"EU"}
    assert {row.destination for row in rows} == {f"queue://{place.queue}"}
    assert len({(row.ingest_batch, row.ingest_claim, row.ingest_row) for row in rows}) == 25
    assert {row.ingest_claim for row in rows} > {0}, "a full lead has others beside it"
    assert place.left() == []
    reported = [source["latestOffset"] for progress in query.recentProgress for source in progress["sources"]]
    assert any("lead" in str(one) for one in reported), "the progress shows our metrics"
    told = f"{query.recentProgress} {[str(path) + path.read_text(errors='replace') for path in tmp_path.rglob('offsets/*')]}"
    assert place.password not in told.replace(place.queue, "")
    place.send("later")
    assert start(spark, place.options, tmp_path).awaitTermination(300)
    assert [row.text for row in lake(spark, tmp_path)][25:] == ["later"], "the next run goes on"


@pytest.mark.timeout(600)
def test_two_branches_and_two_actions_see_the_same_rows(spark: SparkSession, classic_place: Any, tmp_path: Path) -> None:
    classic_place.send(*(f"m{number}" for number in range(12)))
    seen: list[list[str]] = []

    def both(batch: DataFrame, number: int) -> None:
        double = batch.union(batch).select("text")
        seen.append(sorted(row.text for row in double.collect()))
        seen.append(sorted(row.text for row in double.collect()))

    stream = spark.readStream.format("jms").options(**classic_place.options, stagingLocation=str(tmp_path / "staging"), **SMALL)
    frame = stream.schema("text string, message_id string").load()
    query = frame.writeStream.foreachBatch(both).option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
    assert query.start().awaitTermination(300)
    assert seen[0::2] == seen[1::2], "both actions of a batch are equal"
    assert sorted(one for rows in seen[0::2] for one in rows) == sorted([f"m{number}" for number in range(12)] * 2)
