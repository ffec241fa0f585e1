"""The data source as Spark sees it. All work is in ``engine`` and ``sending``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from jmsapi.errors import JMSException
from jmsapi.spark.batch import BrowseReader, ConsumeReader, PushingReader
from jmsapi.spark.options import SinkOptions, SourceOptions, read_options, read_stream_sink
from jmsapi.spark.schema import DDL
from jmsapi.spark.sink import JmsStreamWriter, JmsWriter

if TYPE_CHECKING:
    from jmsapi.spark.stream_reader import JmsStreamReader

__all__ = ["JmsDataSource"]


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


def check_release(what: str, least: tuple[int, int], why: str) -> None:
    """Check that PySpark is new enough for something.

    Raises:
        JMSException: ``missing-extra``: it is older.
    """
    release = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if release < least:
        needed = ".".join(map(str, least))
        raise JMSException(
            f"{what} needs PySpark {needed} or newer, this is {pyspark.__version__}: {why}", "missing-extra"
        ) from None


def _types() -> Mapping[str, str]:
    """Return the type of each column; Spark's own parser needs a session, which these processes have not."""
    columns = (column.partition(" ") for column in DDL.split(", "))
    return {name: kind for name, _, kind in columns}


def _kinds(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


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
        options.check_stream()
        check_release("reading a stream", (4, 2), "earlier ones ask for more without saying where the last batch ended")
        from jmsapi.spark.stream_reader import JmsStreamReader

        return JmsStreamReader(options, selected(schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch: it looks at a queue, or consumes from it."""
        options = self._source()
        options.check_load()
        if options.read_mode == "consume":
            return ConsumeReader(options, selected(schema))
        if options.pushdown:
            check_release("pushdown", (4, 1), "earlier ones push no filters down")
        return (PushingReader if options.pushdown else BrowseReader)(options, selected(schema))

    def writer(self, schema: StructType, overwrite: bool) -> JmsWriter:
        """Return the writer of a batch."""
        if overwrite:
            raise JMSException('a queue cannot be overwritten; use .mode("append")', "unsupported") from None
        options = read_options(SinkOptions, self._options)
        options.check_job()
        return JmsWriter(options, _kinds(schema), options.job_id or "write")

    def streamWriter(self, schema: StructType, overwrite: bool) -> JmsStreamWriter:
        """Return the writer of a stream."""
        check_release("writing a stream", (4, 1), "earlier ones have no writer of Arrow batches")
        return JmsStreamWriter(read_stream_sink(self._options), _kinds(schema))

    def _source(self) -> SourceOptions:
        parallelism = str(min(1024, max(1, self.default_parallelism)))
        return read_options(SourceOptions, {"parallelism": parallelism, **self._options})
