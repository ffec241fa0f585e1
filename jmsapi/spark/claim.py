"""One claim: messages go from the broker into the batch log, each into one slot.

    receive a round, unacknowledged -> write its file -> append its slot -> acknowledge -> note the confirmation -> again
    then END, behind which nothing is appended

Rules:

- A message is acknowledged only when a slot of an unsealed batch has it (I2). A crash before that sends it back to the
  queue; a crash after it leaves the slot in doubt, and whoever appends later leaves the message out (I4).
- An acknowledgement that is not confirmed may mean that the broker has given the message to somebody else. Before END
  the claim withdraws what a confirmed slot has as well.
- END fixes the content for ever (I1), so nobody reads before it (I3).
- Any number of attempts may run the same claim at once, and any of them may stop anywhere.
- A claim owes nobody a number of messages: trouble with the broker ends it early.

Knows neither Spark nor Arrow; the model test drives it as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from jmsapi.errors import JMSError
from jmsapi.spark.batchlog import BatchLog, Slot, View
from jmsapi.spark.staging import Gone

__all__ = ["Claim", "Codec", "Consumer", "Limits", "Result", "Step"]

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)
Step = Callable[[str, int, int, int], None]
"""Called between two steps with the name of the one that comes, seq, claim and round."""


class Consumer(Protocol[M_co]):
    """A session in CLIENT_ACKNOWLEDGE with one consumer."""

    def receive(self, timeout_ms: float) -> M_co | None:
        """Take the next message, waiting so long; None when none came."""
        ...

    def acknowledge(self) -> None:
        """Acknowledge all received; returns when the broker confirmed it, raises JMSError when that is not sure."""
        ...

    def close(self) -> None:
        """Give back what is not acknowledged."""
        ...


class Codec(Protocol[M_contra]):
    """Messages as rows of a file."""

    def message_id(self, message: M_contra) -> str | None:
        """Return the message's id, the same each time it is delivered."""
        ...

    def size(self, message: M_contra) -> int:
        """Return about how many bytes the message takes."""
        ...

    def encode(self, messages: Sequence[M_contra]) -> bytes | memoryview:
        """Return a file with a row for each."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When a round and a claim end. Times in milliseconds."""

    round_messages: int = 1000
    round_bytes: int = 8 << 20
    idle_gap_ms: float = 50
    claim_timeout_ms: float = 10_000
    claim_bytes: int = 256 << 20


@dataclass(slots=True)
class Result:
    """What a run of a claim came to."""

    rows: int = 0
    """Rows that the claim has, whoever staged them."""
    ended: bool = False
    drained: bool = False
    """It stopped because nothing more came."""
    trouble: JMSError | None = None
    """It stopped because of this."""


@dataclass(slots=True)
class _Run:
    """The state of one attempt."""

    seq: int
    claim: int
    cap: int
    result: Result
    round: int = 0
    taken: int = 0
    size: int = 0


