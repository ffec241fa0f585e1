"""The reader of a stream as Spark sees it. All work is in ``engine``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jmsapi.errors import JMSException
from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.batch import WorkPartition
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.stream import Stream
from jmsapi.spark.trouble import Patience

__all__ = ["JmsStreamReader"]


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
        self._patience = Patience(options.broker_retry_timeout, "the jms source")
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
                "moreWaiting": stream.last.rows > 0 and not stream.last.drained and trouble is None,
                "brokerAway": trouble is not None,
                **({"why": str(trouble)} if trouble is not None else {}),
                **({"before": stream.before} if stream.before else {}),
            }
            if trouble is None or end != start:
                self._patience.done()
                return end
            self._patience.wait(trouble)
            if not self._waits:
                return end

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
