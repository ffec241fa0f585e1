"""A. Issues: sends to several, topics without subscribers, delayed messages and subscriptions."""

import time
import tracemalloc

import pytest

from jmsapi import InvalidDestinationException, Queue, Session, Topic
from jmsapi_conformance.kit import expect_nothing, receive_text
from jmsapi_conformance.marks import needs, requirement

NON_PERSISTENT = 1


@requirement("A.1.6-1")
def test_a_send_goes_to_one_destination(session: Session, queue: Queue, topic: Topic) -> None:
    several: Queue = [queue, topic]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    consumer = session.create_consumer(queue)
    with pytest.raises(InvalidDestinationException):
        session.create_producer().send(several, session.create_message())
    with pytest.raises(InvalidDestinationException):
        session.create_producer(several)
    expect_nothing(consumer, session, queue)


@requirement("A.1.7-1")
def test_nothing_is_kept_of_what_nobody_subscribed_to(session: Session, topic: Topic, other_session: Session) -> None:
    producer = session.create_producer(topic)
    message = session.create_text_message("x" * 1024)
    tracemalloc.start()
    try:
        measured: list[int] = []
        for count in (100, 2000):
            for _ in range(count):
                producer.send(message, delivery_mode=NON_PERSISTENT)
            # It is confirmed, so nothing that went before it is still on its way.
            producer.send(message)
            measured.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Two thousand bodies are two million bytes.
    assert measured[1] - measured[0] < 500_000
    expect_nothing(other_session.create_consumer(topic), session, topic)


@requirement("A.3.1-1")
@needs("delivery_delay", "delay_keeps_subscribers")
def test_a_delayed_message_goes_to_subscriptions_that_live_from_its_send_to_its_delivery(
    session: Session, topic: Topic, other_session: Session
) -> None:
    early, gone = session.create_consumer(topic), session.create_consumer(topic)
    message = other_session.create_text_message("delayed")
    with other_session.create_producer(topic) as producer:
        producer.delivery_delay = 700
        producer.send(message)
    gone.close()
    late = session.create_consumer(topic)
    assert receive_text(early) == "delayed"
    assert time.time() * 1000 >= message.jms_delivery_time - 100
    expect_nothing(late, other_session, topic)
    expect_nothing(session.create_consumer(topic), other_session, topic)