class Claim(Generic[M]):
    """Runs claims of one stream, in one process.

    Args:
        log: The batch log.
        codec: Messages as rows.
        connect: Opens a consumer that holds at most so many unacknowledged messages.
        limits: When rounds and claims end.
        clock_ms: A clock that only goes forward.
        on_step: For tests of crashes.
    Threads: one.
    """

    def __init__(
        self,
        log: BatchLog,
        codec: Codec[M],
        connect: Callable[[int], Consumer[M]],
        limits: Limits,
        clock_ms: Callable[[], float],
        on_step: Step | None = None,
    ) -> None:
        self._log = log
        self._codec = codec
        self._connect = connect
        self._limits = limits
        self._clock_ms = clock_ms
        self._on_step = on_step

    def run(self, seq: int, claim: int, cap: int, *, first_wait_ms: float, end_empty: bool = True) -> Result:
        """Stage up to ``cap`` messages and end the claim; an ended one is left as it is, without the broker.

        Args:
            seq: The batch. Its folder is open, or it is sealed.
            claim: The number of the claim in the batch.
            cap: The most rows the claim may have, over all attempts.
            first_wait_ms: How long to wait for the first message.
            end_empty: Whether a claim without rows ends; else it can be run again.
        Returns:
            What it came to; ``ended`` is False when the batch is sealed, or for an empty claim left open.
        """
        view = self._log.look()
        batch = view.batch(seq)
        run = _Run(seq, claim, cap, Result(rows=batch.rows(claim), ended=batch.ended(claim)))
        if run.result.ended or seq <= view.floor:
            return run.result
        run.taken = run.result.rows
        with suppress(Gone):
            if run.taken < cap:
                self._stage(run, self._limits.idle_gap_ms if run.taken else first_wait_ms)
            self._end(run, end_empty)
        return run.result

    # ---- rounds ---------------------------------------------------------------------------------------------------
    def _stage(self, run: _Run, first_wait_ms: float) -> None:
        self._step("connect", run)
        try:
            consumer = self._connect(min(self._limits.round_messages, run.cap - run.taken))
        except JMSError as error:
            run.result.trouble = error
            return
        try:
            self._rounds(run, consumer, first_wait_ms)
        except JMSError as error:
            run.result.trouble = error
        finally:
            with suppress(JMSError):
                consumer.close()

    def _rounds(self, run: _Run, consumer: Consumer[M], first_wait_ms: float) -> None:
        until = self._clock_ms() + first_wait_ms + self._limits.claim_timeout_ms
        wait = first_wait_ms
        while run.taken < run.cap and run.size < self._limits.claim_bytes and self._clock_ms() < until:
            messages = self._receive(run, consumer, wait)
            wait = self._limits.idle_gap_ms
            if not messages:
                run.result.drained = True
                return
            self._step("write", run)
            name = f"d-{uuid.uuid4().hex}.arrow"
            self._log.stage(run.seq, name, self._codec.encode(messages))
            if not self._publish(run, consumer, name, messages):
                return
            run.round += 1

    def _receive(self, run: _Run, consumer: Consumer[M], wait: float) -> list[M]:
        messages: list[M] = []
        size = 0
        most = min(self._limits.round_messages, run.cap - run.taken)
        while len(messages) < most and size < min(self._limits.round_bytes, self._limits.claim_bytes - run.size):
            message = consumer.receive(wait)
            if message is None:
                break
            messages.append(message)
            size += self._codec.size(message)
            wait = self._limits.idle_gap_ms
        run.size += size
        return messages

    def _publish(self, run: _Run, consumer: Consumer[M], name: str, messages: list[M]) -> bool:
        """Append the slot of a round and acknowledge; return whether to go on."""
        while True:
            view = self._log.look()
            batch = view.batch(run.seq)
            if run.seq <= view.floor or batch.ended(run.claim):
                return False
            skip, left = self._sift(view, messages)
            if skip is None:
                continue
            if not left:
                number = None
                break
            self._step("append", run)
            number = self._log.append(batch, Slot(claim=run.claim, data=name, rows=left, skip=skip))
            if number is not None:
                break
        # An object store lets a slot be made in a batch that was sealed meanwhile; sealing raised the floor before it deleted.
        if self._log.floor() >= run.seq:
            if number is not None:
                self._log.take_back(run.seq, number)
            return False
        run.taken += left
        self._step("acknowledge", run)
        # Those that other slots have are acknowledged as well: nobody else would, and they would come again and again.
        consumer.acknowledge()
        self._step("confirm", run)
        if number is not None:
            self._log.confirm(run.seq, number)
        return True

    def _sift(self, view: View, messages: list[M]) -> tuple[frozenset[str] | None, int]:
        """Return the ids to leave out and how many messages are left; None for the ids means: look again."""
        try:
            known = self._log.known(view)
        except FileNotFoundError:
            return None, 0
        ids = [self._codec.message_id(message) for message in messages]
        skip = frozenset(one for one in ids if one is not None and one in known)
        return skip, sum(one not in skip for one in ids)

    # ---- the end --------------------------------------------------------------------------------------------------
    def _end(self, run: _Run, end_empty: bool) -> None:
        while True:
            view = self._log.look()
            batch = view.batch(run.seq)
            run.result.rows = batch.rows(run.claim)
            run.result.ended = batch.ended(run.claim)
            if run.result.ended or run.seq <= view.floor:
                return
            try:
                withdrawn = self._elsewhere(view, run)
            except FileNotFoundError:
                continue
            if withdrawn:
                self._step("withdraw", run)
                self._log.append(batch, Slot(withdrawn=withdrawn))
            elif run.result.rows or end_empty:
                self._step("end", run)
                self._log.append(batch, Slot(end=run.claim))
            else:
                return

    def _elsewhere(self, view: View, run: _Run) -> dict[int, frozenset[str]]:
        """Find what slots of this claim in doubt share with slots that are confirmed, or of an earlier batch."""
        if self._log.dedup == "off":
            return {}
        mine = view.batch(run.seq)
        doubtful = {
            number: self._log.ids(mine, number) - (left_out - slot.skip)
            for number, slot, left_out in mine.content(run.claim)
            if number not in mine.confirmed
        }
        if not any(doubtful.values()):
            return {}
        others: set[str] = set()
        for batch in view.batches.values():
            if batch.seq > run.seq:
                continue
            for number, slot in batch.slots.items():
                if slot.data is not None and (batch.seq < run.seq or number in batch.confirmed):
                    others |= self._log.ids(batch, number)
        return {number: frozenset(ids & others) for number, ids in doubtful.items() if ids & others}

    def _step(self, name: str, run: _Run) -> None:
        if self._on_step is not None:
            self._on_step(name, run.seq, run.claim, run.round)
