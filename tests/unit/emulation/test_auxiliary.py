"""The library's own connection for shared subscriptions: a queue is empty when a browser says so, not when nothing comes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from jmsapi._emulation.shared_subscriptions.auxiliary import AuxiliaryConnection
from jmsapi.spi import (
    DONE,
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    ProviderError,
    Tag,
    completed,
)

QUEUE = Address(DestinationKind.QUEUE, "members")


class SlowBroker:
    """Gives one message to the consumer that asks for the ``after``th time; a browser sees it from the beginning."""

    def __init__(self, after: int) -> None:
        self.events: Any = None
        self.after = after
        self.asked = 0
        self.messages = [Delivery(Tag(), PlainEnvelope(MessageKind.TEXT, QUEUE, body="late"), 1)]
        self.browsers: set[Handle] = set()

    def open(self, events: object) -> Future[None]:
        self.events = events
        return DONE

    def close(self) -> Future[None]:
        return DONE

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        assert not transacted
        return completed(Handle())

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        consumer = Handle()
        if spec.browse:
            self.browsers.add(consumer)
        return completed(consumer)

    def credit(self, consumer: Handle, count: int) -> Future[None]:
        assert count
        self.asked += consumer not in self.browsers
        if self.messages and (consumer in self.browsers or self.asked >= self.after):
            self.events.on_deliveries(consumer, list(self.messages))
        return DONE

    def drain(self, consumer: Handle) -> Future[None]:
        return DONE

    def settle(self, tags: Sequence[Tag], outcome: Outcome) -> Future[None]:
        assert outcome is Outcome.ACCEPTED
        self.messages = [one for one in self.messages if one.tag not in tags]
        return DONE

    def release(self, handle: Handle) -> Future[None]:
        return DONE


def connection(broker: SlowBroker, timeout_s: float) -> AuxiliaryConnection:
    return AuxiliaryConnection(cast("Any", broker), timeout_s)


def test_a_queue_is_emptied_although_its_broker_is_slow_to_hand_out_what_it_has() -> None:
    broker = SlowBroker(after=5)
    connection(broker, 60.0).empty(QUEUE)
    assert not broker.messages


def test_a_queue_whose_messages_another_holds_is_not_called_empty() -> None:
    broker = SlowBroker(after=1_000_000)
    with pytest.raises(ProviderError, match="1 messages of 'members' are held by another consumer") as refused:
        connection(broker, 0.05).empty(QUEUE)
    assert refused.value.kind is ErrorKind.IN_USE
    assert broker.messages


def test_what_others_hold_is_counted_and_what_is_free_taken() -> None:
    held, free = SlowBroker(after=1_000_000), SlowBroker(after=1)
    assert connection(held, 60.0).purge(QUEUE) == 1
    assert connection(free, 60.0).purge(QUEUE) == 0
    assert not free.messages
