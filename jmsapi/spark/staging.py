"""Where staged messages live: a store that driver and executors share.

What everything above rests on:

- ``publish`` creates a complete object or says that the name is taken; of two rivals exactly one succeeds. What it
  returned for is durable.
- A listing that begins after ``publish`` returned shows the object (a listing may be stale only about what comes later).
- Folders below ``b`` vanish when their batch is sealed. A local store then refuses new objects in them (``Gone``); object
  stores cannot, so whoever publishes there reads the floor afterwards.

Nothing here knows what the objects mean.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from typing import TypeAlias

    Buffer: TypeAlias = bytes | memoryview

__all__ = ["CONDITIONAL_SCHEMES", "Gone", "LocalStore", "ObjectStore", "Store", "open_store", "self_test"]

CONDITIONAL_SCHEMES: Final = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
"""Object stores that can create an object on the condition that there is none; fsspec's own check-then-write does not count."""


class Gone(Exception):
    """The folder to publish into is no more: its batch is sealed."""


class Store(Protocol):
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

    def make_folder(self, folder: str) -> None:
        """Let objects be put into a folder; no matter whether it is there."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; no matter whether it is there."""
        ...

    def remove(self, folder: str) -> None:
        """Remove a folder and all in it; no matter whether it is there."""
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
        """Create an object; see Store."""
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
        """Write an object; see Store."""
        try:
            _write(self._path(name), data, durable=True)
        except FileNotFoundError as error:
            raise Gone(name) from error

    def mark(self, name: str) -> None:
        """Create an empty object; see Store."""
        try:
            _write(self._path(name), b"", durable=False)
        except FileNotFoundError as error:
            raise Gone(name) from error

    def read(self, name: str) -> memoryview:
        """Return the content, mapped into memory; see Store."""
        with self._path(name).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def list(self, folder: str) -> list[str]:
        """Return what is below a folder; see Store."""
        return list(_below(self._path(folder), ""))

    def make_folder(self, folder: str) -> None:
        """Make a folder; see Store."""
        path = self._path(folder)
        missing: list[Path] = []
        while not path.is_dir():
            missing.append(path)
            path = path.parent
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            _sync_folder(one.parent)

    def delete(self, name: str) -> None:
        """Remove an object; see Store."""
        self._path(name).unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Remove a folder; it is gone in one step for whoever would publish into it. See Store."""
        path = self._path(folder)
        trash = self.root / f".{uuid.uuid4().hex}"
        with contextlib.suppress(FileNotFoundError):
            path.rename(trash)
        # Those of a process that died in between go as well.
        for left in self.root.glob(".*/"):
            shutil.rmtree(left, ignore_errors=True)

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
        """Create an object; see Store."""
        try:
            self._create(self._path(name), data)
        except FileExistsError:
            return False
        return True

    def put(self, name: str, data: Buffer) -> None:
        """Write an object; see Store."""
        self._fs.pipe_file(self._path(name), bytes(data))

    def mark(self, name: str) -> None:
        """Create an empty object; see Store."""
        self._fs.pipe_file(self._path(name), b"")

    def read(self, name: str) -> memoryview:
        """Return the content; see Store."""
        return memoryview(self._fs.cat_file(self._path(name)))

    def list(self, folder: str) -> list[str]:
        """Return what is below a folder, never from a cache; see Store."""
        path = self._path(folder)
        self._fs.invalidate_cache()
        try:
            found: list[str] = self._fs.find(path)
        except FileNotFoundError:
            return []
        start = len(path) + 1
        return [one[start:] for one in found]

    def make_folder(self, folder: str) -> None:
        """Do nothing: an object store has no folders."""

    def delete(self, name: str) -> None:
        """Remove an object; see Store."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def remove(self, folder: str) -> None:
        """Remove all that is below a folder; see Store."""
        for name in self.list(folder):
            self.delete(f"{folder}/{name}")

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


def open_store(location: str) -> Store:
    """Return the store of a staging location; nothing is opened or written.

    Args:
        location: An absolute path, ``file:///path``, or a URL of an object store in ``CONDITIONAL_SCHEMES``. Credentials come
            from the environment, as the file system's own documentation says.
    Raises:
        JMSException: ``bad-staging``: not absolute, or a kind of store that cannot create on condition; ``missing-extra``: the
            fsspec file system of the scheme is not installed.
    Threads: any.
    """
    scheme, separator, rest = location.partition("://")
    if not separator or scheme == "file":
        path = rest if separator else location
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


def self_test(store: Store) -> None:
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
