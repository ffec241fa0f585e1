"""One acknowledgement by the I/O thread: written once for a delivery that is there, and told to be too late for any other."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jmsapi.spi import ProviderError
from jmsapi_stomp.answers import Done
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.handles import StompTag
from jmsapi_stomp.settlement import StompSettlement


class Wire:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, frame: bytes, written: Any) -> None:
        self.frames.append(frame)
        written(None)


@pytest.mark.parametrize("state", ["there", "closing", "settled", "gone"])
def test_an_acknowledgement_is_written_for_what_is_unsettled_and_makes_room(state: str) -> None:
    wire, nothing = Wire(), Any
    consumer = StompConsumer(nothing, nothing, nothing, wire)  # type: ignore[arg-type]
    tag = StompTag(1, b"a", 7, False)
    consumer.held, consumer.closing = 10, state == "closing"
    if state != "settled":
        consumer.unsettled[tag] = nothing  # type: ignore[assignment]
    behaviour = SimpleNamespace(window_cost=lambda size: size)
    table = SimpleNamespace(by_serial={} if state == "gone" else {1: consumer})
    settlement = StompSettlement(SimpleNamespace(behaviour=behaviour, connection=SimpleNamespace(dead=None)), table)  # type: ignore[arg-type]
    told: list[ProviderError | None] = []
    settlement.acknowledge_one(tag, told.append)
    (error,) = told
    if state == "there":
        assert (wire.frames, error, consumer.held, consumer.unsettled) == ([b"ACK\nid:a\n\n\0"], None, 3, {})
    else:
        assert (wire.frames, consumer.held) == ([], 10)
        assert error is not None


class QuietWire:
    """Writes at once what asks for a receipt, or does not, and keeps who waits for it."""

    def __init__(self, writes: bool, then: Callable[[], object] = lambda: None) -> None:
        self._writes = writes
        self._then = then
        self.frames: list[bytes] = []
        self.waiting: list[Done] = []

    def confirmed_now(self, frame: bytes, done: Done) -> bool:
        self._then()
        if self._writes:
            self.frames.append(frame)
            self.waiting.append(done)
        return self._writes


def settling(wire: QuietWire) -> tuple[StompSettlement, StompConsumer, StompTag]:
    nothing = Any
    consumer = StompConsumer(nothing, nothing, nothing, wire)  # type: ignore[arg-type]
    tag = StompTag(1, b"a", 7, True)
    consumer.held = 10
    consumer.unsettled[tag] = nothing  # type: ignore[assignment]
    behaviour = SimpleNamespace(window_cost=lambda size: size)
    table = SimpleNamespace(by_serial={1: consumer})
    return StompSettlement(SimpleNamespace(behaviour=behaviour, connection=SimpleNamespace(dead=None)), table), consumer, tag  # type: ignore[arg-type]


def test_an_acknowledgement_with_a_receipt_is_written_by_the_thread_that_settles_and_done_with_its_answer() -> None:
    wire = QuietWire(True)
    settlement, consumer, tag = settling(wire)
    answer = settlement.acknowledge_now(tag)
    assert answer is not None
    assert (wire.frames, consumer.unsettled, answer.done()) == ([b"ACK\nid:a\n\n\0"], {}, False)
    consumer.count_settled_elsewhere()
    assert consumer.held == 3
    (done,) = wire.waiting
    done(None)
    assert answer.result(0) is None
    assert consumer.awaiting == set()


def test_an_acknowledgement_that_the_thread_cannot_write_is_left_to_the_io_thread_as_it_was() -> None:
    settlement, consumer, tag = settling(QuietWire(False))
    assert settlement.acknowledge_now(tag) is None
    assert (list(consumer.unsettled), consumer.held, consumer.awaiting) == ([tag], 10, set())
    assert not consumer.settled_elsewhere


def test_whoever_acknowledges_while_the_broker_ends_the_consumer_waits_for_no_answer() -> None:
    def ended() -> None:
        consumer.closing = True
        for one in list(consumer.awaiting):
            one(settlement.too_late())

    settlement, consumer, tag = settling(QuietWire(True, ended))
    answer = settlement.acknowledge_now(tag)
    assert answer is not None
    assert isinstance(answer.exception(0), ProviderError)
    consumer.closing = True
    consumer.unsettled[tag] = Any  # type: ignore[assignment]
    assert settlement.acknowledge_now(tag) is None
