"""The tables of a store, and how a file of an older version is brought up to date.

``place`` has a row for each queue and durable subscription, ``message`` for each message under its key (see ``keys``). Each row
has a checksum, since SQLite has none: what a disk or a foreign hand changes in a row is noticed when the row is used.
``erasing`` holds the numbers of queues that are gone while their messages are being deleted, a part at a time. Any other message
whose queue is not in ``place`` is a sign of damage.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from jmsapi_inproc.store.keys import QUEUE_SHIFT
from jmsapi_inproc.store.rows import COLUMNS, checksum, record_checksum

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "STEPS", "add_functions", "upgrade"]

APPLICATION_ID: Final = 0x4A4D5351
"""``JMSQ``, the application id in the header of every store."""
SCHEMA_VERSION: Final = 3

_VERSION_1: Final = f"""
CREATE TABLE place (
    id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, name TEXT NOT NULL, client_id TEXT, subscription TEXT,
    shared INTEGER NOT NULL DEFAULT 0, no_local INTEGER NOT NULL DEFAULT 0, selector TEXT, grouped INTEGER NOT NULL DEFAULT 0);
CREATE TABLE message (key INTEGER PRIMARY KEY, {", ".join(COLUMNS[1:])});
CREATE INDEX message_due ON message(due) WHERE due IS NOT NULL;
CREATE INDEX message_expiration ON message(expiration) WHERE expiration > 0;
CREATE INDEX message_passing ON message(key) WHERE delivery_mode = 1;
"""
_VERSION_2: Final = """
CREATE TABLE branch (id INTEGER PRIMARY KEY, format_id INTEGER NOT NULL, global_id BLOB NOT NULL, qualifier BLOB NOT NULL);
CREATE TABLE branch_work (key INTEGER PRIMARY KEY, branch INTEGER NOT NULL, sent INTEGER NOT NULL, client_id TEXT);
"""
# Until now a queue was deleted before its messages and nothing told which of them were left, so what belongs to no queue is taken
# for that; and a branch may have been left without its messages.
_VERSION_3: Final = f"""
DELETE FROM branch_work WHERE branch NOT IN (SELECT id FROM branch) OR key NOT IN (SELECT key FROM message);
DELETE FROM message WHERE key >> {QUEUE_SHIFT} NOT IN (SELECT id FROM place) AND key NOT IN (SELECT key FROM branch_work);
CREATE TABLE erasing (id INTEGER PRIMARY KEY);
ALTER TABLE place ADD COLUMN checksum INTEGER;
ALTER TABLE message ADD COLUMN checksum INTEGER;
ALTER TABLE branch ADD COLUMN checksum INTEGER;
ALTER TABLE branch_work ADD COLUMN checksum INTEGER;
UPDATE place SET checksum =
    record_checksum(id, topic, name, client_id, subscription, shared, no_local, selector, grouped);
UPDATE message SET checksum = message_checksum({", ".join(COLUMNS)});
UPDATE branch SET checksum = record_checksum(id, format_id, global_id, qualifier);
UPDATE branch_work SET checksum = record_checksum(key, branch, sent, client_id);
"""
STEPS: Final = (_VERSION_1, _VERSION_2, _VERSION_3)
"""The statements that lead from each version to the next."""


def add_functions(connection: sqlite3.Connection) -> None:
    """Let a connection compute the checksums of rows."""
    connection.create_function("message_checksum", len(COLUMNS), lambda *row: checksum(row), deterministic=True)
    connection.create_function("record_checksum", -1, lambda *row: record_checksum(row), deterministic=True)


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Bring the schema up to date in one transaction; an empty file becomes a store.

    Args:
        connection: Writes; it has the functions of ``add_functions``.
        version: Of the file; 0 for an empty one.
    """
    if version >= SCHEMA_VERSION:
        return
    if not version:
        # With the rollback journal the header identifies the file even if the process crashes next.
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    steps = ";".join(STEPS[version:SCHEMA_VERSION])
    connection.executescript(
        f"BEGIN IMMEDIATE; {steps}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
    )
