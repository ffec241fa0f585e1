"""Under failures of all kinds, stops, and links that are lost, each message and what its callback sent are there exactly once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSContext, Message
from jmsapi.listener import (
    ApplicationException,
    Deployment,
    JMSQueueListener,
    MessageDriven,
    deploy,
    message_driven_context,
)

from ..core.cut import a_line
from .bench import WAIT_S, a_bench, ignore

MESSAGES = 250
POISONED = 25
"""Each so many-th message never succeeds."""


@ApplicationException(rollback=True)
class RolledBack(Exception):
    pass


@ApplicationException()
class KeptOn(Exception):
    pass


class Unreliable:
    """A callback that sends on what it gets, and then often fails."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, message: Message) -> None:
        """Be called with a message."""
        context, text = message_driven_context(), str(message.get_body(str))
        session = context.session
        with session.create_producer(session.create_queue("out")) as producer:
            producer.send(session.create_text_message(text))
        with self._lock:
            chance = self._random.random()
        if int(text) % POISONED == 0 or chance < 0.05:
            raise ValueError(text)
        if chance < 0.1:
            raise RolledBack(text)
        if chance < 0.15:
            context.set_rollback_only()
        elif chance < 0.2:
            raise KeptOn(text)


def deployed(factory: jmsapi.ConnectionFactory, call: Unreliable, **terms: Any) -> Deployment:
    def on_message(message: Message) -> None:
        call(message)

    terms = {"destination": "q", "redeliveryLimit": 8, "deadLetterDestination": "dead", "idleTimeoutMs": 10, **terms}
    return deploy(MessageDriven(terms, name="listener")(JMSQueueListener()(on_message)), factory=factory, on_error=ignore)


class Collector:
    """Takes messages from the two queues where they end."""

    def __init__(self, context: JMSContext) -> None:
        self._consumers = [context.create_consumer(context.create_queue(name)) for name in ("out", "dead")]
        self.found: Counter[str] = Counter()

    def up_to(self, count: int) -> None:
        """Go on until so many are found, or more."""
        end = time.monotonic() + 3 * WAIT_S
        while self.found.total() < count:
            assert time.monotonic() < end, f"{count - self.found.total()} messages do not come"
            for consumer in self._consumers:
                text = consumer.receive_body(str, 1)
                if text is not None:
                    self.found[text] += 1


@pytest.mark.parametrize(
    "terms",
    [
        {"concurrency": "1", "prefetch": 0},
        {"concurrency": "2-6", "prefetch": 3, "redeliveryDelayMs": 5, "redeliveryJitter": 0.5},
        {"concurrency": "4", "prefetch": 20, "orderedByGroup": True},
    ],
    ids=["one", "growing", "ordered"],
)
def test_stops_and_failures_lose_and_double_nothing(terms: dict[str, Any]) -> None:
    with a_bench() as bench, bench.factory.create_context() as context:
        texts = [str(number) for number in range(1, MESSAGES + 1)]
        for text in texts:
            bench.send(text, JMSXGroupID=str(int(text) % 5))
        call, collector = Unreliable(7), Collector(context)
        for count in (60, 150, MESSAGES):
            deployment = deployed(bench.factory, call, **terms)
            collector.up_to(count)
            assert deployment.stop(WAIT_S * 1000)
        assert collector.found == Counter(texts)
        assert bench.left() == bench.left("out") == bench.left("dead") == []


def test_links_that_are_lost_lose_and_double_nothing_but_what_is_in_doubt() -> None:
    with a_line() as (line, factory, safe), safe.create_session() as session:
        texts = [str(number) for number in range(1, MESSAGES + 1)]
        with session.create_producer(session.create_queue("q")) as producer:
            for text in texts:
                producer.send(session.create_text_message(text))
        deployment = deployed(factory(), Unreliable(7), concurrency="2-4", prefetch=5)
        consumers = [session.create_consumer(session.create_queue(name)) for name in ("out", "dead")]
        found: Counter[str] = Counter()
        cuts, end = 0, time.monotonic() + 3 * WAIT_S
        while set(found) != set(texts):
            assert time.monotonic() < end, f"{set(texts) - set(found)} do not come"
            for consumer in consumers:
                message = consumer.receive(1)
                if message is not None:
                    found[str(message.get_body(str))] += 1
            if cuts < 5 and found.total() >= (cuts + 1) * 30:
                cuts += 1
                line.cut()
        assert deployment.stop(WAIT_S * 1000)
        assert cuts == 5
        assert found.total() - len(found) <= 4 * cuts, "more doubles than commits could be in doubt"
