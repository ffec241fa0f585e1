"""Writers: each task sends its rows in one session, in transactions where the broker has them. At least once.

A task that dies after a commit is run again from its first row: what it had committed comes twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import VariantVal

import jmsapi
from jmsapi import Session
from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.messages import Sender, check_columns
from jmsapi.spark.options import SinkOptions

__all__ = ["JmsStreamWriter", "JmsWriter", "Sent"]


@dataclass
class Sent(WriterCommitMessage):
    """What one task has sent."""

    messages: int


def _to_python(value: bytes, metadata: bytes) -> Any:
    return VariantVal(value, metadata).toPython()


def send_rows(options: SinkOptions, batches: Iterator[RecordBatch]) -> Sent:
    """Send all rows of a task; return when the broker has them.

    Raises:
        JMSError: The broker refused; the transaction that was open is rolled back, earlier ones stand.
    """
    sent = 0
    with options.factory().create_connection() as connection:
        transacted = bool(jmsapi.capabilities(connection).transactions)
        session = connection.create_session(Session.SESSION_TRANSACTED if transacted else Session.AUTO_ACKNOWLEDGE)
        sender = Sender(session, options, _to_python)
        for row in itertools.chain.from_iterable(batch.to_pylist() for batch in batches):
            sender.send(row)
            sent += 1
            if transacted and sent % options.transaction_messages == 0:
                session.commit()
        if transacted and sent % options.transaction_messages:
            session.commit()
    return Sent(sent)


class _Writing:
    """What both writers do: have each task send its rows.

    Args:
        options: Checked.
        columns: Of the rows.
    """

    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        check_columns(options, columns)
        self._options = options

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task."""
        return send_rows(self._options, iterator)


class JmsWriter(_Writing, DataSourceArrowWriter):
    """Writes a batch."""


class JmsStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes a stream."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: the tasks have committed."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: what tasks have committed stands, and comes again."""
