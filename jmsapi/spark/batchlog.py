"""The batch log: what has been staged, in one order that nobody can change.

A batch is a folder ``b/<seq>`` of numbered slots, shared by all its claims. A slot is published once and names one of
three things: a file of staged rows, rows withdrawn from an earlier slot, or the end of a claim. Since slot g+1 is only
made by somebody who saw slots 0..g, the log has a total order.

- ``<g>.ok`` beside a slot: the broker confirmed the acknowledgement of its messages. Without it the slot is *in doubt*:
  the broker may deliver them again.
- ``floor/<seq>``: batches up to the highest seq are sealed. Only grows; durable before anything is deleted.
- ``doubt/<seq>-<g>.ids``: the ids of slots that were in doubt when their batch was sealed; written before the floor, so
  whoever reads the floor first sees them.

Everybody looks in the same order: batches, then floor, then doubt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from jmsapi.errors import JMSException
from jmsapi.spark.staging import StagingStore, numbered

__all__ = ["Batch", "BatchLog", "Dedup", "Slot", "View", "folder"]

T = TypeVar("T")
Dedup = Literal["in-doubt", "window", "off"]
_FLOORS_KEPT: Final = 64
"""More than any listing can miss while old ones are deleted."""
_LOOKS: Final = 200
_NAME: Final = re.compile(r"(\d+)/(?:(\d+)\.(slot|ok)|.*)", re.DOTALL)
_IDS: Final = re.compile(r"\d+-\d+\.ids")


@dataclass(frozen=True, slots=True)
class Slot:
    """One record of the log."""

    claim: int | None = None
    """Whose rows it stages."""
    data: str | None = None
    """The file of the rows, in the folder of the batch."""
    rows: int = 0
    """How many of them count."""
    skip: frozenset[str] = frozenset()
    """Ids of rows in the file that do not count: another slot has them."""
    end: int | None = None
    """The claim that ends here."""
    why: str = ""
    """The trouble that ended it early; for people."""
    withdrawn: Mapping[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    """By slot number: ids that no longer count there."""

    def encode(self) -> bytes:
        """Return the record as it is stored."""
        if self.end is not None:
            record: dict[str, object] = {"end": self.end, **({"why": self.why} if self.why else {})}
        elif self.data is None:
            record = {"w": {str(number): sorted(ids) for number, ids in self.withdrawn.items()}}
        else:
            record = {"k": self.claim, "data": self.data, "n": self.rows, "skip": sorted(self.skip)}
        return json.dumps(record, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: memoryview | bytes) -> Slot:
        """Read a stored record."""
        record = json.loads(bytes(data))
        if "end" in record:
            return cls(end=record["end"], why=record.get("why", ""))
        if "w" in record:
            return cls(withdrawn={int(number): frozenset(ids) for number, ids in record["w"].items()})
        return cls(claim=record["k"], data=record["data"], rows=record["n"], skip=frozenset(record["skip"]))


@dataclass(slots=True)
class Batch:
    """What a look at one unsealed batch showed."""

    seq: int
    slots: dict[int, Slot] = field(default_factory=dict[int, Slot])
    confirmed: set[int] = field(default_factory=set[int])

    @property
    def next(self) -> int:
        """The number of the slot that comes next."""
        return max(self.slots, default=-1) + 1

    def ended(self, claim: int) -> bool:
        """Tell whether the claim's content is fixed."""
        return any(slot.end == claim for slot in self.slots.values())

    def content(self, claim: int) -> list[tuple[int, Slot, frozenset[str]]]:
        """Return the data slots of a claim before its end, in order, each with all ids that do not count in its file."""
        found: list[tuple[int, Slot, frozenset[str]]] = []
        withdrawn = self._withdrawn()
        for number in sorted(self.slots):
            slot = self.slots[number]
            if slot.end == claim:
                break
            if slot.claim == claim and slot.data is not None:
                found.append((number, slot, slot.skip | withdrawn.get(number, frozenset())))
        return found

    def rows(self, claim: int) -> int:
        """Return how many rows of a claim count."""
        return sum(slot.rows - len(left_out - slot.skip) for _, slot, left_out in self.content(claim))

    def trouble(self) -> dict[int, str]:
        """Return what ended claims early, by claim."""
        return {slot.end: slot.why for slot in self.slots.values() if slot.end is not None and slot.why}

    def in_doubt(self) -> list[int]:
        """Return the numbers of the data slots without confirmation."""
        return [number for number, slot in sorted(self.slots.items()) if slot.data is not None and number not in self.confirmed]

    def _withdrawn(self) -> dict[int, frozenset[str]]:
        found: dict[int, frozenset[str]] = {}
        for slot in self.slots.values():
            for number, ids in slot.withdrawn.items():
                found[number] = found.get(number, frozenset()) | ids
        return found


