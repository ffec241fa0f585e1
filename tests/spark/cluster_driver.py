"""One query on a cluster, as a program: its only argument says which, in JSON; its last line is the answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Run the query."""
    job = json.loads(sys.argv[1])
    from pyspark.sql import SparkSession

    import jmsapi.spark

    builder: Any = SparkSession.builder.master(job["master"]).appName("jmsapi cluster test")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.executor.memory": "500m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.locality.wait": "0",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.local.dir": job["place"],
        "spark.sql.warehouse.dir": f"{job['place']}/warehouse",
        **job["settings"],
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    jmsapi.spark.register(spark)
    folder = Path(job["folder"])
    if job["kind"] == "source":
        stream = spark.readStream.format("jms").options(**job["options"]).schema("text string").load()
        writer = stream.writeStream.format("parquet").option("path", f"{folder}/lake")
    else:
        lines = spark.readStream.format("text").load(f"{folder}/in").withColumnRenamed("value", "text").repartition(4)
        writer = lines.writeStream.format("jms").options(**job["options"])
    query = writer.option("checkpointLocation", f"{folder}/ck").trigger(availableNow=True).start()
    error = None
    try:
        query.awaitTermination(240)
    except Exception as failure:
        error = str(failure)
    rows: list[str] = []
    if (folder / "lake" / "_spark_metadata").exists():
        rows = [row.text for row in spark.read.schema("text string").parquet(f"{folder}/lake").collect()]
    print("answer " + json.dumps({"error": error, "rows": rows, "active": query.isActive}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
