"""The file of a stored broker: who may open it, what it must look like, and its schema.

A file is never made over: one that is damaged, foreign, newer than this library, or open in another process is refused as it is.
The last connection to a file that is closed carries its log into it and removes that, if it may write. So a file that must stay
as it is has a connection that may not, and that is closed last. ``store_claim`` says who may open a file.

Schema. A message's number says where it waits: its place (a queue or durable subscription), 9 minus its priority, and its order;
so the next to be handed out is the lowest number of its place, and a message is found, added and removed by it alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Final

from jmsapi.spi import ErrorKind
from jmsapi_inproc.store_claim import Claim, Watch, beside, check_kind, refusal
from jmsapi_inproc.store_rows import COLUMNS

__all__ = ["SCHEMA_VERSION", "StoreFile", "is_full", "is_unfit", "refusal"]

APPLICATION_ID: Final = 0x4A4D5351
"""``JMSQ``, in the header of every SQLite file of ours."""
SCHEMA_VERSION: Final = 2
CHECKPOINT_PAGES: Final = 4000
"""How long the log becomes before it is carried into the file."""
_FRAME_HEADER: Final = 24
_SPARE: Final = 1 << 20
"""Room for one more transaction of acknowledgements when the log is as long as that."""
_MAGIC: Final = b"SQLite format 3\0"
_SMALLEST_PAGE: Final = 512
_CLOSING_S: Final = 15.0
_FULL: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
_UNFIT: Final = (
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_NOMEM,
)

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
_STEPS: Final = (_VERSION_1, _VERSION_2)
"""The statements that lead from each version to the next."""

_held: Final[dict[Path, tuple[int, int] | None]] = {}
"""The open files, and which they are on the disk: one may have several names."""
_changed = threading.Condition()


def _after_fork() -> None:
    # What the parent holds is not the child's: the claim says so to whoever asks. A thread that is not here may have the lock.
    global _changed
    _changed = threading.Condition()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _NoRoom(sqlite3.OperationalError):
    """There would be no room left to carry the log into the file."""

    sqlite_errorcode = sqlite3.SQLITE_FULL


def is_full(error: BaseException) -> bool:
    """Return whether an error says that there is no room on the disk: then nothing has been written."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) in _FULL


def is_unfit(error: BaseException) -> bool:
    """Return whether an error says that the values are none that SQLite can hold: then nothing has been written."""
    if not isinstance(error, sqlite3.Error):
        # Of the module itself, while it hands the values over: half of a surrogate pair, a number or a text too long.
        return isinstance(error, ValueError | OverflowError | TypeError | MemoryError)
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _UNFIT


