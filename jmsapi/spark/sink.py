"""Writers. At least once: each task sends its rows, see ``sending``. Exactly once: tasks stage their rows, and the ledger sends
them from ``commit``.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql import datasource as api
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

import jmsapi
from jmsapi import Session
from jmsapi.errors import JMSException
from jmsapi.spark.arrow import RecordBatch, pa
from jmsapi.spark.engine import step_hook
from jmsapi.spark.ledger import SinkLedger
from jmsapi.spark.messages import Columns, check_columns
from jmsapi.spark.options import SinkOptions
from jmsapi.spark.outbox import File, JobRows, Outbox
from jmsapi.spark.sending import Row, Task, TaskSender, sender
from jmsapi.spark.staging import check_shared, open_store, take

__all__ = ["JmsStreamWriter", "JmsWriter", "Staged", "TaskCommit"]

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as _StreamWriter
else:
    # PySpark 4.0 has no other, and is refused before it is used.
    _StreamWriter = getattr(api, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
_FILE_BYTES: Final = 8 << 20
_JOB_BATCH: Final = 0
_log: Final = logging.getLogger("jmsapi.spark")


@dataclass
class TaskCommit(WriterCommitMessage):
    """What one task has sent."""

    messages: int
    dropped: int = 0
    """Number of messages that the broker had already, by their duplicate ids."""
    dead: int = 0
    """Number of messages that went to the dead letter queue."""


@dataclass
class Staged(WriterCommitMessage):
    """What one task has staged."""

    query: str
    """Id of the query."""
    partition: int
    files: tuple[File, ...]
    job: JobRows = field(default_factory=JobRows)
    """What the rows are known by."""


def this_task() -> Task:
    """Return which task this process runs."""
    context = TaskContext.get()
    if context is None:
        return Task()
    batch = context.getLocalProperty("streaming.sql.batchId")
    query = context.getLocalProperty("sql.streaming.queryId")
    return Task(query or "", _JOB_BATCH if batch is None else int(batch), context.partitionId())


def rows_of(data: memoryview) -> Iterator[Row]:
    """Give the rows of a staged file."""
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        for number in range(reader.num_record_batches):
            yield from reader.get_batch(number).to_pylist(maps_as_pydicts="lossy")


# ---- exactly once -----------------------------------------------------------------------------------------------------
def stage_rows(options: SinkOptions, columns: Columns, outbox: Outbox, batches: Iterator[RecordBatch], task: Task) -> Staged:
    """Stage all rows of a task.

    Each is made into a message first, in a broker of this process: what cannot be sent fails its task, and not the batch when
    it is fixed for ever.

    Raises:
        JMSException: ``bad-row``: a row cannot be a message.
    """
    step = step_hook()
    if step is not None:
        step("stage", task.batch, task.partition, 0)
    outbox.open(task.batch)
    files: list[File] = []
    waiting: list[RecordBatch] = []
    rows = JobRows(run=task.run)
    with jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection() as connection:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        trial = sender(session, options, columns)
        for batch in batches:
            for row in batch.to_pylist(maps_as_pydicts="lossy"):
                trial.send(row)
                if task.of_job:
                    rows += JobRows.of(row, task.run)
            session.rollback()
            waiting.append(batch)
            if sum(one.nbytes for one in waiting) >= _FILE_BYTES:
                files += _stage(outbox, task.batch, waiting)
                waiting = []
    files += _stage(outbox, task.batch, waiting)
    if step is not None:
        step("staged", task.batch, task.partition, 0)
    return Staged(task.query, task.partition, tuple(files), rows)


def _stage(outbox: Outbox, batch: int, batches: Sequence[RecordBatch]) -> list[File]:
    rows = sum(one.num_rows for one in batches)
    if not rows:
        return []
    target = pa.BufferOutputStream()
    with pa.ipc.new_file(target, batches[0].schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for one in batches:
            writer.write_batch(one)
    return [(outbox.stage(batch, memoryview(target.getvalue())), rows)]


class _Writing(ABC):
    """What both writers do.

    Args:
        options: Checked.
        columns: Of the rows, with their types.
        name: Of the job, for duplicate ids; a stream's own is known to its tasks.
    """

    def __init__(self, options: SinkOptions, columns: Columns, name: str = "") -> None:
        check_columns(options, columns)
        self._options = options
        self._columns = dict(columns)
        self._name = options.sink_id or name
        self._started = uuid.uuid4().hex[:12]
        """Names this run of a job; travels to the tasks."""
        self._mark = take(self._outbox().store) if options.once else ""

    @property
    def _place(self) -> str:
        return (self._options.staging_location or "").rstrip("/")

    def _outbox(self) -> Outbox:
        return Outbox(open_store(self._place))

    def _task(self) -> Task:
        return this_task()

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task, or stage them."""
        task = self._task()
        if self._options.once:
            check_shared(self._outbox().store, self._mark)
            return stage_rows(self._options, self._columns, self._outbox(), iterator, task)
        rows = itertools.chain.from_iterable(batch.to_pylist(maps_as_pydicts="lossy") for batch in iterator)
        delivery = TaskSender(self._options, self._columns, self._run(task), task, step_hook())
        delivery.send(rows)
        return TaskCommit(delivery.sent, delivery.dropped, delivery.dead)

    @abstractmethod
    def _run(self, task: Task) -> str:
        """Return what begins the duplicate ids of a run: nobody else's, and the same when a task of the run is run again."""

    def _say(self, messages: Sequence[WriterCommitMessage | None], where: str) -> None:
        sent = [one for one in messages if isinstance(one, TaskCommit)]
        rows, dropped, dead = (sum(getattr(one, what) for one in sent) for what in ("messages", "dropped", "dead"))
        if dropped:
            _log.warning(
                "the jms sink: the broker dropped %d of %d rows%s: it has their duplicate ids already", dropped, rows, where
            )
        if dead:
            queue = self._options.dead_letter_queue
            _log.warning("the jms sink: %d of %d rows%s cannot be messages and are in the queue %r", dead, rows, where, queue)

    def _commit(self, messages: Sequence[WriterCommitMessage | None], batch: int, owner: str, *, last: bool) -> None:
        check_shared(self._outbox().store, self._mark)
        staged = sorted((one for one in messages if isinstance(one, Staged)), key=lambda one: one.partition)
        files = [(one.partition, file) for one in staged for file in one.files]
        options = self._options
        ledger = SinkLedger(
            options, self._outbox(), owner, lambda session: sender(session, options, self._columns), rows_of, step_hook()
        )
        job = sum((one.job for one in staged), JobRows(place=self._options.place, url=self._options.url)) if last else None
        ledger.commit(batch, files, last=last, job=job)


