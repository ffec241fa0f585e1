"""What the I/O thread does later costs no thread, however many links wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi.spi import Address
from jmsapi_amqp import io_timers
from jmsapi_amqp.io_timers import IoTimers

from ...peers.amqp_peer import AmqpPeer


@pytest.fixture
def peer() -> Iterator[AmqpPeer]:
    """Give a broker that keeps drains waiting."""
    made = AmqpPeer()
    yield made
    made.close()


def test_calls_are_made_in_the_order_in_which_they_are_due_and_cancelled_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(io_timers.time, "monotonic", lambda: now)
    timers, made = IoTimers(), list[str]()
    assert timers.remaining() is None
    timers.later(3.0, lambda: made.append("third"))
    first = timers.later(1.0, lambda: made.append("first"))
    timers.later(2.0, lambda: made.append("second"))
    timers.later(0.0, lambda: timers.later(0.0, lambda: made.append("asked for meanwhile")))
    assert timers.remaining() == 0.0
    timers.run()
    assert made == []
    assert timers.remaining() == 0.0
    timers.run()
    assert made == ["asked for meanwhile"]
    first.cancel()
    assert timers.remaining() == 2.0
    now = 103.5
    timers.run()
    assert made == ["asked for meanwhile", "second", "third"]
    assert timers.remaining() is None


def test_drains_that_wait_for_their_answers_start_no_thread(
    peer: AmqpPeer, dial: Callable[..., Any], queue: Address, until: Callable[[Callable[[], bool]], None]
) -> None:
    # A thread for each pause kept the I/O thread for a second a turn when a thousand consumers drained on a busy machine.
    peer.keeps_drains = True
    line = dial(peer.url)
    consumers = [line.consumer(queue, credit=1) for _ in range(50)]
    drained = [line.provider.drain(consumer) for consumer in consumers]
    until(lambda: peer.do(lambda: len(peer.drains)) > 100)  # all were asked again
    assert "jmsapi-timer" not in {thread.name for thread in threading.enumerate()}
    peer.keeps_drains = False
    peer.do(peer.answer_drains)
    for each in drained:
        each.result(30)
