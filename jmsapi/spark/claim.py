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
- A claim owes nobody a number of messages: trouble with the broker ends it early, and END says so. Trouble that is ``fatal``
  ends nothing: the caller raises it, and the claim is open for another attempt.
- A claim that owes what was there when it began goes on beyond its time as long as that is what comes.

Knows neither Spark nor Arrow; the model test drives it as it is.
"""

from __future__ import annotations

import gc
import threading
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from jmsapi.errors import JMSError
from jmsapi.spark.batchlog import Batch, BatchLog, Slot, View
from jmsapi.spark.staging import Gone

__all__ = ["Claim", "ClaimConsumer", "Codec", "Limits", "Result", "Step"]

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)
Step = Callable[[str, int, int, int], None]
"""Called between two steps with the name of the one that comes, seq, claim and round."""


class ClaimConsumer(Protocol[M_co]):
    """A session in CLIENT_ACKNOWLEDGE with one consumer."""

    def receive(self, most: int, most_bytes: int, timeout_ms: float) -> Sequence[M_co]:
        """Take what is here of the next messages, waiting so long for the first; one may exceed the bytes."""
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
    """The result of a run of a claim."""

    rows: int = 0
    """Rows that the claim has, whoever staged them."""
    ended: bool = False
    drained: bool = False
    """Whether the run stopped because no more messages came."""
    trouble: JMSError | None = None
    """The error that stopped the run; None when there was none."""


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
    owes: bool = False
    """What came last was there when it began."""


class Claim(Generic[M]):
    """Runs claims of one stream, in one process.

    Args:
        log: The batch log.
        codec: Messages as rows.
        connect: Opens a consumer that holds at most so many unacknowledged messages.
        limits: When rounds and claims end.
        clock_ms: A clock that only goes forward.
        on_step: For tests of crashes.
        is_fatal: Tells which trouble leaves a claim open.
        owes: Tells of messages whether they were there when the claim began, and must all be taken.
    Threads: one.
    """

    def __init__(
        self,
        log: BatchLog,
        codec: Codec[M],
        connect: Callable[[int], ClaimConsumer[M]],
        limits: Limits,
        clock_ms: Callable[[], float],
        on_step: Step | None = None,
        is_fatal: Callable[[JMSError], bool] = lambda error: False,
        owes: Callable[[Sequence[M]], bool] = lambda messages: False,
    ) -> None:
        self._log = log
        self._codec = codec
        self._connect = connect
        self._limits = limits
        self._clock_ms = clock_ms
        self._on_step = on_step
        self._is_fatal = is_fatal
        self._owes = owes

    def run(self, seq: int, claim: int, cap: int, *, first_wait_ms: float, end_empty: bool = True) -> Result:
        """Stage up to ``cap`` messages and end the claim; an ended one is left as it is, without the broker.

        Args:
            seq: The batch. Its folder is open, or it is sealed.
            claim: The number of the claim in the batch.
            cap: The most rows the claim may have, over all attempts.
            first_wait_ms: How long to wait for the first message.
            end_empty: Whether a claim without rows ends; else it can be run again.
        Returns:
            What it came to; ``ended`` is False when the batch is sealed, for an empty claim left open, and after fatal trouble.
        """
        view = self._log.look()
        batch = view.batch(seq)
        run = _Run(seq, claim, cap, Result(rows=batch.rows(claim), ended=batch.ended(claim)))
        if run.result.ended or seq <= view.floor:
            return run.result
        run.taken = run.result.rows
        with suppress(Gone):
            if run.taken < cap:
                self._stage(run, first_wait_ms)
            trouble = run.result.trouble
            if trouble is not None and self._is_fatal(trouble):
                run.result.rows = self._log.look().batch(seq).rows(claim)
                return run.result
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
            with _OLDER_OBJECTS.left_alone():
                self._rounds(run, consumer, first_wait_ms)
        except JMSError as error:
            run.result.trouble = error
        finally:
            with suppress(JMSError):
                consumer.close()

    def _rounds(self, run: _Run, consumer: ClaimConsumer[M], first_wait_ms: float) -> None:
        until = self._clock_ms() + first_wait_ms + self._limits.claim_timeout_ms
        wait = first_wait_ms
        while run.taken < run.cap and run.size < self._limits.claim_bytes and (run.owes or self._clock_ms() < until):
            messages = self._receive(run, consumer, wait, until)
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

    def _receive(self, run: _Run, consumer: ClaimConsumer[M], wait: float, until: float) -> list[M]:
        messages: list[M] = []
        size = 0
        most = min(self._limits.round_messages, run.cap - run.taken)
        room = min(self._limits.round_bytes, self._limits.claim_bytes - run.size)
        while len(messages) < most and size < room:
            some = consumer.receive(most - len(messages), room - size, wait)
            if not some:
                break
            messages += some
            size += sum(map(self._codec.size, some))
            wait = self._limits.idle_gap_ms
            run.owes = self._owes(some)
            if not run.owes and self._clock_ms() >= until:
                # A steady trickle has no gap, and would fill the round.
                break
        run.size += size
        return messages

    def _publish(self, run: _Run, consumer: ClaimConsumer[M], name: str, messages: list[M]) -> bool:
        """Append the slot of a round and acknowledge; return whether to go on."""
        while True:
            found = self._log.agreed(lambda view: self._sift(view, run, messages))
            if found is None:
                return False
            batch, skip, left = found
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

    def _sift(self, view: View, run: _Run, messages: list[M]) -> tuple[Batch, frozenset[str], int] | None:
        """Return the batch, the ids to leave out and how many messages are left; None when the claim is over."""
        batch = view.batch(run.seq)
        if run.seq <= view.floor or batch.ended(run.claim):
            return None
        known = self._log.known(view)
        ids = [self._codec.message_id(message) for message in messages]
        skip = frozenset(one for one in ids if one is not None and one in known)
        return batch, skip, sum(one not in skip for one in ids)

    # ---- the end --------------------------------------------------------------------------------------------------
    def _end(self, run: _Run, end_empty: bool) -> None:
        while True:
            over, batch, withdrawn = self._log.agreed(lambda view: self._standing(view, run))
            if over:
                return
            if withdrawn:
                self._step("withdraw", run)
                self._log.append(batch, Slot(withdrawn=withdrawn))
            elif run.result.rows or end_empty:
                self._step("end", run)
                trouble = run.result.trouble
                self._log.append(batch, Slot(end=run.claim, why="" if trouble is None else str(trouble)))
            else:
                return

    def _standing(self, view: View, run: _Run) -> tuple[bool, Batch, dict[int, frozenset[str]]]:
        """Take note of how the claim stands; return whether it is over, its batch, and what it must withdraw."""
        batch = view.batch(run.seq)
        run.result.rows = batch.rows(run.claim)
        run.result.ended = batch.ended(run.claim)
        over = run.result.ended or run.seq <= view.floor
        return over, batch, {} if over else self._elsewhere(view, run)

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


class _OlderObjects:
    """The objects of this process that are older than its claims, which the garbage collector leaves alone meanwhile.

    A round's messages are held until they are acknowledged, all at once. The collector takes them for objects that stay, and
    would look at all objects of the process for each few thousand messages, which is a quarter of what a claim costs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims = 0
        self._frozen_by_others = False
        """The program froze its objects, for good. Not asked again once it was seen: Python counts them one by one."""

    @contextmanager
    def left_alone(self) -> Generator[None]:
        """Freeze what there is; the last claim that ends undoes it."""
        with self._lock:
            if not self._claims and not self._frozen_by_others:
                self._frozen_by_others = gc.get_freeze_count() > 0
            if not self._claims and not self._frozen_by_others:
                gc.freeze()
            self._claims += 1
        try:
            yield
        finally:
            with self._lock:
                self._claims -= 1
                if not self._claims and not self._frozen_by_others:
                    gc.unfreeze()


_OLDER_OBJECTS: Final = _OlderObjects()
