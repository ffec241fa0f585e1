"""The narrow interleavings, played by hand: each with the rules as they are, and with the one broken that it is about."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from functools import partial

import pytest
from claim_model import ModelBroker, ModelCodec, ModelStore, Process, World, ids_of
from claim_mutants import (
    DeletesBeforeTheFloor,
    ForgetsSealedDoubt,
    HasALogForEachClaim,
    HasNoFence,
    NeverWithdraws,
    SealsTheNewestOnly,
)

from jmsapi.errors import JMSException
from jmsapi.spark.batchlog import BatchLog, Dedup
from jmsapi.spark.claim import Claim, Limits, Result, _OlderObjects
from jmsapi.spark.trouble import is_final


class Stage:
    """A world whose processes go as far as they are told."""

    def __init__(
        self, log: Callable[..., BatchLog], messages: list[str], *, local: bool = False, claim: type[Claim[str]] = Claim
    ) -> None:
        self.world = World(0)
        self.store = ModelStore(self.world, local=local)
        self.broker = ModelBroker(self.world, silence=0)
        self.broker.pending = list(messages)
        self._log, self._claim = log, claim
        self.reached: dict[str, list[str]] = {}
        self.result: dict[str, list[str]] = {}

    def log(self) -> BatchLog:
        return self._log(self.store, ids_of, lambda: self.world.now)

    def claim(self, name: str, seq: int, claim: int) -> Process:
        """Begin an attempt of a claim, of rounds of two messages."""
        steps = self.reached.setdefault(name, [])
        limits = Limits(round_messages=2, idle_gap_ms=1)

        def body() -> None:
            log = self.log()
            one = self._claim(
                log, ModelCodec(), self.broker.connect, limits, lambda: self.world.now, lambda step, *_: steps.append(step)
            )
            one.run(seq, claim, 100, first_wait_ms=1)

        return self.world.spawn(name, body)

    def go(self, process: Process, step: str) -> None:
        """Run a process up to a step of its claim, which it has not done yet."""
        self.world.until(process, lambda: step in self.reached[process.name])

    def do(self, what: Callable[[BatchLog], None]) -> None:
        """Run something in a process of its own."""
        self.world.finish(self.world.spawn("other", lambda: what(self.log())))

    def rows(self, seq: int, claim: int) -> list[str]:
        found: list[str] = []

        def read(log: BatchLog) -> None:
            for data, left_out in log.content(seq, claim):
                found.extend(one for one in ids_of(data) if one not in left_out)

        self.do(read)
        return found

    def drop(self, process: Process) -> None:
        """Let the broker give up the consumers of a process."""
        for consumer in list(self.broker.consumers):
            if consumer.owner is process:
                self.broker.drop(consumer)

    def accounted(self, *claims: tuple[int, int]) -> list[str]:
        """Return the rows of claims and what is left on the queue."""
        found = [*self.broker.pending, *self.broker.assigned]
        for seq, claim in claims:
            found += self.rows(seq, claim)
        return sorted(found)


@pytest.mark.parametrize(("log", "expected"), [(BatchLog, ["m1", "m2"]), (HasALogForEachClaim, ["m1", "m1", "m2", "m2"])])
def test_two_claims_that_both_had_a_message_and_were_both_not_confirmed_keep_it_once(
    log: type[BatchLog], expected: list[str]
) -> None:
    stage = Stage(log, ["m1", "m2"])
    slow = stage.claim("slow", 1, 1)
    stage.go(slow, "append")  # it has looked, and seen nothing
    stage.drop(slow)
    quick = stage.claim("quick", 1, 2)
    stage.go(quick, "confirm")  # acknowledged, and killed before it noted that
    stage.world.kill(quick)
    stage.world.finish(slow)
    stage.world.finish(stage.claim("retry", 1, 2))
    assert stage.accounted((1, 1), (1, 2)) == expected


@pytest.mark.parametrize("dropped_before", ["write", "append", "acknowledge"])
@pytest.mark.parametrize("claim", [Claim, NeverWithdraws])
def test_of_two_owners_of_a_message_the_one_without_confirmation_withdraws(dropped_before: str, claim: type[Claim[str]]) -> None:
    stage = Stage(BatchLog, ["m1", "m2", "m3"], claim=claim)
    first = stage.claim("first", 1, 1)
    stage.go(first, dropped_before)
    stage.drop(first)
    stage.world.finish(stage.claim("second", 1, 2))
    stage.world.finish(first)
    # Published first, it is seen in doubt by the other, so there is nothing to withdraw.
    double = ["m1", "m2"] if claim is NeverWithdraws and dropped_before != "acknowledge" else []
    assert stage.accounted((1, 1), (1, 2)) == sorted(["m1", "m2", "m3", *double])


@pytest.mark.parametrize("log", [BatchLog, DeletesBeforeTheFloor])
def test_a_zombie_does_not_append_while_its_batch_is_being_deleted(log: type[BatchLog]) -> None:
    stage = Stage(log, ["m1", "m2"])
    zombie = stage.claim("zombie", 1, 1)
    stage.go(zombie, "write")
    stage.world.finish(stage.claim("heir", 1, 1))
    sealer = stage.world.spawn("sealer", lambda: stage.log().seal(1))
    stage.world.until(sealer, lambda: not any(name.endswith(".slot") for name in stage.store.objects))
    stage.world.finish(zombie)
    stage.world.finish(sealer)
    left = stage.accounted()
    assert left == (["m1", "m2"] if log is BatchLog else []), "returned to the queue; lost if the floor comes after the deletes"


@pytest.mark.parametrize("claim", [Claim, HasNoFence])
@pytest.mark.parametrize(("local", "step"), [(True, "write"), (False, "write"), (True, "append"), (False, "append")])
def test_a_zombie_gives_its_messages_back_when_its_batch_is_sealed(local: bool, step: str, claim: type[Claim[str]]) -> None:
    stage = Stage(BatchLog, ["m1", "m2"], local=local, claim=claim)
    stage.do(lambda log: log.open_batch(1))
    zombie = stage.claim("zombie", 1, 1)
    stage.go(zombie, step)
    stage.world.finish(stage.claim("heir", 1, 1))
    stage.do(lambda log: log.seal(1))
    stage.world.finish(zombie)
    if claim is HasNoFence and not local:
        assert stage.accounted() == [], "lost: a local store has a second fence, as the folder is gone"
        return
    assert stage.accounted() == ["m1", "m2"]
    assert [name for name in stage.store.objects if name.endswith(".slot")] == []


@pytest.mark.parametrize(
    ("log", "expected"), [(BatchLog, ["m3"]), (SealsTheNewestOnly, ["m1", "m2", "m3"]), (ForgetsSealedDoubt, ["m1", "m2", "m3"])]
)
def test_what_a_batch_left_in_doubt_is_known_when_a_later_one_is_sealed_with_it(log: type[BatchLog], expected: list[str]) -> None:
    stage = Stage(log, ["m1", "m2"])
    dead = stage.claim("dead", 1, 0)
    stage.go(dead, "acknowledge")  # published, and killed before its acknowledgement
    stage.world.kill(dead)
    stage.world.finish(stage.claim("retry", 1, 0))
    assert stage.rows(1, 0) == ["m1", "m2"]
    stage.world.finish(stage.claim("next", 2, 0))
    stage.do(lambda log: log.seal(2))  # the sealing of batch 1 alone was lost with a driver
    stage.drop(dead)
    stage.broker.pending.append("m3")
    stage.world.finish(stage.claim("third", 3, 0))
    assert stage.rows(3, 0) == expected
    assert stage.broker.pending == [], "what is left out is acknowledged all the same"


def test_a_claim_that_is_being_deleted_is_not_read_as_a_shorter_one() -> None:
    stage = Stage(BatchLog, ["m1", "m2", "m3"])
    stage.world.finish(stage.claim("one", 1, 0))
    sealer = stage.world.spawn("sealer", lambda: stage.log().seal(1))
    stage.world.until(sealer, lambda: "b/000000001/000000.slot" not in stage.store.objects)
    assert any(name.endswith(".slot") for name in stage.store.objects), "the end is still there"
    with pytest.raises(JMSException, match="sealed and deleted"):
        stage.rows(1, 0)
    stage.world.kill(sealer)


@pytest.mark.parametrize(
    ("dedup", "later_ms", "expected"),
    [
        ("in-doubt", 0, ["m1", "m2", "m3"]),
        ("window", 0, ["m3"]),
        ("window", 1000, ["m1", "m2", "m3"]),
        ("off", 0, ["m1", "m2", "m3"]),
    ],
)
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "not sealed"])
def test_a_broker_that_forgets_acknowledgements_needs_a_window(
    dedup: Dedup, later_ms: float, expected: list[str], sealed: bool
) -> None:
    stage = Stage(partial(BatchLog, dedup=dedup, window_ms=500), ["m1", "m2"])
    stage.world.finish(stage.claim("first", 1, 0))
    assert stage.rows(1, 0) == ["m1", "m2"]
    if sealed:
        stage.do(lambda log: log.seal(1))
    stage.broker.pending += ["m1", "m2", "m3"]
    stage.world.now += later_ms
    if sealed:
        # Whoever seals the next batch forgets what is old.
        stage.do(lambda log: log.seal(1))
    stage.world.finish(stage.claim("second", 2, 0))
    # What is not sealed is known as long as it is there.
    assert stage.rows(2, 0) == (["m3"] if dedup == "window" and not sealed else expected)
    assert stage.broker.pending == [], "what is left out is acknowledged all the same"


@pytest.mark.parametrize("dedup", ["in-doubt", "window"])
def test_a_task_whose_clock_is_ahead_knows_what_others_have_delivered(dedup: Dedup) -> None:
    stage = Stage(partial(BatchLog, dedup=dedup, window_ms=500, retention_ms=1000), ["m1", "m2"])
    stage.world.finish(stage.claim("first", 1, 0))
    if dedup == "in-doubt":
        for name in [name for name in stage.store.objects if name.endswith(".ok")]:
            del stage.store.objects[name]
    stage.do(lambda log: log.seal(1))
    stage.broker.pending += ["m1", "m2", "m3"]
    stage.world.now += 3_600_000
    ahead = stage.claim("an hour ahead", 2, 0)
    stage.world.finish(ahead)
    assert stage.rows(2, 0) == ["m3"]


@pytest.mark.parametrize("local", [True, False], ids=["local", "object store"])
def test_a_staged_file_that_somebody_deletes_fails_by_name_and_nobody_looks_for_ever(local: bool) -> None:
    stage = Stage(BatchLog, ["m1", "m2"], local=local)
    stage.do(lambda log: log.open_batch(1))
    dead = stage.claim("dead", 1, 0)
    stage.go(dead, "confirm")
    stage.world.kill(dead)
    [file] = [name for name in stage.store.objects if name.endswith(".arrow")]
    kept = stage.store.objects.pop(file)
    stage.broker.pending.append("m3")
    results: list[Result] = []

    def body() -> None:
        clock = partial(getattr, stage.world, "now")
        one = Claim(stage.log(), ModelCodec(), stage.broker.connect, Limits(idle_gap_ms=1), clock, None, is_final)
        results.append(one.run(1, 1, 100, first_wait_ms=1))

    stage.world.finish(stage.world.spawn("second", body))
    [result] = results
    assert not result.ended, "left open for another attempt"
    assert result.trouble is not None and result.trouble.error_code == "staging-lost"
    assert "is not there, and its batch is not sealed" in str(result.trouble)
    with pytest.raises(JMSException, match="is not there") as caught:
        stage.do(lambda log: log.seal(1))
    assert caught.value.error_code == "staging-lost", "its ids in doubt cannot be remembered"
    # It is put back, and all goes on.
    stage.store.objects[file] = kept
    stage.world.finish(stage.claim("third", 1, 1))
    stage.world.finish(stage.claim("fourth", 1, 0))
    assert stage.rows(1, 0) == ["m1", "m2"]
    assert stage.rows(1, 1) == ["m3"]
    assert stage.broker.pending == []
    stage.store.objects.pop(file)
    with pytest.raises(JMSException, match="is not there") as caught:
        stage.rows(1, 0)
    assert caught.value.error_code == "staging-lost"


@pytest.mark.parametrize(("later_ms", "expected"), [(0, ["m3"]), (5000, ["m1", "m2", "m3"])])
def test_ids_in_doubt_are_remembered_for_a_time(later_ms: float, expected: list[str]) -> None:
    stage = Stage(partial(BatchLog, retention_ms=1000), ["m1", "m2"])
    dead = stage.claim("dead", 1, 0)
    stage.go(dead, "acknowledge")  # published, and its connection lives on without an acknowledgement
    stage.world.finish(stage.claim("retry", 1, 0))
    stage.do(lambda log: log.seal(1))
    stage.world.now += later_ms
    stage.world.finish(stage.claim("next", 2, 0))
    stage.do(lambda log: log.seal(2))
    stage.world.kill(dead)
    stage.drop(dead)
    stage.broker.pending.append("m3")
    stage.world.finish(stage.claim("third", 3, 0))
    assert stage.rows(3, 0) == expected


def test_a_claim_of_many_attempts_does_not_exceed_its_share() -> None:
    stage = Stage(BatchLog, [f"m{number}" for number in range(10)])
    first = stage.claim("first", 1, 1)
    stage.go(first, "confirm")
    stage.world.kill(first)
    stage.world.finish(stage.claim("again", 1, 1))
    assert len(stage.rows(1, 1)) == 10
    assert json.loads(stage.store.objects["b/000000001/000000.slot"])["n"] == 2


def test_an_attempt_that_goes_on_waits_for_its_first_message_as_the_first_one_did() -> None:
    stage = Stage(BatchLog, ["m1", "m2"])
    first = stage.claim("first", 1, 1)
    stage.go(first, "confirm")
    stage.world.kill(first)
    waits: list[float] = []

    class Waiting:
        def receive(self, most: int, most_bytes: int, timeout_ms: float) -> list[str]:
            waits.append(timeout_ms)
            return []

        def acknowledge(self) -> None: ...

        def close(self) -> None: ...

    def body() -> None:
        limits = Limits(round_messages=2, idle_gap_ms=1)
        one: Claim[str] = Claim(stage.log(), ModelCodec(), lambda limit: Waiting(), limits, lambda: 0.0)
        one.run(1, 1, 100, first_wait_ms=500)

    stage.world.finish(stage.world.spawn("again", body))
    assert waits == [500], "a link that is new has brought nothing yet"


@pytest.mark.parametrize("frozen", [False, True])
def test_while_it_holds_messages_the_collector_looks_at_no_older_object(frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a process that has run no claim yet.
    monkeypatch.setattr("jmsapi.spark.claim._OLDER_OBJECTS", _OlderObjects())
    stage = Stage(BatchLog, ["m1"])
    counts: list[int] = []

    class Counting:
        def receive(self, most: int, most_bytes: int, timeout_ms: float) -> list[str]:
            counts.append(gc.get_freeze_count())
            raise JMSException("away")

        def acknowledge(self) -> None: ...

        def close(self) -> None: ...

    def body() -> None:
        one: Claim[str] = Claim(stage.log(), ModelCodec(), lambda limit: Counting(), Limits(), lambda: 0.0)
        one.run(1, 1, 100, first_wait_ms=500)

    # All tests may run with what was collected frozen, and do so again after this one.
    before = gc.get_freeze_count()
    gc.unfreeze()
    if frozen:
        gc.freeze()
    try:
        stage.world.finish(stage.world.spawn("claim", body))
        assert counts[0] > 1000
        # Not exactly as many: some of them end meanwhile.
        assert (gc.get_freeze_count() > 1000) is frozen, "what the program froze stays so; what we froze does not"
    finally:
        gc.unfreeze()
        if before:
            gc.freeze()


def test_objects_that_the_program_froze_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(1) or 5)
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("frozen anew"))
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("what the program froze is not ours to undo"))
    collector = _OlderObjects()
    for _ in range(3):
        with collector.left_alone():
            pass
    assert asked == [1]


def test_of_claims_at_the_same_time_the_last_one_undoes_what_the_first_one_froze(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: calls.count("freeze") - calls.count("unfreeze"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfreeze"))
    collector = _OlderObjects()
    for _ in range(2):
        one, other = collector.left_alone(), collector.left_alone()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert calls[-1] == "freeze"
        other.__exit__(None, None, None)
    assert calls == ["freeze", "unfreeze"] * 2
