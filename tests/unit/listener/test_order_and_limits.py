"""Order after failures, limits whatever fails, stops of all kinds, and consumers that ask for one message at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import jmsapi
from jmsapi import IllegalArgumentException, Message
from jmsapi.listener import Deployment, DeploymentException, message_driven_context
from jmsapi.testing import EmbeddedBroker

from .bench import WAIT_S, Bench, Gate, a_bench, wait_until


@pytest.fixture
def bench() -> Iterator[Bench]:
    with a_bench() as made:
        yield made


def texts(messages: Sequence[Message]) -> list[str]:
    return [str(message.get_body(str)) for message in messages]


def fail(_: object) -> None:
    raise ValueError("bad")


# ---- order ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
@pytest.mark.parametrize("ordered", ["true", "false"])
def test_messages_of_a_batch_that_failed_come_back_in_their_order_after_one_wait(
    bench: Bench, attribute: str, ordered: str
) -> None:
    sent = [str(number) for number in range(8)]
    calls: list[list[str]] = []

    def call(messages: Sequence[Message]) -> None:
        calls.append(texts(messages))
        if len(calls) == 1:
            raise ValueError("the whole batch")

    bench.send(*sent, JMSXGroupID="g")
    terms: dict[str, Any] = {"batchSize": 8, "batchWaitMs": 20_000, "redeliveryDelayMs": 30, "redeliveryJitter": 0.9}
    with bench.listening(call, batch=True, transactionAttribute=attribute, orderedByGroup=ordered, **terms):
        wait_until(lambda: sum(map(len, calls)) == 16, "all come again")
    assert calls == [sent, *([text] for text in sent)]


# ---- limits -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), ValueError("handler")])
def test_an_error_handler_that_raises_whatever_it_be_does_not_lift_the_limit(
    bench: Bench, attribute: str, raised: BaseException
) -> None:
    called: list[str] = []

    def call(message: Message) -> None:
        called.append(str(message.get_body(str)))
        raise ValueError("bad")

    def on_error(name: str, error: BaseException) -> None:
        raise raised

    bench.send("m")
    terms: dict[str, Any] = {"redeliveryLimit": 2, "deadLetterDestination": "dead", "transactionAttribute": attribute}
    with bench.listening(call, on_error=on_error, **terms) as deployment:
        wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "it is given up")
    assert called == ["m"] * 3
    assert [text for text, _ in bench.left("dead")] == ["m"]


class Around:
    """What an application puts around an endpoint, and fails in one of its calls."""

    fails_in = ""
    after_the_call = False

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    def _do(self, name: str, *given: object) -> None:
        if self.fails_in == name and not self.after_the_call:
            raise SystemExit(name)
        getattr(self._endpoint, name)(*given)
        if self.fails_in == name:
            raise RuntimeError(name)

    def before_delivery(self) -> None:
        self._do("before_delivery")

    def on_message(self, message: object) -> None:
        self._do("on_message", message)

    def after_delivery(self) -> None:
        self._do("after_delivery")


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
@pytest.mark.parametrize("after_the_call", [False, True])
@pytest.mark.parametrize("fails_in", ["before_delivery", "on_message", "after_delivery"])
def test_what_is_put_around_an_endpoint_and_raises_has_the_delivery_fail_and_counted(
    bench: Bench, attribute: str, after_the_call: bool, fails_in: str
) -> None:
    kind = type("Failing", (Around,), {"fails_in": fails_in, "after_the_call": after_the_call})

    def call(message: Message) -> None:
        session = message_driven_context().session
        if attribute == "Required":
            with session.create_producer(session.create_queue("out")) as producer:
                producer.send(session.create_text_message("sent"))

    committed = attribute == "Required" and fails_in == "after_delivery" and after_the_call
    bench.send("m")
    terms: dict[str, Any] = {"redeliveryLimit": 1, "deadLetterDestination": "dead", "transactionAttribute": attribute}
    with bench.listening(call, wrap=kind, **terms) as deployment:
        wait_until(lambda: deployment.health.endpoints[0].failed == (1 if committed else 2), "it fails")
        if not committed:
            wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "it is given up")
        error = deployment.health.endpoints[0].last_error
        assert isinstance(error, RuntimeError if after_the_call else SystemExit)
        wait_until(lambda: deployment.health.endpoints[0].consumers == 1, "a worker is there")
    assert [text for text, _ in bench.left("dead")] == ([] if committed else ["m"])
    assert bench.left("out") == ([("sent", 1)] if committed else [])
    assert bench.left() == []


# ---- stops ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("deadline", [float("inf"), 1e300, 10**400])
def test_a_stop_may_wait_for_ever(bench: Bench, deadline: float) -> None:
    gate = Gate()
    bench.send("m")
    with bench.listening(gate) as deployment:
        wait_until(lambda: gate.inside, "the callback runs")
        opener = threading.Timer(0.05, gate.open.set)
        opener.start()
        assert deployment.stop(deadline)
        opener.join(WAIT_S)
        assert deployment.wait(deadline)
    assert bench.left() == []


@pytest.mark.parametrize("given", ["x", float("nan"), True, object()])
def test_a_deadline_that_is_no_number_is_refused_and_nothing_is_stopped(bench: Bench, given: Any) -> None:
    gate = Gate()
    gate.open.set()
    with bench.listening(gate) as deployment:
        with pytest.raises(IllegalArgumentException, match="deadline_ms is a number"):
            deployment.stop(given)
        with pytest.raises(IllegalArgumentException, match="timeout_ms is a number"):
            deployment.wait(given)
        bench.send("m")
        wait_until(lambda: gate.seen == ["m"], "it still runs")


def test_a_stop_by_the_error_handler_of_an_endpoint_that_gives_up_does_not_wait_for_itself() -> None:
    stopped: list[bool] = []
    deployments: list[Deployment] = []

    def on_error(name: str, error: BaseException) -> None:
        if deployments:
            stopped.append(deployments[0].stop())

    with EmbeddedBroker() as broker, a_bench() as bench:
        broker.faults.fail("connect", times=None)
        factory = jmsapi.connection_factory(broker.url)
        terms: dict[str, Any] = {"connectionRetryLimit": 1, "connectionRetryDelayMs": 1, "stopDeadlineMs": 600_000}
        with bench.listening(fail, factory=factory, on_error=on_error, start=False, **terms) as deployment:
            deployments.append(deployment)
            deployment.start()
            assert deployment.wait(WAIT_S * 1000)
            assert stopped == [False]
            assert deployment.stop()


# ---- consumers --------------------------------------------------------------------------------------------------------
def test_without_prefetch_one_more_consumer_asks_while_all_are_busy_up_to_the_most(bench: Bench) -> None:
    gate = Gate()
    terms: dict[str, Any] = {"prefetch": 0, "concurrency": "1-4", "idleTimeoutMs": 20}
    with bench.listening(gate, **terms) as deployment:
        bench.send(*map(str, range(10)))
        wait_until(lambda: len(gate.inside) == 4, "as many as there may be have one each")
        # Nothing waits here for a consumer.
        assert deployment.health.endpoints[0].waiting == 0
        assert deployment.health.endpoints[0].consumers == 4
        gate.open.set()
        wait_until(lambda: len(gate.seen) == 10, "all are handled")
        wait_until(lambda: deployment.health.endpoints[0].consumers == 1, "who has nothing to do goes")
    assert gate.most == 4


# ---- dead letters -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("bound", "letters"), [(None, "q"), ("q", "again"), ("other", "again")])
def test_a_dead_letter_destination_that_the_messages_come_from_is_refused(bench: Bench, bound: str | None, letters: str) -> None:
    jmsapi.register_object("again", None if bound is None else bench.session.create_queue(bound))
    try:
        terms: dict[str, Any] = {"redeliveryLimit": 1, "deadLetterDestination": letters}
        if bound == "other":
            with bench.listening(fail, **terms) as deployment:
                assert deployment.health.healthy
            return
        with pytest.raises(DeploymentException, match="is where its messages come from"), bench.listening(fail, **terms):
            pass
    finally:
        jmsapi.register_object("again", None)
