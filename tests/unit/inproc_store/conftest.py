"""A stored broker's file, what a crash leaves of it, and contexts on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import JMSContext
from jmsapi_inproc import registry
from jmsapi_inproc.broker import InProcessBroker
from jmsapi_inproc.store.rows import COLUMNS
from jmsapi_inproc.store.schema import add_functions
from jmsapi_inproc.store.store import MessageStore
from jmsapi_inproc.write_batch import WriteBatch


class File:
    """The file of a stored broker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def url(self) -> str:
        return f"inproc://{self.path}"

    def context(self, mode: int = JMSContext.AUTO_ACKNOWLEDGE, client_id: str | None = None, **options: object) -> JMSContext:
        made = jmsapi.connection_factory(self.url, checked=True, **options).create_context(mode)
        if client_id is not None:
            made.client_id = client_id
        return made

    def crashed(self) -> File:
        """Return the file as a process that is killed at this moment would leave it."""
        other = self.path.with_name(f"crashed-{self.path.name}")
        for end in ("", "-wal"):
            source = self.path.with_name(self.path.name + end)
            if source.exists():
                shutil.copy(source, other.with_name(other.name + end))
        return File(other)

    @property
    def broker(self) -> InProcessBroker:
        """The broker that has it open."""
        return registry._brokers[Path(os.path.realpath(self.path))]

    @property
    def store(self) -> MessageStore:
        """The store of that broker."""
        found = self.broker.store
        assert found is not None
        return found

    def limit(self, *, more_pages: int) -> None:
        """Let it grow by so many pages at most. Its writer says so to itself: the connection is that thread's alone."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as asking:
            pages = asking.execute("PRAGMA page_count").fetchone()[0]
        batch = WriteBatch()
        batch.sql(f"PRAGMA max_page_count = {pages + more_pages}")
        written = batch.completion()
        self.store.submit(batch)
        written.result(20)

    @contextlib.contextmanager
    def no_room(self, until: Callable[[str], bool] = lambda _: True) -> Iterator[list[str]]:
        """Let it have no room for anything for a while: not even for taking something out.

        Args:
            until: Given a statement that writes, returns whether there is no room for it.
        Returns:
            The statements that were refused.
        """
        refused: list[str] = []
        opened = self.store.file
        connection = opened.writer
        opened.writer = cast("sqlite3.Connection", _NoRoom(connection, until, refused))
        try:
            yield refused
        finally:
            opened.writer = connection

    def change(self, *statements: str) -> None:
        """Run statements in the file, and give the messages the checksums that a store gives them."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            add_functions(connection)
            for statement in (*statements, f"UPDATE message SET checksum = message_checksum({', '.join(COLUMNS)})"):
                connection.execute(statement)

    def make_version_2(self) -> None:
        """Turn a file that no broker has open into one of the version without checksums."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("DROP TABLE erasing")
            for table in ("place", "message", "branch", "branch_work"):
                connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
            connection.execute("PRAGMA user_version = 2")

    def places(self) -> list[tuple[str, str | None]]:
        """Return the durable subscriptions of the file: topic and selector."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as asking:
            return asking.execute("SELECT name, selector FROM place WHERE topic = 1 ORDER BY name").fetchall()

    def rows(self) -> int:
        """Return how many messages the file has."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=20)) as asking:
            return asking.execute("SELECT count(*) FROM message").fetchone()[0]

    def texts(self, queue: str) -> list[str | None]:
        """Take everything from a queue."""
        with self.context() as context:
            return taken(context.create_consumer(context.create_queue(queue)))


class _NoRoom:
    """A connection to a file on a disk that is full."""

    def __init__(self, connection: sqlite3.Connection, until: Callable[[str], bool], refused: list[str]) -> None:
        self._connection = connection
        self._until = until
        self._refused = refused

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        writes = statement.split()[0] in ("INSERT", "DELETE", "UPDATE") and self._until(statement)
        if writes:
            self._refused.append(statement)
        # The log cannot be carried over either; so what is copied meanwhile is of one moment.
        if writes or "wal_checkpoint" in statement:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def taken(consumer: jmsapi.JMSConsumer) -> list[str | None]:
    found: list[str | None] = []
    while (message := consumer.receive_no_wait()) is not None:
        assert isinstance(message, jmsapi.TextMessage)
        found.append(message.text)
    return found


_MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one: what a disk takes for each commit is not what these tests are about."""


@pytest.fixture
def file() -> Iterator[File]:
    with tempfile.TemporaryDirectory(prefix="jmsapi-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        path = Path(folder, "broker.db")
        yield File(path)
        jmsapi_inproc.discard(path)
        jmsapi_inproc.discard(path.with_name(f"crashed-{path.name}"))


@pytest.fixture
def take_all() -> Callable[[jmsapi.JMSConsumer], list[str | None]]:
    return taken
