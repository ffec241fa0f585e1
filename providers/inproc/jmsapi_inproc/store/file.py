"""The file of a stored broker: what it must look like before it is opened, and its connections.

A file is never overwritten: one that is damaged, foreign, written by a newer version or open in another process is refused and
left unchanged. SQLite moves the write-ahead log into the file and removes the log when the last connection is closed, if that
connection may write. So for a file that must stay unchanged a read-only connection is closed last. ``file_lock`` decides which
process may open it, ``integrity`` whether it is sound, and ``schema`` what is in it.

All files of a store are made for their owner alone (0600), whatever the umask: SQLite gives the log and its index the mode of the
file, which is therefore created before SQLite opens it.
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
from jmsapi_inproc.store.file_lock import FileIdentity, StoreLock, check_kind, open_private, refusal, sibling
from jmsapi_inproc.store.integrity import damage_of
from jmsapi_inproc.store.log_check import lost_of_log
from jmsapi_inproc.store.schema import APPLICATION_ID, SCHEMA_VERSION, add_functions, upgrade

__all__ = ["UNREADABLE", "StoreFile", "is_full", "is_unfit", "refusal"]

CHECKPOINT_PAGES: Final = 4000
"""How many pages the log has before it is moved into the file."""
_FRAME_HEADER: Final = 24
_SPARE: Final = 1 << 20
"""Room for one more transaction of acknowledgements when the log is as long as that."""
_MAGIC: Final = b"SQLite format 3\0"
_SMALLEST_PAGE: Final = 512
_CLOSING_S: Final = 15.0
UNREADABLE: Final = (sqlite3.Error, ValueError, OverflowError)
"""What a damaged file makes SQLite's module raise; a UnicodeDecodeError if the text of SQLite's error quotes the damage."""
_FULL: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
_UNFIT: Final = (
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_NOMEM,
)

_held: Final[dict[Path, tuple[int, int] | None]] = {}
"""The open files with their identity on the disk, since a file may have several names."""
_changed = threading.Condition()


def _after_fork() -> None:
    # The files are the parent's, as its lock tells whoever opens one. A thread that is not here may hold the condition.
    global _changed
    _changed = threading.Condition()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _NoRoom(sqlite3.OperationalError):
    """The disk has no room left to move the log into the file."""

    sqlite_errorcode = sqlite3.SQLITE_FULL


def is_full(error: BaseException) -> bool:
    """Return whether an error means that the disk is full, so that nothing has been written."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) in _FULL


def is_unfit(error: BaseException) -> bool:
    """Return whether an error means that SQLite cannot hold the values, so that nothing has been written."""
    if not isinstance(error, sqlite3.Error):
        # Python's own module raised it while binding the values: half of a surrogate pair, a number or a text too large.
        return isinstance(error, ValueError | OverflowError | TypeError | MemoryError)
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _UNFIT


