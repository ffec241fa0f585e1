"""The rules of the batch log, each broken in one way. The model and the schedules must notice every one."""

from __future__ import annotations

from jmsapi.spark.batchlog import Batch, BatchLog, Slot, View
from jmsapi.spark.claim import Claim, ClaimConsumer, Result, _Run


class AcknowledgesFirst(Claim[str]):
    def _receive(self, run: _Run, consumer: ClaimConsumer[str], wait: float, until: float) -> list[str]:
        messages = super()._receive(run, consumer, wait, until)
        consumer.acknowledge()
        return messages


class NeverWithdraws(Claim[str]):
    def _elsewhere(self, view: View, run: _Run) -> dict[int, frozenset[str]]:
        return {}


class NeverDoubts(BatchLog):
    def known(self, view: View) -> set[str]:
        return set()


class ForgetsSealedDoubt(BatchLog):
    def _doubt(self) -> frozenset[str]:
        return frozenset()


class HasNoFence(Claim[str]):
    """Appends and acknowledges without a look at the floor."""

    def run(self, seq: int, claim: int, cap: int, *, first_wait_ms: float, end_empty: bool = True) -> Result:
        floor, self._log.floor = self._log.floor, lambda: seq - 1  # type: ignore[method-assign]
        try:
            return super().run(seq, claim, cap, first_wait_ms=first_wait_ms, end_empty=end_empty)
        finally:
            self._log.floor = floor  # type: ignore[method-assign]


class DeletesBeforeTheFloor(BatchLog):
    def seal(self, upto: int) -> None:
        for seq in range(self.floor() + 1, upto + 1):
            batch = self.kept(seq)
            for number in batch.in_doubt():
                self._remember(batch, number)
            self.store.remove(f"b/{seq:09d}")
        super().seal(upto)


class SealsTheNewestOnly(BatchLog):
    def seal(self, upto: int) -> None:
        self.store.make_folder("floor")
        self.store.make_folder("doubt")
        batch = self.kept(upto)
        for number in batch.in_doubt():
            self._remember(batch, number)
        self.store.publish(f"floor/{upto}", b"")
        self._sweep(upto)


class HasALogForEachClaim(BatchLog):
    """Slot numbers of a claim begin at a thousand times its own, so two claims never meet at one."""

    def append(self, batch: Batch, slot: Slot) -> int | None:
        if slot.withdrawn:
            claim = min(slot.withdrawn) // 1000
        else:
            claim = slot.claim if slot.end is None else slot.end
            assert claim is not None
        mine = {number: one for number, one in batch.slots.items() if number // 1000 == claim}
        number = max(mine, default=claim * 1000 - 1) + 1
        return number if self.store.publish(f"b/{batch.seq:09d}/{number:06d}.slot", slot.encode()) else None
