"""The clock that a test moves by hand."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import pytest

import jmsapi
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, MessageProperty, deploy
from jmsapi.testing import EmbeddedBroker, HandClock

DEADLINE_S = 20
YEAR_S = 365 * 86_400


def test_it_stands_still() -> None:
    clock = HandClock()
    shown = clock.now_ms()
    time.sleep(0.01)
    assert clock.now_ms() == shown


def test_parts_of_a_millisecond_add_up() -> None:
    clock = HandClock(start_ms=1000)
    for _ in range(10):
        clock.advance(0.0001)
    assert clock.now_ms() == 1001


def test_timers_run_in_the_order_of_their_time_and_each_sees_its_own() -> None:
    clock = HandClock(start_ms=0)
    seen: list[tuple[str, int]] = []
    clock.call_later(2, lambda: seen.append(("second", clock.now_ms())))
    clock.call_later(1, lambda: seen.append(("first", clock.now_ms())))
    clock.call_later(1, lambda: seen.append(("first again", clock.now_ms())))
    clock.call_later(3, lambda: seen.append(("not yet", clock.now_ms())))
    clock.advance(2.5)
    assert seen == [("first", 1000), ("first again", 1000), ("second", 2000)]
    assert clock.now_ms() == 2500


def test_a_timer_that_a_timer_sets_runs_in_the_same_advance() -> None:
    clock = HandClock(start_ms=0)
    seen: list[int] = []

    def again() -> None:
        seen.append(clock.now_ms())
        clock.call_later(1, again)

    clock.call_later(1, again)
    clock.advance(3)
    assert seen == [1000, 2000, 3000]


def test_a_timer_that_is_cancelled_does_not_run() -> None:
    clock = HandClock()
    seen: list[int] = []
    timer = clock.call_later(1, lambda: seen.append(1))
    timer.cancel()
    timer.cancel()
    clock.advance(2)
    assert seen == []


def test_what_is_due_at_once_runs_in_a_thread_of_its_own() -> None:
    done = threading.Event()
    threads: list[str] = []

    def call() -> None:
        threads.append(threading.current_thread().name)
        done.set()

    HandClock().call_later(0, call)
    assert done.wait(DEADLINE_S)
    assert threads == ["jmsapi-timer"]


def test_what_lasts_a_while_is_over_by_the_hand_or_by_the_machine() -> None:
    clock = HandClock()
    calls: list[str] = []
    done = threading.Event()
    clock.lasting.call_later(3600, lambda: calls.append("by hand"))
    clock.lasting.call_later(3600, lambda: calls.append("never")).cancel()
    clock.advance(3599)
    assert calls == []
    clock.advance(1)
    assert calls == ["by hand"]
    clock.lasting.call_later(0.01, done.set)
    assert done.wait(DEADLINE_S)
    clock.advance(7200)
    assert calls == ["by hand"]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), True, "1", None])
def test_time_moves_by_a_number_that_is_not_negative(seconds: float) -> None:
    with pytest.raises(jmsapi.IllegalArgumentException, match="advance"):
        HandClock().advance(seconds)


def test_a_delayed_message_comes_when_the_clock_is_there(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    with jms_broker.connection_factory().create_context() as context:
        queue = context.create_queue("q")
        context.create_producer().set_delivery_delay(3_600_000).send(queue, "later")
        consumer = context.create_consumer(queue)
        jms_clock.advance(3_599.999)
        assert consumer.receive_no_wait() is None
        jms_clock.advance(0.001)
        assert consumer.receive_body(str, 1000) == "later"


def test_a_message_expires_by_the_clock(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    with jms_broker.connection_factory().create_context() as context:
        queue = context.create_queue("q")
        producer = context.create_producer().set_time_to_live(5000)
        producer.send(queue, "old")
        message = jms_broker.queue("q").assert_received("old")
        assert message.jms_expiration == jms_clock.now_ms() + 5000
        jms_clock.advance(5)
        producer.send(queue, "fresh")
        assert context.create_consumer(queue).receive_body(str, 1000) == "fresh"


def test_a_message_that_a_receiver_holds_expires_too(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    with jms_broker.connection_factory().create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        jms_broker.queue("q").send("old", time_to_live_ms=1000)
        jms_clock.advance(1)
        assert consumer.receive_no_wait() is None


def test_ten_years_are_no_longer_than_a_second(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    calls = 0
    queue = jms_broker.queue("q")
    queue.send("x", delay_ms=10 * YEAR_S * 1000, time_to_live_ms=11 * YEAR_S * 1000)
    original = jms_clock.now_ms

    def counted() -> int:
        nonlocal calls
        calls += 1
        return original()

    jms_clock.now_ms = counted  # type: ignore[method-assign]
    jms_clock.advance(10 * YEAR_S - 1)
    assert queue.messages == []
    jms_clock.advance(1)
    assert len(queue.messages) == 1
    jms_clock.advance(YEAR_S)
    assert queue.messages == []
    assert calls < 100


@pytest.mark.parametrize("prefetch", [0, 1, 100])
def test_a_receive_is_over_when_the_clock_says_so(jms_broker: EmbeddedBroker, jms_clock: HandClock, prefetch: int) -> None:
    with jms_broker.connection_factory(prefetch=prefetch).create_context() as context, ThreadPoolExecutor(1) as threads:
        consumer = context.create_consumer(context.create_queue("q"))
        received = threads.submit(consumer.receive, 1_000_000)
        begun = time.monotonic()
        while not received.done() and time.monotonic() - begun < DEADLINE_S:
            jms_clock.advance(1000)
        assert received.result(DEADLINE_S) is None


def test_a_receive_is_over_by_the_time_of_the_machine_too(jms_context: jmsapi.JMSContext) -> None:
    assert jms_context.create_consumer(jms_context.create_queue("q")).receive(20) is None


def test_the_waits_of_a_connection_that_is_made_again_go_by_the_clock(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    url = f"failover:({jms_broker.url})?initialReconnectDelay=60000"
    told = threading.Event()
    with jmsapi.connection_factory(url).create_context() as context:

        class Listener(jmsapi.ConnectionListener):
            def on_resumed(self, url: str) -> None:
                told.set()

        jmsapi.set_connection_listener(context, Listener())
        consumer = context.create_consumer(context.create_queue("q"))
        jms_broker.cut()
        jms_broker.queue("q").send("over the new link")
        assert jms_broker.connections == 0
        begun = time.monotonic()
        while not told.is_set() and time.monotonic() - begun < DEADLINE_S:
            jms_clock.advance(60)
        assert consumer.receive_body(str, 20_000) == "over the new link"


def test_the_redelivery_delay_of_a_listener_goes_by_the_clock(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    counts: queue.Queue[int] = queue.Queue()

    @JMSQueueListener("orders")
    @JMSListenerProperty("redeliveryDelayMs", "3600000")
    @JMSListenerProperty("redeliveryMaxDelayMs", "3600000")
    def on_order(order: str, count: Annotated[int, MessageProperty("JMSXDeliveryCount")]) -> None:
        counts.put(count)
        if count == 1:
            raise RuntimeError("not yet")

    jms_broker.bind_queue("orders")
    with deploy(on_order, factory=jms_broker.connection_factory()):
        jms_broker.queue("orders").send("a kettle")
        assert counts.get(timeout=DEADLINE_S) == 1
        # The container delays the message a moment after the callback has raised.
        begun = time.monotonic()
        while counts.empty() and time.monotonic() - begun < DEADLINE_S:
            jms_clock.advance(3600)
        assert counts.get(timeout=DEADLINE_S) == 2
        jms_broker.queue("orders").assert_empty(within=DEADLINE_S)
