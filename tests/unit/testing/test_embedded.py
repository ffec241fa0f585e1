"""A broker of a test's own: what it says of the messages that came."""

from __future__ import annotations

import threading
import uuid

import pytest

import jmsapi
from jmsapi.testing import EmbeddedBroker, HandClock, LoopbackServer

DEADLINE_MS = 20_000
HOSTILE = "\x1b[2J\x07\x9b31m\u202e\r\n\x00"


def test_a_broker_is_fresh() -> None:
    with EmbeddedBroker("shop-of-a-test") as broker:
        broker.queue("q").send("a")
        broker.queue("q").assert_received("a")
    with EmbeddedBroker("shop-of-a-test") as broker:
        broker.queue("q").assert_not_received()
        broker.queue("q").assert_empty()


def test_two_brokers_know_nothing_of_each_other() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.queue("q").send("a")
        one.faults.fail("send", times=None)
        with other.connection_factory().create_context() as context:
            context.create_producer().send(context.create_queue("q"), "b")
        other.queue("q").assert_received_bodies("b")
        one.faults.clear()


def test_a_broker_that_was_there_under_the_name_makes_room() -> None:
    name = f"shop-{uuid.uuid4()}"
    with jmsapi.connection_factory(f"inproc://{name}").create_context() as before:
        lost = threading.Event()
        before.exception_listener = lambda error: lost.set()
        with EmbeddedBroker(name) as broker:
            assert lost.wait(20)
            broker.queue("q").send("a")
            broker.queue("q").assert_received("a")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a?x=1", "x" * 201])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(jmsapi.IllegalArgumentException, match="name"):
        EmbeddedBroker(name)


def test_a_name_is_had_once() -> None:
    with EmbeddedBroker("twice-in-a-test"), pytest.raises(jmsapi.IllegalArgumentException, match="already"):
        EmbeddedBroker("twice-in-a-test")


def test_the_application_finds_it_by_name() -> None:
    with EmbeddedBroker() as broker:
        broker.bind("shop", "audit")
        with jmsapi.lookup("shop", jmsapi.ConnectionFactory).create_context() as context:
            context.create_producer().send(context.create_queue("q"), "a")
        broker.queue("q").assert_received("a")
        broker.bind_queue("orders", "shop.orders")
        broker.bind_topic("news")
        with broker.connection_factory().create_context() as context:
            context.create_producer().send(jmsapi.lookup("orders", jmsapi.Queue), "b")
            context.create_producer().send(jmsapi.lookup("news", jmsapi.Topic), "c")
        broker.queue("shop.orders").assert_received("b")
        broker.topic("news").assert_received("c")
    for name in ("shop", "audit", "orders", "news"):
        with pytest.raises(jmsapi.JMSException, match="nothing is registered"):
            jmsapi.lookup(name)


def test_other_processes_can_use_it_by_a_loopback_server(jms_broker: EmbeddedBroker) -> None:
    with LoopbackServer(jms_broker.name) as server, jmsapi.connection_factory(server.url).create_context() as context:
        context.create_producer().send(context.create_queue("q"), "over the wire")
        jms_broker.queue("q").assert_received("over the wire")


