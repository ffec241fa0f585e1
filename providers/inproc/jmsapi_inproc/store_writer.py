"""The one thread that writes: it takes what all sessions have waiting, commits once, and tells each of them.

What belongs together is a ``Filing``. It is submitted under the broker's lock, in the order in which things happen; its effects
in memory come when it is on disk, again under the lock; whoever waits for it is told outside of it.

A full disk fails the filings for which there is no room, one by one, and nothing else; new messages a little earlier, so that
what is there can be taken out. What nobody waits for is owed, in its order: it is tried again with whatever comes after it, and
each second, and keeps nothing else from being written. What SQLite can never take - too big, no text - fails its own filing. Any
other failure of the disk ends the broker: whether the last commit counts is known only when the file is opened again.

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
from jmsapi_inproc.store_file import StoreFile, is_full, is_unfit, refusal
from jmsapi_inproc.store_filing import Filing, Verb
from jmsapi_inproc.store_rows import COLUMNS, Row

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["Writer", "WriterOwner"]

_log = logging.getLogger("jmsapi.inproc")
_NAP_S: Final = 60.0
_AGAIN_S: Final = 1.0
"""How long what is owed waits for room before it is tried again, when nothing else is written."""
_LEFT_UNWRITTEN: Final = "the store %s ends on a full disk: %d entries that nobody waits for are left out"
_UNTOLD: Final = "what was written to %s did not %s"
_ROWS: Final = (100, 10, 1)
"""How many rows one statement takes. Between two steps of SQLite another thread may run; many rows a step means few steps."""
_INSERT: Final = {
    n: f"INSERT INTO message ({', '.join(COLUMNS)}) VALUES " + ", ".join(["(" + ", ".join("?" * len(COLUMNS)) + ")"] * n)
    for n in _ROWS
}
_DELETE: Final = {n: f"DELETE FROM message WHERE key IN ({', '.join('?' * n)})" for n in _ROWS}


class WriterOwner(Protocol):
    """The broker, as its writer sees it."""

    def effects(self) -> AbstractContextManager[None]:
        """Hold the lock, and gather deliveries."""
        ...

    def broken(self, cause: ProviderError) -> None:
        """The file can be used no more."""


class Writer:
    """The thread and what waits for it.

    Args:
        file: The file.
        owner: The broker.
    """

    def __init__(self, file: StoreFile, owner: WriterOwner) -> None:
        self._file = file
        self._owner = owner
        self._changed = threading.Condition()
        self._waiting: list[Filing] = []
        self._owed: list[Filing] = []
        self._thread: threading.Thread | None = None
        self._resting = True
        self._cause: ProviderError | None = None
        self._synchronous = "FULL"
        self.groups = 0
        """How many commits there were."""

    def submit(self, filing: Filing) -> None:
        """Take work, under the broker's lock."""
        with self._changed:
            cause = self._cause
            if cause is None:
                self._waiting.append(filing)
                self._begin()
                self._changed.notify_all()
        if cause is not None:
            self._end([filing], cause)

    def wake(self) -> None:
        """Have a thread, and let it stay when there is nothing to do: it is the broker's, not that of whoever writes first."""
        with self._changed:
            self._resting = False
            self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="jmsapi-store", daemon=True)
            self._thread.start()

    def rest(self, timeout: float) -> bool:
        """Write what waits, and end the thread; False when it is still writing."""
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
                    if not self._changed.wait(_AGAIN_S if self._owed else _NAP_S) and self._owed:
                        break
                filings, self._waiting = self._waiting, []
            try:
                if filings:
                    self._write(filings)
                else:
                    self._write_owed()
            except Exception as error:
                # Whatever it is: nobody may wait for ever.
                self._break(filings, error)
            with self._changed:
                if self._resting and not filings and not self._waiting:
                    if self._owed:
                        _log.error(_LEFT_UNWRITTEN, self._file.path, len(self._owed))
                    self._thread = None
                    return

    def _write(self, filings: list[Filing]) -> None:
        try:
            self._commit([*self._owed, *filings])
        except Exception as error:
            if not self._goes_on(error):
                self._break(filings, error)
                return
            if is_full(error):
                self._make_room()
        else:
            self._finish([*self._owed, *filings])
            self._owed = []
            return
        if not self._write_owed(filings):
            return
        for index, filing in enumerate(filings):
            if filing.owed and self._owed:
                self._owed.append(filing)
                continue
            try:
                self._commit([filing])
            except Exception as error:
                if not self._goes_on(error):
                    self._break(filings[index:], error)
                    return
                if filing.owed and is_full(error):
                    self._owed.append(filing)
                else:
                    self._refuse(filing, error)
            else:
                self._finish([filing])

    def _write_owed(self, behind: Sequence[Filing] = ()) -> bool:
        """Write what is owed, if there is room now; False when the file can be used no more: what is behind it has ended, too."""
        owed = self._owed
        if not owed:
            return True
        try:
            self._commit(owed)
        except Exception as error:
            if not self._goes_on(error):
                self._break(behind, error)
                return False
            if is_full(error):
                self._make_room()
                return True
        else:
            self._finish(owed)
            self._owed = []
            return True
        # One of them can never be written: the others need not wait for that.
        self._owed = []
        for index, filing in enumerate(owed):
            self._write([filing])
            if self._cause is not None:
                self._end([*owed[index + 1 :], *behind], self._cause)
                return False
        return True

    def _make_room(self) -> None:
        # What is written twice, in the log and in the file itself, need be there only once.
        with contextlib.suppress(sqlite3.Error):
            self._file.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _goes_on(self, error: Exception) -> bool:
        """Return whether only what was to be written failed, and the file is as it was."""
        try:
            return not self._file.writer.in_transaction and (is_full(error) or is_unfit(error))
        except sqlite3.Error:  # it is closed
            return False

    def _refuse(self, filing: Filing, error: Exception) -> None:
        why = "the disk is full" if is_full(error) else f"it cannot hold this: {error}"
        if filing.owed:
            _log.error("the store %s: %s; it is left out", self._file.path, why)
        refused = ProviderError(ErrorKind.RESOURCE, f"the store {self._file.path}: {why}; nothing was written")
        refused.__cause__ = error
        self._end([filing], refused)

    def _commit(self, filings: Sequence[Filing]) -> None:
        connection = self._file.writer
        # What nobody waits for need not be on the disk itself before the next thing that somebody waits for.
        synchronous = "NORMAL" if all(filing.owed for filing in filings) else "FULL"
        if synchronous != self._synchronous:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        try:
            connection.execute("BEGIN IMMEDIATE")
            before = self._file.pages()
            work = [one for filing in filings for one in filing.work]
            for verb, some in groupby(work, key=lambda one: one[0]):
                _carry_out(connection, verb, [value for _, value in some])
            if any(verb is Verb.INSERT for filing in filings if not filing.owed for verb, _ in filing.work):
                self._file.check_room(before)
            connection.execute("COMMIT")
            if synchronous == "FULL":
                self._file.watch.check()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.groups += 1

    def _finish(self, filings: Sequence[Filing]) -> None:
        self._end(filings, None)

    def _end(self, filings: Sequence[Filing], error: ProviderError | None) -> None:
        """Have filings take effect, or not, and tell those who wait. What goes wrong there keeps nobody else waiting."""
        try:
            with self._owner.effects():
                for filing in filings:
                    filing.ended = True
                    try:
                        filing.take_effect(written=error is None)
                    except Exception:
                        _log.exception(_UNTOLD, self._file.path, "take effect")
        except Exception:
            _log.exception(_UNTOLD, self._file.path, "take effect")
        answers: dict[Events, list[SendResult]] = {}
        for filing in filings:
            if filing.events is not None:
                answers.setdefault(filing.events, []).append((filing.token, error))
            if filing.future is not None:
                try:
                    if error is None:
                        filing.future.set_result(None)
                    else:
                        filing.future.set_exception(error)
                except Exception:
                    _log.exception(_UNTOLD, self._file.path, "become known")
        for events, results in answers.items():
            try:
                events.on_sent(results)
            except Exception:
                _log.exception(_UNTOLD, self._file.path, "become known")

    def _break(self, filings: Sequence[Filing], error: Exception) -> None:
        _log.error("the store %s failed: %s", self._file.path, error)
        # What its log has is carried over by whoever opens it again; another file may have its name now.
        self._file.as_it_is = True
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
        self._end([filing for filing in (*self._owed, *filings) if not filing.ended], doubt)
        self._end(later, cause)
        self._owed = []
        self._owner.broken(cause)


def _carry_out(connection: sqlite3.Connection, verb: Verb, values: list[object]) -> None:
    if verb is Verb.SQL:
        for statement, parameters in cast("list[tuple[str, Row]]", values):
            connection.execute(statement, parameters)
        return
    statements = _INSERT if verb is Verb.INSERT else _DELETE
    start = 0
    for n in _ROWS:
        while len(values) - start >= n:
            part = values[start : start + n]
            start += n
            flat = [item for row in cast("list[Row]", part) for item in row] if verb is Verb.INSERT else cast("list[int]", part)
            connection.execute(statements[n], flat)
