"""Workers that stay at their work while there is none, and do not storm a broker that refuses; in threads and in tasks."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi.listener import JMSQueueListener, MessageDriven, deploy, message_driven_context
from jmsapi.testing import EmbeddedBroker

from .bench import wait_until


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as made:
        yield made


def target(call: Callable[[str], object], *, tasks: bool, **terms: Any) -> Any:
    def in_thread(text: str) -> None:
        call(text)

    async def in_task(text: str) -> None:
        call(text)

    return MessageDriven({"destination": "q", **terms}, name="listener")(JMSQueueListener()(in_task if tasks else in_thread))


@pytest.mark.parametrize("tasks", [False, True])
def test_a_worker_that_is_idle_stays_when_there_are_no_more_than_the_fewest(broker: EmbeddedBroker, tasks: bool) -> None:
    workers: list[object] = []

    def handle(_: str) -> None:
        workers.append(message_driven_context().session if tasks else threading.current_thread())

    driven = target(handle, tasks=tasks, concurrency="1-2", idleTimeoutMs=20)
    with deploy(driven, factory=broker.connection_factory()):
        for number in range(3):
            broker.queue("q").send(str(number))
            wait_until(lambda number=number: len(workers) == number + 1, "it is handled")  # type: ignore[misc]
            time.sleep(0.15)
    assert workers[0] is workers[1] is workers[2]


@pytest.mark.parametrize("tasks", [False, True])
def test_the_waits_grow_while_the_broker_takes_no_commit(broker: EmbeddedBroker, tasks: bool) -> None:
    times: list[float] = []

    def handle(_: str) -> None:
        times.append(time.monotonic())

    broker.faults.fail("commit", times=3)
    driven = target(handle, tasks=tasks, transactionAttribute="Required", concurrency="1")
    with deploy(driven, factory=broker.connection_factory(), on_error=lambda _name, _error: None) as deployment:
        broker.queue("q").send("text")
        wait_until(lambda: deployment.health.endpoints[0].delivered == 4, "it is committed at the fourth attempt")
    waits = [later - before for before, later in itertools.pairwise(times)]
    assert all(wait >= least for wait, least in zip(waits, (0.08, 0.16, 0.32), strict=True)), waits


@pytest.mark.parametrize("tasks", [False, True])
def test_an_idle_endpoint_stops_without_waiting_for_a_grant_that_was_told_of(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, tasks: bool
) -> None:
    monkeypatch.setattr("jmsapi._core.credit._TOLD_S", 60.0)
    handled: list[str] = []
    deployment = deploy(
        target(handled.append, tasks=tasks, stopDeadlineMs=120_000), factory=broker.connection_factory(close_timeout_ms=60_000)
    )
    broker.queue("q").send("m")
    wait_until(lambda: handled == ["m"], "it is handled")
    began = time.monotonic()
    assert deployment.stop()
    assert time.monotonic() - began < 30
