"""The file of a stored broker: who may open it, what it must look like, and its schema.

A file is never made over: one that is damaged, foreign, newer than this library, or open in another process is refused as it is.
The claim to a file is a record lock on ``FILE.lock``, which ends with the process however that ends. The file of the lock stays.

Schema. A message's number says where it waits: its place (a queue or durable subscription), 9 minus its priority, and its order;
so the next to be handed out is the lowest number of its place, and a message is found, added and removed by it alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import IO, Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_inproc.store_rows import COLUMNS

__all__ = ["SCHEMA_VERSION", "StoreFile", "is_full", "is_unfit", "refusal"]

APPLICATION_ID: Final = 0x4A4D5351
"""``JMSQ``, in the header of every SQLite file of ours."""
SCHEMA_VERSION: Final = 2
CHECKPOINT_PAGES: Final = 4000
_MAGIC: Final = b"SQLite format 3\0"
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

_held: Final[set[Path]] = set()
_changed: Final = threading.Condition()
if hasattr(os, "register_at_fork"):
    # What the parent holds is not the child's: the lock says so to whoever asks.
    os.register_at_fork(after_in_child=_held.clear)


def refusal(path: Path, why: str, kind: ErrorKind = ErrorKind.CONNECTION) -> ProviderError:
    """Return the error of a file that cannot be used."""
    return ProviderError(kind, f"the store {path}: {why}", fatal=True)


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
        if not path.parent.is_dir():
            raise refusal(path, f"there is no folder {path.parent}; make it first")
        with _changed:
            if not _changed.wait_for(lambda: path not in _held, _CLOSING_S):
                raise refusal(path, "it is still being closed", ErrorKind.IN_USE)
            _held.add(path)
        opened: list[sqlite3.Connection] = []
        self._lock: IO[str] | None = None
        try:
            self._lock = _claim(path)
            _check_header(path)
            opened.append(_connect(path))
            self.writer = opened[0]
            _prepare(self.writer, path)
            opened.append(_connect(path))
            self.reader = opened[1]
            self.reader.execute("PRAGMA query_only = ON")
        except (OSError, sqlite3.Error) as error:
            self._let_go(opened)
            raise refusal(path, f"it cannot be opened: {error}; it is left as it is") from error
        except BaseException:
            self._let_go(opened)
            raise

    def close(self) -> None:
        """Close the file and let others have it."""
        self._let_go([self.reader, self.writer])

    def _let_go(self, opened: list[sqlite3.Connection]) -> None:
        try:
            for connection in opened:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            if self._lock is not None:
                self._lock.close()
        finally:
            with _changed:
                _held.discard(self.path)
                _changed.notify_all()


def _claim(path: Path) -> IO[str]:
    name = path.with_name(path.name + ".lock")
    # Not emptied: if somebody has it, its number stands there.
    file = open(os.open(name, os.O_RDWR | os.O_CREAT, 0o644), "r+", encoding="ascii")  # noqa: SIM115, PTH123
    try:
        _lock(file)
    except OSError as error:
        file.seek(0)
        holder = file.read(20).strip()
        file.close()
        who = f"process {holder}" if holder.isdigit() else "another process"
        raise refusal(path, f"it is open in {who}; a store belongs to one process at a time", ErrorKind.IN_USE) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


if os.name == "nt":  # pragma: no cover - not the system of our tests

    def _lock(file: IO[str]) -> None:
        import msvcrt

        # Far behind the text, which others may read then.
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        file.seek(0)

else:

    def _lock(file: IO[str]) -> None:
        import fcntl

        # A record lock: a child that is forked off does not keep it.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _check_header(path: Path) -> None:
    """Refuse what is no file of ours before SQLite touches it."""
    if not path.exists() or not path.stat().st_size:
        return
    if not path.is_file():
        raise refusal(path, "it is no file")
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(_MAGIC) or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise refusal(path, "it is a file of something else, or its beginning is damaged; it is left as it is")
    page = int.from_bytes(header[16:18], "big")
    wal = path.with_name(path.name + "-wal")
    if not (wal.exists() and wal.stat().st_size) and path.stat().st_size < int.from_bytes(header[28:32], "big") * page:
        raise refusal(path, "it is damaged, its end is missing; it is left as it is")


def _connect(path: Path) -> sqlite3.Connection:
    # One thread at a time uses each of them: the writer thread, and whoever holds the broker's lock.
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date; a new file becomes one of ours."""
    version = _number(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise refusal(path, f"a newer jmsapi wrote it (schema {version}, this one knows {SCHEMA_VERSION}); it is left as it is")
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


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    found: tuple[int] = connection.execute(f"PRAGMA {pragma}").fetchone()
    return found[0]
