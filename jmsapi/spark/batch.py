"""``spark.read``: look at a queue and leave everything there, or consume from it under a name."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsapi import Message
from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.engine import Engine
from jmsapi.spark.filters import condition
from jmsapi.spark.loads import LOAD_SEQ, load_store
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.schema import browsed_rows
from jmsapi.spark.staging import self_test, take
from jmsapi.spark.stream import BatchPlan, ReadTask

__all__ = ["BrowseReader", "ConsumeReader", "PushingReader", "WorkPartition"]

_BATCH_ROWS = 2000
_NO_LIMIT = 1 << 40


class WorkPartition(InputPartition):
    """A claim, as a partition."""

    def __init__(self, work: ReadTask) -> None:
        super().__init__((work.seq, work.claim, work.cap, work.mark))

    @property
    def work(self) -> ReadTask:
        """Return the claim."""
        return ReadTask(*self.value)


class BrowseReader(DataSourceReader):
    """Reads what is on a queue, and leaves it there. Each action looks anew.

    Args:
        options: Checked.
        columns: Those selected.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition: a queue has one browser."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Give the messages as they lie."""
        options = self._options
        most = options.max_messages or _NO_LIMIT
        waiting: list[Message] = []
        times: list[int] = []
        with options.factory().create_connection() as connection:
            connection.start()
            session = connection.create_session()
            browser = session.create_browser(session.create_queue(options.queue or ""), options.selector)
            for seen, message in enumerate(browser, 1):
                waiting.append(message)
                times.append(time.time_ns() // 1000)
                if len(waiting) == _BATCH_ROWS:
                    yield browsed_rows(waiting, times, self._columns, options.mode)
                    waiting, times = [], []
                if seen >= most:
                    break
            if waiting:
                yield browsed_rows(waiting, times, self._columns, options.mode)


class PushingReader(BrowseReader):
    """A browser that asks the broker for what Spark would keep. Spark looks at each row again, so the broker may give too many.

    Merely having ``pushFilters`` makes Spark refuse the reader while its own setting is off, hence a class of its own.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take note of what a selector can say; called once."""
        asked = [one for one in (self._options.selector, *map(condition, filters)) if one]
        if asked:
            selector = " AND ".join(f"({one})" for one in asked)
            self._options = self._options.model_copy(update={"selector": selector})
        return filters


class ConsumeReader(DataSourceReader):
    """Consumes once under a name: the first action stages, later ones, in this job or another, give the same rows.

    Args:
        options: Checked.
        columns: Those selected.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def _engine(self) -> Engine:
        return Engine(self._options, load=load_store(self._options.staging_location or "", self._options.load_id or ""))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the claims; the same each time, whatever the options now say."""
        engine = self._engine()
        store = engine.log.store
        mark = take(store)
        if not engine.log.deleted(LOAD_SEQ):
            store.make_folder("floor")
            self_test(store)
            engine.log.open_batch(LOAD_SEQ)
            most = self._options.max_messages or _NO_LIMIT
            claims = min(self._options.claims, most)
            engine.fix_plan(LOAD_SEQ, BatchPlan.share(most, claims))
        return [WorkPartition(ReadTask(LOAD_SEQ, claim, cap, mark)) for claim, cap in engine.planned(LOAD_SEQ)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Stage a claim, or give what was staged."""
        assert isinstance(partition, WorkPartition)
        yield from self._engine().read(partition.work, self._columns)
