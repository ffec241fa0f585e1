"""At least once: a task sends its rows in one session, in transactions where the broker has them.

A broker that goes away is waited for; what it has confirmed is not sent again. A task that dies after a commit is run again from
its first row, so what it had committed comes twice, unless the broker knows the rows by their duplicate ids.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jmsapi
from jmsapi import Connection, Session
from jmsapi.errors import JMSError, TransactionRolledBackException
from jmsapi.spark.claim import Step
from jmsapi.spark.messages import Columns, RowSender
from jmsapi.spark.options import SinkOptions
from jmsapi.spark.trouble import Patience

__all__ = ["Row", "Task", "TaskSender", "sender"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """The identity of a task: its query, batch and partition."""

    query: str = ""
    """Id of the query; it outlives restarts."""
    batch: int = 0
    partition: int = 0
    of_job: bool = False
    """It writes a job, and no batch of a stream."""
    run: str = ""
    """Of a job within ``foreachBatch``, the stream's query and batch."""


def sender(session: Session, options: SinkOptions, columns: Columns) -> RowSender:
    """Return what sends rows in a session."""
    from pyspark.sql.types import VariantVal

    return RowSender(session, options, columns, lambda value, metadata: VariantVal(value, metadata).toPython())


class TaskSender:
    """Sends the rows of one task.

    Args:
        options: Of the sink.
        columns: Of the rows.
        name: Begins each duplicate id: the same when the task is run again, another in each run of a job.
        task: Which task it is.
        step: For tests of crashes.
    Threads: one.
    """

    def __init__(self, options: SinkOptions, columns: Columns, name: str, task: Task, step: Step | None) -> None:
        self._options = options
        self._columns = columns
        self._name = name
        self._task = task
        self._step = step
        self._patience = Patience(options.broker_retry_timeout, "the jms sink")
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._sender: RowSender | None = None
        self._transacted = False
        self.sent = 0
        """Rows that are done."""
        self.dropped = 0
        """Those among them that the broker had already, by their duplicate ids."""
        self.dead = 0
        """Rows that could not be messages and went to the dead letter queue; again with each try."""

    def send(self, rows: Iterator[Row]) -> None:
        """Send all rows; return when the broker has them.

        Raises:
            JMSError: The broker refused, or was away for longer than ``brokerRetryTimeout``. What it had confirmed stands.
        """
        try:
            self._sending()
            while chunk := list(itertools.islice(rows, self._options.transaction_messages)):
                first = self.sent
                ids = [f"{self._name}-{self._task.partition}-{number}" for number in range(first, first + len(chunk))]
                number = first // self._options.transaction_messages
                self._told("deliver", number)
                while (done := self.sent - first) < len(chunk):
                    self._try(chunk[done:], ids[done:])
                self._told("delivered", number)
        finally:
            self._close()

    def _told(self, step: str, number: int) -> None:
        if self._step is not None:
            self._step(step, self._task.batch, self._task.partition, number)

    def _try(self, rows: Sequence[Row], ids: Sequence[str]) -> None:
        """Send rows as far as it goes; wait when the broker is away."""
        try:
            self._send(rows, ids)
        except JMSError as error:
            self._close()
            self._patience.wait(error)

    def _send(self, rows: Sequence[Row], ids: Sequence[str]) -> None:
        sending = self._sending()
        for row, duplicate_id in zip(rows, ids, strict=True):
            sending.send(row, duplicate_id)
            if not self._transacted:
                self._done(1)
        if not self._transacted:
            return
        assert self._session is not None
        try:
            self._session.commit()
        except TransactionRolledBackException:
            if self._options.duplicate_id_property is None:
                raise
            self._one_by_one(rows, ids)
        else:
            self._done(len(rows))

    def _one_by_one(self, rows: Sequence[Row], ids: Sequence[str]) -> None:
        """Send rows of which the broker has some: it refuses a transaction with one of those, and drops it by itself."""
        assert self._session is not None and self._connection is not None
        sending = self._sending()
        with self._connection.create_session(Session.AUTO_ACKNOWLEDGE) as single:
            dropping = sender(single, self._options, self._columns)
            for row, duplicate_id in zip(rows, ids, strict=True):
                sending.send(row, duplicate_id)
                try:
                    self._session.commit()
                except TransactionRolledBackException:
                    # Whatever else rolled it back raises here.
                    dropping.send(row, duplicate_id)
                    self.dropped += 1
                self._done(1)

    def _done(self, rows: int) -> None:
        self.sent += rows
        self._patience.done()

    def _sending(self) -> RowSender:
        while self._sender is None:
            try:
                self._connection = self._options.factory().create_connection()
                self._transacted = bool(jmsapi.capabilities(self._connection).transactions)
                self._session = self._connection.create_session(
                    Session.SESSION_TRANSACTED if self._transacted else Session.AUTO_ACKNOWLEDGE
                )
                self._sender = sender(self._session, self._options, self._columns)
            except JMSError as error:
                self._close()
                self._patience.wait(error)
        return self._sender

    def _close(self) -> None:
        self.dead += 0 if self._sender is None else self._sender.dead
        connection, self._connection, self._session, self._sender = self._connection, None, None, None
        if connection is not None:
            with suppress(JMSError):
                connection.close()
