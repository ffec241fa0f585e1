"""A short soak of cancelled tasks in every run; ``make aio-soak`` has the long one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from jmsapi_conformance.brokers import Broker, Wire

_spec = importlib.util.spec_from_file_location("aio_soak", Path(__file__).with_name("aio_soak.py"))
assert _spec is not None
assert _spec.loader is not None
aio_soak = importlib.util.module_from_spec(_spec)
sys.modules["aio_soak"] = aio_soak
_spec.loader.exec_module(aio_soak)


def soaked(url: str, *, seconds: float, tasks: int) -> None:
    """Soak, longer where the machine is slow, until what the soak is about has happened often enough."""
    for longer in (1, 4, 12):
        found = aio_soak.soak(url, seconds=seconds * longer, tasks=tasks, seed=20260101)
        assert found.faults == []
        cancelled, committed = found.events["cancelled"], found.events["committed"]
        if cancelled > 10 and committed > 10 and len(found.moved.sent) > 30 and len(found.kept.sent) > 10:
            return
    pytest.fail(f"too little has happened: {found.events}")


def test_tasks_that_are_cancelled_at_random_lose_and_double_and_leave_nothing() -> None:
    soaked("inproc://aio-soak", seconds=1.5, tasks=100)


@pytest.mark.parametrize(("kind", "wire"), [("artemis", "amqp"), ("classic", "stomp")])
@pytest.mark.broker
def test_it_is_so_on_brokers(kind: str, wire: Wire, request: pytest.FixtureRequest) -> None:
    broker: Broker = request.getfixturevalue(kind)
    soaked(broker.url(wire), seconds=3, tasks=60)


def test_a_message_that_is_lost_or_doubled_is_found() -> None:
    book = aio_soak.Book(sent={"a", "b"}, maybe_sent={"c"})
    book.received.update(["b", "b", "d"])
    assert book.differences() == ["1 lost: ['a']", "1 never sent: ['d']", "1 doubled: ['b']"]
