"""What a stored broker writes in one transaction of its file. Importing this loads nothing of SQLite."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Protocol

from jmsapi.spi import Events

__all__ = ["BatchWriter", "FileOperation", "Row", "SqlValue", "WriteBatch"]

SqlValue = int | float | str | bytes | None
Row = tuple[SqlValue, ...]


class FileOperation(IntEnum):
    """What is done to the file."""

    INSERT = 0
    DELETE = 1
    SQL = 2


class WriteBatch:
    """Changes that are written together or not at all, and what follows in memory.

    Args:
        events: Where the result of a send is reported; None if the batch is no send.
        token: The send's token.
        deferrable: No caller waits for it: when the disk is full it is written later.
    """

    __slots__ = ("_on_failed", "_on_written", "deferrable", "events", "finished", "future", "operations", "token")

    def __init__(self, events: Events | None = None, token: object = None, *, deferrable: bool = False) -> None:
        self.operations: list[tuple[FileOperation, object]] = []
        self.events = events
        self.token = token
        self.deferrable = deferrable
        self.finished = False
        """Whether its effects in memory have been applied, or it has failed."""
        self.future: Future[None] | None = None
        self._on_written: list[Callable[[], None]] = []
        self._on_failed: list[Callable[[], None]] = []

    def insert(self, row: Row) -> None:
        """Add a message."""
        self.operations.append((FileOperation.INSERT, row))

    def delete(self, key: int) -> None:
        """Delete a message."""
        self.operations.append((FileOperation.DELETE, key))

    def sql(self, statement: str, *values: SqlValue) -> None:
        """Run a statement."""
        self.operations.append((FileOperation.SQL, (statement, values)))

    def on_written(self, effect: Callable[[], None]) -> None:
        """Call this under the broker's lock once the batch is written."""
        self._on_written.append(effect)

    def on_failed(self, undo: Callable[[], None]) -> None:
        """Call this under the broker's lock if the batch cannot be written."""
        self._on_failed.append(undo)

    def completion(self) -> Future[None]:
        """Return the future that is done when the batch is on disk, or fails with the reason."""
        if self.future is None:
            self.future = Future()
        return self.future

    def finish(self, *, written: bool = True) -> None:
        """Apply the effects in memory. The caller holds the broker's lock."""
        for call in self._on_written if written else self._on_failed:
            call()


class BatchWriter(Protocol):
    """What writes batches: the store."""

    def submit(self, batch: WriteBatch) -> bool:
        """Queue a batch for writing; an empty batch is applied at once, which is answered by False."""
        ...
