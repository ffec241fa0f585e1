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
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import Batch, BatchLog, folder
from jmsapi.spark.claim import Claim, Result, Step
from jmsapi.spark.staging import self_test

__all__ = ["Offset", "Plan", "Stream", "StreamLimits", "Work"]

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


@dataclass(frozen=True, slots=True)
class Plan:
    """What was fixed of a batch when it was numbered."""

    claims: int
    """Claims beside the lead."""
    cap: int
    """The most rows of each."""


@dataclass(frozen=True, slots=True)
class Work:
    """One claim to be read by one task."""

    seq: int
    claim: int
    cap: int


class Stream(Generic[M]):
    """The planner of one stream, in the process that Spark keeps for it.

    Args:
        log: The batch log.
        lead: Runs claims here.
        limits: How large batches are.
        newest: Tells the latest JMSTimestamp in a claim's rows, in milliseconds; 0 when there is none.
        on_step: For tests of crashes.
    Threads: one.
    """

    def __init__(
        self,
        log: BatchLog,
        lead: Claim[M],
        limits: StreamLimits,
        newest: Callable[[Batch, int], float],
        on_step: Step | None = None,
    ) -> None:
        self._log = log
        self._store = log.store
        self._lead = lead
        self._limits = limits
        self._newest = newest
        self._on_step = on_step
        self._id: str | None = None
        self._run: int | None = None
        self._fresh = False
        """Spark asked for an initial offset, and has replayed nothing since: its checkpoint is new."""
        self._until: float | None = None
        self._last_seq: int | None = None
        self.last: Result = Result()
        """What the last lead came to."""

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
            JMSException: The staging area is not this checkpoint's (``staging-reused``, ``staging-lost``) or another query
                uses it (``staging-shared``).
        """
        here = dict(start)
        self._check(here)
        self.last = Result()
        if self._last_seq is not None and here["seq"] >= self._last_seq:
            return here
        self._begin()
        seq = int(here["seq"]) + 1
        plan = self._plan(seq) or self._lead_batch(seq, max_messages)
        if plan is None:
            return here
        if self._until is not None and self._last_seq is None and self._newest(self._log.look().batch(seq), 0) > self._until:
            self._last_seq = seq
        self._step("planned", seq)
        return self._offset(seq, plan.claims)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Work]:
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
        work: list[Work] = []
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

    # ---- planning -------------------------------------------------------------------------------------------------
    def _lead_batch(self, seq: int, max_messages: int | None) -> Plan | None:
        limits = self._limits
        most = limits.batch_messages if max_messages is None else max_messages
        cap = max(1, min(limits.lead_messages, most))
        self._log.open_batch(seq)
        self.last = result = self._lead.run(seq, 0, cap, first_wait_ms=limits.poll_timeout_ms, end_empty=False)
        if result.rows == 0:
            return None
        claims = 0 if result.drained or result.rows < cap or result.trouble else self._parallel(seq, most - cap)
        plan = Plan(claims, -(-(most - cap) // claims) if claims else 0)
        self._step("plan", seq)
        self._check_alone()
        self._store.publish(f"{folder(seq)}/plan.json", json.dumps({"claims": plan.claims, "cap": plan.cap}).encode())
        # Another start of this query may have been faster.
        return self._plan(seq)

    def _parallel(self, seq: int, left: int) -> int:
        """Return how many claims to plan behind a full lead: twice as many while all were full, half when half were empty."""
        most = min(self._limits.parallelism, left)
        before = self._plan(seq - 1)
        if before is None or before.claims == 0:
            return min(2, most)
        batch = self._log.look().batch(seq - 1)
        rows = [batch.rows(claim) for claim in range(1, before.claims + 1)]
        if all(one >= before.cap for one in rows):
            return min(before.claims * 2, most)
        if sum(one == 0 for one in rows) * 2 >= len(rows):
            return max(1, min(before.claims // 2, most))
        return min(before.claims, most)

    def _works(self, seq: int, end: Mapping[str, Any]) -> list[Work]:
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
        return [Work(seq, claim, plan.cap) for claim in range(plan.claims + 1)]

    def _lost(self, text: str, code: str) -> list[Work]:
        if self._limits.fail_on_data_loss:
            raise JMSException(
                f"{text}. Restore checkpoint and staging area together, or set failOnDataLoss=false to go on without these rows",
                code,
            )
        _log.warning("%s; going on without these rows (failOnDataLoss=false)", text)
        return []

    def _plan(self, seq: int) -> Plan | None:
        try:
            record = json.loads(bytes(self._store.read(f"{folder(seq)}/plan.json")))
        except FileNotFoundError:
            return None
        return Plan(record["claims"], record["cap"])

    # ---- whose staging area ---------------------------------------------------------------------------------------
    def _offset(self, seq: int, claims: int) -> Offset:
        return {"v": _VERSION, "stream": self._stream_id(), "seq": seq, "claims": claims}

    def _stream_id(self) -> str:
        if self._id is None:
            self._store.make_folder("runs")
            try:
                record = self._store.read("owner.json")
            except FileNotFoundError:
                self._store.publish("owner.json", json.dumps({"stream": uuid.uuid4().hex}).encode())
                record = self._store.read("owner.json")
            self._id = json.loads(bytes(record))["stream"]
        return cast("str", self._id)

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
            number = max(map(int, self._store.list("runs")), default=0) + 1
            if self._store.publish(f"runs/{number}", b""):
                self._run = number
                return

    def _started(self) -> bool:
        try:
            self._store.read("started")
        except FileNotFoundError:
            return False
        return True

    def _check_alone(self) -> None:
        if self._run is not None and max(map(int, self._store.list("runs")), default=0) > self._run:
            raise JMSException(
                "another query uses this staging area, and has started later. Each query needs one of its own", "staging-shared"
            )

    def _step(self, name: str, seq: int) -> None:
        if self._on_step is not None:
            self._on_step(name, seq, 0, 0)
