"""The data source as Spark sees it, and the reader of a stream. All work is in ``engine``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from jmsapi.errors import JMSError, JMSException, JMSSecurityException
from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.batch import BrowseReader, ConsumeReader, WorkPartition
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SinkOptions, SourceOptions, read_options, read_stream_sink
from jmsapi.spark.schema import DDL
from jmsapi.spark.sink import JmsStreamWriter, JmsWriter
from jmsapi.spark.stream import Stream

__all__ = ["JmsDataSource", "JmsStreamReader"]

_RETRY_S: Final = 1.0


def selected(schema: StructType) -> tuple[str, ...]:
    """Return the columns that a query selects by ``.schema(...)``; all are the default.

    Raises:
        JMSException: ``bad-schema``: a column or type that the source does not have.
    """
    known = _types()
    for field in schema.fields:
        if field.name not in known:
            raise JMSException(
                f"the jms source has no column {field.name!r}; there are {', '.join(known)}", "bad-schema"
            ) from None
        if field.dataType.simpleString() != known[field.name]:
            raise JMSException(
                f"the column {field.name!r} of the jms source is {known[field.name]}, not {field.dataType.simpleString()}; "
                "cast it after loading",
                "bad-schema",
            ) from None
    return tuple(field.name for field in schema.fields)


def _types() -> Mapping[str, str]:
    """Return the type of each column; Spark's own parser needs a session, which these processes have not."""
    columns = (column.partition(" ") for column in DDL.split(", "))
    return {name: kind for name, _, kind in columns}


class JmsDataSource(DataSource):
    """``format("jms")``: made by Spark, in processes of its own.

    Args:
        options: Names in lower case, values as text.
    """

    default_parallelism = 2
    """Claims of a stream that does not say; ``register`` puts the session's own here."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "jms"

    def schema(self) -> str:
        """Return the whole schema; called by ``load()``, so the place for errors that should come at once."""
        self._source()
        return DDL

    def streamReader(self, schema: StructType) -> JmsStreamReader:
        """Return the reader of a stream."""
        options = self._source()
        options.check_staging()
        return JmsStreamReader(options, selected(schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch: it looks at a queue, or consumes from it."""
        options = self._source()
        options.check_load()
        kind = BrowseReader if options.read_mode == "browse" else ConsumeReader
        return kind(options, selected(schema))

    def writer(self, schema: StructType, overwrite: bool) -> JmsWriter:
        """Return the writer of a batch."""
        if overwrite:
            raise JMSException('a queue cannot be overwritten; use .mode("append")', "unsupported") from None
        options = read_options(SinkOptions, self._options)
        options.check_job()
        return JmsWriter(options, schema.names, options.job_id or uuid.uuid4().hex)

    def streamWriter(self, schema: StructType, overwrite: bool) -> JmsStreamWriter:
        """Return the writer of a stream."""
        return JmsStreamWriter(read_stream_sink(self._options), schema.names)

    def _source(self) -> SourceOptions:
        parallelism = str(min(1024, max(1, self.default_parallelism)))
        return read_options(SourceOptions, {"parallelism": parallelism, **self._options})


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream. Lives in the source process for planning, and in tasks for reading.

    Args:
        options: Checked.
        columns: Those selected.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._open: tuple[Engine, Stream[Any]] | None = None
        self._away_since: float | None = None
        self._waits = False
        self._report: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def _stream(self) -> Stream[Any]:
        if self._open is None:
            engine = Engine(self._options)
            self._open = engine, engine.stream()
        return self._open[1]

    # ---- planning -------------------------------------------------------------------------------------------------
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new checkpoint begins."""
        return self._stream().initial()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the most rows of a batch."""
        return ReadMaxRows(self._options.max_messages_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """End with what was sent before now."""
        self._waits = True
        self._stream().until(time.time() * 1000)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Stage the beginning of the next batch, if anything is there."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if most is None and not isinstance(limit, ReadAllAvailable):
            raise JMSException(f"the jms source does not know the limit {type(limit).__name__}", "unsupported")
        stream = self._stream()
        while True:
            end = stream.latest(start, most if most is not None else 1 << 40)
            trouble = stream.last.trouble
            self._report = {
                "seq": end["seq"],
                "lead": stream.last.rows,
                "claims": end["claims"],
                "brokerAway": trouble is not None,
            }
            if trouble is None or end != start:
                self._away_since = None
                return end
            self._pause(trouble)
            if not self._waits:
                return end

    def _pause(self, trouble: JMSError) -> None:
        """Let the stream wait for a broker that is away, but not for ever, and not with credentials it refuses."""
        now = time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        if isinstance(trouble, JMSSecurityException) or (now - self._away_since) * 1000 > self._options.broker_retry_timeout:
            raise trouble
        time.sleep(_RETRY_S)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return our metrics, which show as ``sources[].latestOffset`` in the query's progress."""
        return self._report

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the claims of a batch."""
        return [WorkPartition(work) for work in self._stream().partitions(start, end)]

    def commit(self, end: dict[str, Any]) -> None:
        """Seal batches that are done with."""
        self._stream().commit(end)

    def stop(self) -> None:
        """Close the connection of the lead."""
        if self._open is not None:
            self._open[0].receivers.close()
            self._open = None

    # ---- reading --------------------------------------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Claim messages, stage them, acknowledge, and give the rows; or give what an earlier attempt staged."""
        assert isinstance(partition, WorkPartition)
        yield from Engine(self._options).read(partition.work, self._columns)
