"""4.12 Delivery delay."""

import time

import pytest

from jmsapi import (
    Connection,
    JMSContext,
    MessageConsumer,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import Recorder, expect_nothing, expect_nothing_for, receive, receive_text, text_of
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("delivery_delay")
DELAY_MS = 1200
EARLY_MS = 100
"""How far the clock of a broker may be ahead of ours."""


@requirement("4.12-1")
def test_a_delivery_delay_is_set_on_a_producer(session: Session, context: JMSContext, queue: Queue) -> None:
    producer, of_context = session.create_producer(queue), context.create_producer()
    producer.delivery_delay = DELAY_MS
    assert producer.delivery_delay == DELAY_MS
    assert of_context.set_delivery_delay(DELAY_MS) is of_context
    assert of_context.delivery_delay == DELAY_MS


@requirement("4.12-1")
def test_the_delivery_time_is_the_time_of_the_send_call_and_the_delay(
    session: Session, queue: Queue, other_session: Session
) -> None:
    consumer = other_session.create_consumer(queue)
    producer = session.create_producer(queue)
    producer.delivery_delay = DELAY_MS
    message = session.create_text_message("delayed")
    before = now_ms()
    producer.send(message)
    assert before + DELAY_MS - 1 <= message.jms_delivery_time <= now_ms() + DELAY_MS
    received = receive(consumer)
    assert now_ms() >= message.jms_delivery_time - EARLY_MS
    assert received.jms_delivery_time == message.jms_delivery_time


@requirement("4.12-1")
@needs("transactions")
def test_the_delay_counts_from_the_send_call_also_in_a_transaction(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    consumer = other_session.create_consumer(queue)
    session = connection.create_session(Session.SESSION_TRANSACTED)
    producer = session.create_producer(queue)
    producer.delivery_delay = DELAY_MS
    message = session.create_text_message("delayed")
    producer.send(message)
    sent = now_ms()
    # A receive elsewhere spends the time between send and commit.
    expect_nothing_for(other_session.create_consumer(other_session.create_queue(names.queue())), 400)
    session.commit()
    assert text_of(receive(consumer)) == "delayed"
    assert message.jms_delivery_time <= sent + DELAY_MS
    assert now_ms() >= message.jms_delivery_time - EARLY_MS


@requirement("4.12-2")
@pytest.mark.parametrize("listening", [False, True], ids=["receive", "listener"])
@pytest.mark.parametrize(
    "kind",
    [
        "queue",
        "topic",
        pytest.param("durable", marks=needs("durable_subscription")),
        pytest.param("shared", marks=needs("shared_subscription")),
    ],
)
def test_a_message_is_delivered_after_its_delivery_time_and_not_before(
    connect: Connect, queue: Queue, topic: Topic, other_session: Session, names: Names, kind: str, listening: bool
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    consumer = consumer_of(kind, session, queue, topic, names)
    arrived: list[int] = []
    listener = Recorder(then=lambda _: arrived.append(now_ms()))
    if listening:
        consumer.message_listener = listener
    producer = other_session.create_producer(queue if kind == "queue" else topic)
    producer.delivery_delay = DELAY_MS
    message = other_session.create_text_message("delayed")
    producer.send(message)
    producer.delivery_delay = 0
    producer.send(other_session.create_text_message("at once"))
    if listening:
        assert listener.wait_for_texts(2) == ["at once", "delayed"]
        session.close()
    else:
        for text in ("at once", "delayed"):
            assert receive_text(consumer) == text
            arrived.append(now_ms())
        consumer.close()
    assert arrived[1] >= message.jms_delivery_time - EARLY_MS


@requirement("4.12-3")
@needs("delay_keeps_subscribers")
def test_a_delayed_message_goes_to_the_subscriptions_that_exist_when_it_is_sent(
    session: Session, topic: Topic, other_session: Session
) -> None:
    early = session.create_consumer(topic)
    producer = other_session.create_producer(topic)
    producer.delivery_delay = DELAY_MS
    producer.send(other_session.create_text_message("delayed"))
    late = session.create_consumer(topic)
    assert receive_text(early) == "delayed"
    expect_nothing(late, other_session, topic)


def now_ms() -> int:
    """Return the time as messages tell it."""
    return int(time.time() * 1000)


def consumer_of(kind: str, session: Session, queue: Queue, topic: Topic, names: Names) -> MessageConsumer:
    """Create a consumer of the queue, or of a subscription to the topic."""
    if kind == "queue":
        return session.create_consumer(queue)
    if kind == "topic":
        return session.create_consumer(topic)
    if kind == "durable":
        return session.create_durable_consumer(topic, names.subscription())
    return session.create_shared_consumer(topic, names.subscription())