class StoreFile:
    """An open file with two connections to it: one writes, one reads what is committed.

    Args:
        path: The file, absolute. It comes into being if it is not there; its folder must be.
    Raises:
        ProviderError: IN_USE when another process has it; CONNECTION when it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.as_it_is = False
        """Whether closing it must leave the file and its log as they are."""
        check_kind(path)
        if not path.parent.is_dir():
            raise refusal(path, f"there is no folder {path.parent}; make it first")
        with _changed:
            if not _changed.wait_for(lambda: path not in _held, _CLOSING_S):
                raise refusal(path, "it is still being closed", ErrorKind.IN_USE)
            if path.exists() and _identity(path) in _held.values():
                raise refusal(path, "it is open under another of its names", ErrorKind.IN_USE)
            _held[path] = None
        self._claim: Claim | None = None
        self._opened: list[sqlite3.Connection] = []
        try:
            self._claim = Claim(path)
            readable = _check_files(path)
            if readable:
                # Before anybody can write.
                self.reader = self._open(path, writing=False)
                _check_version(self.reader, path)
            self.writer = self._open(path)
            _prepare(self.writer, path)
            if not readable:
                self.reader = self._open(path, writing=False)
            _number(self.reader, "user_version")
            self._page = _number(self.writer, "page_size")
            self.watch = Watch(path)
            _held[path] = _identity(path)
        except (OSError, sqlite3.Error) as error:
            self._let_go(as_it_is=True)
            raise refusal(path, f"it cannot be opened: {error}; it is left as it is") from error
        except BaseException:
            self._let_go(as_it_is=True)
            raise

    def pages(self) -> int:
        """Return how many pages there are, with those of the running transaction."""
        return _number(self.writer, "page_count")

    def check_room(self, before: int) -> None:
        """Refuse new messages when what is there could not be taken out afterwards.

        Acknowledgements need room in the log; it is used again when it is carried into the file, which grows by that. Carrying it
        over takes whatever room there is, even if that is not enough: then nothing could be written any more, or taken out.

        Args:
            before: How many pages there were when the running transaction began.
        Raises:
            sqlite3.OperationalError: SQLITE_FULL.
        """
        disk = shutil.disk_usage(self.path.parent)
        pages = self.pages()
        growth = max(0, pages * self._page - _size(self.path))
        log = CHECKPOINT_PAGES * (self._page + _FRAME_HEADER) - _size(beside(self.path, "-wal"))
        added = (pages - before) * (self._page + _FRAME_HEADER)
        # There are file systems that do not tell how large they are.
        if disk.total and disk.free < growth + max(0, log, added) + _SPARE:
            raise _NoRoom("what is there needs the rest of the room to be taken out")

    def close(self) -> None:
        """Close the file and let others have it."""
        self._let_go(as_it_is=self.as_it_is)

    def _open(self, path: Path, *, writing: bool = True) -> sqlite3.Connection:
        connection = _connect(path, writing=writing)
        self._opened.append(connection)
        return connection

    def _let_go(self, *, as_it_is: bool) -> None:
        writer = getattr(self, "writer", None)
        try:
            # The last one is who may write, or who may not.
            for connection in sorted(self._opened, key=lambda one: (one is writer) is not as_it_is):
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            if self._claim is not None:
                self._claim.release()
        finally:
            with _changed:
                _held.pop(self.path, None)
                _changed.notify_all()


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_files(path: Path) -> bool:
    """Refuse what is no file of ours before SQLite touches it; return whether there is one, and nothing of it to be undone."""
    size, log = _size(path), beside(path, "-wal")
    if not size:
        if _size(log):
            raise refusal(path, f"it is damaged: it is empty or gone, and {log.name} belongs to it; it is left as it is")
        return False
    with path.open("rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big")
    if not header.startswith(_MAGIC) or int.from_bytes(header[68:72], "big") != APPLICATION_ID or page < _SMALLEST_PAGE:
        raise refusal(path, "it is a file of something else, or its beginning is damaged; it is left as it is")
    if _size(beside(path, "-journal")):
        # The process that made it was killed meanwhile, and nothing is in it yet.
        return False
    missing = range(size // page + 1, int.from_bytes(header[28:32], "big") + 1)
    if missing and not _pages_in_log(log, page).issuperset(missing):
        raise refusal(path, "it is damaged, its end is missing; it is left as it is")
    return True


def _pages_in_log(log: Path, page: int) -> set[int]:
    """Return what pages a log has, which a process that was killed had not all carried into the file."""
    pages: set[int] = set()
    if not _size(log):
        return pages
    with log.open("rb") as file:
        salts = file.read(32)[16:24]
        while len(frame := file.read(24)) == 24 and frame[8:16] == salts:
            pages.add(int.from_bytes(frame[:4], "big"))
            file.seek(page, os.SEEK_CUR)
    return pages


def _connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    # One thread at a time uses each of them: the writer thread, and whoever holds the broker's lock.
    name = f"{path.as_uri()}?mode={'rwc' if writing else 'ro'}"
    connection = sqlite3.connect(name, uri=True, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _check_version(connection: sqlite3.Connection, path: Path) -> int:
    version = _number(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise refusal(path, f"a newer jmsapi wrote it (schema {version}, this one knows {SCHEMA_VERSION}); it is left as it is")
    return version


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date; a new file becomes one of ours."""
    version = _check_version(connection, path)
    if version < SCHEMA_VERSION:
        # With the rollback journal: the header tells whose file it is even if the next thing that happens is a crash.
        if not version:
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        steps = ";".join(_STEPS[version:])
        connection.executescript(
            f"BEGIN IMMEDIATE; {steps}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    # However SQLite was built: else taking a message out would write as many bytes of zeros to the log, and need the room for it.
    connection.execute("PRAGMA secure_delete = FAST").fetchall()


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    found: tuple[int] = connection.execute(f"PRAGMA {pragma}").fetchone()
    return found[0]
