"""Send the messages of a file again, after somebody has corrected them.

    python requeue_corrected.py orders.json --url stomp://localhost:61613 --queue ORDERS

The file has a JSON object on each line, with the columns of `format("jms")` that it needs; `text` is enough. This is how such a
file is made of what lies in a dead letter queue:

    place = {"queue": "DLQ.ORDERS", "readMode": "consume", "stagingLocation": "/data/dead", "loadId": "monday"}
    dead = spark.read.format("jms").options(**broker, **place).load()
    dead.select("text", "type", "correlation_id", "properties", "property_types").write.json("/data/dead-orders")

Correct a copy of what was written there: beside its own files Spark keeps checksums. A run that fails may have sent a part of the
file; with --job-id the same run again sends only the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import SparkSession

import jmsapi.spark

SCHEMA = """text string, type string, correlation_id string, reply_to string, priority int,
properties map<string,string>, property_types map<string,string>"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return how many messages it sent."""
    parser = argparse.ArgumentParser(description="Send the messages of a corrected file.")
    parser.add_argument("file", help="JSON, a message on each line")
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--username")
    parser.add_argument("--password", help="better as env:NAME or file:PATH")
    parser.add_argument("--job-id", help="the same again continues; needs --staging")
    parser.add_argument("--staging", help="where the rows of a job are kept until they are sent")
    given = parser.parse_args(arguments)
    if (given.job_id is None) != (given.staging is None):
        parser.error("--job-id and --staging go together")
    options = {"url": given.url, "queue": given.queue}
    if given.username is not None:
        options |= {"username": given.username, "password": given.password}
    if given.job_id is not None:
        options |= {"delivery": "exactly-once", "jobId": given.job_id, "stagingLocation": given.staging}

    spark = SparkSession.builder.appName("requeue").getOrCreate()
    jmsapi.spark.register(spark)
    messages = spark.read.schema(SCHEMA).option("mode", "FAILFAST").json(given.file).cache()
    try:
        # A line that is no JSON ends the run here, before anything is sent: half a correction is none.
        count = messages.count()
        messages.write.format("jms").options(**options).mode("append").save()
    finally:
        messages.unpersist()
    return count


if __name__ == "__main__":
    print(f"{main()} messages sent")
