"""Writers. At least once: each task sends its rows in one session, in transactions where the broker has them; a task that dies
after a commit is run again from its first row, so what it had committed comes twice. Exactly once: tasks stage their rows, and
the ledger sends them from ``commit``.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import VariantVal

import jmsapi
from jmsapi import Session
from jmsapi.errors import JMSException, TransactionRolledBackException
from jmsapi.spark.arrow import RecordBatch, pa
from jmsapi.spark.engine import step_hook
from jmsapi.spark.ledger import Ledger
from jmsapi.spark.messages import Sender, check_columns
from jmsapi.spark.options import SinkOptions
from jmsapi.spark.outbox import File, Outbox
from jmsapi.spark.staging import open_store

__all__ = ["JmsStreamWriter", "JmsWriter", "Sent", "Staged"]

_FILE_BYTES: Final = 8 << 20
_JOB_BATCH: Final = 0
Row = Mapping[str, Any]


@dataclass
class Sent(WriterCommitMessage):
    """What one task has sent."""

    messages: int


@dataclass
class Staged(WriterCommitMessage):
    """What one task has staged."""

    query: str
    """Id of the query."""
    partition: int
    files: tuple[File, ...]


@dataclass(frozen=True)
class Task:
    """Which task this is."""

    query: str = ""
    batch: int = _JOB_BATCH
    partition: int = 0


def this_task() -> Task:
    """Return which task this process runs."""
    context = TaskContext.get()
    if context is None:
        return Task()
    batch = context.getLocalProperty("streaming.sql.batchId")
    query = context.getLocalProperty("sql.streaming.queryId")
    return Task(query or "", _JOB_BATCH if batch is None else int(batch), context.partitionId())


def sender(session: Session, options: SinkOptions) -> Sender:
    """Return what sends rows in a session."""
    return Sender(session, options, lambda value, metadata: VariantVal(value, metadata).toPython())


def rows_of(data: memoryview) -> Iterator[Row]:
    """Give the rows of a staged file."""
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        for number in range(reader.num_record_batches):
            yield from reader.get_batch(number).to_pylist()


# ---- at least once ----------------------------------------------------------------------------------------------------
def send_rows(options: SinkOptions, batches: Iterator[RecordBatch], task: Task, name: str) -> Sent:
    """Send all rows of a task; return when the broker has them.

    Args:
        options: Of the sink.
        batches: The rows.
        task: Which task it is.
        name: Of sink or job, for duplicate ids.
    Raises:
        JMSError: The broker refused; the transaction that was open is rolled back, earlier ones stand.
    """
    step = step_hook()
    rows = itertools.chain.from_iterable(batch.to_pylist() for batch in batches)
    sent = 0
    with options.factory().create_connection() as connection:
        transacted = bool(jmsapi.capabilities(connection).transactions)
        session = connection.create_session(Session.SESSION_TRANSACTED if transacted else Session.AUTO_ACKNOWLEDGE)
        sending = sender(session, options)
        while chunk := list(itertools.islice(rows, options.transaction_messages)):
            ids = [f"{name}-{task.batch}-{task.partition}-{number}" for number in range(sent, sent + len(chunk))]
            _send_chunk(sending, chunk, ids)
            number = sent // options.transaction_messages
            if step is not None:
                step("deliver", task.batch, task.partition, number)
            if transacted:
                try:
                    session.commit()
                except TransactionRolledBackException:
                    if options.duplicate_id_property is None:
                        raise
                    # A broker that drops duplicates refuses a transaction with one: one by one it drops them only.
                    with connection.create_session(Session.AUTO_ACKNOWLEDGE) as single:
                        _send_chunk(sender(single, options), chunk, ids)
            sent += len(chunk)
            if step is not None:
                step("delivered", task.batch, task.partition, number)
    return Sent(sent)


def _send_chunk(sending: Sender, rows: Sequence[Row], ids: Sequence[str]) -> None:
    for row, duplicate_id in zip(rows, ids, strict=True):
        sending.send(row, duplicate_id)


# ---- exactly once -----------------------------------------------------------------------------------------------------
def stage_rows(options: SinkOptions, outbox: Outbox, batches: Iterator[RecordBatch], task: Task) -> Staged:
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
    with jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_connection() as connection:
        session = connection.create_session(Session.SESSION_TRANSACTED)
        trial = sender(session, options)
        for batch in batches:
            for row in batch.to_pylist():
                trial.send(row)
            session.rollback()
            waiting.append(batch)
            if sum(one.nbytes for one in waiting) >= _FILE_BYTES:
                files += _stage(outbox, task.batch, waiting)
                waiting = []
    files += _stage(outbox, task.batch, waiting)
    if step is not None:
        step("staged", task.batch, task.partition, 0)
    return Staged(task.query, task.partition, tuple(files))


def _stage(outbox: Outbox, batch: int, batches: Sequence[RecordBatch]) -> list[File]:
    rows = sum(one.num_rows for one in batches)
    if not rows:
        return []
    target = pa.BufferOutputStream()
    with pa.ipc.new_file(target, batches[0].schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for one in batches:
            writer.write_batch(one)
    return [(outbox.stage(batch, memoryview(target.getvalue())), rows)]


class _Writing:
    """What both writers do.

    Args:
        options: Checked.
        columns: Of the rows.
        name: Of the job, for duplicate ids; a stream's own is known to its tasks.
    """

    def __init__(self, options: SinkOptions, columns: Sequence[str], name: str = "") -> None:
        check_columns(options, columns)
        self._options = options
        self._name = options.sink_id or name

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
            return stage_rows(self._options, self._outbox(), iterator, task)
        return send_rows(self._options, iterator, task, self._name or task.query)

    def _commit(self, messages: Sequence[WriterCommitMessage | None], batch: int, owner: str, *, last: bool) -> None:
        staged = sorted((one for one in messages if isinstance(one, Staged)), key=lambda one: one.partition)
        files = [(one.partition, file) for one in staged for file in one.files]
        options = self._options
        ledger = Ledger(options, self._outbox(), owner, lambda session: sender(session, options), rows_of, step_hook())
        ledger.commit(batch, files, last=last)


class JmsWriter(_Writing, DataSourceArrowWriter):
    """Writes a batch."""

    @property
    def _place(self) -> str:
        return f"{super()._place}/job-{self._options.job_id}"

    def _task(self) -> Task:
        # Within foreachBatch tasks know a batch of the stream, which is none of this job.
        return replace(super()._task(), batch=_JOB_BATCH)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Send what is staged, if nothing was sent yet."""
        if self._options.once:
            self._commit(messages, _JOB_BATCH, self._options.job_id or "", last=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing: what is sent stands, what is staged waits for the next run of the job."""


class JmsStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes a stream."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Send what is staged; nothing when the tasks have sent."""
        if not self._options.once:
            return
        queries = {one.query for one in messages if isinstance(one, Staged)}
        if not queries:
            return
        if len(queries) > 1 or "" in queries:
            raise JMSException("the jms sink: Spark did not tell the tasks which query they belong to", "unsupported")
        self._commit(messages, batchId, queries.pop(), last=False)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: what was sent stands; what is staged and not sent is deleted with its batch."""
