"""Which process may use a store's file, and whether its name still means the file that was opened.

The right to the file is a lock on ``FILE.lock``. It belongs to an open file, not to the process, so closing some other descriptor
of the same file does not end it, as it would end a POSIX record lock. It ends with the process, however that ends. A forked child
closes its copy; one that was forked behind Python's back keeps the lock until it ends.

SQLite's own lock is tested too: a file that another process has open is refused even if its ``FILE.lock`` was removed.

Whoever may write to the folder of a store can put links there. None is followed: a file of a store that is a symbolic link, has
other names or is no regular file is refused, and nothing that was in a file before is truncated or overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import IO, Final

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["FileIdentity", "StoreLock", "check_kind", "open_private", "refusal", "sibling"]

_READERS: Final = (0x4000_0002, 510)
"""The bytes that SQLite locks while a file is open: the first and how many. They are part of its file format."""
_SIBLINGS: Final = (".lock", "-wal", "-shm", "-journal")
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HOLDER_BYTES: Final = 20
"""A lock file holds a process id and spaces, so many bytes."""
_locks: Final[set[StoreLock]] = set()


def refusal(path: Path, why: str, kind: ErrorKind = ErrorKind.CONNECTION) -> ProviderError:
    """Return the error of a file that cannot be used."""
    return ProviderError(kind, f"the store {path}: {why}", fatal=True)


def check_kind(path: Path) -> None:
    """Refuse a path that names something other than a regular file, or cannot be looked up; likewise the files beside it.

    Args:
        path: The store, without symbolic links.
    """
    for suffix in ("", *_SIBLINGS):
        name = sibling(path, suffix)
        try:
            found = name.lstat()
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise refusal(path, f"it cannot be opened: {error}") from error
        what = "it" if not suffix else f"its file {name.name}"
        if stat.S_ISLNK(found.st_mode):
            raise refusal(path, f"{what} is a symbolic link, which is not followed; remove it")
        if not stat.S_ISREG(found.st_mode):
            raise refusal(path, f"{what} is not a regular file")
        if suffix and found.st_nlink > 1:
            raise refusal(path, f"{what} has other names (hard links), under which it may be something else; remove it")


def open_private(name: Path) -> int:
    """Open a file to read and write; a new one is for its owner alone, whatever the umask. No symbolic link is followed."""
    while True:
        with contextlib.suppress(FileExistsError):
            made = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
            if hasattr(os, "fchmod"):
                os.fchmod(made, 0o600)
            return made
        # Another process may remove it between the two steps.
        with contextlib.suppress(FileNotFoundError):
            return os.open(name, os.O_RDWR | _NO_FOLLOW)


def sibling(path: Path, suffix: str) -> Path:
    """Return a file that belongs to a store and lies beside it."""
    return path.with_name(path.name + suffix)


class StoreLock:
    """A process's exclusive lock on a store.

    Args:
        path: The store.
    Raises:
        ProviderError: IN_USE when another process has it.
        OSError: The lock file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        name = sibling(path, ".lock")
        while True:
            self._file = open(open_private(name), "r+b", buffering=0)  # noqa: SIM115
            try:
                _lock(self._file)
            except OSError as error:
                holder = self._file.read(_HOLDER_BYTES).strip()
                self._file.close()
                raise _in_use(path, holder) from error
            if _same(name, os.fstat(self._file.fileno())):
                break
            # Removed between the two steps.
            self._file.close()
        _locks.add(self)
        try:
            self._sign(path, name)
        except BaseException:
            self.release()
            raise
        try:
            if _is_open_elsewhere(path):
                raise _in_use(path, b"")
        except BaseException:
            self.release()
            raise

    def _sign(self, path: Path, name: Path) -> None:
        """Write the process id into the lock file, unless the file holds something else."""
        found = self._file.read(_HOLDER_BYTES + 1)
        if len(found) > _HOLDER_BYTES or not (found.strip().isdigit() or not found.strip()):
            raise refusal(path, f"{name.name} is not its lock but a file of something else; it is left as it is")
        mode = os.fstat(self._file.fileno())
        if hasattr(os, "fchmod") and mode.st_mode & 0o077 and mode.st_uid == os.geteuid():
            # Who can open it can lock it; an older version let everybody.
            os.fchmod(self._file.fileno(), 0o600)
        self._file.seek(0)
        self._file.write(str(os.getpid()).encode().ljust(_HOLDER_BYTES))

    def release(self) -> None:
        """Unlock it."""
        _locks.discard(self)
        if not self._file.closed:
            _unlock(self._file)
            self._file.close()

    def leave_to_parent(self) -> None:
        """Close a forked child's copy of its parent's lock."""
        self._file.close()


class FileIdentity:
    """Checks that the names of a store still mean the files that were opened.

    Args:
        path: The store, open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[int, int]] = {}
        self._names = [(end, os.fspath(sibling(path, end))) for end in ("", ".lock", "-wal")]
        self.check()

    def check(self) -> None:
        """Compare, which takes some microseconds.

        Raises:
            FileNotFoundError: One of them is gone or has been replaced, so that what is written is lost.
        """
        for end, name in self._names:
            try:
                now = os.lstat(name)
            except FileNotFoundError:
                found = None
            else:
                found = (now.st_dev, now.st_ino)
            if found is None or self._known.setdefault(end, found) != found:
                raise FileNotFoundError(errno.ENOENT, "it was removed or replaced while it was open", name)


def _same(name: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(name.lstat(), opened)
    except FileNotFoundError:
        return False


def _in_use(path: Path, holder: bytes) -> ProviderError:
    who = f"process {holder.decode()}" if holder.isdigit() else "another process"
    return refusal(path, f"it is open in {who}; a store belongs to one process at a time", ErrorKind.IN_USE)


if sys.platform == "win32":  # pragma: no cover - not the system of our tests
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        # Far behind the text, so that other processes may read that.
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    def _is_open_elsewhere(path: Path) -> bool:
        # Windows lets an open file be neither removed nor locked twice.
        return False

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: IO[bytes]) -> None:
        # Closing alone would not do: a child between fork and exec has a copy.
        fcntl.flock(file, fcntl.LOCK_UN)

    def _is_open_elsewhere(path: Path) -> bool:
        """Return whether another process has SQLite's lock, which it holds on a store for as long as it is open."""
        if not path.exists():
            return False
        first, length = _READERS
        # Closing the file ends all record locks of this process on it, so nothing here may have it open.
        with path.open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, first)
            except OSError as error:
                return error.errno in (errno.EAGAIN, errno.EACCES)
        return False


def _after_fork() -> None:
    for lock in _locks:
        lock.leave_to_parent()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