class StoreFile:
    """An open file with two connections to it: one writes, one reads what is committed.

    Args:
        path: The file, absolute. It is created if need be; its folder must exist.
    Raises:
        ProviderError: IN_USE when another process has it; CONNECTION when it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_only = False
        """Whether closing it must leave the file and its log unchanged."""
        check_kind(path)
        if not path.parent.is_dir():
            raise refusal(path, f"there is no folder {path.parent}; make it first")
        with _changed:
            if not _changed.wait_for(lambda: path not in _held, _CLOSING_S):
                raise refusal(path, "it is still being closed", ErrorKind.IN_USE)
            if path.exists() and _identity(path) in _held.values():
                raise refusal(path, "it is open under another of its names", ErrorKind.IN_USE)
            _held[path] = None
        self._lock: StoreLock | None = None
        self._opened: list[sqlite3.Connection] = []
        try:
            self._lock = StoreLock(path)
            lost = lost_of_log(path)
            if lost is not None:
                raise refusal(path, f"it is damaged: {lost}; it is left as it is")
            readable = _check_files(path)
            version = 0
            if readable:
                # While nothing can write yet.
                self.reader = self._open(path, writing=False)
                version = _check_version(self.reader, path)
                _check_soundness(self.reader, path, version)
            elif not path.exists():
                os.close(open_private(path))
            self.writer = self._open(path)
            _prepare(self.writer, path)
            if not readable:
                self.reader = self._open(path, writing=False)
            if version < SCHEMA_VERSION:
                _check_soundness(self.reader, path, SCHEMA_VERSION)
                _make_private(path)
            _number(self.reader, "user_version")
            self._page = _number(self.writer, "page_size")
            self.identity = FileIdentity(path)
            _held[path] = _identity(path)
        except (OSError, *UNREADABLE) as error:
            self._let_go(read_only=True)
            raise refusal(path, f"it cannot be opened: {error}; it is left as it is") from error
        except BaseException:
            self._let_go(read_only=True)
            raise

    def pages(self) -> int:
        """Return how many pages there are, those of the running transaction included."""
        return _number(self.writer, "page_count")

    def check_room(self, before: int) -> None:
        """Refuse new messages when the messages that are there could no longer be deleted afterwards.

        Acknowledgements need room in the log, which is used again once it has been moved into the file; the file grows by that.
        Moving it takes whatever room is left, even if that is not enough: then nothing could be written or deleted any more.

        Args:
            before: How many pages there were when the running transaction began.
        Raises:
            sqlite3.OperationalError: SQLITE_FULL.
        """
        disk = shutil.disk_usage(self.path.parent)
        pages = self.pages()
        growth = max(0, pages * self._page - _size(self.path))
        log = CHECKPOINT_PAGES * (self._page + _FRAME_HEADER) - _size(sibling(self.path, "-wal"))
        added = (pages - before) * (self._page + _FRAME_HEADER)
        # Some file systems do not report their size.
        if disk.total and disk.free < growth + max(0, log, added) + _SPARE:
            raise _NoRoom("the room that is left is needed to delete what is there")

    def abandon(self) -> None:
        """Close the file and leave it and its log unchanged."""
        self.read_only = True
        self.close()

    def close(self) -> None:
        """Close the file and release its lock."""
        self._let_go(read_only=self.read_only)

    def _open(self, path: Path, *, writing: bool = True) -> sqlite3.Connection:
        connection = _connect(path, writing=writing)
        self._opened.append(connection)
        return connection

    def _let_go(self, *, read_only: bool) -> None:
        writer = getattr(self, "writer", None)
        try:
            # The writer is closed last if the log is to be moved into the file, and first if it is not.
            for connection in sorted(self._opened, key=lambda one: (one is writer) is not read_only):
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            if self._lock is not None:
                self._lock.release()
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
    """Refuse a file that is not a store before SQLite touches it; return whether it can be read before it is changed."""
    size, log = _size(path), sibling(path, "-wal")
    if not size:
        if _size(log):
            raise refusal(path, f"it is damaged: it is empty or gone, and {log.name} belongs to it; it is left as it is")
        return False
    with path.open("rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big")
    if not header.startswith(_MAGIC) or int.from_bytes(header[68:72], "big") != APPLICATION_ID or page < _SMALLEST_PAGE:
        raise refusal(path, "it is a file of something else, or its beginning is damaged; it is left as it is")
    if _size(sibling(path, "-journal")):
        # The process that created it was killed meanwhile, so it holds nothing yet.
        return False
    missing = range(size // page + 1, int.from_bytes(header[28:32], "big") + 1)
    if missing and not _pages_in_log(log, page).issuperset(missing):
        raise refusal(path, "it is damaged, its end is missing; it is left as it is")
    return True


def _pages_in_log(log: Path, page: int) -> set[int]:
    """Return the pages that are in a log because a process was killed before it moved them into the file."""
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
    # Each connection is used by one thread at a time: the writer's thread, and the holder of the broker's lock.
    name = f"{path.as_uri()}?mode={'rwc' if writing else 'ro'}"
    connection = sqlite3.connect(name, uri=True, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    add_functions(connection)
    return connection


def _check_version(connection: sqlite3.Connection, path: Path) -> int:
    version = _number(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise refusal(path, f"a newer jmsapi wrote it (schema {version}, this one knows {SCHEMA_VERSION}); it is left as it is")
    return version


def _check_soundness(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Refuse a damaged file. One of an older version has no checksums, so only its pages are checked before it is changed."""
    if version == SCHEMA_VERSION:
        damage = damage_of(connection, _size(path) + _size(sibling(path, "-wal")))
    else:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        damage = None if found == "ok" else str(found)
    if damage is not None:
        raise refusal(path, f"it is damaged: {damage}; it is left as it is")


def _make_private(path: Path) -> None:
    """Take the rights of others from the files of a store that an older version made."""
    for suffix in ("", "-wal", "-shm"):
        # Another user's file is not ours to change.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            sibling(path, suffix).chmod(0o600)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date, and set how the connection writes."""
    upgrade(connection, _check_version(connection, path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    # SQLite may be built with secure deletion, which writes as many zeros to the log as a deleted message had bytes.
    connection.execute("PRAGMA secure_delete = FAST").fetchall()


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    found: tuple[int] = connection.execute(f"PRAGMA {pragma}").fetchone()
    return found[0]
