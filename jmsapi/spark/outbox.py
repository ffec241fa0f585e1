"""Where the rows of a sink wait until they are sent: staged by tasks, fixed by a manifest, deleted when the ledger is past them.

``s/<batch>/d-<uuid>.arrow`` are rows of one attempt of one task; ``s/<batch>/manifest.json`` says which of them the batch
consists of. It is made once: a replay that has other partitions, or other rows, changes nothing any more. ``ledger.json``
says, once, whose outbox this is and which token counts. ``done`` says that a job is over.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jmsapi.spark.staging import StagingStore

__all__ = ["Binding", "File", "Manifest", "Outbox"]

File = tuple[str, int]
"""Name, and how many rows."""
_BINDING: Final = "ledger.json"
_DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a batch consists of."""

    id: str
    files: tuple[tuple[int, File], ...]
    """In order, each with the partition whose rows it has."""

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
        return Manifest(record["id"], tuple((partition, (name, rows)) for partition, name, rows in record["files"]))

    def fix(self, batch: int, files: Sequence[tuple[int, File]]) -> None:
        """Say what a batch consists of, unless that has been said.

        Raises:
            Gone: The batch is sent and deleted.
        """
        record = {"id": uuid.uuid4().hex, "files": [(partition, name, rows) for partition, (name, rows) in files]}
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

    def finish(self) -> None:
        """Say that the job is over."""
        self.store.publish(_DONE, b"")


def _folder(batch: int) -> str:
    return f"s/{batch:09d}"


def _manifest(batch: int) -> str:
    return f"{_folder(batch)}/manifest.json"
