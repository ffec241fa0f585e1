"""The data source as Spark sees it. All work is in ``engine`` and ``sending``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from jmsapi.errors import JMSException
from jmsapi.spark.batch import BrowseReader, ConsumeReader, PushingReader
from jmsapi.spark.options import SinkOptions, SourceOptions, read_options, read_stream_sink
from jmsapi.spark.schema import DDL
from jmsapi.spark.sink import JmsStreamWriter, JmsWriter

__all__ = ["JmsDataSource", "check_stream_release"]


def selected(schema: StructType) -> tuple[str, ...]:
    """Return the columns that a query selects by ``.schema(...)``; all are the default.

    Raises:
        JMSException: ``bad-schema``: a column or type that the source does not have.
    """
    known = _types()
    names = [field.name for field in schema.fields]
    twice = [name for name in known if names.count(name) > 1]
    if twice:
        raise JMSException(f"the column {twice[0]!r} of the jms source is selected twice", "bad-schema") from None
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
    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < least:
        needed = ".".join(map(str, least))
        raise JMSException(
            f"{what} needs PySpark {needed} or newer, this is {pyspark.__version__}: {why}", "missing-extra"
        ) from None


def check_stream_release() -> None:
    """Check that PySpark is new enough for reading a stream.

    Raises:
        JMSException: ``missing-extra``: it is older.
    """
    check_release(
        "reading a stream",
        (4, 2),
        "earlier ones ask for more without saying where the last batch ended. There spark.read with readMode=consume takes what "
        "is on a queue, once for each loadId",
    )


class RefusingStreamReader(DataSourceStreamReader):
    """The reader of a stream that cannot be read: whatever it is asked for, it says why.

    An error of ``streamReader`` itself PySpark hides behind one of its own, since it has no reader to stop then.

    Args:
        error: What is wrong.
    """

    def __init__(self, error: JMSException) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:
        """Raise what is wrong."""
        raise self._error

    def latestOffset(self, start: object = None, limit: object = None) -> NoReturn:
        """Raise what is wrong."""
        raise self._error

    def partitions(self, start: object, end: object) -> NoReturn:
        """Raise what is wrong."""
        raise self._error

    def read(self, partition: object) -> NoReturn:
        """Raise what is wrong."""
        raise self._error


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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream; what is wrong is said by the first thing that Spark asks of it."""
        try:
            options = self._source()
            options.check_stream()
            columns = selected(schema)
            check_stream_release()
        except JMSException as error:
            return RefusingStreamReader(error)
        from jmsapi.spark.stream_reader import JmsStreamReader

        return JmsStreamReader(options, columns)

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
        check_release(
            "writing a stream", (4, 1), "earlier ones have no writer of Arrow batches. There foreachBatch can write each"
        )
        return JmsStreamWriter(read_stream_sink(self._options), _kinds(schema))

    def _source(self) -> SourceOptions:
        parallelism = str(min(1024, max(1, self.default_parallelism)))
        return read_options(SourceOptions, {"parallelism": parallelism, **self._options})
