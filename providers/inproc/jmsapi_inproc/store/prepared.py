"""Prepared transaction branches in the file of a stored broker.

What a branch has sent waits under a number of its own, which no queue has; what it has acknowledged stays where it is and is
recorded in ``branch_work``, so that nothing delivers it. Both end with the branch and not before: neither expiry nor a restart
removes what a branch holds, whatever its delivery mode.

Every method is called under the broker's lock.

Spec: 8.3.5-2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

from jmsapi.spi import BranchId
from jmsapi_inproc.messages import QueuedMessage, StoredMessage
from jmsapi_inproc.queue import BrokerQueue
from jmsapi_inproc.store.keys import QUEUE_SHIFT
from jmsapi_inproc.store.reader import Reader
from jmsapi_inproc.store.recovery import HELD_BY_BRANCH
from jmsapi_inproc.store.rows import record_checksum, row_of
from jmsapi_inproc.write_batch import BatchWriter, WriteBatch
from jmsapi_inproc.xa.branches import Accepted, BranchSend, PreparedBranch, StoredBranch

__all__ = ["PreparedBranches"]


class _FormerSender:
    """The sender of a message of a branch that was prepared before a restart: only the client id of its connection is known."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id


class PreparedBranches:
    """The tables ``branch`` and ``branch_work``.

    Args:
        writer: Writes batches.
        reader: Reads the file.
        queue_of: Returns the queue that has a number in the store.
    """

    def __init__(self, writer: BatchWriter, reader: Reader, queue_of: Callable[[int], BrokerQueue | None]) -> None:
        self.writer = writer
        self._reader = reader
        self._queue_of = queue_of
        self._last_key = reader.highest(0, (1 << QUEUE_SHIFT) - 1)
        for (last,) in reader.query("SELECT max(id) FROM branch"):
            self._last_key = max(self._last_key, cast("int", last or 0))

    def add(
        self, batch: WriteBatch, name: BranchId, sent: Sequence[BranchSend], accepted: Sequence[Accepted]
    ) -> tuple[StoredBranch, list[Accepted]]:
        """Write a branch; return what the file has of it, and what it has acknowledged as that is once the batch is written."""
        # First, so that a message that was in memory only has its row when the branch refers to it.
        written = [self._stored(batch, queue, message) for queue, message in accepted]
        branch = StoredBranch(self._next_key())
        row = (branch.number, *name)
        batch.sql("INSERT INTO branch VALUES (?, ?, ?, ?, ?)", *row, record_checksum(row))
        for envelope, sender in sent:
            if not envelope.destination.kind.is_temporary:
                key = self._next_key()
                branch.sent.append(key)
                batch.insert(row_of(envelope, key, None, 0))
                work = (key, branch.number, 1, sender.client_id)
                batch.sql("INSERT INTO branch_work VALUES (?, ?, ?, ?, ?)", *work, record_checksum(work))
        for _, message in written:
            if isinstance(message, StoredMessage):
                batch.sql(HELD_BY_BRANCH, branch.number, branch.number, message.key)
        return branch, written

    def remove(self, batch: WriteBatch, branch: StoredBranch) -> None:
        """Remove a branch from the file."""
        if branch.number:
            for key in branch.sent:
                batch.delete(key)
            batch.sql("DELETE FROM branch_work WHERE branch = ?", branch.number)
            batch.sql("DELETE FROM branch WHERE id = ?", branch.number)

    def restored(self) -> Iterator[PreparedBranch]:
        """Return the branches of the file; from now on nothing delivers what they have acknowledged."""
        for number, *name in list(self._reader.query("SELECT id, format_id, global_id, qualifier FROM branch ORDER BY id")):
            branch = StoredBranch(cast("int", number))
            sent: list[BranchSend] = []
            accepted: list[Accepted] = []
            work = self._reader.query("SELECT key, sent, client_id FROM branch_work WHERE branch = ? ORDER BY key", branch.number)
            for key, was_sent, client_id in cast("list[tuple[int, int, str | None]]", list(work)):
                for row in self._reader.rows(key - 1, key, 1):
                    message = self._reader.message_of(row)
                    if was_sent:
                        branch.sent.append(key)
                        sent.append(BranchSend(message.envelope, _FormerSender(client_id)))
                        continue
                    queue = self._queue_of(key >> QUEUE_SHIFT)
                    if queue is not None:
                        queue.backlog.mark_held(message.envelope.priority, message.order)
                        accepted.append((queue, message))
            yield PreparedBranch(BranchId(*cast("tuple[int, bytes, bytes]", name)), branch, sent, accepted)

    def _stored(self, batch: WriteBatch, queue: BrokerQueue, message: QueuedMessage) -> Accepted:
        if queue.storage is None or queue.gone or isinstance(message, StoredMessage):
            return queue, message
        kept = queue.storage.move_in(batch, message, queue)
        queue.backlog.mark_in_flight(kept)
        batch.on_failed(partial(queue.backlog.row_removed, kept))
        return queue, kept

    def _next_key(self) -> int:
        """Assign a key that belongs to no queue, to a prepared branch or to a message it has sent."""
        self._last_key += 1
        return self._last_key
