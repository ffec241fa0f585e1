"""The driver's side of a stream: numbers batches, leads each with a claim of its own, says who claims the rest.

An offset is ``{"v": 1, "stream": id, "seq": n, "claims": K}``: batch n is over, and has claims 0 to K. Claim 0, the
*lead*, is made here, before the batch exists for Spark: nothing came, then there is no batch; a little came, then the
batch has only the lead; the lead is full, then K claims drain the queue in parallel. K is part of the offset, so a replay
has the same claims (I5).

Knows no Spark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import Batch, BatchLog, folder
from jmsapi.spark.claim import Claim, Result, Step
from jmsapi.spark.staging import check_shared, numbered, self_test, take
from jmsapi.spark.trouble import is_final

__all__ = ["BatchPlan", "Offset", "ReadTask", "Stream", "StreamLimits"]

M = TypeVar("M")
Offset = dict[str, Any]
_VERSION: Final = 1
_log: Final = logging.getLogger("jmsapi.spark")


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How large batches are. Times in milliseconds."""

    batch_messages: int = 100_000
    lead_messages: int = 1000
    parallelism: int = 2
    poll_timeout_ms: float = 1000
    on_reuse: Literal["fail", "adopt"] = "fail"
    fail_on_data_loss: bool = True
    retry_timeout_ms: float = 120_000
    """How long batches may be without any claim but the lead that reaches the broker."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What was fixed of a batch when it was numbered."""

    claims: int
    """Claims beside the lead."""
    cap: int
    """The most rows of each."""
    more: int = 0
    """How many of the first claims may take one row more than the others."""
    of: str = ""
    """Of a load, what it reads."""

    @classmethod
    def share(cls, rows: int, claims: int) -> BatchPlan:
        """Share out rows over claims."""
        return cls(claims, *divmod(rows, claims)) if claims else cls(0, 0)

    @classmethod
    def decode(cls, data: memoryview) -> BatchPlan:
        """Read a stored plan."""
        record = json.loads(bytes(data))
        return cls(record["claims"], record["cap"], record.get("more", 0), record.get("of", ""))

    def encode(self) -> bytes:
        """Return the plan as it is stored."""
        of = {"of": self.of} if self.of else {}
        return json.dumps({"claims": self.claims, "cap": self.cap, "more": self.more, **of}).encode()

    def cap_of(self, number: int) -> int:
        """Return the most rows of a claim, counted from 0 without the lead."""
        return self.cap + (number < self.more)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One claim to be read by one task."""

    seq: int
    claim: int
    cap: int
    mark: str = ""
    """Of the staging area, which the task must see as well; see ``staging.check_shared``."""


class Stream(Generic[M]):
    """The planner of one stream, in the process that Spark keeps for it.

    Args:
        log: The batch log.
        lead: Runs claims here.
        limits: How large batches are.
        newest: Tells the latest JMSTimestamp in a claim's rows, in milliseconds; 0 when there is none.
        on_step: For tests of crashes.
        clock_ms: A clock that only goes forward.
    Threads: one.
    """

    def __init__(
        self,
        log: BatchLog,
        lead: Claim[M],
        limits: StreamLimits,
        newest: Callable[[Batch, int], float],
        on_step: Step | None = None,
        clock_ms: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._log = log
        self._store = log.store
        self._lead = lead
        self._limits = limits
        self._newest = newest
        self._on_step = on_step
        self._clock_ms = clock_ms
        self._cut_off_since: float | None = None
        self.before: dict[str, Any] = {}
        """How the last batch that was read went, for people."""
        self._id: str | None = None
        self._run: int | None = None
        self._fresh = False
        """Spark asked for an initial offset, and has replayed nothing since: its checkpoint is new."""
        self._until: float | None = None
        self._last_seq: int | None = None
        self.last: Result = Result()
        """The result of the last lead."""

    # ---- what Spark asks ------------------------------------------------------------------------------------------
    def initial(self) -> Offset:
        """Return where a new checkpoint begins; the same each time."""
        self._fresh = True
        return self._offset(self._log.floor(), 0)

    def until(self, now_ms: float) -> None:
        """End with the first batch whose lead has a message sent after a moment."""
        self._until = now_ms

    def latest(self, start: Mapping[str, Any], max_messages: int | None = None) -> Offset:
        """Number the next batch if there is one; else return ``start``.

        Args:
            start: Where the last batch ended.
            max_messages: The most messages of the batch; None is no limit.
        Raises:
            JMSException: The staging area is not this checkpoint's (``staging-reused``, ``staging-lost``), is not there any more
                (``staging-unshared``) or another query uses it (``staging-shared``).
        """
        here = dict(start)
        self._check(here)
        # A network folder that is not mounted any more is an empty one of this machine: what the lead stages there is lost.
        check_shared(self._store, self._stream_id())
        self.last = Result()
        if self._last_seq is not None and here["seq"] >= self._last_seq:
            return here
        self._begin()
        seq = self._next(int(here["seq"]))
        plan = self._plan(seq) or self._lead_batch(seq, max_messages)
        if plan is None:
            return here
        if self._until is not None and self._last_seq is None and self._newest(self._log.look().batch(seq), 0) > self._until:
            self._last_seq = seq
        self._step("planned", seq)
        return self._offset(seq, plan.claims)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadTask]:
        """Return the claims of the batches between two offsets; the same each time.

        Raises:
            JMSException: See ``latest``; also ``staging-sealed``: the batch is done with and its rows are deleted.
        """
        self._check(start)
        self._check(end)
        # A replay: Spark asks where its first batch began, too.
        self._fresh = False
        self._begin()
        # From here on a checkpoint knows this staging area.
        self._store.publish("started", b"")
        work: list[ReadTask] = []
        for seq in range(int(start["seq"]) + 1, int(end["seq"]) + 1):
            work += self._works(seq, end)
        self._step("partitions", int(end["seq"]))
        return work

    def commit(self, end: Mapping[str, Any]) -> None:
        """Seal every batch up to an offset. Acknowledges nothing."""
        self._check(end)
        seq = int(end["seq"])
        self._step("seal", seq)
        self._log.seal(seq)
        self._step("sealed", seq)

    def _next(self, last: int) -> int:
        """Return the number of the batch behind one; fail, or warn, when it is deleted."""
        seq = last + 1
        if self._log.deleted(seq):
            upto = self._log.floor()
            self._lost(
                f"the checkpoint ends with batch {last}, but the batches up to {upto} were delivered to a later one and are "
                "deleted: the checkpoint is older than the staging area",
                "staging-sealed",
            )
            while self._log.deleted(seq):
                seq += 1
        return seq

    # ---- planning -------------------------------------------------------------------------------------------------
    def _lead_batch(self, seq: int, max_messages: int | None) -> BatchPlan | None:
        limits = self._limits
        most = limits.batch_messages if max_messages is None else max_messages
        cap = max(1, min(limits.lead_messages, most))
        self._log.open_batch(seq)
        self.last = result = self._lead.run(seq, 0, cap, first_wait_ms=limits.poll_timeout_ms, end_empty=False)
        if result.trouble is not None and is_final(result.trouble):
            raise result.trouble
        if result.rows == 0:
            return None
        self._look_back(self._log.look().batch(seq - 1))
        claims = 0 if result.drained or result.rows < cap or result.trouble else self._parallel(seq, most - cap)
        plan = BatchPlan.share(most - cap, claims)
        self._step("plan", seq)
        self._check_alone()
        self._store.publish(f"{folder(seq)}/plan.json", plan.encode())
        # Another start of this query may have been faster.
        return self._plan(seq)

    def _look_back(self, batch: Batch) -> None:
        """Take note of how the tasks of the last batch fared; fail when none of them has reached the broker for long.

        Raises:
            JMSException: ``executors-cut-off``: nobody but this process reaches the broker.
        """
        plan = self._plan(batch.seq)
        if plan is None:
            return
        trouble = batch.trouble()
        self.before = {
            "batch": batch.seq,
            "rows": sum(batch.rows(claim) for claim in range(plan.claims + 1)),
            "inDoubt": len(batch.in_doubt()),
            "duplicatesDropped": sum(len(slot.skip) for slot in batch.slots.values()),
            "claimsInTrouble": len(trouble),
        }
        if trouble:
            self.before["trouble"] = next(iter(trouble.values()))
        if not plan.claims:
            return
        if not set(range(1, plan.claims + 1)) <= trouble.keys() or any(batch.rows(claim) for claim in trouble if claim):
            self._cut_off_since = None
            return
        now = self._clock_ms()
        self._cut_off_since = now if self._cut_off_since is None else self._cut_off_since
        told = self.before["trouble"]
        if now - self._cut_off_since >= self._limits.retry_timeout_ms:
            raise JMSException(
                f"no task has reached the broker for {self._limits.retry_timeout_ms / 1000:.0f} s, only the driver does: {told}",
                "executors-cut-off",
            )
        _log.warning("none of %d tasks of batch %d reached the broker, only the driver did: %s", plan.claims, batch.seq, told)

    def _parallel(self, seq: int, left: int) -> int:
        """Return how many claims to plan behind a full lead: twice as many while all were full, half when half were empty."""
        most = min(self._limits.parallelism, left)
        before = self._plan(seq - 1)
        if before is None or before.claims == 0:
            return min(2, most)
        batch = self._log.look().batch(seq - 1)
        rows = [batch.rows(claim) for claim in range(1, before.claims + 1)]
        if all(one >= before.cap_of(number) for number, one in enumerate(rows)):
            return min(before.claims * 2, most)
        if sum(one == 0 for one in rows) * 2 >= len(rows):
            return max(1, min(before.claims // 2, most))
        return min(before.claims, most)

    def _works(self, seq: int, end: Mapping[str, Any]) -> list[ReadTask]:
        plan = self._plan(seq)
        if self._log.deleted(seq):
            return self._lost(
                f"batch {seq} is asked for again, but it was sealed and its rows are deleted: the checkpoint is older than the "
                "staging area",
                "staging-sealed",
            )
        if plan is None:
            return self._lost(
                f"batch {seq} is in the checkpoint but not in the staging area, where its rows should be", "staging-lost"
            )
        if seq == int(end["seq"]) and plan.claims != int(end["claims"]):
            return self._lost(
                f"batch {seq} has {plan.claims} claims in the staging area, {end['claims']} in the checkpoint", "staging-lost"
            )
        # The lead is over, and needs no cap.
        return [ReadTask(seq, claim, plan.cap_of(claim - 1), self._stream_id()) for claim in range(plan.claims + 1)]

    def _lost(self, text: str, code: str) -> list[ReadTask]:
        if self._limits.fail_on_data_loss:
            raise JMSException(
                f"{text}. Restore checkpoint and staging area together, or set failOnDataLoss=false to go on without these rows",
                code,
            )
        _log.warning("%s; going on without these rows (failOnDataLoss=false)", text)
        return []

    def _plan(self, seq: int) -> BatchPlan | None:
        try:
            return BatchPlan.decode(self._store.read(f"{folder(seq)}/plan.json"))
        except FileNotFoundError:
            return None

    # ---- whose staging area ---------------------------------------------------------------------------------------
    def _offset(self, seq: int, claims: int) -> Offset:
        return {"v": _VERSION, "stream": self._stream_id(), "seq": seq, "claims": claims}

    def _stream_id(self) -> str:
        if self._id is None:
            self._id = take(self._store)
            self._store.make_folder("runs")
        return self._id

    def _check(self, offset: Mapping[str, Any]) -> None:
        if offset.get("v") != _VERSION:
            raise JMSException(
                f"the checkpoint has offsets of version {offset.get('v')!r}, this is version {_VERSION}", "staging-lost"
            )
        if offset["stream"] != self._stream_id():
            raise JMSException(
                "the checkpoint belongs to another staging area than this one. Keep, move and delete the two together",
                "staging-reused",
            )

    def _begin(self) -> None:
        """Take note of a start of the query, once."""
        if self._fresh and self._limits.on_reuse == "fail" and self._started():
            raise JMSException(
                "a new checkpoint on a staging area that another checkpoint has used: rows of it may be staged and not "
                "delivered. Use its checkpoint, another staging area, or onStagingReuse=adopt to deliver what is staged first",
                "staging-reused",
            )
        if self._run is not None:
            return
        self_test(self._store)
        while True:
            number = max(numbered(self._store, "runs"), default=0) + 1
            if self._store.publish(f"runs/{number}", b""):
                self._run = number
                break
        # Only the highest is asked for; one that is made below it finds itself overtaken.
        for other in numbered(self._store, "runs"):
            if other < number:
                self._store.delete(f"runs/{other}")

    def _started(self) -> bool:
        try:
            self._store.read("started")
        except FileNotFoundError:
            return False
        return True

    def _check_alone(self) -> None:
        if self._run is not None and max(numbered(self._store, "runs"), default=0) > self._run:
            raise JMSException(
                "another query uses this staging area, and has started later. Each query needs one of its own", "staging-shared"
            )

    def _step(self, name: str, seq: int) -> None:
        if self._on_step is not None:
            self._on_step(name, seq, 0, 0)
