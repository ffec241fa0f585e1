"""A broker that may ignore a delivery delay without a word is tried at the first delayed send.

Spec: 4.12-1, 4.12-2.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

import jmsapi
from jmsapi import JMSContext, UnsupportedFeatureRuntimeException, aio
from jmsapi._emulation import stack
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import Capabilities, Envelope, Handle, PlainEnvelope, Provider

WAIT_MS = 20_000
WHY = "its scheduler is off"


class Unasked:
    def answered(self, error: Exception | None) -> None:
        assert error is None


class Untold(Forwarding):
    """The in-process broker, which does not tell whether it obeys delays."""

    ignores = False
    slow_once = False
    """Ignore one delay, so late that the message would have been due."""
    others = 0
    """Messages of other connections, which try at the same time, before each of ours."""

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self.trials = 0

    def changed(self, capabilities: Capabilities) -> Capabilities:
        return replace(capabilities, delay_trial=WHY)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        trial = envelope.destination.name == "jmsapi.delay-trial"
        self.trials += trial
        if trial and self.slow_once:
            type(self).slow_once = False
            time.sleep(1.05)
            envelope = replace(cast("PlainEnvelope", envelope), delivery_time=0)
        for number in range(self.others if trial else 0):
            another = replace(cast("PlainEnvelope", envelope), body=f"another.{number}", delivery_time=0)
            super().send(producer, another, tx, Unasked())
        if self.ignores:
            envelope = replace(cast("PlainEnvelope", envelope), delivery_time=0)
        super().send(producer, envelope, tx, token)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Untold]:
    """Have each connection run over a broker that does not tell; they are listed here."""
    brokers: list[Untold] = []
    real = stack.build

    def build(make: Callable[[Any], Provider], *rest: Any) -> Provider:
        def wrapped(options: Any) -> Provider:
            brokers.append(Untold(make(options)))
            return brokers[-1]

        return real(wrapped, *rest)

    monkeypatch.setattr(stack, "build", build)
    monkeypatch.setattr(Untold, "ignores", False)
    monkeypatch.setattr(Untold, "slow_once", False)
    monkeypatch.setattr(Untold, "others", 0)
    return brokers


@pytest.fixture
def url(made: list[Untold]) -> str:
    return f"inproc://delays-{uuid.uuid4().hex}?checked=true"


@pytest.mark.parametrize("mode", [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.SESSION_TRANSACTED])
def test_the_first_delayed_send_of_a_connection_tries_it_and_no_other(url: str, made: list[Untold], mode: int) -> None:
    with jmsapi.connection_factory(url).create_context(mode) as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        producer.send(queue, "at once")
        assert made[0].trials == 0
        producer.delivery_delay = 200
        for body in ("1", "2"):
            producer.send(queue, body)
        assert made[0].trials == 2
        if mode == JMSContext.SESSION_TRANSACTED:
            context.commit()
        consumer = context.create_consumer(queue)
        assert [consumer.receive_body(str, timeout_ms=WAIT_MS) for _ in range(3)] == ["at once", "1", "2"]


def test_a_broker_that_ignores_delays_gets_no_delayed_message(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Untold, "ignores", True)
    with jmsapi.connection_factory(url).create_context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        for _ in range(2):
            producer.delivery_delay = 60_000
            with pytest.raises(UnsupportedFeatureRuntimeException, match=WHY):
                producer.send(queue, "delayed")
        producer.delivery_delay = 0
        producer.send(queue, "at once")
        assert context.create_consumer(queue).receive_body(str, timeout_ms=WAIT_MS) == "at once"


def test_an_answer_that_comes_too_late_to_tell_is_asked_for_again(
    url: str, made: list[Untold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Untold, "slow_once", True)
    with jmsapi.connection_factory(url).create_context() as context:
        producer = context.create_producer().set_delivery_delay(50)
        producer.send(context.create_queue("q"), "delayed")
        assert made[0].trials == 4
        assert context.create_consumer(context.create_queue("q")).receive_body(str, timeout_ms=WAIT_MS) == "delayed"


def test_what_others_try_at_the_same_time_does_not_keep_ours_from_coming(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Untold, "others", 20)
    with jmsapi.connection_factory(f"{url}&request_timeout_ms=5000").create_context() as context:
        context.create_producer().set_delivery_delay(50).send(context.create_queue("q"), "delayed")
        assert context.create_consumer(context.create_queue("q")).receive_body(str, timeout_ms=WAIT_MS) == "delayed"


@pytest.mark.parametrize("ignores", [False, True])
def test_a_coroutine_that_sends_tries_it_too(url: str, monkeypatch: pytest.MonkeyPatch, ignores: bool) -> None:
    monkeypatch.setattr(Untold, "ignores", ignores)

    async def send() -> None:
        async with aio.connection_factory(url).create_context() as context:
            queue, producer = context.create_queue("q"), context.create_producer()
            await producer.set_delivery_delay(50).send(queue, "delayed")

    if ignores:
        with pytest.raises(UnsupportedFeatureRuntimeException, match=WHY):
            asyncio.run(send())
    else:
        asyncio.run(send())
