"""4.8 Message time-to-live."""

import time

import pytest

from jmsapi import JMSContext, Message, Queue, Session, Topic
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import eventually, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import requirement


@requirement("4.8-1")
def test_a_message_is_delivered_while_it_lives(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = other_session.create_consumer(queue)
    producer = session.create_producer(queue)
    producer.time_to_live = 60_000
    producer.send(session.create_text_message("of the producer"))
    producer.send(session.create_text_message("of the send"), delivery_mode=2, priority=4, time_to_live_ms=30_000)
    assert receive_texts(consumer, 2) == ["of the producer", "of the send"]


@requirement("4.8-1")
@pytest.mark.parametrize("way", ["producer", "send"])
@pytest.mark.parametrize("kind", ["queue", "topic", "queue that is consumed"])
def test_a_message_is_not_delivered_when_its_time_is_over(
    session: Session, queue: Queue, topic: Topic, other_session: Session, kind: str, way: str
) -> None:
    destination = topic if kind == "topic" else queue
    # With a consumer the message may have come near the application already, and must not be given to it.
    early = None if kind == "queue" else other_session.create_consumer(destination)
    producer = session.create_producer(destination)
    message = session.create_text_message("short-lived")
    if way == "producer":
        producer.time_to_live = 300
        producer.send(message)
    else:
        producer.send(message, delivery_mode=2, priority=4, time_to_live_ms=300)
    send_texts(session, destination, "lives on")
    wait_until_expired(message)
    consumer = early or other_session.create_consumer(destination)
    assert receive_text(consumer) == "lives on"


@requirement("4.8-1")
def test_the_producer_of_a_context_gives_a_time_to_live(context: JMSContext, names: Names) -> None:
    queue = context.create_queue(names.queue())
    message = context.create_text_message("short-lived")
    context.create_producer().set_time_to_live(300).send(queue, message)
    context.create_producer().set_time_to_live(60_000).send(queue, "lives on")
    wait_until_expired(message)
    assert receive_text(context.create_consumer(queue)) == "lives on"


@requirement("4.8-2")
def test_each_message_expires_at_its_own_time(session: Session, queue: Queue, other_session: Session) -> None:
    producer = session.create_producer(queue)
    messages = [session.create_text_message(text) for text in ("short", "long", "for ever")]
    for message, life in zip(messages, (300, 60_000, 0), strict=True):
        producer.send(message, delivery_mode=2, priority=4, time_to_live_ms=life)
    wait_until_expired(messages[0])
    assert receive_texts(other_session.create_consumer(queue), 2) == ["long", "for ever"]


def wait_until_expired(message: Message) -> None:
    """Let the message's time to live go by; the margin is for a broker whose clock is not ours."""
    eventually(lambda: time.time() * 1000 > message.jms_expiration + 200, "the time to live is over")
