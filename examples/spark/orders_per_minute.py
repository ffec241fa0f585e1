"""Count orders by minute and region as they come.

    python orders_per_minute.py --url stomp://localhost:61613 --queue ORDERS --folder /data/orders

JMSTimestamp is the time of an order. A minute is written once, when an order of two minutes later has been seen: so late may
an order be and still count. What is counted goes to parquet files by way of one checkpoint; run it as often as you like.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jmsapi.spark


def main(arguments: Sequence[str] | None = None) -> None:
    """Count what is there, and end."""
    parser = argparse.ArgumentParser(description="Count orders by minute and region.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--username")
    parser.add_argument("--password", help="better as env:NAME or file:PATH")
    parser.add_argument("--folder", required=True, help="absolute path; counts, checkpoint and staging area go there")
    given = parser.parse_args(arguments)
    options = {"url": given.url, "queue": given.queue, "stagingLocation": f"{given.folder}/staging"}
    if given.username is not None:
        options |= {"username": given.username, "password": given.password}

    spark = SparkSession.builder.appName("orders per minute").getOrCreate()
    jmsapi.spark.register(spark)
    orders = spark.readStream.format("jms").options(**options).load()
    counts = (
        orders.withWatermark("timestamp", "2 minutes")
        .groupBy(F.window("timestamp", "1 minute"), orders.properties["region"].alias("region"))
        .count()
        .select(F.col("window.start").alias("minute"), "region", "count")
    )
    query = (
        counts.writeStream.format("parquet")
        .outputMode("append")
        .option("path", f"{given.folder}/per-minute")
        .option("checkpointLocation", f"{given.folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
