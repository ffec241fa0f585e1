"""Prepared branches in the file of a stored broker.

What a branch has sent waits in a place of its own that no queue has; what it has accepted stays where it is, and is listed, so
that nobody is given it. Both ends at the commit or rollback, together with the branch, and not before: no expiry and no restart
takes what it holds, whatever its delivery mode.

Spec: 8.3.5-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from jmsapi.spi import BranchId, Envelope
from jmsapi_inproc.messages import Message, StoredMessage
from jmsapi_inproc.store_opening import LISTED
from jmsapi_inproc.store_rows import row_of

if TYPE_CHECKING:
    from jmsapi_inproc.branches import Sent
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.queues import Queue
    from jmsapi_inproc.store import Store
    from jmsapi_inproc.store_filing import Filing
    from jmsapi_inproc.topics import Sender

__all__ = ["PreparedWork", "Stranger", "keep", "remove", "restored", "written"]


@dataclass
class PreparedWork:
    """What the file has of a prepared branch. In memory, nothing."""

    number: int = 0
    sent: list[int] = field(default_factory=list[int])


class Stranger:
    """Who sent what a branch had sent before the restart: of the connection only its client id is left."""

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id


def keep(
    store: Store, filing: Filing, name: BranchId, sent: Sequence[Sent], accepted: Sequence[tuple[Queue, Message]]
) -> PreparedWork:
    """Write a branch; ``written`` says what of that which it has accepted."""
    work = PreparedWork(store.next_hidden())
    filing.sql("INSERT INTO branch VALUES (?, ?, ?, ?)", work.number, *name)
    for envelope, sender in sent:
        if not envelope.destination.kind.is_temporary:
            key = store.next_hidden()
            work.sent.append(key)
            filing.insert(row_of(envelope, key, None, 0))
            filing.sql("INSERT INTO branch_work VALUES (?, ?, 1, ?)", key, work.number, sender.client_id)
    for _, message in accepted:
        if isinstance(message, StoredMessage):
            filing.sql(LISTED, work.number, message.key)
    return work


def written(filing: Filing, accepted: Sequence[tuple[Queue, Message]]) -> list[tuple[Queue, Message]]:
    """Write what a branch has accepted and is only in memory; return it all as it is when that is done."""
    found: list[tuple[Queue, Message]] = []
    for queue, message in accepted:
        if queue.shelf is None or queue.gone or isinstance(message, StoredMessage):
            found.append((queue, message))
            continue
        kept = queue.shelf.move_in(filing, message, queue)
        queue.waiting.lent(kept)
        filing.otherwise(partial(queue.waiting.forget, kept))
        found.append((queue, kept))
    return found


def remove(filing: Filing, work: PreparedWork) -> None:
    """Take a branch out of the file."""
    if work.number:
        for key in work.sent:
            filing.delete(key)
        filing.sql("DELETE FROM branch_work WHERE branch = ?", work.number)
        filing.sql("DELETE FROM branch WHERE id = ?", work.number)


def restored(
    broker: Broker, store: Store
) -> Iterator[tuple[BranchId, PreparedWork, list[tuple[Envelope, Sender]], list[tuple[Queue, Message]]]]:
    """Give the branches of the file; nobody is given what they have accepted."""
    for number, *name in list(store.query("SELECT id, format_id, global_id, qualifier FROM branch ORDER BY id")):
        work = PreparedWork(cast("int", number))
        sent: list[tuple[Envelope, Sender]] = []
        accepted: list[tuple[Queue, Message]] = []
        listed = store.query("SELECT key, sent, client_id FROM branch_work WHERE branch = ? ORDER BY key", work.number)
        for key, was_sent, client_id in cast("list[tuple[int, int, str | None]]", list(listed)):
            for row in store.rows(key - 1, key, 1):
                message = store.message_of(row)
                if was_sent:
                    work.sent.append(key)
                    sent.append((message.envelope, Stranger(client_id)))
                    continue
                queue = broker.queue_of(store.place_of(key))
                if queue is not None:
                    queue.waiting.withhold(message.envelope.priority, message.order)
                    accepted.append((queue, message))
        yield BranchId(*cast("tuple[int, bytes, bytes]", name)), work, sent, accepted