@dataclass(frozen=True, slots=True)
class View:
    """What one look showed: all unsealed batches, the floor, and the ids that sealed batches left in doubt."""

    floor: int
    batches: Mapping[int, Batch]
    doubt: frozenset[str]

    def batch(self, seq: int) -> Batch:
        """Return a batch; an empty one when nothing is published in it."""
        return self.batches.get(seq) or Batch(seq)


class BatchLog:
    """The log of one stream, in one process.

    Args:
        store: Shared with all others.
        ids_of: Reads the message ids out of a file of staged rows, in order; None where a message has none.
        now_ms: The time, milliseconds since 1970.
        dedup: ``in-doubt``: leave out what a slot in doubt has; ``window``: also what a confirmed one has; ``off``: nothing.
        window_ms: How long ``window`` remembers confirmed ids of sealed batches, at least; by the clock of who seals.
        retention_ms: How long ids in doubt of sealed batches are remembered, likewise.
        keep: Sealed batches that stay, for going back by hand.
    Threads: one.
    """

    def __init__(
        self,
        store: StagingStore,
        ids_of: Callable[[memoryview], Sequence[str | None]],
        now_ms: Callable[[], float],
        *,
        dedup: Dedup = "in-doubt",
        window_ms: float = 600_000,
        retention_ms: float = 86_400_000,
        keep: int = 0,
    ) -> None:
        self.store = store
        self.dedup: Dedup = dedup
        self._ids_of = ids_of
        self._now_ms = now_ms
        self._window_ms = window_ms
        self._retention_ms = retention_ms
        self._keep = keep
        self._slots: dict[tuple[int, int], Slot] = {}
        self._ids: dict[tuple[int, int], frozenset[str]] = {}
        self._remembered: dict[str, tuple[float, frozenset[str]]] = {}

    # ---- looking --------------------------------------------------------------------------------------------------
    def look(self) -> View:
        """List batches, then read the floor, then what is in doubt.

        Raises:
            JMSException: ``staging-lost``: objects are listed that cannot be read.
        """
        missing: FileNotFoundError | None = None
        for _ in range(_LOOKS):
            names = self.store.list("b")
            floor = self.floor()
            try:
                batches = self._read(names, floor)
            except FileNotFoundError as error:
                # Sealed since the listing: look again, the floor has moved.
                missing = error
                continue
            self._forget(floor)
            return View(floor, batches, self._doubt())
        raise self._lost(missing)

    def agreed(self, ask: Callable[[View], T]) -> T:
        """Return what is asked of a look, and look again when a batch was sealed in between.

        Args:
            ask: Called with a view; may raise FileNotFoundError.
        Raises:
            JMSException: ``staging-lost``: a file of a batch that is not sealed is not there.
        """
        missing: FileNotFoundError | None = None
        for _ in range(_LOOKS):
            view = self.look()
            try:
                return ask(view)
            except FileNotFoundError as error:
                missing = error
        raise self._lost(missing)

    def _lost(self, missing: FileNotFoundError | None) -> JMSException:
        error = JMSException(
            f"a file of the staging location {self.store!r} is not there, and its batch is not sealed ({missing}): somebody else "
            "has deleted it. Put it back; without it nobody knows which messages were delivered",
            "staging-lost",
        )
        error.__cause__ = missing
        return error

    def floor(self) -> int:
        """Return the highest sealed seq; 0 when none is."""
        return max(numbered(self.store, "floor"), default=0)

    def deleted(self, seq: int) -> bool:
        """Tell whether a batch is sealed, and so long ago that it is, or will be, deleted."""
        return seq <= self.floor() - self._keep

    def kept(self, seq: int) -> Batch:
        """Return a batch whether sealed or not, as far as it is still there."""
        names = [name for name in self.store.list("b") if _seq(name) == seq]
        return self._read(names, seq - 1).get(seq) or Batch(seq)

    def content(self, seq: int, claim: int) -> list[tuple[memoryview, frozenset[str]]]:
        """Return the files of a claim that has ended, in order, each with the ids of the rows in it that do not count.

        Raises:
            JMSException: ``staging-sealed``: the claim has not ended, or its batch is sealed and deleted (I3); ``staging-lost``:
                a file of it is not there.
        """
        batch = self.kept(seq)
        # The floor after the listing: what is deleted object by object must not pass for a shorter claim.
        if self.deleted(seq) or not batch.ended(claim):
            raise JMSException(f"claim {claim} of batch {seq} has no end here: the batch is sealed and deleted", "staging-sealed")
        try:
            return [(self.store.read(f"{folder(seq)}/{slot.data}"), left_out) for _, slot, left_out in batch.content(claim)]
        except FileNotFoundError as missing:
            if self.deleted(seq):
                raise JMSException(f"batch {seq} was sealed and deleted while it was read", "staging-sealed") from missing
            raise self._lost(missing) from missing

    def ids(self, batch: Batch, number: int) -> frozenset[str]:
        """Return the ids of the rows that a data slot published.

        Raises:
            FileNotFoundError: The batch was sealed meanwhile.
        """
        key = (batch.seq, number)
        if key not in self._ids:
            slot = batch.slots[number]
            data = self.store.read(f"{folder(batch.seq)}/{slot.data}")
            self._ids[key] = frozenset(one for one in self._ids_of(data) if one is not None) - slot.skip
        return self._ids[key]

    def known(self, view: View) -> set[str]:
        """Return the ids that whoever appends must leave out.

        Raises:
            FileNotFoundError: A batch was sealed meanwhile.
        """
        if self.dedup == "off":
            return set()
        found = set(view.doubt)
        for batch in view.batches.values():
            numbers = batch.in_doubt() if self.dedup == "in-doubt" else [n for n, slot in batch.slots.items() if slot.data]
            for number in numbers:
                found |= self.ids(batch, number)
        return found

    def _read(self, names: Iterable[str], floor: int) -> dict[int, Batch]:
        batches: dict[int, Batch] = {}
        for name in names:
            parts = _NAME.fullmatch(name)
            if parts is None or (seq := int(parts[1])) <= floor:
                continue
            batch = batches.setdefault(seq, Batch(seq))
            number, kind = parts[2], parts[3]
            if kind == "ok":
                batch.confirmed.add(int(number))
            elif kind == "slot":
                key = (seq, int(number))
                if key not in self._slots:
                    self._slots[key] = Slot.decode(self.store.read(f"b/{name}"))
                batch.slots[key[1]] = self._slots[key]
        return batches

    def _doubt(self) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        names = [f"doubt/{name}" for name in self._noted("doubt")]
        if self.dedup == "window":
            names += [f"seen/{name}" for name in self._noted("seen")]
        for name in names:
            try:
                # How old they are, only who seals decides: the clocks of other machines may be off.
                _, ids = self._recall(name)
            except FileNotFoundError:
                continue  # expired just now
            found |= ids
        for name in set(self._remembered) - set(names):
            del self._remembered[name]
        return found

    def _noted(self, place: str) -> list[str]:
        return [name for name in self.store.list(place) if _IDS.fullmatch(name)]

    def _recall(self, name: str) -> tuple[float, frozenset[str]]:
        if name not in self._remembered:
            record = json.loads(bytes(self.store.read(name)))
            self._remembered[name] = (record["at"], frozenset(record["ids"]))
        return self._remembered[name]

    def _forget(self, floor: int) -> None:
        for key in [key for key in self._slots if key[0] <= floor - self._keep]:
            del self._slots[key]
            self._ids.pop(key, None)

    # ---- writing --------------------------------------------------------------------------------------------------
    def append(self, batch: Batch, slot: Slot) -> int | None:
        """Publish the next slot of a batch; return its number, or None when somebody else was first: look again.

        Raises:
            Gone: The batch is sealed.
        """
        number = batch.next
        return number if self.store.publish(f"{folder(batch.seq)}/{number:06d}.slot", slot.encode()) else None

    def take_back(self, seq: int, number: int) -> None:
        """Delete a slot that was made in a batch already sealed."""
        self.store.delete(f"{folder(seq)}/{number:06d}.slot")

    def confirm(self, seq: int, number: int) -> None:
        """Note that the broker confirmed the acknowledgement of a slot's messages.

        Raises:
            Gone: The batch is sealed.
        """
        self.store.mark(f"{folder(seq)}/{number:06d}.ok")

    def stage(self, seq: int, name: str, data: bytes | memoryview) -> None:
        """Write a file of rows.

        Raises:
            Gone: The batch is sealed.
        """
        self.store.put(f"{folder(seq)}/{name}", data)

    def open_batch(self, seq: int) -> None:
        """Let slots be published in a batch. Only for the driver's side: a claim must find a sealed batch gone."""
        self.store.make_folder(folder(seq))

    # ---- sealing --------------------------------------------------------------------------------------------------
    def seal(self, upto: int) -> None:
        """Seal every batch up to a seq, oldest first: remember what is in doubt, raise the floor, delete.

        May be repeated, and run by several at once.

        Raises:
            JMSException: ``staging-lost``: ids in doubt cannot be remembered, since their file is not there.
        """
        for folder_name in ("floor", "doubt", "seen"):
            self.store.make_folder(folder_name)
        floor = self.floor()
        for seq in range(floor + 1, upto + 1):
            try:
                batch = self.kept(seq)
                for number, slot in batch.slots.items():
                    if slot.data is not None:
                        self._remember(batch, number)
            except FileNotFoundError as missing:
                # Whoever is deleting it has remembered it and raised the floor.
                if self.floor() >= seq:
                    continue
                raise self._lost(missing) from missing
            self.store.publish(f"floor/{seq}", b"")
        self._sweep(max(floor, upto))

    def _remember(self, batch: Batch, number: int) -> None:
        if number not in batch.confirmed:
            place = "doubt"
        elif self.dedup == "window":
            place = "seen"
        else:
            return
        record = {"at": self._now_ms(), "ids": sorted(self.ids(batch, number))}
        self.store.publish(f"{place}/{batch.seq}-{number}.ids", json.dumps(record).encode())

    def _sweep(self, floor: int) -> None:
        for seq in {_seq(name) for name in self.store.list("b")}:
            if seq is not None and seq <= floor - self._keep:
                self.store.remove(folder(seq))
        for number in numbered(self.store, "floor"):
            if number <= floor - _FLOORS_KEPT:
                self.store.delete(f"floor/{number}")
        for place, age in (("doubt", self._retention_ms), ("seen", self._window_ms)):
            for name in self._noted(place):
                try:
                    written, _ = self._recall(f"{place}/{name}")
                except FileNotFoundError:
                    continue
                if written + age < self._now_ms():
                    self.store.delete(f"{place}/{name}")


def _seq(name: str) -> int | None:
    parts = _NAME.fullmatch(name)
    return None if parts is None else int(parts[1])


def folder(seq: int) -> str:
    """Return the folder of a batch."""
    return f"b/{seq:09d}"
