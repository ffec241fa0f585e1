"""Asynchronous callbacks on brokers: what fails comes again, and each message is handled exactly once in the end."""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import jmsapi
from jmsapi.listener import JMSQueueListener, MessageDriven, MessageDrivenContext, deploy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

MESSAGES = 60
WAIT_S = 60.0
RESTART_S = 240.0
PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("stomp", "classic")]


def test_callbacks_that_fail_now_and_then_handle_each_message_once(broker_url: str) -> None:
    factory = jmsapi.connection_factory(broker_url)
    name = f"asynchronous-{uuid.uuid4().hex}"
    chance = random.Random(7)
    handled: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    done = threading.Event()

    async def on_message(text: str) -> None:
        await asyncio.sleep(chance.random() / 100)
        if not failed[text] and chance.random() < 0.3:
            failed[text] += 1
            raise ValueError(text)
        handled[text] += 1
        if len(handled) == MESSAGES:
            done.set()

    with factory.create_connection() as connection:
        transactions = jmsapi.capabilities(connection).transactions
    attribute = "Required" if transactions else "NotSupported"
    terms = {"destination": name, "concurrency": "8", "transactionAttribute": attribute}
    target = MessageDriven(terms, name="listener")(JMSQueueListener()(on_message))
    with factory.create_context() as context:
        queue = context.create_queue(name)
        producer = context.create_producer()
        for number in range(MESSAGES):
            producer.send(queue, str(number))
        with deploy(target, factory=factory, on_error=lambda *_: None) as deployment:
            assert done.wait(WAIT_S)
            assert deployment.health.healthy
        assert context.create_consumer(queue).receive(500) is None
    assert failed
    assert handled == Counter(map(str, range(MESSAGES)))


@pytest.mark.broker
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("wire", "kind"),
    [pytest.param(wire, kind, id=f"{wire}-{kind}", marks=pytest.mark.xdist_group(f"restarts of {kind}")) for wire, kind in PAIRS],
)
def test_callbacks_whose_broker_is_killed_send_each_message_on_once(
    wire: Wire, kind: BrokerKind, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = restarted_broker(kind)
    name = f"asynchronous-{uuid.uuid4().hex}"
    texts = [str(number) for number in range(MESSAGES)]
    under_way, handled = threading.Event(), 0

    async def on_message(text: str, container: MessageDrivenContext) -> None:
        nonlocal handled
        session = container.session

        def send_on() -> None:
            with session.create_producer(session.create_queue(f"{name}.out")) as producer:
                producer.send(session.create_text_message(text))

        await asyncio.to_thread(send_on)
        await asyncio.sleep(0.02)
        handled += 1
        if handled == MESSAGES // 3:
            # Others are in their transactions meanwhile.
            under_way.set()

    url = f"failover:({broker.url(wire)})?maxReconnectDelay=500&request_timeout_ms={RESTART_S * 1000:.0f}"
    target = MessageDriven({"destination": name, "concurrency": "8"}, name="listener")(JMSQueueListener()(on_message))
    with jmsapi.connection_factory(broker.url(wire)).create_context() as context:
        for text in texts:
            context.create_producer().send(context.create_queue(name), text)
    with deploy(target, factory=jmsapi.connection_factory(url), on_error=lambda *_: None), ThreadPoolExecutor(1) as pool:
        assert under_way.wait(WAIT_S)
        broker.kill()
        pool.submit(broker.restart, ready_s=RESTART_S).result()
        with jmsapi.connection_factory(broker.url(wire)).create_context() as context:
            consumer = context.create_consumer(context.create_queue(f"{name}.out"))
            came = [consumer.receive_body(str, RESTART_S * 1000) for _ in texts]
    with jmsapi.connection_factory(broker.url(wire)).create_context() as context:
        for left in (name, f"{name}.out"):
            assert context.create_consumer(context.create_queue(left)).receive(500) is None, left
    assert sorted(came, key=str) == sorted(texts)