def test_it_counts_the_connections_of_the_application(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send("a")
    assert jms_broker.connections == 0
    with jms_broker.connection_factory().create_connection():
        assert jms_broker.connections == 1
    assert jms_broker.connections == 0


# ---------------------------------------------------------------- what came


@pytest.mark.parametrize(
    "body", ["text", "", b"\x00\xff", {"a": 1, "b": b"x"}, [1, "two", b"3", None], {"nested": {"x": [1]}}, 42, None]
)
def test_a_body_is_compared_as_a_python_value(jms_broker: EmbeddedBroker, body: object) -> None:
    if body in (42, {"nested": {"x": [1]}}):
        with jms_broker.connection_factory().create_context() as context:
            context.create_producer().send(context.create_queue("q"), context.create_object_message(body))  # type: ignore[arg-type]
    else:
        jms_broker.queue("q").send(body)
    message = jms_broker.queue("q").assert_received(body)
    assert message.jms_message_id
    jms_broker.queue("q").assert_not_received("another")
    # To look at it changed nothing.
    jms_broker.queue("q").assert_received(body, count=1)


def test_text_and_bytes_are_not_the_same(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send("abc")
    with pytest.raises(AssertionError, match="its body is a str, not a bytes"):
        jms_broker.queue("q").assert_received(b"abc", within=0)


def test_headers_and_properties_are_compared(jms_broker: EmbeddedBroker) -> None:
    queue = jms_broker.queue("q")
    queue.send("a", jms_type="order", correlation_id="7", properties={"total": 40, "paid": True})
    queue.assert_received(jms_type="order", correlation_id="7", properties={"total": 40})
    queue.assert_received(selector="total > 30 AND JMSType = 'order' AND JMSDeliveryMode = 'PERSISTENT'")
    queue.assert_received(where=lambda message: message.jms_priority == 4)
    for criteria, why in (
        ({"jms_type": None}, "its type is 'order'"),
        ({"correlation_id": "8"}, "its correlation id is '7'"),
        ({"properties": {"total": 41}}, "its total is 40"),
        ({"properties": {"paid": 1}}, "its paid is True"),
        ({"properties": {"colour": "red"}}, "it has no property colour"),
        ({"selector": "total > 50"}, "the selector does not match it"),
        ({"where": lambda message: False}, "where[(][)] says no"),
    ):
        with pytest.raises(AssertionError, match=why):
            queue.assert_received(within=0, **criteria)  # type: ignore[arg-type]
        queue.assert_not_received(**criteria)  # type: ignore[arg-type]


def test_a_bad_selector_is_told_by_its_own_error(jms_broker: EmbeddedBroker) -> None:
    with pytest.raises(jmsapi.InvalidSelectorException):
        jms_broker.queue("q").assert_received(selector="total >")


def test_a_failure_shows_what_came_instead(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("orders").send("a kettel", jms_type="order", properties={"total": 40})
    jms_broker.queue("audit").send("seen")
    jms_broker.topic("news").send("new")
    with pytest.raises(AssertionError) as raised:
        jms_broker.queue("orders").assert_received("a kettle", properties={"total": 40}, within=0)
    lines = str(raised.value).splitlines()
    assert lines[0] == "queue 'orders' was not sent a message with body 'a kettle', total 40 within 0 s"
    assert lines[1] == "it was sent 1:"
    assert lines[2].split() == ["#", "id", "type", "properties", "body", "remark"]
    assert "'order'  total=40    'a kettel'  its body is 'a kettel'" in lines[3]
    assert lines[4] == "sent elsewhere: queue 'audit': 1, topic 'news': 1"
    assert lines[5] == "now 1 wait on it, 0 are held by consumers"


def test_a_failure_cannot_steer_a_terminal(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send(HOSTILE, jms_type=HOSTILE, properties={"p": HOSTILE})
    jms_broker.queue("q").send({"key": HOSTILE})
    jms_broker.queue("q").send(HOSTILE.encode())
    with pytest.raises(AssertionError) as raised:
        jms_broker.queue("q").assert_received("x", within=0)
    assert all(char.isprintable() or char == "\n" for char in str(raised.value))
    assert len(str(raised.value).splitlines()) == 8


def test_a_long_body_and_many_messages_are_shortened(jms_broker: EmbeddedBroker) -> None:
    for number in range(100):
        jms_broker.queue("q").send("x" * 1_000_000 if number == 99 else str(number))
    with pytest.raises(AssertionError) as raised:
        jms_broker.queue("q").assert_received("y", within=0)
    text = str(raised.value)
    assert "... 80 before these" in text
    assert "(1000000 characters)" in text
    assert len(text) < 6000


def test_the_number_of_messages_can_be_asserted(jms_broker: EmbeddedBroker) -> None:
    queue = jms_broker.queue("q")
    queue.send("a")
    queue.send("a")
    queue.send("b")
    queue.assert_received("a", count=2)
    for count in (1, 3):
        with pytest.raises(AssertionError, match=f"body 'a' {count} times, but 2 times"):
            queue.assert_received("a", count=count, within=0)
    with pytest.raises(jmsapi.IllegalArgumentException, match="at least 1"):
        queue.assert_received("a", count=0)


def test_all_bodies_in_their_order_can_be_asserted(jms_broker: EmbeddedBroker) -> None:
    queue = jms_broker.queue("q")
    queue.assert_received_bodies()
    queue.send("a")
    queue.send("b")
    queue.assert_received_bodies("a", "b")
    with pytest.raises(AssertionError, match="one too many"):
        queue.assert_received_bodies("a", within=0)
    with pytest.raises(AssertionError, match="its body is 'b'"):
        queue.assert_received_bodies("b", "a", within=0)
    with pytest.raises(AssertionError, match="was not sent just this"):
        queue.assert_received_bodies("a", "b", "c", within=0)


def test_what_is_taken_was_received_all_the_same(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    consumer = jms_context.create_consumer(jms_context.create_queue("q"))
    jms_broker.queue("q").send("a")
    assert consumer.receive_body(str, DEADLINE_MS) == "a"
    jms_broker.queue("q").assert_empty()
    jms_broker.queue("q").assert_received("a")
    assert jms_broker.queue("q").messages == []


def test_a_message_can_be_taken(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    for text in "ab":
        jms_context.create_producer().send(jms_context.create_queue("q"), text)
    assert [jms_broker.queue("q").take().get_body(str) for _ in range(2)] == ["a", "b"]
    with pytest.raises(AssertionError, match="queue 'q' has no message to take"):
        jms_broker.queue("q").take(within=0)


def test_a_topic_knows_what_was_published_though_nobody_subscribes(
    jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext
) -> None:
    jms_context.create_producer().send(jms_context.create_topic("news"), "new")
    jms_broker.topic("news").assert_received("new")
    jms_broker.queue("news").assert_not_received()


def test_a_topic_can_be_published_to(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    consumer = jms_context.create_consumer(jms_context.create_topic("news"))
    jms_broker.topic("news").send("new")
    assert consumer.receive_body(str, DEADLINE_MS) == "new"


def test_a_dead_letter_is_on_its_queue(jms_broker: EmbeddedBroker) -> None:
    with jms_broker.connection_factory(max_redeliveries=1).create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))

        def fail(message: jmsapi.Message) -> None:
            raise RuntimeError("no")

        consumer.message_listener = fail
        jms_broker.queue("q").send("poison")
        jms_broker.queue("DLQ.q").assert_received("poison", within=20)
        jms_broker.queue("q").assert_empty()


def test_idle_is_when_the_listener_has_answered(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    may_go = threading.Event()
    out = jms_context.create_queue("out")
    with jms_context.create_context(jms_context.AUTO_ACKNOWLEDGE) as sender:

        def answer(message: jmsapi.Message) -> None:
            assert may_go.wait(20)
            sender.create_producer().send(out, "done")

        jms_context.create_consumer(jms_context.create_queue("in")).message_listener = answer
        jms_broker.queue("in").send("do")
        with pytest.raises(AssertionError, match=r"not done within 0 s\nconsumers have 1 messages that they have not settled"):
            jms_broker.wait_idle(within=0)
        may_go.set()
        jms_broker.wait_idle(within=20)
        jms_broker.queue("out").assert_received("done", within=0)


def test_a_message_that_waits_for_nobody_is_no_work(jms_broker: EmbeddedBroker) -> None:
    jms_broker.queue("q").send("a")
    jms_broker.wait_idle(within=0)


def test_what_is_delayed_keeps_a_queue_from_being_empty(jms_broker: EmbeddedBroker, jms_clock: HandClock) -> None:
    jms_broker.queue("q").send("later", delay_ms=1000)
    with pytest.raises(AssertionError, match="are delayed: 1"):
        jms_broker.queue("q").assert_empty(within=0)
    jms_clock.advance(1)
    with pytest.raises(AssertionError, match="wait on it: 1"):
        jms_broker.queue("q").assert_empty(within=0)


def test_an_answer_goes_where_it_is_wanted(jms_broker: EmbeddedBroker, jms_context: jmsapi.JMSContext) -> None:
    jms_broker.queue("requests").send("ping", reply_to="answers", correlation_id="1")
    request = jms_context.create_consumer(jms_context.create_queue("requests")).receive(DEADLINE_MS)
    assert request is not None
    producer = jms_context.create_producer().set_jms_correlation_id(request.jms_correlation_id)
    producer.send(request.jms_reply_to, "pong")
    jms_broker.queue("answers").assert_received("pong", correlation_id="1")


def test_the_summary_shows_every_destination(jms_broker: EmbeddedBroker) -> None:
    assert jms_broker.summary() == "nothing was sent"
    jms_broker.queue("q").send("a")
    jms_broker.topic("t").send("b")
    assert "queue 'q' was sent 1:" in jms_broker.summary()
    assert "topic 't' was sent 1:" in jms_broker.summary()


def test_a_broker_that_is_closed_cuts_off_who_is_left() -> None:
    broker = EmbeddedBroker()
    lost = threading.Event()
    with broker.connection_factory().create_context() as context:
        context.exception_listener = lambda error: lost.set()
        broker.close()
        broker.close()
        assert lost.wait(20)
