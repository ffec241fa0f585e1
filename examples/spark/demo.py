"""Orders from a queue to a lake, with nothing to set up: `make demo-spark`, or python demo.py.

It starts a loopback server, which is a broker in this process that others reach over STOMP; sends it the orders of an hour;
reads them with Spark into parquet files, each once; shows what the lake has, and draws the orders of each minute.
It needs jmsapi[spark,stomp], Java 17, and matplotlib for the chart (examples/spark/requirements.txt).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jmsapi
import jmsapi.spark
from jmsapi.testing import LoopbackServer

QUEUE = "ORDERS"
REGIONS = ("EU", "US", "ASIA")


def produce(url: str, count: int, seed: int) -> None:
    """Send orders that were placed in the hour before noon, more and more until half past, then fewer."""
    chance = random.Random(seed)
    begin = datetime(2026, 1, 5, 11, tzinfo=UTC)
    with jmsapi.connection_factory(url).create_context(session_mode=jmsapi.JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue(QUEUE)
        for number in range(count):
            placed = begin + timedelta(minutes=chance.triangular(0, 60, 30))
            order = {"order": number, "placed": placed.isoformat(), "total": round(chance.uniform(5, 500), 2)}
            context.create_producer().set_property("region", chance.choice(REGIONS)).send(queue, json.dumps(order))
            if number % 1000 == 999:
                context.commit()
        context.commit()


def ingest(spark: SparkSession, url: str, folder: Path) -> None:
    """Read what is on the queue into the lake: the stream of the page, that ends with what is there."""
    orders = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("queue", QUEUE)
        .option("stagingLocation", f"{folder}/staging")
        .load()
    )
    query = (
        orders.select("message_id", "timestamp", "text", orders.properties["region"].alias("region"))
        .writeStream.format("parquet")
        .option("path", f"{folder}/orders")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def lake(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the lake's rows with what their text says."""
    order = F.from_json("text", "order long, placed timestamp, total double")
    return spark.read.parquet(f"{folder}/orders").withColumn("event", order)


def draw(minutes: list[Any], file: Path) -> None:
    """Draw rows of `minute` (in seconds since 1970), `region` and `count` as bars that stand on each other."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import dates
    from matplotlib import pyplot as plt

    times = sorted({row.minute for row in minutes})
    counts = {(row.minute, row.region): row["count"] for row in minutes}
    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    places = [datetime.fromtimestamp(time, UTC) for time in times]
    below = [0] * len(times)
    for region in REGIONS:
        heights = [counts.get((time, region), 0) for time in times]
        axes.bar(places, heights, width=timedelta(seconds=48), bottom=below, label=region)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))
    axes.set_xlabel("minute of JMSTimestamp, UTC")
    axes.set_ylabel("messages per minute")
    axes.set_title(f"{sum(below):,} orders")
    axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when the lake has each order once."""
    parser = argparse.ArgumentParser(description="Orders from a queue to a lake, with a chart.")
    parser.add_argument("--orders", type=int, default=10_000, metavar="N", help="how many are sent")
    parser.add_argument("--folder", type=Path, default=Path("build/demo-spark"), help="for lake, checkpoint and chart; emptied")
    parser.add_argument("--no-chart", action="store_true", help="when matplotlib is not there")
    given = parser.parse_args(arguments)
    folder: Path = given.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # A busy machine: worker and JVM may be slow to find each other.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    spark = builder.master("local[2]").appName("orders").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    jmsapi.spark.register(spark)
    with LoopbackServer() as server:
        print(f"a broker at {server.url}")
        began = time.monotonic()
        produce(server.url, given.orders, seed=1)
        print(f"{given.orders} orders sent in {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        ingest(spark, server.url, folder)
        print(f"ingested in {time.monotonic() - began:.1f} s, Spark's start included")
    rows = lake(spark, folder)
    total = rows.agg(F.count("*").alias("rows"), F.countDistinct("event.order").alias("orders")).collect()[0]
    by_region = rows.groupBy("region").agg(F.count("*").alias("orders"), F.round(F.sum("event.total"), 2).alias("total"))
    by_region.orderBy("region").show()
    minute = F.unix_seconds(F.date_trunc("minute", "event.placed")).alias("minute")
    minutes = rows.groupBy(minute, "region").count().collect()
    spread = len({row.minute for row in minutes})
    print(f"in the lake: {total['rows']} rows, {total['orders']} different orders, spread over {spread} minutes")
    if not given.no_chart:
        draw(minutes, folder / "orders-per-minute.png")
        print(f"chart: {folder / 'orders-per-minute.png'}")
    return 0 if total["rows"] == total["orders"] == given.orders else 1


if __name__ == "__main__":
    raise SystemExit(main())
