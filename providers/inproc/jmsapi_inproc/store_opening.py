"""What is put right in a store's file before anything is read from it: what the last process left that must not stay.

What a prepared branch holds stays, whatever becomes of anything else: a line of ``branch_work`` stands only as long as its row,
and the row as long as its line. Else the number of the row would be given again, and the branch take out another message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

__all__ = ["CLOSED_IN_ORDER", "EXPIRED", "LISTED", "put_right"]

CLOSED_IN_ORDER: Final = 0
"""A place of this number stands in the file while no broker has it and the last one ended in order."""
_NOT_HELD: Final = "key NOT IN (SELECT key FROM branch_work)"
EXPIRED: Final = f"DELETE FROM message WHERE expiration > 0 AND expiration <= ? AND {_NOT_HELD}"
"""Takes out what has expired; what a prepared branch holds goes with the branch."""
LISTED: Final = "INSERT INTO branch_work SELECT key, ?, 0, NULL FROM message WHERE key = ?"
"""Lists what a branch has accepted, if it has not expired meanwhile."""


def put_right(connection: sqlite3.Connection, place_shift: int) -> None:
    """Take out what must not stay.

    Args:
        connection: The one that writes.
        place_shift: How many bits of a message's number come after its place.
    """
    connection.execute(
        "DELETE FROM branch_work WHERE branch NOT IN (SELECT id FROM branch) OR key NOT IN (SELECT key FROM message)"
    )
    _take_out_strays(connection, place_shift)
    # Messages that are not PERSISTENT stay when the broker ended in order; else they go, as they must not come twice (4.7-2).
    if not connection.execute(f"DELETE FROM place WHERE id = {CLOSED_IN_ORDER}").rowcount:
        connection.execute(f"DELETE FROM message WHERE delivery_mode = 1 AND {_NOT_HELD}")
    # A queue that is empty is not worth a number: it comes into being when it is named again.
    connection.execute(
        "DELETE FROM place WHERE topic = 0 AND NOT EXISTS (SELECT 1 FROM message WHERE key > id << ? AND key < (id + 1) << ?)",
        (place_shift, place_shift),
    )


def _take_out_strays(connection: sqlite3.Connection, place_shift: int) -> None:
    """Take out what is left of places that are gone: a place ends before its messages, which are taken out a part at a time."""
    places = {number for (number,) in connection.execute("SELECT id FROM place")}
    place = 1
    while True:
        (key,) = connection.execute("SELECT min(key) FROM message WHERE key >= ?", (place << place_shift,)).fetchone()
        if key is None:
            return
        place = (key >> place_shift) + 1
        if place - 1 not in places:
            connection.execute(f"DELETE FROM message WHERE key >= ? AND key < ? AND {_NOT_HELD}", (key, place << place_shift))
