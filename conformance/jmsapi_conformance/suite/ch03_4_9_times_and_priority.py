"""3.4.9 JMSExpiration, 3.4.10 JMSPriority, 3.4.13 JMSDeliveryTime."""

import time

import pytest

from jmsapi import Connection, JMSContext, Message, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing,
    expect_nothing_for,
    receive,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement

TTL_MS = 60_000
SHORT_MS = 200


def now_ms() -> int:
    """Return the time as a header field has it."""
    return time.time_ns() // 1_000_000


def wait_until(moment_ms: int) -> None:
    """Let a moment pass that the clock alone brings."""
    while (left := moment_ms - now_ms()) >= 0:
        time.sleep(left / 1000 + 0.005)


@requirement("3.4.9-1", "3.4.9-3")
def test_the_expiration_is_the_send_time_and_the_time_to_live(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.jms_expiration = 5
    producer = session.create_producer(queue)
    producer.time_to_live = TTL_MS
    before = now_ms()
    producer.send(message)
    after = now_ms()
    assert before + TTL_MS <= message.jms_expiration <= after + TTL_MS
    assert receive(other_session.create_consumer(queue)).jms_expiration == message.jms_expiration


@requirement("3.4.9-2")
@needs("transactions")
def test_in_a_transaction_the_expiration_counts_from_the_send_call(
    connection: Connection, other_session: Session, queue: Queue
) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    message = transacted.create_text_message("text")
    transacted.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=TTL_MS)
    after = now_ms()
    wait_until(after + 20)
    transacted.commit()
    assert message.jms_expiration <= after + TTL_MS
    assert receive(other_session.create_consumer(queue)).jms_expiration == message.jms_expiration


@requirement("3.4.9-4")
def test_a_time_to_live_of_0_means_for_ever(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=0)
    wait_until(now_ms() + 20)
    received = receive(other_session.create_consumer(queue))
    assert message.jms_expiration == received.jms_expiration == 0


@requirement("3.4.9-5")
def test_a_message_that_expired_in_its_queue_is_gone(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("short-lived")
    session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=SHORT_MS)
    wait_until(message.jms_expiration)
    expect_nothing(other_session.create_consumer(queue), session, queue)


@requirement("3.4.9-6")
def test_a_message_that_expired_behind_a_stopped_connection_is_not_handed_out(
    connect: Connect, session: Session, queue: Queue
) -> None:
    stopped = connect(started=False)
    receiver = stopped.create_session()
    consumer = receiver.create_consumer(queue)
    message = session.create_text_message("short-lived")
    session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=SHORT_MS)
    wait_until(message.jms_expiration)
    stopped.start()
    expect_nothing(consumer, session, queue)


@requirement("3.4.9-6")
def test_a_message_that_expired_behind_a_stopped_connection_is_not_given_to_a_listener(
    connect: Connect, session: Session, queue: Queue
) -> None:
    stopped, listener = connect(started=False), Recorder()
    stopped.create_session().create_consumer(queue).message_listener = listener
    message = session.create_text_message("short-lived")
    session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=SHORT_MS)
    wait_until(message.jms_expiration)
    stopped.start()
    send_texts(session, queue, "for ever")
    assert listener.wait_for_texts(1) == ["for ever"]


@requirement("3.4.10-1")
def test_the_priority_is_that_of_the_send(session: Session, other_session: Session, queue: Queue) -> None:
    producer, consumer = session.create_producer(queue), other_session.create_consumer(queue)
    message = session.create_text_message("text")
    for priority in range(10):
        if priority % 2:
            producer.priority = priority
            producer.send(message)
        else:
            producer.send(message, delivery_mode=2, priority=priority, time_to_live_ms=0)
        assert message.jms_priority == receive(consumer).jms_priority == priority


@requirement("3.4.10-2")
def test_there_are_ten_priorities(session: Session, context: JMSContext, queue: Queue) -> None:
    producer, simple = session.create_producer(queue), context.create_producer()
    for priority in (0, 9):
        producer.priority = simple.priority = priority
        assert producer.priority == simple.priority == priority


@requirement("3.4.10-3")
@needs("priority_order")
def test_expedited_messages_come_first(session: Session, other_session: Session, queue: Queue) -> None:
    producer = session.create_producer(queue)
    for priority in (1, 8):
        for number in range(3):
            message = session.create_text_message(f"{priority}.{number}")
            producer.send(message, delivery_mode=2, priority=priority, time_to_live_ms=0)
    texts = receive_texts(other_session.create_consumer(queue), 6)
    assert texts == ["8.0", "8.1", "8.2", "1.0", "1.1", "1.2"]


def check_delivery_time(message: Message, before: int, after: int, delay_ms: int) -> None:
    """The delivery time lies as far after the send as the producer said."""
    assert before + delay_ms <= message.jms_delivery_time <= after + delay_ms


@requirement("3.4.13-1", "3.4.13-3")
def test_without_a_delay_the_delivery_time_is_the_send_time(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    before = now_ms()
    session.create_producer(queue).send(message)
    check_delivery_time(message, before, now_ms(), 0)
    assert receive(other_session.create_consumer(queue)).jms_delivery_time == message.jms_delivery_time


@requirement("3.4.13-1", "3.4.13-3", "B.5.9-1")
@needs("delivery_delay")
def test_the_delivery_time_is_the_send_time_and_the_delay(
    session: Session, context: JMSContext, other_session: Session, queue: Queue
) -> None:
    producer = session.create_producer(queue)
    producer.delivery_delay = 300
    message = session.create_text_message("classic")
    message.jms_delivery_time = 5
    before = now_ms()
    producer.send(message)
    check_delivery_time(message, before, now_ms(), 300)
    simple = context.create_text_message("simplified")
    before = now_ms()
    context.create_producer().set_delivery_delay(500).send(queue, simple)
    check_delivery_time(simple, before, now_ms(), 500)
    received = receive_all(other_session.create_consumer(queue), 2)
    assert [one.jms_delivery_time for one in received] == [message.jms_delivery_time, simple.jms_delivery_time]


@requirement("3.4.13-2")
@needs("transactions", "delivery_delay")
def test_in_a_transaction_the_delay_counts_from_the_send_call(
    connection: Connection, other_session: Session, queue: Queue
) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    producer = transacted.create_producer(queue)
    producer.delivery_delay = 400
    message = transacted.create_text_message("text")
    producer.send(message)
    after = now_ms()
    wait_until(after + 100)
    transacted.commit()
    assert message.jms_delivery_time <= after + 400
    received = receive(other_session.create_consumer(queue))
    assert received.jms_delivery_time == message.jms_delivery_time
    assert message.jms_delivery_time <= now_ms()


@requirement("3.4.13-4", "B.5.9-1")
@needs("delivery_delay")
@pytest.mark.parametrize("where", ["queue", "topic"])
def test_nobody_gets_a_message_before_its_delivery_time(
    session: Session, other_session: Session, connect: Connect, queue: Queue, topic: Topic, where: str
) -> None:
    destination = queue if where == "queue" else topic
    consumer = other_session.create_consumer(destination)
    producer = session.create_producer(destination)
    producer.delivery_delay = 500
    producer.send(message := session.create_text_message("late"))
    expect_nothing_for(consumer)
    assert receive_text(consumer) == "late"
    assert now_ms() >= message.jms_delivery_time
    heard_at: list[int] = []
    listener = Recorder(lambda _: heard_at.append(now_ms()))
    connect().create_session().create_consumer(destination).message_listener = listener
    consumer.close()
    producer.send(message)
    listener.wait_for_texts(1)
    assert heard_at[0] >= message.jms_delivery_time
