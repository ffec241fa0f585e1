"""Containers at work in process: as many consumers as there is work for, bounded prefetch, batches, groups, stops, health."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jmsapi import IllegalStateException, IllegalStateRuntimeException, JMSException, Message
from jmsapi.listener import Deployment, DeploymentException, EndpointState, JMSListener, deploy, message_driven_context

from .bench import WAIT_S, Bench, Gate, a_bench, wait_until


@pytest.fixture
def bench() -> Iterator[Bench]:
    with a_bench() as made:
        yield made


def body(message: Message) -> str:
    return str(message.get_body(str))


def health(deployment: Deployment) -> Any:
    (found,) = deployment.health.endpoints
    return found


# ---------------------------------------------------------------- concurrency


def test_consumers_grow_with_the_load_up_to_the_most_and_shrink_again_to_the_fewest(bench: Bench) -> None:
    gate = Gate()
    with bench.listening(gate, concurrency="2-5", idleTimeoutMs=50) as deployment:
        assert health(deployment).consumers == 2
        bench.send(*map(str, range(20)))
        wait_until(lambda: len(gate.inside) == 5, "five at a time")
        assert health(deployment).consumers == 5
        assert health(deployment).busy == 5
        gate.open.set()
        wait_until(lambda: len(gate.seen) == 20 and not gate.inside, "all are handled")
        wait_until(lambda: health(deployment).consumers == 2, "only the fewest are left")
        assert gate.most == 5
        bench.send("later")
        wait_until(lambda: "later" in gate.seen, "those that are left go on")


def test_one_consumer_handles_one_message_at_a_time_in_order(bench: Bench) -> None:
    gate = Gate()
    gate.open.set()
    texts = [str(number) for number in range(100)]
    bench.send(*texts)
    with bench.listening(gate):
        wait_until(lambda: len(gate.seen) == 100, "all are handled")
    assert gate.seen == texts
    assert gate.most == 1


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_no_more_messages_are_held_than_the_prefetch_allows(bench: Bench, prefetch: int) -> None:
    permits, seen = threading.Semaphore(0), list[str]()
    held = 2 * max(1, prefetch)

    def call(message: Message) -> None:
        seen.append(body(message))
        permits.acquire(timeout=WAIT_S)

    bench.send(*map(str, range(20)))
    with bench.listening(call, concurrency="2", prefetch=prefetch) as deployment:
        for handled in range(4):
            wait_until(lambda: len(seen) == handled + 2, "two at a time")  # noqa: B023
            permits.release()
        wait_until(lambda: len(seen) == 6 and health(deployment).waiting >= held // 2 - 2, "the prefetch is used")
        left = bench.left()
        assert 20 - 4 - held <= len(left) <= 20 - 4 - 2
        for _ in range(20):
            permits.release()
        wait_until(lambda: len(seen) == 20 - len(left), "what is held is handled")


def test_with_no_prefetch_every_message_comes(bench: Bench) -> None:
    gate = Gate()
    gate.open.set()
    with bench.listening(gate, concurrency="1-4", prefetch=0, idleTimeoutMs=20):
        for number in range(50):
            bench.send(str(number))
        wait_until(lambda: len(gate.seen) == 50, "all are handled")
    assert sorted(gate.seen, key=int) == [str(number) for number in range(50)]


# ---------------------------------------------------------------- batches and groups


@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
def test_a_batch_is_what_waits_up_to_its_size(bench: Bench, attribute: str) -> None:
    batches: list[list[str]] = []
    bench.send(*map(str, range(10)))
    with bench.listening(
        lambda messages: batches.append([body(one) for one in messages]),
        batch=True, batchSize=4, batchWaitMs=30, transactionAttribute=attribute,
    ):  # fmt: skip
        wait_until(lambda: sum(map(len, batches)) == 10, "all are handled")
    assert [text for batch in batches for text in batch] == [str(number) for number in range(10)]
    assert [len(batch) for batch in batches[:2]] == [4, 4]
    assert bench.left() == []


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("attribute", ["Required", "NotSupported"])
def test_what_fails_in_a_batch_comes_again_alone_so_that_only_the_poison_is_given_up(
    bench: Bench, attribute: str, ordered: bool
) -> None:
    batches: list[list[str]] = []

    def call(messages: list[Message]) -> None:
        batches.append([body(one) for one in messages])
        if "poison" in batches[-1]:
            raise ValueError("poison")

    bench.send("1", "poison", "2", JMSXGroupID="g")
    with bench.listening(
        call, batch=True, batchSize=3, batchWaitMs=1000, transactionAttribute=attribute, orderedByGroup=ordered,
        redeliveryLimit=2, deadLetterDestination="dead",
    ) as deployment:  # fmt: skip
        wait_until(lambda: health(deployment).given_up == 1 and ["2"] in batches, "the poison is given up")
    assert batches == [["1", "poison", "2"], ["1"], ["poison"], ["poison"], ["2"]]
    assert [text for text, _ in bench.left("dead")] == ["poison"]
    assert bench.left() == []


def test_messages_of_one_group_are_handled_one_after_the_other_also_when_one_fails(bench: Bench) -> None:
    lock, inside, seen = threading.Lock(), set[str](), list[str]()
    overlaps: list[str] = []
    failed: set[str] = set()

    def call(message: Message) -> None:
        group, text = str(message.get_string_property("JMSXGroupID")), body(message)
        with lock:
            if group in inside:
                overlaps.append(text)
            inside.add(group)
        time.sleep(0.001)
        with lock:
            inside.discard(group)
            if text.endswith("3") and text not in failed:
                failed.add(text)
                raise ValueError("once")
            seen.append(text)

    for number in range(10):
        for group in "abcd":
            bench.send(f"{group}{number}", JMSXGroupID=group)
    with bench.listening(call, concurrency="8", orderedByGroup=True, redeliveryDelayMs=20):
        wait_until(lambda: len(seen) == 40, "all are handled")
    assert overlaps == []
    for group in "abcd":
        assert [text for text in seen if text[0] == group] == [f"{group}{number}" for number in range(10)]


# ---------------------------------------------------------------- stopping


def test_a_stop_finishes_what_runs_and_gives_the_rest_back_unseen(bench: Bench) -> None:
    gate = Gate()
    bench.send(*map(str, range(10)))
    with bench.listening(gate, prefetch=5) as deployment:
        wait_until(lambda: gate.inside == ["0"], "one runs")
        stopped: list[bool] = []
        stopping = threading.Thread(target=lambda: stopped.append(deployment.stop(WAIT_S * 1000)))
        stopping.start()
        wait_until(lambda: health(deployment).state is EndpointState.STOPPING, "it stops")
        back: list[tuple[str, int]] = []
        wait_until(lambda: back.extend(bench.left()) or len(back) == 9, "the rest is back while the one still runs")
        gate.open.set()
        stopping.join(WAIT_S)
    assert stopped == [True]
    assert gate.seen == ["0"]
    assert sorted(back) == [(str(number), 1) for number in range(1, 10)]
    assert bench.left() == []


@pytest.mark.parametrize("attribute", ["Required", "NotSupported", "Bean"])
def test_a_callback_that_runs_beyond_the_deadline_is_left_alone_and_its_message_comes_again(bench: Bench, attribute: str) -> None:
    gate = Gate()
    bench.send("slow")
    with bench.listening(gate, transactionAttribute=attribute) as deployment:
        wait_until(lambda: gate.inside == ["slow"], "it runs")
        begin = time.monotonic()
        assert deployment.stop(50) is False
        assert time.monotonic() - begin < WAIT_S
        wait_until(lambda: health(deployment).state is EndpointState.STOPPED, "it is stopped")
        assert [text for text, _ in bench.left()] == ["slow"]
        gate.open.set()
        wait_until(lambda: not any("listener" in one.name for one in threading.enumerate()), "the callback has ended")
    assert bench.left() == []


def test_a_stop_from_inside_of_a_callback_only_begins_it(bench: Bench) -> None:
    answers: list[bool] = []

    def call(_: Message) -> None:
        answers.append(deployment.stop())

    with bench.listening(call) as deployment:
        bench.send("1")
        assert deployment.wait(WAIT_S * 1000)
    assert answers == [False]
    assert health(deployment).state is EndpointState.STOPPED
    assert bench.left() == []


def test_a_message_that_waits_for_its_delay_goes_back_when_it_is_stopped(bench: Bench) -> None:
    def call(_: Message) -> None:
        raise ValueError("again")

    with bench.listening(call, redeliveryDelayMs=60_000, redeliveryMaxDelayMs=60_000) as deployment:
        bench.send("1")
        wait_until(lambda: health(deployment).awaiting_redelivery == 1, "it waits")
    assert bench.left() == [("1", 2)]


def test_who_waits_for_an_instance_gives_its_message_back_when_it_is_stopped(bench: Bench) -> None:
    gate = Gate()
    bench.send("1", "2")
    with bench.listening(gate, concurrency="2", maxInstances=1) as deployment:
        wait_until(lambda: health(deployment).busy == 2, "both have a message")
        stopping = threading.Thread(target=deployment.stop)
        stopping.start()
        wait_until(lambda: health(deployment).busy == 1, "one gives its message back")
        gate.open.set()
        stopping.join(WAIT_S)
    assert len(gate.seen) == 1
    assert [count for _, count in bench.left()] == [1]


def test_a_deployment_starts_once_stops_once_and_not_again(bench: Bench) -> None:
    with bench.listening(lambda _: None, start=False) as deployment:
        assert deployment.health.reasons == ("listener: ready: not started",)
        deployment.start()
        deployment.start()
        assert deployment.health.healthy
        assert deployment.stop()
        assert deployment.stop()
        with pytest.raises(IllegalStateException):
            deployment.start()
    with bench.listening(lambda _: None, start=False) as never:
        assert never.stop()
    assert health(never).state is EndpointState.STOPPED


# ---------------------------------------------------------------- what a callback may do


def test_a_callback_can_send_and_receive_but_neither_listen_nor_end_its_session(bench: Bench) -> None:
    found: list[object] = []

    def call(message: Message) -> None:
        session = message_driven_context().session
        for refused in (session.commit, session.rollback, session.recover, session.close, session.run):
            with pytest.raises(IllegalStateException):
                refused()
        with session.create_consumer(session.create_queue("other")) as consumer:
            for listening in (session, consumer):
                with pytest.raises(IllegalStateException):
                    listening.message_listener = found.append
                with pytest.raises(IllegalStateException):
                    _ = listening.message_listener
            found.append(consumer.receive(1000))

    bench.send("there", queue="other")
    bench.send("1")
    with bench.listening(call, transactionAttribute="Required") as deployment:
        wait_until(lambda: health(deployment).delivered == 1, "it is called")
        assert health(deployment).last_error is None
    assert len(found) == 1
    assert bench.left("other") == bench.left() == []


def test_transactions_are_refused_where_there_are_none(bench: Bench) -> None:
    raised: list[type[Exception]] = []

    def call(_: Message) -> None:
        context = message_driven_context()
        for asked in (context.set_rollback_only, lambda: context.rollback_only, lambda: context.user_transaction):
            try:
                asked()
            except IllegalStateRuntimeException as error:
                raised.append(type(error))

    bench.send("1")
    with bench.listening(call):
        wait_until(lambda: len(raised) == 3, "all three are refused")


def test_a_transaction_that_is_left_open_after_an_orderly_return_is_an_error(bench: Bench) -> None:
    errors: list[BaseException] = []

    def call(message: Message) -> None:
        if not message.jms_redelivered:
            context = message_driven_context()
            context.user_transaction.begin()
            with context.session.create_producer(context.session.create_queue("out")) as producer:
                producer.send(context.session.create_text_message("never"))

    bench.send("1")
    with bench.listening(call, transactionAttribute="Bean", on_error=lambda _, error: errors.append(error)) as deployment:
        wait_until(lambda: health(deployment).delivered == 2, "it comes again")
    assert "left a transaction open" in str(errors[0])
    assert bench.left("out") == []


# ---------------------------------------------------------------- deploying


def test_an_error_handler_that_raises_harms_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def on_error(name: str, error: BaseException) -> None:
        raise RuntimeError("the handler")

    def call(message: Message) -> None:
        if body(message) == "bad" and not message.jms_redelivered:
            raise ValueError("once")

    with bench.listening(call, on_error=on_error) as deployment:
        bench.send("bad", "good")
        wait_until(lambda: health(deployment).delivered == 3, "all is handled")
    assert "its error handler raised" in caplog.text


def test_a_class_that_cannot_be_made_is_a_system_exception(bench: Bench) -> None:
    errors: list[BaseException] = []
    made: list[object] = []

    class Bean:
        def __init__(self) -> None:
            made.append(self)
            if len(made) == 1:
                raise ValueError("not yet")

        @JMSListener(type=JMSListener.Type.QUEUE)
        def handle(self, message: Message) -> None: ...

    name = f"{Bean.__module__}.{Bean.__qualname__}"
    with deploy(
        Bean, factory=bench.factory, descriptor={name: {"destination": "q"}}, on_error=lambda _, error: errors.append(error)
    ) as deployment:
        bench.send("1")
        wait_until(lambda: health(deployment).delivered == 2, "it is made at the second attempt")
    assert [str(error.__cause__) for error in errors] == ["not yet"]


@pytest.mark.parametrize("factory", ["inproc://x?nonsense=1", "no-such-name"])
def test_a_factory_that_there_is_not_is_a_deployment_error(factory: str) -> None:
    @JMSListener(type=JMSListener.Type.QUEUE, lookup="anything")
    def on_message(message: Message) -> None: ...

    with pytest.raises(DeploymentException) as caught:
        deploy(on_message, factory=factory)
    assert isinstance(caught.value.__cause__, JMSException)
