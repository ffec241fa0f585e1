"""One acknowledgement by the I/O thread: written once for a delivery that is there, and told to be too late for any other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jmsapi.spi import ProviderError
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
