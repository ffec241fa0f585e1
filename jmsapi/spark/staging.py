"""Where staged messages live: a store that driver and executors share.

What everything above rests on:

- ``publish`` creates a complete object or says that the name is taken; of two rivals exactly one succeeds. What it
  returned for is durable.
- A listing that begins after ``publish`` returned shows the object (a listing may be stale only about what comes later).
- Folders below ``b`` vanish when their batch is sealed. A local store then refuses new objects in them (``Gone``); object
  stores cannot, so whoever publishes there reads the floor afterwards.
- A place is taken before anything is put there: it is new or empty then, and gets a mark, ``owner.json``, with an id. A place
  that holds anything else is refused, so nothing is ever deleted that was not made here. Who reads the same id on another
  machine sees the same place.

Nothing here knows what the objects mean.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from typing import TypeAlias

    Buffer: TypeAlias = bytes | memoryview

__all__ = [
    "CONDITIONAL_SCHEMES",
    "Gone",
    "LocalStore",
    "ObjectStore",
    "StagingStore",
    "check_shared",
    "mark_of",
    "numbered",
    "open_store",
    "self_test",
    "take",
]

CONDITIONAL_SCHEMES: Final = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
"""Object stores that can create an object on the condition that there is none; fsspec's own check-then-write does not count."""
_MARK: Final = "owner.json"
_TRASH: Final = "removed"
_OURS: Final = frozenset({_MARK, "b", "floor", "doubt", "seen", "runs", "started", "test", "s", "ledger.json", "done", _TRASH})
"""All that is ever put into a place, at its top."""
_DRAFT: Final = re.compile(r"\.[0-9a-f]{32}")
_TRASHED: Final = re.compile(r"[0-9a-f]{32}")
_MADE: Final = re.compile(r"\.[0-9a-f]{32}|\d+\.(slot|ok)|d-[\w-]+\.arrow|(plan|manifest)\.json")
"""All that is ever put into a folder that can be removed; anything else there is somebody else's."""


class Gone(Exception):
    """The folder to publish into is no more: its batch is sealed."""


