"""Lets Spark find ``format("jms")`` by itself: it imports every top-level module whose name begins with ``pyspark_``.

A module that fails on import would break all Python data sources of a session, so this one imports PySpark only, and says
what is missing when the format is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Hands everything on to ``jmsapi.spark``.

    Args:
        options: Names in lower case, values as text.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        from jmsapi.spark.source import JmsDataSource

        self._source = JmsDataSource(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "jms"

    def schema(self) -> str:
        """Return the whole schema."""
        return self._source.schema()

    def reader(self, schema: StructType) -> Any:
        """Return the reader of a batch."""
        return self._source.reader(schema)

    def streamReader(self, schema: StructType) -> Any:
        """Return the reader of a stream."""
        return self._source.streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Return the writer of a batch."""
        return self._source.writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """Return the writer of a stream."""
        return self._source.streamWriter(schema, overwrite)
