"""A pipeline from a file: read from JMS, transform by SQL, write to files or to JMS.

[source]
url = "stomp://localhost:61613"
queue = "ORDERS"
stagingLocation = "/data/orders-staging"

[transform]
sql = "SELECT message_id, text, properties['region'] AS region FROM messages"

[sink]
format = "parquet"
path = "/data/orders"
partitionBy = ["region"]

[run]
checkpoint = "/data/orders-checkpoint"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jmsapi.errors import JMSException
from jmsapi.spark.options import SourceOptions, read_options, read_stream_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Pipeline", "read_pipeline", "run_pipeline"]

Value = str | bool | int | float
_INTERVAL: Final = re.compile(r"\d+ ?(s|m|h|seconds?|minutes?|hours?|milliseconds?)")
_VIEW: Final = "messages"
_LOOK_S: Final = 0.5


class Transform(BaseModel):
    """The table ``[transform]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sql: str = Field(min_length=1)
    """A query over the view ``messages``."""


class Sink(BaseModel):
    """The table ``[sink]``: format, and that format's own options."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    format: Literal["parquet", "json", "csv", "delta", "jms"]
    path: str | None = None
    partitionBy: tuple[str, ...] = ()  # the name that Spark's users know


class Run(BaseModel):
    """The table ``[run]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    checkpoint: str = Field(min_length=1)
    trigger: str = "available-now"
    """``available-now``: end with what is there; or an interval such as ``10 seconds``: go on."""
    name: str = "jmsapi-pipeline"


class Pipeline(BaseModel):
    """A whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    source: Mapping[str, Value]
    transform: Transform | None = None
    sink: Sink
    run: Run
    spark: Mapping[str, Value] = Field(default_factory=dict[str, Value])
    """Settings of the session, such as ``"spark.sql.shuffle.partitions" = 4``; ``master`` among them."""

    def source_options(self) -> dict[str, str]:
        """Return the options of the source as Spark takes them."""
        return texts(self.source)

    def sink_options(self) -> dict[str, str]:
        """Return the options of the sink as Spark takes them."""
        return texts(cast("Mapping[str, Value]", self.sink.model_extra or {}))


def texts(options: Mapping[str, Value]) -> dict[str, str]:
    """Return options as text."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def read_pipeline(file: Path) -> Pipeline:
    """Read and check a pipeline; connects to nothing and starts no Spark.

    Args:
        file: A TOML file.
    Returns:
        The pipeline, with every option of source and sink checked. The SQL is Spark's to check.
    Raises:
        JMSException: ``no-config``: no such file; ``bad-config``, ``bad-option``, ``unknown-option``, ``bad-staging``: what is
            wrong in it. No text holds a password.
    Threads: any.
    """
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise JMSException(f"{file}: {error.strerror}", "no-config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JMSException(f"{file}: {error}", "bad-config") from None
    try:
        pipeline = Pipeline.model_validate(data)
        problems = _problems(pipeline)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in details)
        raise JMSException(f"{file}: {told}", "bad-config") from None
    if problems:
        raise JMSException(f"{file}: {'; '.join(problems)}", "bad-config")
    return pipeline


def _problems(pipeline: Pipeline) -> list[str]:
    """Return what is wrong between the tables; raises what is wrong with an option."""
    read_options(SourceOptions, pipeline.source_options()).check_stream()
    found: list[str] = []
    sink, run = pipeline.sink, pipeline.run
    if sink.format == "jms":
        read_stream_sink({**pipeline.sink_options(), "checkpointLocation": run.checkpoint})
        if sink.path is not None or sink.partitionBy:
            found.append("sink: path and partitionBy are for files")
    elif sink.path is None:
        found.append(f"sink.path: is missing for {sink.format}")
    if pipeline.transform is not None and not re.search(rf"\b{_VIEW}\b", pipeline.transform.sql):
        found.append(f"transform.sql: reads nothing from the view {_VIEW}")
    if run.trigger != "available-now" and not _INTERVAL.fullmatch(run.trigger):
        found.append("run.trigger: is available-now or an interval such as 10 seconds")
    return found


def session_for(pipeline: Pipeline) -> SparkSession:
    """Return the session that a pipeline asks for; the running one if there is one."""
    import os
    import sys

    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    builder = builder.appName(pipeline.run.name)
    for name, value in texts(pipeline.spark).items():
        builder = builder.master(value) if name == "master" else builder.config(name, value)
    return cast("SparkSession", builder.getOrCreate())


def run_pipeline(
    pipeline: Pipeline, spark: SparkSession, progress: Callable[[str], None], stopping: Callable[[], bool] = lambda: False
) -> int:
    """Run a pipeline to its end, or until it is asked to stop.

    Args:
        pipeline: Checked.
        spark: A session.
        progress: Takes a line for each batch.
        stopping: Asked twice a second; True stops the query. What is staged by then is delivered by the next run.
    Returns:
        How many rows were read.
    Raises:
        JMSException: ``bad-config``: Spark refuses the SQL or an option; ``missing-extra``: PySpark is too old for streams.
        pyspark.errors.StreamingQueryException: The query failed.
    Threads: one.
    """
    import jmsapi.spark
    from jmsapi.spark.source import check_stream_release

    check_stream_release()
    jmsapi.spark.register(spark)
    query = _start(pipeline, spark)
    rows, last = 0, -1
    try:
        while True:
            ended = bool(query.awaitTermination(_LOOK_S))
            for batch in query.recentProgress:
                if int(batch["batchId"]) > last and batch["numInputRows"]:
                    last = int(batch["batchId"])
                    rows += int(batch["numInputRows"])
                    progress(_line(batch, rows))
            if ended:
                return rows
            if stopping():
                query.stop()
    finally:
        query.stop()


def _start(pipeline: Pipeline, spark: SparkSession) -> Any:
    from pyspark.errors import AnalysisException, ParseException

    sink, run = pipeline.sink, pipeline.run
    try:
        frame = spark.readStream.format("jms").options(**pipeline.source_options()).load()
        if pipeline.transform is not None:
            frame.createOrReplaceTempView(_VIEW)
            frame = spark.sql(pipeline.transform.sql)
        writer: Any = frame.writeStream.format(sink.format).queryName(run.name).options(**pipeline.sink_options())
        writer = writer.option("checkpointLocation", run.checkpoint)
        if sink.path is not None:
            writer = writer.option("path", sink.path)
        if sink.partitionBy:
            writer = writer.partitionBy(*sink.partitionBy)
        once = run.trigger == "available-now"
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=run.trigger)).start()
    except (AnalysisException, ParseException) as error:
        raise JMSException(f"Spark refuses the pipeline: {error}", "bad-config") from None


def _line(batch: Any, rows: int) -> str:
    seconds = batch["durationMs"].get("triggerExecution", 0) / 1000
    rate = batch["numInputRows"] / seconds if seconds else 0.0
    lead = str(batch["sources"][0].get("latestOffset") or "")
    waiting = ", more waiting" if re.search(r'"claims" ?: ?[1-9]', lead) else ""
    return f"batch {batch['batchId']}: {batch['numInputRows']} rows in {seconds:.1f} s, {rate:.0f}/s; {rows} in all{waiting}"