class StagingStore(Protocol):
    """Named objects. Names are relative, with ``/`` between folders.

    Threads: any; every method may be called by many processes at once.
    """

    def publish(self, name: str, data: bytes) -> bool:
        """Create an object with all its content, durably; return False when the name is taken.

        Raises:
            Gone: Its folder was removed.
        """
        ...

    def put(self, name: str, data: Buffer) -> None:
        """Write an object whose name nobody else uses. Durable once ``publish`` returned for another object of the folder.

        Raises:
            Gone: Its folder was removed.
        """
        ...

    def mark(self, name: str) -> None:
        """Create an empty object, taken or not; it need not survive a crash of the machine.

        Raises:
            Gone: Its folder was removed.
        """
        ...

    def read(self, name: str) -> memoryview:
        """Return the content.

        Raises:
            FileNotFoundError: There is no such object.
        """
        ...

    def list(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, relative to it, in no order; [] when there is none."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names at the top of the place, folders and foreign ones included; [] when it is not there."""
        ...

    def make_folder(self, folder: str) -> None:
        """Let objects be put into a folder; no matter whether it is there."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; no matter whether it is there."""
        ...

    def remove(self, folder: str) -> None:
        """Remove a folder and all in it that was made here; no matter whether it is there."""
        ...


class LocalStore:
    """A folder of a local disk, or of NFS that all nodes mount.

    A name is given by ``link``, which is atomic and fails when the name is taken, also over NFS.

    Args:
        root: An absolute path; made when something is written.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def __repr__(self) -> str:
        return f"LocalStore({str(self.root)!r})"

    def publish(self, name: str, data: bytes) -> bool:
        """Create an object; see StagingStore."""
        path = self._path(name)
        draft = path.with_name(f".{uuid.uuid4().hex}")
        try:
            _write(draft, data, durable=True)
            try:
                os.link(draft, path)
            except FileExistsError:
                return False
            finally:
                draft.unlink(missing_ok=True)
            _sync_folder(path.parent)
        except FileNotFoundError as error:
            raise Gone(name) from error
        return True

    def put(self, name: str, data: Buffer) -> None:
        """Write an object; see StagingStore."""
        try:
            _write(self._path(name), data, durable=True)
        except FileNotFoundError as error:
            raise Gone(name) from error

    def mark(self, name: str) -> None:
        """Create an empty object; see StagingStore."""
        try:
            _write(self._path(name), b"", durable=False)
        except FileNotFoundError as error:
            raise Gone(name) from error

    def read(self, name: str) -> memoryview:
        """Return the content, mapped into memory; see StagingStore."""
        with self._path(name).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def list(self, folder: str) -> list[str]:
        """Return what is below a folder; see StagingStore."""
        return list(_below(self._path(folder), ""))

    def names(self) -> Sequence[str]:
        """Return what is at the top; see StagingStore."""
        try:
            return [entry.name for entry in self.root.iterdir()]
        except FileNotFoundError:
            return []

    def make_folder(self, folder: str) -> None:
        """Make a folder; see StagingStore."""
        path = self._path(folder)
        missing: list[Path] = []
        while not path.is_dir():
            missing.append(path)
            path = path.parent
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            _sync_folder(one.parent)

    def delete(self, name: str) -> None:
        """Remove an object; see StagingStore."""
        self._path(name).unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Remove a folder; it is gone in one step for whoever would publish into it. See Store."""
        if mark_of(self) is None:
            raise JMSException(f"{self!r} is no staging location: nothing is deleted there", "bad-staging")
        self.make_folder(_TRASH)
        trash, place = self.root / _TRASH, self._path(folder)
        gone = trash / uuid.uuid4().hex
        if not place.is_symlink():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                place.rename(gone)
        # Those of a process that died in between go as well.
        for left in trash.iterdir():
            if _TRASHED.fullmatch(left.name) and not left.is_symlink():
                _empty(left)
        if gone.is_dir():
            # What somebody else put there stays where it was.
            for foreign in gone.iterdir():
                # But what NFS keeps of a file that is still read goes by itself.
                if not foreign.name.startswith(".nfs"):
                    place.mkdir(exist_ok=True)
                    with contextlib.suppress(FileNotFoundError):
                        foreign.rename(place / foreign.name)
            with contextlib.suppress(OSError):
                gone.rmdir()

    def _path(self, name: str) -> Path:
        return self.root / name


def _below(folder: Path, prefix: str) -> Iterable[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"


def _empty(folder: Path) -> None:
    """Delete what was made here in a folder, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if _MADE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)
        folder.rmdir()


def _write(path: Path, data: Buffer, *, durable: bool) -> None:
    with path.open("wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class ObjectStore:
    """An object store behind fsspec that creates on condition.

    Args:
        filesystem: Of s3fs, gcsfs or adlfs; any other must be proven by ``self_test``.
        root: Bucket and prefix.
        create: How this file system creates an object unless it is there: called with path and content, raises
            ``FileExistsError`` when it is. None means ``pipe_file(..., mode="create")``.
    """

    def __init__(self, filesystem: Any, root: str, create: Callable[[str, bytes], None] | None = None) -> None:
        self._fs = filesystem
        self.root = root.rstrip("/")
        self._create = create or self._pipe_new

    def __repr__(self) -> str:
        return f"ObjectStore({self.root!r})"

    def _pipe_new(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(path, data, mode="create")

    def publish(self, name: str, data: bytes) -> bool:
        """Create an object; see StagingStore."""
        try:
            self._create(self._path(name), data)
        except FileExistsError:
            return False
        return True

    def put(self, name: str, data: Buffer) -> None:
        """Write an object; see StagingStore."""
        self._fs.pipe_file(self._path(name), bytes(data))

    def mark(self, name: str) -> None:
        """Create an empty object; see StagingStore."""
        self._fs.pipe_file(self._path(name), b"")

    def read(self, name: str) -> memoryview:
        """Return the content; see StagingStore."""
        return memoryview(self._fs.cat_file(self._path(name)))

    def list(self, folder: str) -> list[str]:
        """Return what is below a folder, never from a cache; see StagingStore."""
        path = self._path(folder)
        self._fs.invalidate_cache()
        try:
            found: list[str] = self._fs.find(path)
        except FileNotFoundError:
            return []
        start = len(path) + 1
        return [one[start:] for one in found]

    def names(self) -> Sequence[str]:
        """Return what is at the top; see StagingStore."""
        self._fs.invalidate_cache()
        try:
            found: list[str] = self._fs.ls(self.root, detail=False)
        except FileNotFoundError:
            return []
        return [name for one in found if (name := one.rstrip("/").removeprefix(self.root).strip("/"))]

    def make_folder(self, folder: str) -> None:
        """Do nothing: an object store has no folders."""

    def delete(self, name: str) -> None:
        """Remove an object; see StagingStore."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def remove(self, folder: str) -> None:
        """Remove what was made here below a folder; see StagingStore."""
        for name in self.list(folder):
            if _MADE.fullmatch(name):
                self.delete(f"{folder}/{name}")

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


def numbered(store: StagingStore, folder: str) -> list[int]:
    """Return the numbers that are names of objects in a folder; what else lies there is not ours."""
    return [int(name) for name in store.list(folder) if name.isdecimal()]


def open_store(location: str) -> StagingStore:
    """Return the store of a staging location; nothing is opened or written.

    Args:
        location: An absolute path, ``file:///path``, ``file:/path``, or a URL of an object store in ``CONDITIONAL_SCHEMES``.
            Credentials come from the environment, as the file system's own documentation says.
    Raises:
        JMSException: ``bad-staging``: not absolute, or a kind of store that cannot create on condition; ``missing-extra``: the
            fsspec file system of the scheme is not installed.
    Threads: any.
    """
    scheme, separator, rest = location.partition("://")
    scheme = scheme.lower()
    if "\0" in location:
        raise JMSException("the staging location has a NUL in it", "bad-staging")
    if not separator or scheme == "file":
        # Hadoop writes a path as file:/place.
        path = rest if separator else location.removeprefix("file:")
        if not path.startswith("/"):
            raise JMSException(
                f"the staging location {location!r} is not absolute; every node must know it by the same path",
                "bad-staging",
            )
        return LocalStore(path)
    if scheme not in CONDITIONAL_SCHEMES:
        raise JMSException(
            f"a staging location cannot be on {scheme}://: it must create an object only if there is none, atomically, which is "
            f"known of local disks, NFS, {', '.join(f'{one}://' for one in CONDITIONAL_SCHEMES)}",
            "bad-staging",
        )
    if not rest.strip("/"):
        raise JMSException(f"the staging location {location!r} names no bucket", "bad-staging")
    try:
        fsspec: Any = importlib.import_module("fsspec")
        filesystem: Any = fsspec.filesystem("s3" if scheme == "s3a" else scheme, use_listings_cache=False)
    except ImportError as error:
        raise JMSException(f"a staging location on {scheme}:// needs an fsspec file system: {error}", "missing-extra") from error
    if scheme in ("abfs", "abfss", "az"):
        # adlfs has no mode="create"; its overwrite=False is a condition of the request.
        def create(path: str, data: bytes) -> None:
            filesystem.pipe_file(path, data, overwrite=False)

        return ObjectStore(filesystem, rest, create)
    return ObjectStore(filesystem, rest)


def mark_of(store: StagingStore) -> str | None:
    """Return the id of a place that was taken; None of any other."""
    try:
        record = json.loads(bytes(store.read(_MARK)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        # A file of somebody else that happens to have the name.
        return None
    found = record.get("id") or record.get("stream") if isinstance(record, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found if isinstance(found, str) else None


def take(store: StagingStore) -> str:
    """Make a place ours, if it is new or empty, and return its id; the same id whoever asks.

    Raises:
        JMSException: ``bad-staging``: it holds something that was not made here, or cannot be written.
    Threads: any.
    """
    try:
        if (found := mark_of(store)) is not None:
            return found
        names = {name for name in store.names() if not _DRAFT.fullmatch(name)}
        # One of a version that made no mark has nothing but what is ours.
        if names - _OURS or names == {_MARK} or (names and not names & {"ledger.json", "floor", "runs", "b"}):
            # Whoever takes it at the same time may have begun.
            if (found := mark_of(store)) is not None:
                return found
            told = ", ".join(sorted(names - _OURS or names)[:5])
            raise JMSException(
                f"the staging location {store!r} holds other things ({told}): it must be a folder of its own, new or empty. "
                "Nothing was consumed, nothing is deleted",
                "bad-staging",
            )
        store.make_folder("")
        store.publish(_MARK, json.dumps({"id": uuid.uuid4().hex}).encode())
        found = mark_of(store)
    except (OSError, Gone) as error:
        raise JMSException(f"the staging location {store!r} cannot be used: {error}", "bad-staging") from error
    if found is None:
        raise JMSException(f"the staging location {store!r} does not keep what is written", "bad-staging")
    return found


def check_shared(store: StagingStore, mark: str) -> None:
    """Check that a place is the one that was taken, seen from where this runs.

    Args:
        store: As this process sees it.
        mark: What ``take`` returned where the query was planned.
    Raises:
        JMSException: ``staging-unshared``: it is another one.
    Threads: any.
    """
    found = mark_of(store)
    if found != mark:
        what = "is not there" if found is None else "is another one of the same name"
        raise JMSException(
            f"the staging location {store!r} {what} on the machine {socket.gethostname()!r}: it must be one that the driver and "
            "all executors share, such as a network folder at the same path or an object store. This task has done nothing",
            "staging-unshared",
        )


def self_test(store: StagingStore) -> None:
    """Prove that the store can be written and creates each name once. Costs a few requests; run at the start of a query.

    Raises:
        JMSException: ``bad-staging``: it cannot be written, or let the same name be created twice.
    Threads: any.
    """
    name = f"test/{uuid.uuid4().hex}"
    try:
        store.make_folder("test")
        first, again = store.publish(name, b"first"), store.publish(name, b"again")
        kept, listed = bytes(store.read(name)), name.removeprefix("test/") in store.list("test")
        store.delete(name)
    except (OSError, Gone) as error:
        raise JMSException(f"the staging location {store!r} cannot be used: {error}", "bad-staging") from error
    if not first or again or kept != b"first" or not listed:
        raise JMSException(
            f"the staging location {store!r} does not keep its promise: an object must be created only if there is none, and be "
            "listed from then on. Nothing was consumed",
            "bad-staging",
        )
