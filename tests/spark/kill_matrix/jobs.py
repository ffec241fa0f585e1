"""What a driver does in the kill matrix: one query to its end. Runs in a program of its own, or in a test's session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

_QUERY_S = 150.0


def do(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Do one job.

    Args:
        spark: A session.
        job: ``kind`` is ``source``, ``sink`` or ``rows``; ``folder`` is where all of the case lies; ``options`` are for
            ``format("jms")``; ``partitions`` is how many a sink's rows have; ``stop`` is a file that stops the query.
    Returns:
        ``error``: how the query failed, or None; ``rows``: of the lake.
    """
    if job["kind"] == "rows":
        return {"error": None, "rows": _lake(spark, Path(job["folder"]))}
    writer = _source(spark, job) if job["kind"] == "source" else _sink(spark, job)
    return {"error": _finish(writer.trigger(availableNow=True).start(), job.get("stop")), "rows": []}


def _source(spark: Any, job: dict[str, Any]) -> Any:
    folder = job["folder"]
    stream = spark.readStream.format("jms").options(**job["options"], stagingLocation=f"{folder}/staging")
    frame = stream.schema("text string").load()
    return frame.writeStream.format("parquet").option("path", f"{folder}/lake").option("checkpointLocation", f"{folder}/ck")


def _sink(spark: Any, job: dict[str, Any]) -> Any:
    folder = job["folder"]
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(f"{folder}/in")
    lines = lines.withColumnRenamed("value", "text")
    if job["partitions"] != 2:
        lines = lines.repartition(job["partitions"])
    return lines.writeStream.format("jms").options(**job["options"]).option("checkpointLocation", f"{folder}/ck")


def _finish(query: Any, stop: str | None) -> str | None:
    from pyspark.errors import StreamingQueryException

    until = time.monotonic() + _QUERY_S
    try:
        while not query.awaitTermination(0.2):
            if time.monotonic() > until:
                return f"not done after {_QUERY_S:.0f} s"
            if stop is not None and Path(stop).exists():
                query.stop()
                return "stopped"
    except StreamingQueryException as error:
        return str(error)
    finally:
        query.stop()
    return None


def _lake(spark: Any, folder: Path) -> list[str]:
    """Return what Spark's sink holds by its own log; files of attempts that failed do not count."""
    if not (folder / "lake" / "_spark_metadata").exists():
        return []
    return [row.text for row in spark.read.schema("text string").parquet(str(folder / "lake")).collect()]
