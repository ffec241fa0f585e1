"""Whose a store's file is, and whether it is still the one that was opened.

The claim is a lock on ``FILE.lock`` that belongs to an open file, not to the process: closing some other descriptor of the same
file does not end it, as it ends a record lock. It ends with the process however that ends. A child that is forked off closes its
part; one forked behind Python's back keeps it until it ends.

SQLite's own lock is asked for too: a file that somebody else has open is refused even if its ``FILE.lock`` was removed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import IO, Final

from jmsapi.spi import ErrorKind, ProviderError

__all__ = ["Claim", "Watch", "beside", "check_kind", "refusal"]

_READERS: Final = (0x4000_0002, 510)
"""Where SQLite locks a file that is open: the first byte and how many. Part of its file format."""
_claims: Final[set[Claim]] = set()


def refusal(path: Path, why: str, kind: ErrorKind = ErrorKind.CONNECTION) -> ProviderError:
    """Return the error of a file that cannot be used."""
    return ProviderError(kind, f"the store {path}: {why}", fatal=True)


def check_kind(path: Path) -> None:
    """Refuse what is there and is no file, or cannot be asked for."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise refusal(path, f"it cannot be opened: {error}") from error
    if not stat.S_ISREG(mode):
        raise refusal(path, "it is no file")


def beside(path: Path, end: str) -> Path:
    """Return the file beside a store that belongs to it."""
    return path.with_name(path.name + end)


class Claim:
    """A process's right to a store.

    Args:
        path: The store.
    Raises:
        ProviderError: IN_USE when somebody else has it.
        OSError: The file of the lock cannot be made.
    """

    def __init__(self, path: Path) -> None:
        name = beside(path, ".lock")
        while True:
            # Not emptied: if somebody has it, its number stands there.
            self._file = open(os.open(name, os.O_RDWR | os.O_CREAT, 0o644), "r+", encoding="ascii")  # noqa: SIM115, PTH123
            try:
                _lock(self._file)
            except OSError as error:
                self._file.seek(0)
                holder = self._file.read(20).strip()
                self._file.close()
                raise _in_use(path, holder) from error
            if _same(name, os.fstat(self._file.fileno())):
                break
            # Removed between the two steps.
            self._file.close()
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        _claims.add(self)
        try:
            if _is_open_elsewhere(path):
                raise _in_use(path, "")
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others have it."""
        _claims.discard(self)
        if not self._file.closed:
            _unlock(self._file)
            self._file.close()

    def leave_to_parent(self) -> None:
        """Close what a child has of its parent's claim."""
        self._file.close()


class Watch:
    """Tells whether the names of a store still mean the files that were opened.

    Args:
        path: The store, open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[int, int]] = {}
        self._names = [(end, os.fspath(beside(path, end))) for end in ("", ".lock", "-wal")]
        self.check()

    def check(self) -> None:
        """Ask, which costs some microseconds.

        Raises:
            FileNotFoundError: One of them is gone, or is another file; what is written does not get there.
        """
        for end, name in self._names:
            try:
                now = os.stat(name)  # noqa: PTH116 - after each commit
            except FileNotFoundError:
                found = None
            else:
                found = (now.st_dev, now.st_ino)
            if found is None or self._known.setdefault(end, found) != found:
                raise FileNotFoundError(errno.ENOENT, "it was removed or replaced while it was open", name)


def _same(name: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(name.stat(), opened)
    except FileNotFoundError:
        return False


def _in_use(path: Path, holder: str) -> ProviderError:
    who = f"process {holder}" if holder.isdigit() else "another process"
    return refusal(path, f"it is open in {who}; a store belongs to one process at a time", ErrorKind.IN_USE)


if sys.platform == "win32":  # pragma: no cover - not the system of our tests
    import msvcrt

    def _lock(file: IO[str]) -> None:
        # Far behind the text, which others may read then.
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)

    def _unlock(file: IO[str]) -> None:
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    def _is_open_elsewhere(path: Path) -> bool:
        # What is open there can be neither removed nor locked twice.
        return False

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: IO[str]) -> None:
        # Said, not only closed: a child in the middle of becoming another program has a copy.
        fcntl.flock(file, fcntl.LOCK_UN)

    def _is_open_elsewhere(path: Path) -> bool:
        """Return whether another process has SQLite's lock, which stays on a file of ours as long as it is open."""
        if not path.exists():
            return False
        first, length = _READERS
        # Closing it ends this process's own locks of the file: nobody here has it open.
        with path.open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, first)
            except OSError as error:
                return error.errno in (errno.EAGAIN, errno.EACCES)
        return False


def _after_fork() -> None:
    for claim in _claims:
        claim.leave_to_parent()
    _claims.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
