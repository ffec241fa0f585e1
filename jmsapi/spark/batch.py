"""``spark.read``: look at a queue and leave everything there, or consume from it under a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql.datasource import DataSourceReader, InputPartition

from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.engine import Engine
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.rows import Row, row_of
from jmsapi.spark.schema import browsed_rows
from jmsapi.spark.staging import Store, open_store, self_test
from jmsapi.spark.stream import Work

__all__ = ["BrowseReader", "ConsumeReader", "WorkPartition", "load_store"]

_BATCH_ROWS = 2000
_NO_LIMIT = 1 << 40


def load_store(location: str, load_id: str) -> Store:
    """Return where the rows of a load are staged."""
    return open_store(f"{location.rstrip('/')}/load-{load_id}")


class WorkPartition(InputPartition):
    """A claim, as a partition."""

    def __init__(self, work: Work) -> None:
        super().__init__((work.seq, work.claim, work.cap))

    @property
    def work(self) -> Work:
        """Return the claim."""
        return Work(*self.value)


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
        waiting: list[Row] = []
        with options.factory().create_connection() as connection:
            connection.start()
            session = connection.create_session()
            browser = session.create_browser(session.create_queue(options.queue or ""), options.selector)
            for seen, message in enumerate(browser, 1):
                waiting.append(row_of(message))
                if len(waiting) == _BATCH_ROWS:
                    yield browsed_rows(waiting, self._columns, options.mode)
                    waiting = []
                if seen >= most:
                    break
        if waiting:
            yield browsed_rows(waiting, self._columns, options.mode)


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
        return Engine(self._options, load_store(self._options.staging_location or "", self._options.load_id or ""))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the claims; the same each time, whatever the options now say."""
        engine = self._engine()
        store = engine.log.store
        if not engine.log.deleted(1):
            store.make_folder("floor")
            self_test(store)
            engine.log.open_batch(1)
            most = self._options.max_messages or _NO_LIMIT
            claims = min(self._options.claims, most)
            engine.fix_plan(1, claims, -(-most // claims))
        return [WorkPartition(Work(1, claim, cap)) for claim, cap in engine.planned(1)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Stage a claim, or give what was staged."""
        assert isinstance(partition, WorkPartition)
        yield from self._engine().read(partition.work, self._columns)
