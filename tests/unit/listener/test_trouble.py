"""Containers in trouble: commits that fail, dead letters that cannot be sent, brokers that refuse or go away."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

import jmsapi
from jmsapi import Message, MessageFormatException
from jmsapi._core.endpoint import Entry, SharedReceiver, WorkerSession
from jmsapi.listener import (
    DeploymentException,
    EndpointState,
    JMSQueueListener,
    MessageDriven,
    deploy,
    message_driven_context,
)
from jmsapi.testing import EmbeddedBroker

from .bench import WAIT_S, wait_until


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as made:
        yield made


class Bench:
    """One callback on the queue ``q`` of an embedded broker, and what it and its error handler are given."""

    def __init__(self, broker: EmbeddedBroker, fails: dict[str, int] | None = None, **terms: Any) -> None:
        self.seen: list[str] = []
        self.errors: list[BaseException] = []
        self._fails = {} if fails is None else fails

        def on_message(message: Message) -> None:
            text = str(message.get_body(str))
            self.seen.append(text)
            if self._fails.get(text, 0) > 0:
                self._fails[text] -= 1
                raise ValueError(text)
            if text.startswith("send"):
                session = message_driven_context().session
                with session.create_producer(session.create_queue("out")) as producer:
                    producer.send(session.create_text_message(text))

        of_deploy = {name: terms.pop(name) for name in ("fail_fast", "factory") if name in terms}
        terms = {"destination": "q", "connectionRetryDelayMs": 5, "connectionRetryMaxDelayMs": 20, **terms}
        target = MessageDriven(terms, name="listener")(JMSQueueListener()(on_message))
        self.deployment = deploy(
            target, **{"factory": broker.connection_factory(), **of_deploy},
            on_error=lambda _, error: self.errors.append(error), start=False,
        )  # fmt: skip

    def __enter__(self) -> Bench:
        self.deployment.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.deployment.stop(WAIT_S * 1000)

    @property
    def health(self) -> Any:
        (found,) = self.deployment.health.endpoints
        return found


def texts(broker: EmbeddedBroker, queue: str) -> list[str]:
    """Take what is on a queue."""
    found: list[str] = []
    with (
        broker.connection_factory().create_context() as context,
        context.create_consumer(context.create_queue(queue)) as consumer,
    ):
        while (message := consumer.receive_no_wait()) is not None:
            found.append(str(message.get_body(str)))
    return found


def test_a_transaction_that_the_broker_rolls_back_is_done_again(broker: EmbeddedBroker) -> None:
    fault = broker.faults.fail("commit", times=2)
    with Bench(broker) as bench:
        broker.queue("q").send("send 1")
        wait_until(lambda: bench.health.delivered == 3, "it is committed at the third attempt")
    assert fault.hits == 2
    assert bench.seen == ["send 1"] * 3
    assert texts(broker, "out") == ["send 1"]
    assert texts(broker, "q") == []


def test_a_commit_whose_answer_is_lost_is_not_repeated(broker: EmbeddedBroker) -> None:
    broker.faults.fail("commit", error="in-doubt", after=True)
    with Bench(broker) as bench:
        broker.queue("q").send("send 1")
        wait_until(lambda: [getattr(error, "error_code", "") for error in bench.errors] == ["in-doubt"], "the doubt is told")
        broker.queue("q").send("send 2")
        wait_until(lambda: len(bench.seen) == 2, "another worker goes on")
    assert bench.seen == ["send 1", "send 2"]
    assert texts(broker, "out") == ["send 1", "send 2"]
    assert texts(broker, "q") == []


def test_a_message_that_never_can_be_committed_is_given_up_at_the_limit(broker: EmbeddedBroker) -> None:
    broker.faults.fail("send", times=None, destination="out")
    terms = {"redeliveryLimit": 2, "deadLetterDestination": "dead"}
    with Bench(broker, **terms) as bench:
        broker.queue("q").send("send poison")
        broker.queue("q").send("good")
        wait_until(lambda: "good" in bench.seen and bench.health.given_up == 1, "the poison is out of the way")
    assert bench.seen.count("send poison") == 3
    assert texts(broker, "dead") == ["send poison"]


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
@pytest.mark.parametrize("operation", ["send", "commit"])
def test_a_dead_letter_that_cannot_be_sent_is_not_lost(broker: EmbeddedBroker, attribute: str, operation: Any) -> None:
    terms = {"redeliveryLimit": 1, "deadLetterDestination": "dead", "transactionAttribute": attribute}
    with Bench(broker, {"poison": 100}, **terms) as bench:
        fault = broker.faults.fail(operation, times=2, **({"destination": "dead"} if operation == "send" else {}))
        broker.queue("q").send("poison")
        wait_until(lambda: fault.hits >= 1, "the first attempt fails")
        for _ in range(1000):
            if bench.health.given_up:
                break
            broker.clock.advance(61)
            time.sleep(0.01)
        assert bench.health.given_up == 1
    assert texts(broker, "dead") == ["poison"]
    assert texts(broker, "q") == []


def test_without_a_limit_the_connections_own_limit_has_the_broker_keep_it_apart(broker: EmbeddedBroker) -> None:
    factory = broker.connection_factory(max_redeliveries=2)
    with Bench(broker, {"poison": 100}, factory=factory) as bench:
        broker.queue("q").send("poison")
        broker.queue("q").send("good")
        wait_until(lambda: "good" in bench.seen, "the good one is handled")
    assert bench.seen == ["poison"] * 3 + ["good"]
    assert texts(broker, "q") == []


@pytest.mark.parametrize("keeps", [True, False])
def test_what_not_even_has_a_kind_is_put_aside_or_waits_but_is_never_dropped(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    read = WorkerSession.message

    def message(self: WorkerSession, entry: Entry) -> Any:
        if entry.delivery.envelope.body == "unreadable":
            raise MessageFormatException("of no kind")
        return read(self, entry)

    monkeypatch.setattr(WorkerSession, "message", message)
    monkeypatch.setattr(SharedReceiver, "keeps_rejected", property(lambda _: keeps))
    with Bench(broker) as bench:
        broker.queue("q").send("unreadable")
        broker.queue("q").send("good")
        wait_until(
            lambda: bench.seen == ["good"] and bench.health.given_up + bench.health.awaiting_redelivery == 1,
            "the good one is handled",
        )
        assert bench.health.awaiting_redelivery == (0 if keeps else 1)
    assert [type(error) for error in bench.errors] == [MessageFormatException]
    assert texts(broker, "q") == ([] if keeps else ["unreadable"])


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
def test_a_delay_is_kept_by_the_clock_of_the_connection(broker: EmbeddedBroker, attribute: str) -> None:
    # Delays go by the machine's time as well, so they are longer than any stall.
    delays = {"redeliveryDelayMs": 600_000, "redeliveryBackoff": 2.0, "redeliveryMaxDelayMs": 3_600_000}
    with Bench(broker, {"bad": 2}, **delays, transactionAttribute=attribute) as bench:
        broker.queue("q").send("bad")
        broker.queue("q").send("good")
        wait_until(lambda: bench.seen == ["bad", "good"] and bench.health.awaiting_redelivery == 1, "the bad one waits")
        broker.clock.advance(600)
        wait_until(lambda: len(bench.seen) == 3 and bench.health.awaiting_redelivery == 1, "it waits again, for longer")
        broker.clock.advance(1100)
        broker.queue("q").send("marker")
        wait_until(lambda: bench.seen[-1] == "marker", "others are handled")
        assert bench.seen == ["bad", "good", "bad", "marker"]
        broker.clock.advance(100)
        wait_until(lambda: bench.seen[-1] == "bad" and bench.health.delivered == 5, "it comes again")


def test_b16_one_back_off_is_kept_over_all_kinds_of_trouble_until_the_container_gives_up(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.faults.fail("connect", 1)
    broker.faults.fail("create_consumer", 1, error="security")
    broker.faults.fail("create_session", 3, error="resource")
    broker.faults.fail("create_consumer", 2, times=None, error="security")
    times: list[float] = []
    waits = {"connectionRetryDelayMs": 40, "connectionRetryBackoff": 2.0, "connectionRetryMaxDelayMs": 10_000}
    with caplog.at_level(logging.INFO, "jmsapi.listener"):
        bench = Bench(broker, fail_fast=False, connectionRetryLimit=4, **waits)
        times.append(time.monotonic())
        bench.deployment.start()
        assert bench.deployment.wait(WAIT_S * 1000)
    # Before the second to the fifth attempt: 40, 80, 160, 320 ms.
    assert time.monotonic() - times[0] >= 0.6
    assert bench.health.state is EndpointState.FAILED
    assert "given up after 5 attempts" in bench.health.reason
    assert isinstance(bench.errors[-1], jmsapi.JMSException)
    assert len([one for one in caplog.records if "attempt" in one.getMessage()]) == 5
    assert bench.deployment.stop()
    assert not bench.deployment.health.healthy


def test_b16_a_connection_that_breaks_as_soon_as_it_is_made_is_no_success(broker: EmbeddedBroker) -> None:
    for attempt in range(1, 6):
        broker.faults.cut("deliver", attempt)
    broker.queue("q").send("m")
    waits = {"connectionRetryDelayMs": 20, "connectionRetryBackoff": 2.0, "connectionRetryMaxDelayMs": 10_000}
    bench = Bench(broker, connectionRetryLimit=4, **waits)
    begin = time.monotonic()
    bench.deployment.start()
    assert bench.deployment.wait(WAIT_S * 1000)
    # 20, 40, 80, 160 ms.
    assert time.monotonic() - begin >= 0.3
    assert bench.health.state is EndpointState.FAILED
    assert "given up after 5 attempts" in bench.health.reason
    broker.faults.clear()
    assert texts(broker, "q") == ["m"]


def test_what_the_broker_refuses_at_first_fails_the_deployment(broker: EmbeddedBroker) -> None:
    broker.faults.fail("create_consumer", error="security")
    with pytest.raises(DeploymentException) as caught:
        Bench(broker).deployment.start()
    assert isinstance(caught.value.__cause__, jmsapi.JMSSecurityException)


def test_a_broker_that_is_not_there_yet_is_waited_for(broker: EmbeddedBroker) -> None:
    broker.faults.fail("connect", times=3)
    broker.queue("q").send("waits")
    with Bench(broker) as bench:
        wait_until(lambda: bench.seen == ["waits"], "it comes once the broker is there")
        assert bench.deployment.health.healthy


def test_a_lost_connection_is_made_again_and_nothing_is_lost(broker: EmbeddedBroker) -> None:
    broker.faults.cut("commit", 3)
    with Bench(broker, concurrency="2") as bench:
        for number in range(10):
            broker.queue("q").send(f"send {number}")
        wait_until(lambda: len(set(bench.seen)) == 10 and bench.health.healthy, "all are handled over the new connection")
        wait_until(lambda: bench.health.busy == 0 and bench.health.consumers == 2, "all is quiet")
    assert texts(broker, "q") == []
    assert sorted(set(texts(broker, "out"))) == [f"send {number}" for number in range(10)]


def test_a_stop_ends_the_wait_for_a_broker_that_is_not_there(broker: EmbeddedBroker) -> None:
    broker.faults.fail("connect", times=None)
    bench = Bench(broker, connectionRetryDelayMs=600_000, connectionRetryMaxDelayMs=600_000)
    bench.deployment.start()
    wait_until(lambda: bench.health.state is EndpointState.RETRYING, "it waits")
    assert "not" in bench.deployment.health.reasons[0] or bench.health.reason
    assert bench.deployment.stop(WAIT_S * 1000)
    assert bench.health.state is EndpointState.STOPPED
    broker.faults.clear()
