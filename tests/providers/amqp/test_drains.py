"""Every drain is answered, on each broker: with credit that comes meanwhile, and one right behind another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsapi.spi import Address
from jmsapi_conformance.brokers import Broker


def test_credit_given_during_a_drain_is_drained_as_well(each_broker: Broker, dial: Callable[..., Any], queue: Address) -> None:
    line = dial(each_broker)
    line.send(queue, "there")
    consumer = line.consumer(queue, credit=5)
    line.receive(consumer, credit=False)
    for _ in range(10):
        drained = line.provider.drain(consumer)
        line.provider.credit(consumer, 1).result(30)
        drained.result(30)
        line.provider.credit(consumer, 2).result(30)
    line.send(queue, "later")
    [delivery] = line.receive(consumer, credit=False)
    assert delivery.envelope.body == "later"


def test_drains_one_right_behind_the_other_are_all_answered(
    each_broker: Broker, dial: Callable[..., Any], queue: Address
) -> None:
    # Artemis 2.56.0 leaves out one of about a hundred when it is asked just once.
    line = dial(each_broker)
    consumer = line.consumer(queue)
    for _ in range(300):
        line.provider.credit(consumer, 2)
        line.provider.drain(consumer).result(30)
    line.send(queue, "later")
    line.receive(consumer)
