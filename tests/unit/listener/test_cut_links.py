"""Links that are lost while callbacks run: what came by them comes again, and nothing else is decided of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import jmsapi
from jmsapi import Message
from jmsapi.listener import Deployment, JMSQueueListener, MessageDriven, MessageDrivenContext, deploy
from jmsapi.testing import EmbeddedBroker

from .bench import WAIT_S, ignore, wait_until

BY_LIMIT = {"redeliveryLimit": 0, "redeliveryAction": "Delete"}
FORWARDED = {"redeliveryLimit": 0, "deadLetterDestination": "dead"}
DELAYED = {"redeliveryDelayMs": 10}


class CutOff:
    """A callback that has its link cut at its first call, and then fails, if it is to."""

    def __init__(self, *, fails: bool) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self.seen: list[str] = []
        self._fails = fails

    def __call__(self, *messages: Message) -> None:
        first = not self.entered.is_set()
        self.seen += [str(message.get_body(str)) for message in messages]
        if first:
            self.entered.set()
            assert self.leave.wait(WAIT_S)
            if self._fails:
                raise ValueError("after the cut")


@contextmanager
def running(broker: EmbeddedBroker, call: CutOff, *, batch: bool = False, **terms: Any) -> Generator[Deployment]:
    def one(message: Message) -> None:
        call(message)

    def many(messages: list[Message]) -> None:
        call(*messages)

    terms = {"destination": "q", **terms}
    target: Any = JMSQueueListener()(many if batch else one)
    factory = jmsapi.connection_factory(f"failover:({broker.url})?initialReconnectDelay=10")
    with deploy(MessageDriven(terms, name="listener")(target), factory=factory, on_error=ignore) as deployment:
        yield deployment


def cut_and_go_on(broker: EmbeddedBroker, deployment: Deployment, call: CutOff, waiting: int) -> None:
    assert call.entered.wait(WAIT_S)
    broker.cut()
    wait_until(lambda: deployment.health.endpoints[0].waiting == waiting, "all that was not settled comes by another link")
    call.leave.set()


def send_of_group(broker: EmbeddedBroker, *texts: str) -> None:
    with broker.connection_factory().create_context() as context:
        producer = context.create_producer().set_property("JMSXGroupID", "g")
        for text in texts:
            producer.send(context.create_queue("q"), text)


@pytest.mark.parametrize("attribute", ["Required", "NotSupported", "Bean"])
@pytest.mark.parametrize("terms", [FORWARDED, BY_LIMIT])
def test_what_comes_again_because_its_link_was_lost_is_not_given_up_as_well(
    attribute: str, terms: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    call = CutOff(fails=True)
    with EmbeddedBroker() as broker, caplog.at_level(logging.ERROR, "jmsapi.listener"):
        with running(broker, call, transactionAttribute=attribute, **terms) as deployment:
            broker.queue("q").send("m")
            cut_and_go_on(broker, deployment, call, 1)
            wait_until(lambda: call.seen == ["m", "m"], "it comes again")
            wait_until(lambda: deployment.health.endpoints[0].busy == 0, "it is handled")
            assert deployment.health.endpoints[0].given_up == 0
        with broker.connection_factory().create_context() as context:
            for name in ("dead", "q"):
                assert context.create_consumer(context.create_queue(name)).receive_no_wait() is None
    assert [record.getMessage() for record in caplog.records if "given up" in record.getMessage()] == []


@pytest.mark.parametrize("attribute", ["Required", "NotSupported", "Bean"])
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("terms", [BY_LIMIT, FORWARDED, DELAYED, {**DELAYED, "batchSize": 3}])
def test_a_group_goes_on_after_its_link_was_lost(attribute: str, fails: bool, terms: dict[str, Any]) -> None:
    call = CutOff(fails=fails)
    properties = {"orderedByGroup": "true", "concurrency": "2", "transactionAttribute": attribute, **terms}
    with EmbeddedBroker() as broker, running(broker, call, batch="batchSize" in terms, **properties) as deployment:
        send_of_group(broker, "1", "2", "3")
        cut_and_go_on(broker, deployment, call, 3)
        send_of_group(broker, "4")
        wait_until(lambda: "4" in call.seen, "the whole group is handled")
        order = [text for number, text in enumerate(call.seen) if text not in call.seen[:number]]
        assert order == ["1", "2", "3", "4"]


def test_what_asynchronous_callbacks_had_in_transactions_is_sent_on_once_over_links_that_are_cut() -> None:
    texts = [str(number) for number in range(24)]
    inside = 0
    cuts = 0
    cutting = asyncio.Lock()

    async def on_message(text: str, container: MessageDrivenContext) -> None:
        nonlocal inside, cuts
        session = container.session

        def send_on() -> None:
            with session.create_producer(session.create_queue("out")) as producer:
                producer.send(session.create_text_message(text))

        await asyncio.to_thread(send_on)
        inside += 1
        try:
            if inside == 6 and cuts < 3 and not cutting.locked():
                # Six transactions are open, with what they have taken and sent.
                async with cutting:
                    await asyncio.to_thread(broker.cut)
                    cuts += 1
            elif cuts < 3:
                await asyncio.sleep(0.05)
        finally:
            inside -= 1

    properties = {"destination": "q", "concurrency": "6"}
    with EmbeddedBroker() as broker:
        factory = jmsapi.connection_factory(f"failover:({broker.url})?initialReconnectDelay=10")
        for text in texts:
            broker.queue("q").send(text)
        target: Any = MessageDriven(properties, name="listener")(JMSQueueListener()(on_message))
        with deploy(target, factory=factory, on_error=ignore):
            wait_until(lambda: cuts == 3, "all links were cut three times")
            with broker.connection_factory().create_context() as jms:
                consumer = jms.create_consumer(jms.create_queue("out"))
                came = [consumer.receive_body(str, WAIT_S * 1000) for _ in texts]
        with broker.connection_factory().create_context() as jms:
            for name in ("out", "q"):
                assert jms.create_consumer(jms.create_queue(name)).receive_no_wait() is None, name
    assert sorted(came, key=str) == sorted(texts)
    assert cuts == 3
