"""What is deleted from a store's file before anything is read from it: what the last process left that must not stay.

A message that a prepared branch holds stays, whatever becomes of its queue: a row of ``branch_work`` lives as long as its
message, and the message as long as that row. Otherwise the message's key would be assigned again, and the end of the branch would
delete another message.

Only rows with the right checksum are deleted for what they say: a damaged one is left for the reader to find.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from jmsapi_inproc.store.keys import QUEUE_SHIFT
from jmsapi_inproc.store.rows import COLUMNS

__all__ = ["CLOSED_IN_ORDER", "EXPIRED", "HELD_BY_BRANCH", "clean_up"]

CLOSED_IN_ORDER: Final = 0
"""A queue of this number is in the file while no broker has it and the last one was closed properly."""
_NOT_HELD: Final = "key NOT IN (SELECT key FROM branch_work)"
_UNDAMAGED: Final = f"checksum = message_checksum({', '.join(COLUMNS)})"
EXPIRED: Final = f"DELETE FROM message WHERE expiration > 0 AND expiration <= ? AND {_NOT_HELD} AND {_UNDAMAGED}"
"""Deletes what has expired; what a prepared branch holds ends with the branch."""
HELD_BY_BRANCH: Final = (
    "INSERT INTO branch_work SELECT key, ?, 0, NULL, record_checksum(key, ?, 0, NULL) FROM message WHERE key = ?"
)
"""Records a message that a branch has acknowledged, if it has not expired meanwhile."""


def clean_up(connection: sqlite3.Connection) -> None:
    """Delete what must not stay.

    Args:
        connection: The one that writes.
    """
    for (number,) in connection.execute("SELECT id FROM erasing").fetchall():
        ends = (number << QUEUE_SHIFT, (number + 1) << QUEUE_SHIFT)
        connection.execute(f"DELETE FROM message WHERE key > ? AND key < ? AND {_NOT_HELD}", ends)
        connection.execute("DELETE FROM erasing WHERE id = ?", (number,))
    # Messages that are not PERSISTENT stay only if the broker was closed properly: they must not come twice (4.7-2).
    if not connection.execute(f"DELETE FROM place WHERE id = {CLOSED_IN_ORDER}").rowcount:
        connection.execute(f"DELETE FROM message WHERE delivery_mode = 1 AND {_NOT_HELD} AND {_UNDAMAGED}")
    # An empty queue needs no number: it is created again when it is named.
    connection.execute(
        "DELETE FROM place WHERE topic = 0 AND NOT EXISTS (SELECT 1 FROM message WHERE key > id << ? AND key < (id + 1) << ?)",
        (QUEUE_SHIFT, QUEUE_SHIFT),
    )
