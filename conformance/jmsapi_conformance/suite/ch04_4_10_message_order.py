"""4.4.10 Message order."""

import pytest

from jmsapi import Connection, DeliveryMode, Queue, Session, Topic
from jmsapi_conformance.kit import Recorder, receive_all, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.10.1-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_listener_is_called_in_sending_order(
    session: Session, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    listener = Recorder()
    session.create_consumer(destination).message_listener = listener
    expected = [str(number) for number in range(1000)]
    send_texts(other_session, destination, *expected)
    assert listener.wait_for_texts(1000) == expected


@requirement("4.4.10.1-1")
def test_the_order_holds_for_several_producers_of_a_session(session: Session, queue: Queue, other_session: Session) -> None:
    producers = [session.create_producer(queue), session.create_producer(None), session.create_producer(queue)]
    expected = [str(number) for number in range(300)]
    for number, text in enumerate(expected):
        producer, message = producers[number % 3], session.create_text_message(text)
        if number % 3 == 1:
            producer.send(queue, message)
        else:
            producer.send(message)
    assert receive_texts(other_session.create_consumer(queue), 300) == expected


@requirement("4.4.10.2-1", "B.5.9-2")
@needs("delivery_delay")
def test_a_delayed_message_comes_after_one_that_is_due_earlier(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = other_session.create_consumer(queue)
    producer = session.create_producer(queue)
    producer.delivery_delay = 1000
    producer.send(session.create_text_message("delayed"))
    producer.delivery_delay = 0
    producer.send(session.create_text_message("at once"))
    assert receive_texts(consumer, 2) == ["at once", "delayed"]


@requirement("4.4.10.2-2")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_order_is_kept_within_each_delivery_mode(
    session: Session, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = other_session.create_consumer(destination)
    producer = session.create_producer(destination)
    for number in range(200):
        mode = DeliveryMode.NON_PERSISTENT if number % 2 else DeliveryMode.PERSISTENT
        producer.send(session.create_text_message(str(number)), delivery_mode=mode, priority=4, time_to_live_ms=0)
    messages = receive_all(consumer, 200)
    for mode, first in ((DeliveryMode.PERSISTENT, 0), (DeliveryMode.NON_PERSISTENT, 1)):
        of_mode = [text_of(message) for message in messages if message.jms_delivery_mode == mode]
        assert of_mode == [str(number) for number in range(first, 200, 2)]


@requirement("4.4.10.2-3")
@needs("transactions")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_commit_keeps_the_order_of_the_sends(
    connection: Connection, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = other_session.create_consumer(destination)
    session = connection.create_session(Session.SESSION_TRANSACTED)
    expected = [str(number) for number in range(100)]
    send_texts(session, destination, *expected)
    session.commit()
    assert receive_texts(consumer, 100) == expected
