"""Whether a store's file is sound: checked when it is opened, before anything is written to it.

Damage must never look like fewer messages. So each message must be where its queue finds it, each row must have the checksum it
was written with, and the pages must form the trees that SQLite reads. Checking every page and every row takes time that grows
with the file; so of a file above a limit only the tables of queues and branches and the positions of messages are checked when it
is opened. A message is checked when it is read, whatever the size.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from jmsapi_inproc.store.keys import DELAYED_LEVEL, LEVEL_BITS, MOST_QUEUES, ORDER_BITS, QUEUE_SHIFT
from jmsapi_inproc.store.rows import COLUMNS

__all__ = ["damage_of"]

_LEVELS: Final = (*range(10), DELAYED_LEVEL)
CHECKED_PAGES_BYTES: Final = 256 << 20
"""Up to this size all pages are checked when the file is opened: about a millisecond a megabyte."""
CHECKED_ROWS_BYTES: Final = 16 << 20
"""Up to this size all messages are checked when the file is opened."""
_SMALL_TABLES: Final = ("sqlite_schema", "place", "branch", "branch_work", "erasing")
_CHECKSUMS: Final = {
    "place": "record_checksum(id, topic, name, client_id, subscription, shared, no_local, selector, grouped)",
    "branch": "record_checksum(id, format_id, global_id, qualifier)",
    "branch_work": "record_checksum(key, branch, sent, client_id)",
}


def damage_of(connection: sqlite3.Connection, size: int) -> str | None:
    """Return what is wrong with a store of the current version, or None.

    Args:
        connection: Reads; it has the functions of ``schema.add_functions``.
        size: Of the file and its log, in bytes.
    Raises:
        sqlite3.Error: The file cannot be read, which is damage, too.
    """
    return next(_damage(connection, size), None)


def _damage(connection: sqlite3.Connection, size: int) -> Iterator[str]:
    yield from _bad_pages(connection, size)
    for table, expected in _CHECKSUMS.items():
        for (key,) in connection.execute(f"SELECT rowid FROM {table} WHERE checksum IS NOT {expected} LIMIT 1"):
            yield f"row {key} of its table {table} has been changed"
    yield from _bad_references(connection)
    yield from _misplaced(connection)
    if size <= CHECKED_ROWS_BYTES:
        message = f"message_checksum({', '.join(COLUMNS)})"
        for (key,) in connection.execute(f"SELECT key FROM message WHERE checksum IS NOT {message} LIMIT 1"):
            yield f"message {key} has been changed"


def _bad_pages(connection: sqlite3.Connection, size: int) -> Iterator[str]:
    checks = ["integrity_check(1)"]
    if size > CHECKED_PAGES_BYTES:
        checks = [f"integrity_check('{table}')" for table in _SMALL_TABLES]
    for check in checks:
        (found,) = connection.execute(f"PRAGMA {check}").fetchone()
        if found != "ok":
            yield str(found).replace("\n", " ")


def _bad_references(connection: sqlite3.Connection) -> Iterator[str]:
    """Return rows of the small tables that refer to nothing, or contradict each other."""
    for statement, text in (
        (
            f"SELECT id FROM place WHERE id NOT BETWEEN 0 AND {MOST_QUEUES - 1}",
            "no queue can have the number {}",
        ),
        (
            f"SELECT id FROM erasing WHERE id IN (SELECT id FROM place) OR id NOT BETWEEN 1 AND {MOST_QUEUES - 1}",
            "the queue {} is marked as deleted though it is there",
        ),
        (
            "SELECT key FROM branch_work WHERE branch NOT IN (SELECT id FROM branch)",
            "message {} is held by a transaction branch that is missing",
        ),
        (
            "SELECT key FROM branch_work WHERE key NOT IN (SELECT key FROM message)",
            "message {} of a prepared transaction branch is missing",
        ),
        (
            f"SELECT key FROM message WHERE key < 1 << {QUEUE_SHIFT} AND key NOT IN (SELECT key FROM branch_work WHERE sent = 1)",
            "message {} belongs to no queue and no transaction branch",
        ),
        (
            f"SELECT key FROM message WHERE due IS NOT NULL AND key >> {ORDER_BITS} & 15 <> {DELAYED_LEVEL}",
            "message {} is not where delayed messages are",
        ),
    ):
        for (key,) in connection.execute(f"{statement} LIMIT 1"):
            yield text.format(key)


def _misplaced(connection: sqlite3.Connection) -> Iterator[str]:
    """Return messages that no queue would find. One look for each queue and priority, however many messages there are."""
    queues = {number for (number,) in connection.execute("SELECT id FROM place UNION SELECT id FROM erasing")}
    bucket = 1 << LEVEL_BITS
    while bucket < MOST_QUEUES << LEVEL_BITS:
        found = connection.execute("SELECT min(key) FROM message WHERE key >= ?", (bucket << ORDER_BITS,)).fetchone()[0]
        if found is None:
            return
        bucket = found >> ORDER_BITS
        number, level = bucket >> LEVEL_BITS, bucket & (1 << LEVEL_BITS) - 1
        if number not in queues:
            yield f"the queue or subscription of message {found}, number {number}, is missing"
        if level not in _LEVELS:
            yield f"message {found} has no priority"
        if level == DELAYED_LEVEL:
            ends = (bucket << ORDER_BITS, (bucket + 1) << ORDER_BITS)
            lost = "SELECT key FROM message WHERE key >= ? AND key < ? AND due IS NULL LIMIT 1"
            for (key,) in connection.execute(lost, ends):
                yield f"delayed message {key} has no delivery time"
        bucket += 1
