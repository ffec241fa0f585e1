"""Shared subscriptions on ActiveMQ Classic, which has none: members of both wires, members that die, and what is left of them."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jmsapi import (
    DeliveryMode,
    IllegalStateRuntimeException,
    InvalidDestinationRuntimeException,
    JMSConsumer,
    JMSContext,
    JMSException,
    Message,
    UnsupportedFeatureRuntimeException,
    connection_factory,
)
from jmsapi_conformance.brokers import Broker, Wire

pytestmark = pytest.mark.requirement("6.11.2-1", "6.11.4-1")
WAIT_MS = 20_000
NOTHING_MS = 700
TAKEOVER_S = 2.0
MEMBER = """
import sys, time, jmsapi
url, topic, name, durable, transacted = sys.argv[1:6]
context = jmsapi.connection_factory(url).create_context(int(transacted))
make = context.create_shared_durable_consumer if durable == "1" else context.create_shared_consumer
consumer = make(context.create_topic(topic), name)
print("open", flush=True)
while True:
    message = consumer.receive(timeout_ms=1000)
    if message is not None:
        print(message.get_body(str), flush=True)
"""


@pytest.fixture
def name() -> str:
    """Give a name that nobody else uses, for the topic and the subscription."""
    return f"shared-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def context(classic: Broker) -> Iterator[Callable[..., JMSContext]]:
    """Give a function that makes a context over a wire; all are closed in the end."""
    made: list[JMSContext] = []

    def make(wire: Wire, client_id: str | None = None, mode: int = JMSContext.AUTO_ACKNOWLEDGE) -> JMSContext:
        factory = connection_factory(f"{classic.url(wire)}?checked=true", **({"client_id": client_id} if client_id else {}))
        made.append(factory.create_context(mode))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def member(classic: Broker, name: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Give a function that starts a member in a process of its own, which the test may kill."""
    started: list[subprocess.Popen[str]] = []

    def start(wire: Wire, *, durable: bool = True, transacted: bool = False) -> subprocess.Popen[str]:
        url = f"{classic.url(wire)}?prefetch=1"
        mode = JMSContext.SESSION_TRANSACTED if transacted else JMSContext.AUTO_ACKNOWLEDGE
        command = [sys.executable, "-c", MEMBER, url, name, name, str(int(durable)), str(mode)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def bodies(consumer: JMSConsumer, wait_ms: int = NOTHING_MS) -> list[str]:
    """Return what comes until nothing does for a while."""
    found: list[str] = []
    while (message := consumer.receive(timeout_ms=WAIT_MS if not found and wait_ms > NOTHING_MS else wait_ms)) is not None:
        found.append(message.get_body(str))
    return found


def publish(context: JMSContext, name: str, *texts: str) -> None:
    """Send texts to the topic."""
    producer = context.create_producer()
    for text in texts:
        producer.send(context.create_topic(name), text)


@pytest.mark.requirement("6.11.4-5")
def test_members_over_both_wires_have_one_subscription(context: Callable[..., JMSContext], name: str) -> None:
    over_amqp, over_stomp = context("amqp"), context("stomp")
    first = over_amqp.create_shared_durable_consumer(over_amqp.create_topic(name), name)
    second = over_stomp.create_shared_durable_consumer(over_stomp.create_topic(name), name)
    texts = [str(number) for number in range(40)]
    publish(over_amqp, name, *texts)
    got = [*bodies(first, 2000), *bodies(second)]
    assert sorted(got) == sorted(texts)
    first.close()
    second.close()
    over_stomp.unsubscribe(name)


def test_a_message_is_the_senders_in_every_header(context: Callable[..., JMSContext], name: str) -> None:
    for wire in ("amqp", "stomp"):
        jms = context(wire)
        topic = jms.create_topic(f"{name}.{wire}")
        consumer = jms.create_shared_consumer(topic, name)
        sent = jms.create_text_message("text")
        sent.jms_correlation_id, sent.jms_type, sent.jms_reply_to = "c-7", "order", jms.create_topic("answers")
        sent.set_int_property("n", 7)
        sent.set_string_property("JMSXGroupID", "g")
        producer = jms.create_producer()
        producer.priority, producer.time_to_live, producer.delivery_mode = 7, 600_000, DeliveryMode.PERSISTENT
        producer.send(topic, sent)
        came = consumer.receive(timeout_ms=WAIT_MS)
        assert came is not None
        assert _seen(came) == _seen(sent)
        assert came.jms_expiration == came.jms_timestamp + 600_000
        assert (came.jms_redelivered, came.get_int_property("JMSXDeliveryCount")) == (False, 1)
        consumer.close()


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_what_expires_before_a_member_takes_it_nobody_gets(context: Callable[..., JMSContext], name: str, wire: Wire) -> None:
    jms = context(wire)
    topic = jms.create_topic(name)
    jms.create_shared_durable_consumer(topic, name).close()
    jms.create_producer().set_time_to_live(1500).send(topic, "expires in the subscription")
    publish(jms, name, "first")
    time.sleep(2)
    consumer = jms.create_shared_durable_consumer(topic, name)
    jms.create_producer().set_time_to_live(1500).send(topic, "expires in the queue, or on its way to the member")
    publish(jms, name, "last")
    time.sleep(2)
    assert bodies(consumer, 2000) == ["first", "last"]
    consumer.close()
    jms.unsubscribe(name)


def _seen(message: Message) -> tuple[object, ...]:
    return (
        message.jms_message_id,
        message.jms_timestamp,
        str(message.jms_destination),
        str(message.jms_reply_to),
        message.jms_correlation_id,
        message.jms_type,
        message.jms_priority,
        message.jms_expiration,
        message.jms_delivery_mode,
        message.get_object_property("n"),
        message.get_string_property("JMSXGroupID"),
        message.get_body(str),
    )


@pytest.mark.parametrize("wires", [("amqp", "stomp"), ("stomp", "amqp")], ids=lambda wires: f"{wires[0]}-dies")
def test_another_member_forwards_when_the_one_that_did_is_killed(
    context: Callable[..., JMSContext], member: Callable[..., subprocess.Popen[str]], name: str, wires: tuple[Wire, Wire]
) -> None:
    leader = member(wires[0])
    jms = context(wires[1])
    consumer = jms.create_shared_durable_consumer(jms.create_topic(name), name)
    leader.kill()
    leader.wait(30)
    killed = time.monotonic()
    publish(jms, name, "after")
    message = consumer.receive(timeout_ms=WAIT_MS)
    assert message is not None
    assert message.get_body(str) == "after"
    # On a machine with much else to do everything takes longer; the bound is that of a quiet one with room.
    assert time.monotonic() - killed < TAKEOVER_S * 3
    consumer.close()
    jms.unsubscribe(name)


def test_what_stomp_cannot_take_a_member_over_amqp_forwards(context: Callable[..., JMSContext], name: str) -> None:
    # Classic 6.3.1 takes no acknowledgement over STOMP of a message whose id an AMQP client has given.
    over_stomp, over_amqp = context("stomp"), context("amqp")
    first = over_stomp.create_shared_durable_consumer(over_stomp.create_topic(name), name)
    second = over_amqp.create_shared_durable_consumer(over_amqp.create_topic(name), name)
    texts = [str(number) for number in range(10)]
    publish(over_amqp, name, *texts)
    assert sorted([*bodies(second, 3000), *bodies(first)]) == sorted(texts)
    second.close()
    first.close()
    over_stomp.unsubscribe(name)


def test_a_member_that_nothing_can_be_forwarded_to_is_told(context: Callable[..., JMSContext], name: str) -> None:
    over_stomp, over_amqp = context("stomp"), context("amqp")
    consumer = over_stomp.create_shared_durable_consumer(over_stomp.create_topic(name), name)
    publish(over_amqp, name, "taken by nobody")
    with pytest.raises(UnsupportedFeatureRuntimeException, match="over AMQP"):
        consumer.receive(timeout_ms=WAIT_MS)


@pytest.mark.requirement("6.11.4-2")
def test_what_a_killed_member_had_in_a_transaction_another_gets(
    context: Callable[..., JMSContext], member: Callable[..., subprocess.Popen[str]], name: str
) -> None:
    killed = member("amqp", transacted=True)
    jms = context("stomp")
    publish(jms, name, "a", "b", "c")
    assert killed.stdout is not None
    assert {killed.stdout.readline() for _ in range(3)} == {"a\n", "b\n", "c\n"}
    killed.kill()
    killed.wait(30)
    consumer = jms.create_shared_durable_consumer(jms.create_topic(name), name)
    assert sorted(bodies(consumer, 2000)) == ["a", "b", "c"]
    consumer.close()
    jms.unsubscribe(name)


@pytest.mark.requirement("6.11.4-2")
def test_a_durable_one_collects_while_nobody_is_there(context: Callable[..., JMSContext], name: str) -> None:
    jms = context("amqp")
    topic = jms.create_topic(name)
    jms.create_shared_durable_consumer(topic, name, "n > 1").close()
    for number in range(4):
        jms.create_producer().set_property("n", number).send(topic, str(number))
    consumer = jms.create_shared_durable_consumer(topic, name, "n > 1")
    assert bodies(consumer, 2000) == ["2", "3"]
    consumer.close()
    # Another selector makes it anew, so what waited is gone.
    jms.create_producer().set_property("n", 2).send(topic, "waiting")
    consumer = jms.create_shared_durable_consumer(topic, name, "n > 0")
    jms.create_producer().set_property("n", 1).send(topic, "new")
    assert bodies(consumer, 2000) == ["new"]
    with pytest.raises(IllegalStateRuntimeException):
        jms.unsubscribe(name)
    consumer.close()
    jms.unsubscribe(name)
    with pytest.raises(InvalidDestinationRuntimeException):
        jms.unsubscribe(name)


@pytest.mark.requirement("6.11.2-5")
def test_what_dead_members_of_a_non_durable_one_have_left_nobody_gets(
    context: Callable[..., JMSContext], member: Callable[..., subprocess.Popen[str]], name: str
) -> None:
    alone = member("stomp", durable=False)
    jms = context("amqp")
    topic = jms.create_topic(name)
    alone.kill()
    alone.wait(30)
    publish(jms, name, "to nobody")
    consumer = jms.create_shared_consumer(topic, name)
    publish(jms, name, "to somebody")
    assert bodies(consumer, 2000) == ["to somebody"]
    consumer.close()
    consumer = jms.create_shared_consumer(topic, name)
    assert bodies(consumer) == []
    consumer.close()


def test_no_two_subscriptions_have_the_same_parts(context: Callable[..., JMSContext], name: str) -> None:
    one, other = context("amqp", f"{name}.a"), context("amqp", name)
    topic = one.create_topic(name)
    first = one.create_shared_durable_consumer(topic, "b")
    second = other.create_shared_durable_consumer(topic, "a.b")
    publish(one, name, "to both")
    assert (bodies(first, 2000), bodies(second, 2000)) == (["to both"], ["to both"])
    first.close()
    second.close()
    one.unsubscribe("b")
    other.unsubscribe("a.b")


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_queues_of_a_subscription_are_not_for_applications(classic: Broker, wire: Wire) -> None:
    with connection_factory(classic.url(wire)).create_connection() as connection:
        session = connection.create_session()
        queue = session.create_queue("jmsapi.shared.durable..news")
        for refused in (lambda: session.create_consumer(queue), lambda: session.create_producer(queue)):
            with pytest.raises(JMSException, match="shared subscription"):
                refused()
        with pytest.raises(JMSException, match="shared subscription"):
            session.create_producer(None).send(queue, session.create_text_message("x"))


@pytest.mark.broker
@pytest.mark.timeout(400)
def test_kills_of_members_and_the_broker_lose_and_double_nothing() -> None:
    command = [sys.executable, "-m", "tests.stress.shared_proof", "--messages", "1000", "--kills", "1", "--broker-kills", "1"]
    command += ["--speed-messages", "0"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=390, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000 published, 4 members killed, broker killed 1 times: 0 lost, 0 doubled" in done.stdout
