"""What brokers seldom do: they end a consumer whose messages are not settled, and answer a transfer in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from proton import Delivery, Described, ulong

from jmsapi.spi import Address, ErrorKind, ProviderError

from ...peers.amqp_peer import TRANSACTIONAL, AmqpPeer

Dial = Callable[..., Any]


@pytest.fixture
def peer() -> Iterator[AmqpPeer]:
    """Give a broker that does as it is told."""
    made = AmqpPeer()
    yield made
    made.close()


class Steps:
    """Answers transfers in steps: the first with one state, the rest when the test says so."""

    def __init__(self, peer: AmqpPeer, first: int, data: list[Any] | None = None) -> None:
        self._peer = peer
        self._first, self._data = first, data
        self._open: list[Delivery] = []
        peer.on_transfer = self._begin

    def _begin(self, delivery: Delivery) -> None:
        size = delivery.pending
        self._peer.queue.append(self._peer.body(delivery))
        if self._data is not None:
            delivery.local.data = self._data
        else:
            delivery.local.section_number, delivery.local.section_offset = 0, size
        delivery.update(self._first)
        self._open.append(delivery)

    def wait(self, until: Callable[[Callable[[], bool]], None]) -> None:
        """Wait for a transfer."""
        until(lambda: self._peer.do(lambda: len(self._open)) > 0)

    def go_on(self, state: int | None) -> None:
        """Settle the transfers, with an outcome or without."""

        def settle() -> None:
            while self._open:
                delivery = self._open.pop()
                if state is not None:
                    delivery.update(state)
                delivery.settle()

        self._peer.do(settle)


Until = Callable[[Callable[[], bool]], None]


def test_a_transfer_that_is_only_received_has_no_outcome_yet(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(Delivery.ACCEPTED)
    assert line.events.answer(token) is None


def test_a_transfer_that_is_received_and_then_refused_is_refused(
    peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(Delivery.REJECTED)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.RESOURCE


def test_a_transfer_that_ends_without_an_outcome_is_in_doubt(peer: AmqpPeer, dial: Dial, queue: Address, until: Until) -> None:
    line = dial(peer.url)
    steps = Steps(peer, Delivery.RECEIVED)
    token = line.post(queue, "payment")
    steps.wait(until)
    steps.go_on(None)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.IN_DOUBT


def test_a_transfer_in_a_transaction_that_is_only_received_and_then_ended_is_in_doubt(
    peer: AmqpPeer, dial: Dial, queue: Address, until: Until
) -> None:
    line = dial(peer.url)
    received = Described(ulong(0x23), [0, 0])
    steps = Steps(peer, TRANSACTIONAL, [b"tx1", received])
    token = line.post(queue, "payment", line.begin())
    steps.wait(until)
    steps.go_on(None)
    error = line.events.answer(token)
    assert isinstance(error, ProviderError)
    assert error.kind is ErrorKind.IN_DOUBT
