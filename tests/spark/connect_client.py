"""A client of Spark Connect that has no Spark of its own: does with a queue what the data source offers, and prints what came.

Run with the port of the server, the URL of a broker, and a folder that the server sees.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import jmsapi.spark

_LONGEST_S = 240


def run(writer: Any, checkpoint: Path) -> None:
    """Run a stream to its end."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    if not query.awaitTermination(_LONGEST_S):
        raise TimeoutError("the query has not ended")


def main(port: str, url: str, folder: Path) -> dict[str, Any]:
    """Read and write, as batches and as streams.

    Args:
        port: Of the server.
        url: Of a broker.
        folder: For staging areas, checkpoints and files.
    Returns:
        What came, by what was done.
    """
    builder: Any = SparkSession.builder
    spark = builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    jmsapi.spark.register(spark)

    def options(queue: str, **more: str) -> dict[str, str]:
        return {"url": url, "queue": queue, **more}

    def look(queue: str) -> list[str]:
        return sorted(row.text for row in spark.read.format("jms").options(**options(queue)).load().collect())

    found: dict[str, Any] = {"kind": type(spark).__module__.split(".")[2], "browse": look("in")}
    consume = options("load", readMode="consume", stagingLocation=str(folder / "loads"), loadId="monday")
    found["consume"] = sorted(row.text for row in spark.read.format("jms").options(**consume).load().collect())
    rows = spark.createDataFrame([("a",), ("b",)], "text string")
    rows.write.format("jms").options(**options("written")).mode("append").save()
    found["write"] = look("written")
    stream = spark.readStream.format("jms").options(**options("in", stagingLocation=str(folder / "staging"))).load()
    run(stream.select("text").writeStream.format("json").option("path", str(folder / "lake")), folder / "ck-in")
    found["stream source"] = sorted(row.text for row in spark.read.schema("text string").json(str(folder / "lake")).collect())
    for queue, delivery in (("sent", "at-least-once"), ("sent-once", "exactly-once")):
        lake = spark.readStream.schema("text string").json(str(folder / "lake"))
        run(lake.writeStream.format("jms").options(**options(queue, delivery=delivery)), folder / f"ck-{queue}")
        found[f"stream sink, {delivery}"] = look(queue)
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
