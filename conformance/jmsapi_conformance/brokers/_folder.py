"""The folder of one running broker: its data, its log, what it takes to end it, and whether anybody still wants it.

A broker that belongs to a running program is kept by a lock on the folder's ``lease`` file. The kernel drops the lock when
the program ends in whatever way, and the next launch removes what it left. A broker that shall outlive its program is kept by
a file named ``kept`` instead, or by the lease of the folder around it: so several processes share brokers until one ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypedDict

from ._kinds import BrokerKind, LauncherError, Wire

_NOTE = "broker.json"


class BrokerRecord(TypedDict):
    """What is written down of a broker, enough to find it again."""

    kind: BrokerKind
    how: str
    ports: dict[Wire, int]
    mark: str


def default_root() -> Path:
    """Find, or make, the private folder below the temporary one that holds this user's brokers.

    Raises:
        LauncherError: The folder is there but is somebody else's.
    """
    root = Path(tempfile.gettempdir()) / f"jmsapi-brokers-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.lstat().st_uid != os.getuid() or not root.is_dir() or root.is_symlink():
        raise LauncherError(f"{root} is not a folder of this user")
    return root


class Folder:
    """One broker's folder; see the module's text for who keeps it."""

    def __init__(self, path: Path, lease: IO[str] | None) -> None:
        self.path = path
        self._lease = lease

    @classmethod
    def make(cls, root: Path, kind: BrokerKind, *, kept: bool) -> Folder:
        """Make a new folder below ``root``; a kept one is named by its kind alone."""
        root.mkdir(parents=True, exist_ok=True)
        if kept:
            path = root / kind
            path.mkdir()
            (path / "kept").touch()
            return cls(path, None)
        return cls._leased(root, kind)

    @classmethod
    def leftovers(cls, root: Path) -> Iterator[Folder]:
        """Take over the folders whose program has ended."""
        for path in sorted(root.iterdir()) if root.is_dir() else []:
            # A folder without a lease is a kept one, or one that its maker is about to lock.
            if path.is_dir() and (path / "lease").exists() and (lease := _lock(path)) is not None:
                yield cls(path, lease)

    @classmethod
    def group(cls, root: Path) -> Folder:
        """Make a folder to hold kept brokers for as long as this program holds its lease."""
        return cls._leased(root, "shared")

    @classmethod
    def _leased(cls, root: Path, prefix: str) -> Folder:
        while True:
            path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=root))
            # None: another launch took the folder for a leftover, just before it was locked.
            if (lease := _lock(path)) is not None:
                return cls(path, lease)

    def brokers(self) -> Iterator[Folder]:
        """Give this folder, and those in it, as far as a broker is noted in them."""
        for path in (self.path, *sorted(self.path.iterdir())):
            if (path / _NOTE).exists():
                yield Folder(path, None)

    @property
    def log(self) -> Path:
        """Name the file that a local process writes its output to."""
        return self.path / "log"

    def write(self, record: BrokerRecord) -> None:
        """Note what is running."""
        part = self.path / f"{_NOTE}.part"
        part.write_text(json.dumps(record, indent=1), encoding="utf-8")
        part.replace(self.path / _NOTE)

    def read(self) -> BrokerRecord | None:
        """Find what was noted, or None if the launch did not get so far."""
        try:
            record: BrokerRecord = json.loads((self.path / _NOTE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return record

    def remove(self) -> None:
        """Delete the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lease is not None:
            self._lease.close()


def is_wanted(path: Path) -> bool:
    """Tell whether a program, or nobody but a later ``down``, still keeps this folder."""
    if not path.is_dir():
        return False
    holder = path.parent if (path / "kept").exists() else path
    # Without a lease: kept for good, or about to be locked by its maker.
    if not (holder / "lease").exists():
        return True
    lease = _lock(holder)
    if lease is None:
        return True
    lease.close()
    return False


def _lock(path: Path) -> IO[str] | None:
    try:
        lease = (path / "lease").open("a")
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lease.close()
        return None
    return lease