class JmsWriter(_Writing, DataSourceArrowWriter):
    """Writes a batch."""

    @property
    def _place(self) -> str:
        return f"{super()._place}/job-{self._options.job_id}"

    def _task(self) -> Task:
        # Within foreachBatch tasks know a batch of the stream, which is none of this job.
        task = super()._task()
        return replace(task, batch=_JOB_BATCH, of_job=True, run=f"{task.query}/{task.batch}" if task.query else "")

    def _run(self, task: Task) -> str:
        return f"{self._name}-{self._started}"

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Send what is staged, if nothing was sent yet."""
        if self._options.once:
            self._commit(messages, _JOB_BATCH, self._options.job_id or "", last=True)
        self._say(messages, "")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: what is sent stands, what is staged waits for the next run of the job."""


class JmsStreamWriter(_Writing, _StreamWriter):
    """Writes a stream."""

    def _run(self, task: Task) -> str:
        # A new checkpoint begins with batch 0 again, whatever the sink is called.
        return "-".join(filter(None, (self._options.sink_id, task.query, str(task.batch))))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Send what is staged; nothing when the tasks have sent."""
        if not self._options.once:
            self._say(messages, f" of batch {batchId}")
            return
        queries = {one.query for one in messages if isinstance(one, Staged)}
        if not queries:
            return
        if len(queries) > 1 or "" in queries:
            raise JMSException("the jms sink: Spark did not tell the tasks which query they belong to", "unsupported")
        self._commit(messages, batchId, queries.pop(), last=False)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: what was sent stands; what is staged and not sent is deleted with its batch."""
