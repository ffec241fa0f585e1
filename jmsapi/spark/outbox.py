"""Where the rows of a sink wait until they are sent: staged by tasks, fixed by a manifest, deleted when the ledger is past them.

``s/<batch>/d-<uuid>.arrow`` are rows of one attempt of one task; ``s/<batch>/manifest.json`` says which of them the batch
consists of. It is made once: a replay that has other partitions, or other rows, changes nothing any more. ``ledger.json``
says, once, whose outbox this is and which token counts. ``done`` says that a job is over, and which rows it had.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from jmsapi.spark.staging import StagingStore

__all__ = ["Binding", "File", "JobRows", "Manifest", "Outbox"]

File = tuple[str, int]
"""Name, and how many rows."""
_BINDING: Final = "ledger.json"
_DONE: Final = "done"
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class JobRows:
    """What the rows of a job are known by, in whatever order and partitions: a name that is used twice has others."""

    rows: int = 0
    digest: int = 0
    """Sum of the digests of all rows."""
    run: str = ""
    """The query and batch within whose ``foreachBatch`` they are written; empty elsewhere."""
    place: str = ""
    """Where they go."""
    url: str = ""
    """Of the broker: it has another when one took over the store of another while a job was under way."""

    @classmethod
    def of(cls, row: object, run: str) -> JobRows:
        """Return what one row is known by."""
        found = hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
        return cls(1, int.from_bytes(found), run)

    def may_be(self, sent: JobRows, *, goes_on: bool) -> bool:
        """Tell whether these can be the rows that were sent: also others, if they are made anew by the same program.

        Args:
            sent: What was sent.
            goes_on: It was sent in part when this run began: its rows may say when they were made.
        """
        if self.place != sent.place:
            return False
        if self.run or sent.run:
            # A batch of a stream that is replayed is the same, whatever its rows.
            return self.run == sent.run
        return self == sent or (goes_on and self.rows == sent.rows)

    def __add__(self, other: JobRows) -> JobRows:
        digest = (self.digest + other.digest) % (1 << 8 * _DIGEST_BYTES)
        return JobRows(self.rows + other.rows, digest, self.run or other.run, self.place or other.place, self.url or other.url)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a batch consists of."""

    id: str
    files: tuple[tuple[int, File], ...]
    """In order, each with the partition whose rows it has."""
    job: JobRows | None = None
    """Of a job, what its rows are known by."""

    @property
    def rows(self) -> int:
        """Return how many rows the batch has."""
        return sum(rows for _, (_, rows) in self.files)


@dataclass(frozen=True, slots=True)
class Binding:
    """Whose outbox it is."""

    owner: str
    token: str
    """Id of the one token that counts."""


class Outbox:
    """The staged rows of one sink.

    Args:
        store: Shared by driver and executors; of this sink alone.
    Threads: any; every method may be called by many processes at once.
    """

    def __init__(self, store: StagingStore) -> None:
        self.store = store

    def open(self, batch: int) -> None:
        """Let rows be staged for a batch."""
        self.store.make_folder(_folder(batch))

    def stage(self, batch: int, data: bytes | memoryview) -> str:
        """Write a file of rows and return its name.

        Raises:
            Gone: The batch is sent and deleted.
        """
        name = f"d-{uuid.uuid4().hex}.arrow"
        self.store.put(f"{_folder(batch)}/{name}", data)
        return name

    def manifest(self, batch: int) -> Manifest | None:
        """Return what a batch was fixed to consist of; None when it is not fixed, or deleted."""
        try:
            record = json.loads(bytes(self.store.read(_manifest(batch))))
        except FileNotFoundError:
            return None
        files = tuple((partition, (name, rows)) for partition, name, rows in record["files"])
        return Manifest(record["id"], files, _job_of(record))

    def fix(self, batch: int, files: Sequence[tuple[int, File]], job: JobRows | None = None) -> None:
        """Say what a batch consists of, unless that has been said.

        Raises:
            Gone: The batch is sent and deleted.
        """
        told = [(partition, name, rows) for partition, (name, rows) in files]
        record = {"id": uuid.uuid4().hex, "files": told, **_record_of(job)}
        self.store.publish(_manifest(batch), json.dumps(record).encode())

    def files(self, batch: int) -> set[str]:
        """Return the names of all files of rows of a batch, of attempts that lost as well."""
        return {name for name in self.store.list(_folder(batch)) if name.startswith("d-")}

    def read(self, batch: int, file: File) -> memoryview:
        """Return a file of rows.

        Raises:
            FileNotFoundError: The batch is sent and deleted.
        """
        return self.store.read(f"{_folder(batch)}/{file[0]}")

    def clear(self, upto: int) -> None:
        """Delete everything of all batches up to one, attempts that lost included."""
        folders = {name.partition("/")[0] for name in self.store.list("s")}
        for batch in {int(name) for name in folders if name.isdecimal()} | {upto}:
            if batch <= upto:
                self.store.remove(_folder(batch))

    def binding(self) -> Binding | None:
        """Return whose outbox this is; None when it is new."""
        try:
            record = json.loads(bytes(self.store.read(_BINDING)))
        except FileNotFoundError:
            return None
        return Binding(record["owner"], record["token"])

    def bind(self, binding: Binding) -> None:
        """Say whose outbox this is, unless that has been said."""
        self.store.publish(_BINDING, json.dumps({"owner": binding.owner, "token": binding.token}).encode())

    @property
    def done(self) -> bool:
        """Tell whether the job is over."""
        try:
            self.store.read(_DONE)
        except FileNotFoundError:
            return False
        return True

    def finish(self, job: JobRows | None = None) -> None:
        """Say that the job is over, and what its rows were known by."""
        self.store.publish(_DONE, json.dumps(_record_of(job)).encode())

    def finished(self) -> JobRows | None:
        """Return what the rows of the job that is over were known by; None when it is not over, or did not say."""
        try:
            data = bytes(self.store.read(_DONE))
        except FileNotFoundError:
            return None
        return _job_of(json.loads(data)) if data else None


def _record_of(job: JobRows | None) -> dict[str, Any]:
    return {} if job is None else {"job": astuple(job)}


def _job_of(record: dict[str, Any]) -> JobRows | None:
    return JobRows(*record["job"]) if "job" in record else None


def _folder(batch: int) -> str:
    return f"s/{batch:09d}"


def _manifest(batch: int) -> str:
    return f"{_folder(batch)}/manifest.json"
