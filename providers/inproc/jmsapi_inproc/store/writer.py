"""The one thread that writes: it takes the batches of all sessions that are waiting, commits once, and reports each result.

A batch is submitted under the broker's lock, in the order in which things happen. Once it is on disk its effects in memory are
applied, again under the lock; then its result is reported, outside the lock.

A full disk fails the batches for which there is no room, one by one, and nothing else. New messages are refused a little earlier,
so that the messages that are there can be deleted. A deferrable batch, for which no caller waits, is written with whatever comes
after it or tried again each second, in order, and holds up nothing else. What SQLite can never hold fails its own batch alone.
Any other failure of the disk ends the broker: whether the last commit counts is known only when the file is opened again.

Spec: 4.4.7-5, 4.7-3, 4.10-3.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol, cast

from jmsapi.spi import ErrorKind, Events, ProviderError, SendResult
from jmsapi_inproc.store.file import StoreFile, is_full, is_unfit, refusal
from jmsapi_inproc.store.rows import COLUMNS
from jmsapi_inproc.write_batch import FileOperation, Row, WriteBatch

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["Writer", "WriterOwner"]

_log = logging.getLogger("jmsapi.inproc")
_NAP_S: Final = 60.0
_AGAIN_S: Final = 1.0
"""How soon deferred batches are tried again when nothing else is written."""
_LEFT_UNWRITTEN: Final = "the store %s closes on a full disk: %d deferred changes are not written"
_UNREPORTED: Final = "the store %s: a result could not %s"
_ROWS: Final = (100, 10, 1)
"""How many rows one statement takes. Another thread may run between two statements, so few statements mean few switches."""
_COLUMNS: Final = (*COLUMNS, "checksum")
_INSERT: Final = {
    n: f"INSERT INTO message ({', '.join(_COLUMNS)}) VALUES " + ", ".join(["(" + ", ".join("?" * len(_COLUMNS)) + ")"] * n)
    for n in _ROWS
}
_DELETE: Final = {n: f"DELETE FROM message WHERE key IN ({', '.join('?' * n)})" for n in _ROWS}


class WriterOwner(Protocol):
    """The broker, as its writer sees it."""

    def effects(self) -> AbstractContextManager[None]:
        """Hold the lock and collect deliveries."""
        ...

    def broken(self, cause: ProviderError) -> None:
        """The file can be used no more."""


class Writer:
    """The writing thread and the batches that wait for it.

    Args:
        file: The file.
        owner: The broker.
    """

    def __init__(self, file: StoreFile, owner: WriterOwner) -> None:
        self._file = file
        self._owner = owner
        self._changed = threading.Condition()
        self._waiting: list[WriteBatch] = []
        self._deferred: list[WriteBatch] = []
        self._thread: threading.Thread | None = None
        self._resting = True
        self._cause: ProviderError | None = None
        self._synchronous = "FULL"
        self.groups = 0
        """How many commits there were."""

    def submit(self, batch: WriteBatch) -> None:
        """Take a batch. The caller holds the broker's lock."""
        with self._changed:
            cause = self._cause
            if cause is None:
                self._waiting.append(batch)
                self._begin()
                self._changed.notify_all()
        if cause is not None:
            self._end([batch], cause)

    def wake(self) -> None:
        """Start the thread, and let it stay when there is nothing to do."""
        with self._changed:
            self._resting = False
            self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="jmsapi-store", daemon=True)
            self._thread.start()

    def rest(self, timeout: float) -> bool:
        """Write what waits and end the thread; False when it is still writing."""
        with self._changed:
            self._resting = True
            self._changed.notify_all()
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._resting:
                    if not self._changed.wait(_AGAIN_S if self._deferred else _NAP_S) and self._deferred:
                        break
                batches, self._waiting = self._waiting, []
            try:
                if batches:
                    self._write(batches)
                else:
                    self._write_deferred()
            except Exception as error:
                # No caller may wait for ever, whatever failed.
                self._break(batches, error)
            with self._changed:
                if self._resting and not batches and not self._waiting:
                    if self._deferred:
                        _log.error(_LEFT_UNWRITTEN, self._file.path, len(self._deferred))
                    self._thread = None
                    return

    def _write(self, batches: list[WriteBatch]) -> None:
        try:
            self._commit([*self._deferred, *batches])
        except Exception as error:
            if not self._goes_on(error):
                self._break(batches, error)
                return
            if is_full(error):
                self._make_room()
        else:
            self._finish([*self._deferred, *batches])
            self._deferred = []
            return
        if not self._write_deferred(batches):
            return
        for index, batch in enumerate(batches):
            if batch.deferrable and self._deferred:
                self._deferred.append(batch)
                continue
            try:
                self._commit([batch])
            except Exception as error:
                if not self._goes_on(error):
                    self._break(batches[index:], error)
                    return
                if batch.deferrable and is_full(error):
                    self._deferred.append(batch)
                else:
                    self._refuse(batch, error)
            else:
                self._finish([batch])

    def _write_deferred(self, behind: Sequence[WriteBatch] = ()) -> bool:
        """Write deferred batches if there is room now; False when the file has failed, which ends the batches ``behind`` too."""
        deferred = self._deferred
        if not deferred:
            return True
        try:
            self._commit(deferred)
        except Exception as error:
            if not self._goes_on(error):
                self._break(behind, error)
                return False
            if is_full(error):
                self._make_room()
                return True
        else:
            self._finish(deferred)
            self._deferred = []
            return True
        # One of them can never be written, so each is written by itself.
        self._deferred = []
        for index, batch in enumerate(deferred):
            self._write([batch])
            if self._cause is not None:
                self._end([*deferred[index + 1 :], *behind], self._cause)
                return False
        return True

    def _make_room(self) -> None:
        # Pages that are both in the log and in the file need be there only once.
        with contextlib.suppress(sqlite3.Error):
            self._file.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _goes_on(self, error: Exception) -> bool:
        """Return whether the batch alone failed and the file is unchanged."""
        try:
            return not self._file.writer.in_transaction and (is_full(error) or is_unfit(error))
        except sqlite3.Error:  # it is closed
            return False

    def _refuse(self, batch: WriteBatch, error: Exception) -> None:
        why = "the disk is full" if is_full(error) else f"it cannot hold this: {error}"
        if batch.deferrable:
            _log.error("the store %s: %s; the change is not written", self._file.path, why)
        refused = ProviderError(ErrorKind.RESOURCE, f"the store {self._file.path}: {why}; nothing was written")
        refused.__cause__ = error
        self._end([batch], refused)

    def _commit(self, batches: Sequence[WriteBatch]) -> None:
        connection = self._file.writer
        # What no caller waits for has to reach the disk only with the next batch that a caller waits for.
        synchronous = "NORMAL" if all(batch.deferrable for batch in batches) else "FULL"
        if synchronous != self._synchronous:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        try:
            connection.execute("BEGIN IMMEDIATE")
            before = self._file.pages()
            operations = [one for batch in batches for one in batch.operations]
            for operation, some in groupby(operations, key=lambda one: one[0]):
                _execute(connection, operation, [value for _, value in some])
            if any(
                operation is FileOperation.INSERT
                for batch in batches
                if not batch.deferrable
                for operation, _ in batch.operations
            ):
                self._file.check_room(before)
            connection.execute("COMMIT")
            if synchronous == "FULL":
                self._file.identity.check()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.groups += 1

    def _finish(self, batches: Sequence[WriteBatch]) -> None:
        self._end(batches, None)

    def _end(self, batches: Sequence[WriteBatch], error: ProviderError | None) -> None:
        """Apply batches in memory, or undo them, and report their results; an error there does not keep others waiting."""
        try:
            with self._owner.effects():
                for batch in batches:
                    batch.finished = True
                    try:
                        batch.finish(written=error is None)
                    except Exception:
                        _log.exception(_UNREPORTED, self._file.path, "be applied")
        except Exception:
            _log.exception(_UNREPORTED, self._file.path, "be applied")
        answers: dict[Events, list[SendResult]] = {}
        for batch in batches:
            if batch.events is not None:
                answers.setdefault(batch.events, []).append((batch.token, error))
            if batch.future is not None:
                try:
                    if error is None:
                        batch.future.set_result(None)
                    else:
                        batch.future.set_exception(error)
                except Exception:
                    _log.exception(_UNREPORTED, self._file.path, "be reported")
        for events, results in answers.items():
            try:
                events.on_sent(results)
            except Exception:
                _log.exception(_UNREPORTED, self._file.path, "be reported")

    def _break(self, batches: Sequence[WriteBatch], error: Exception) -> None:
        _log.error("the store %s failed: %s", self._file.path, error)
        # Its log is moved into it when it is opened again; here another file may have its name by now.
        self._file.read_only = True
        doubt = refusal(
            self._file.path,
            f"writing failed: {error}; whether it counts is known when the store is opened again",
            ErrorKind.IN_DOUBT,
        )
        doubt.__cause__ = error
        cause = refusal(self._file.path, f"writing failed: {error}")
        with self._changed:
            self._cause = cause
            later, self._waiting = self._waiting, []
        self._end([batch for batch in (*self._deferred, *batches) if not batch.finished], doubt)
        self._end(later, cause)
        self._deferred = []
        self._owner.broken(cause)


def _execute(connection: sqlite3.Connection, operation: FileOperation, values: list[object]) -> None:
    if operation is FileOperation.SQL:
        for statement, parameters in cast("list[tuple[str, Row]]", values):
            connection.execute(statement, parameters)
        return
    statements = _INSERT if operation is FileOperation.INSERT else _DELETE
    start = 0
    for n in _ROWS:
        while len(values) - start >= n:
            part = values[start : start + n]
            start += n
            flat = (
                [item for row in cast("list[Row]", part) for item in row]
                if operation is FileOperation.INSERT
                else cast("list[int]", part)
            )
            connection.execute(statements[n], flat)
