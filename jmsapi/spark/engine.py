"""Puts log, claims and planner together for one set of options. Knows no Spark."""

from __future__ import annotations

import importlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, cast

from jmsapi.errors import JMSError, JMSException
from jmsapi.spark.arrow import RecordBatch
from jmsapi.spark.batchlog import Batch, BatchLog, folder
from jmsapi.spark.claim import Claim, Limits, Step
from jmsapi.spark.options import SourceOptions
from jmsapi.spark.receiving import Receivers
from jmsapi.spark.rows import Taken
from jmsapi.spark.schema import ArrowCodec, ids_of, newest_ms, read_rows
from jmsapi.spark.staging import StagingStore, check_shared, open_store
from jmsapi.spark.stream import BatchPlan, ReadTask, Stream, StreamLimits
from jmsapi.spark.trouble import is_final

__all__ = ["Engine", "step_hook"]

_NO_LIMIT: Final = 1 << 62
_log: Final = logging.getLogger("jmsapi.spark")


def _any_trouble(error: JMSError) -> bool:
    return True


def step_hook() -> Step | None:
    """Return what tests of crashes put between the steps: ``module:function`` in JMSAPI_SPARK_ON_STEP; else None."""
    place = os.environ.get("JMSAPI_SPARK_ON_STEP", "")
    if not place:
        return None
    module, _, name = place.partition(":")
    return cast("Step", getattr(importlib.import_module(module), name))


class Engine:
    """One stream, seen from one process.

    Args:
        options: Of the source, checked.
        store: The staging area; the one of the options when None.
        on_step: For tests of crashes; see ``step_hook`` when None.
        load: Where a load is staged, in place of a stream.
    Threads: one.
    """

    def __init__(
        self,
        options: SourceOptions,
        store: StagingStore | None = None,
        on_step: Step | None = None,
        *,
        load: StagingStore | None = None,
    ) -> None:
        self.options = options
        self.on_step = on_step or step_hook()
        self.receivers = Receivers(options)
        self.log = BatchLog(
            load or store or open_store(options.staging_location or ""),
            ids_of,
            now_ms,
            dedup=options.dedup,
            window_ms=options.dedup_window,
            retention_ms=options.doubt_retention,
            keep=options.keep_batches,
        )
        began_us = round(now_ms() * 1000)

        def owes(messages: Sequence[Taken]) -> bool:
            # A time later than when the message came is of a clock that is ahead, and says nothing.
            sent = [one.sent_us for one in messages if one.sent_us is not None and one.sent_us <= one.received_us]
            return bool(sent) and max(sent) < began_us

        # A load owes what it was asked for: any trouble is said, and all that was there when it began is taken unless a time was
        # given. A stream goes on with the next batch.
        self._is_fatal = is_final if load is None else _any_trouble
        self.claim: Claim[Taken] = Claim(
            self.log,
            ArrowCodec(options.compression),
            self.receivers.connect,
            limits_of(options, load=load is not None),
            clock_ms,
            self.on_step,
            self._is_fatal,
            *([owes] if load is not None and "claim_timeout" not in options.model_fields_set else []),
        )

    def stream(self) -> Stream[Taken]:
        """Return the planner; for the driver's side."""
        options = self.options
        limits = StreamLimits(
            batch_messages=options.max_messages_per_batch,
            lead_messages=options.lead_messages,
            parallelism=options.claims,
            poll_timeout_ms=options.poll_timeout,
            on_reuse=options.on_staging_reuse,
            fail_on_data_loss=options.fail_on_data_loss,
            retry_timeout_ms=options.broker_retry_timeout,
        )
        return Stream(self.log, self.claim, limits, self._newest, self.on_step, clock_ms)

    def fix_plan(self, seq: int, plan: BatchPlan) -> None:
        """Say once how many claims of what size a load has, and what it reads."""
        self.log.store.publish(f"{folder(seq)}/plan.json", replace(plan, of=self.options.place).encode())

    def planned(self, seq: int) -> list[tuple[int, int]]:
        """Return the claims of a load, each with its cap.

        Raises:
            JMSException: ``staging-sealed``: the load was released; ``staging-reused``: it is of another queue.
        """
        try:
            plan = BatchPlan.decode(self.log.store.read(f"{folder(seq)}/plan.json"))
        except FileNotFoundError:
            raise JMSException("the rows of this load were released; a new load needs another loadId", "staging-sealed") from None
        if plan.of not in ("", self.options.place):
            raise JMSException(
                f"the load {self.options.load_id!r} reads {plan.of}, and here it is to read {self.options.place}: it would give "
                "the rows of the former again. Give each its own loadId, or stagingLocation",
                "staging-reused",
            )
        return [(claim, plan.cap_of(claim)) for claim in range(plan.claims)]

    def read(self, work: ReadTask, columns: Sequence[str]) -> Iterator[RecordBatch]:
        """Stage a claim if it is not over, then give its rows.

        Raises:
            JMSException: ``staging-sealed``: the batch is deleted; ``staging-unshared``: this process does not see the staging
                area of the driver; ``malformed``: with mode=FAILFAST.
            JMSError: Trouble with the broker that does not pass; for a load, any. What is staged stays for another attempt.
        """
        if work.mark:
            check_shared(self.log.store, work.mark)
        try:
            result = self.claim.run(work.seq, work.claim, work.cap, first_wait_ms=self.options.first_wait)
        finally:
            self.receivers.close()
        if result.trouble is not None:
            if self._is_fatal(result.trouble):
                raise result.trouble
            _log.warning("claim %d of batch %d ended early, with %d rows: %s", work.claim, work.seq, result.rows, result.trouble)
        batches = read_rows(self.log.content(work.seq, work.claim), work.seq, work.claim, columns, self.options.mode)
        for number, batch in enumerate(batches):
            self._step("yield", work, number)
            yield batch
        self._step("read", work, 0)

    def _step(self, name: str, work: ReadTask, number: int) -> None:
        if self.on_step is not None:
            self.on_step(name, work.seq, work.claim, number)

    def _newest(self, batch: Batch, claim: int) -> float:
        try:
            files = [self.log.store.read(f"{folder(batch.seq)}/{slot.data}") for _, slot, _ in batch.content(claim)]
        except FileNotFoundError as error:
            raise JMSException(f"rows of batch {batch.seq} are not in the staging area: {error}", "staging-lost") from error
        return max(map(newest_ms, files), default=0.0)


def limits_of(options: SourceOptions, *, load: bool) -> Limits:
    """Return when rounds and claims end; no default ends those of a load, which would leave the rest without a word."""
    most = options.max_bytes_per_batch
    if load and "max_bytes_per_batch" not in options.model_fields_set:
        most = _NO_LIMIT
    return Limits(
        round_messages=options.round_messages,
        round_bytes=options.round_bytes,
        idle_gap_ms=options.idle_gap,
        claim_timeout_ms=options.claim_timeout,
        claim_bytes=max(1, most // (options.claims + 1)),
    )


def now_ms() -> float:
    """Return the time, in milliseconds since 1970."""
    return time.time() * 1000


def clock_ms() -> float:
    """Return a time that only goes forward, in milliseconds."""
    return time.monotonic() * 1000
