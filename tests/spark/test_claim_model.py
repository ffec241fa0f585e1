"""Claims under random interleavings, crashes, dropped consumers and rival drivers; and that each rule of theirs is needed."""

from __future__ import annotations

import pytest
from claim_model import Chaos, Spark
from claim_mutants import AcknowledgesFirst, NeverDoubts

from jmsapi.spark.batchlog import BatchLog
from jmsapi.spark.claim import Claim

MESSAGES = 30
SCHEDULES = 60


def schedule(seed: int, log: type[BatchLog] = BatchLog, claim: type[Claim[str]] = Claim, chaos: Chaos | None = None) -> Spark:
    """Run one: even seeds on the local flavour of the store, odd ones on the object flavour; calm to wild."""
    world = Spark(seed, local=seed % 2 == 0, chaos=chaos or Chaos.level(seed % 4), log=log, claim=claim)
    world.run(MESSAGES)
    return world


@pytest.mark.parametrize("first", range(0, SCHEDULES, 20))
def test_every_message_is_delivered_once_whatever_crashes(first: int) -> None:
    worlds = [schedule(seed) for seed in range(first, first + 20)]
    assert {world.world.random: world.wrong for world in worlds if world.wrong} == {}
    assert sum(world.world.steps for world in worlds) > 34_000
    faults = sum((world.faults for world in worlds), start=worlds[0].faults)
    assert min(faults["kill"], faults["zombie driver"], faults["drop"]) > 20


def test_the_same_seed_gives_the_same_schedule() -> None:
    first, again = schedule(7), schedule(7)
    assert (first.world.steps, first.sink, first.faults) == (again.world.steps, again.sink, again.faults)


# ---- every rule is needed: without it the model finds a fault; test_claim_schedules has those that chance rarely meets ----


def first_fault(log: type[BatchLog], claim: type[Claim[str]], kind: str, schedules: int) -> str | None:
    """Run schedules until one goes wrong in the way expected."""
    for seed in range(schedules):
        for wrong in schedule(seed, log, claim).wrong:
            if wrong.startswith(kind):
                return wrong
    return None


@pytest.mark.parametrize(
    ("log", "claim", "kind"),
    [
        pytest.param(BatchLog, AcknowledgesFirst, "lost", id="acknowledge before staging"),
        pytest.param(NeverDoubts, Claim, "duplicated", id="no doubt check"),
    ],
)
def test_the_model_notices_a_rule_that_is_missing(log: type[BatchLog], claim: type[Claim[str]], kind: str) -> None:
    assert first_fault(log, claim, kind, 600)
