"""9.2 and 9.3 Receiving: synchronously, by a listener, with a selector."""

import pytest

from jmsapi import Queue, Session, TextMessage, Topic
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing,
    expect_nothing_for,
    finish,
    must_wait,
    receive,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("9.2.2-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_receive_without_a_timeout_waits_until_a_message_arrives(
    session: Session, other_session: Session, queue: Queue, topic: Topic, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    waiting = must_wait(session.create_consumer(destination).receive)
    send_texts(other_session, destination, "text")
    assert text_of(finish(waiting)) == "text"


@requirement("9.2.3-1")
def test_the_text_of_a_message_is_read_in_two_ways(session: Session, other_session: Session, queue: Queue) -> None:
    send_texts(other_session, queue, "text")
    message = receive(session.create_consumer(queue))
    assert isinstance(message, TextMessage)
    assert (message.text, message.get_body(str)) == ("text", "text")


@requirement("9.3.1-1")
def test_a_listener_is_told_of_each_message_once_the_connection_is_started(
    connect: Connect, other_session: Session, queue: Queue, topic: Topic
) -> None:
    connection = connect(started=False)
    session = connection.create_session()
    recorder = Recorder()
    session.create_consumer(queue).message_listener = recorder
    send_texts(other_session, queue, "1", "2", "3")
    # On a stopped connection no marker passes either; a while that shows it for another consumer shows it for the listener.
    expect_nothing_for(connection.create_session().create_consumer(topic))
    assert recorder.texts == []
    connection.start()
    assert recorder.wait_for_texts(3) == ["1", "2", "3"]


@requirement("9.3.2-1")
@pytest.mark.parametrize(
    "kind", [pytest.param("queue", marks=needs("queue_selector")), pytest.param("topic", marks=needs("topic_selector"))]
)
def test_a_consumer_with_a_selector_gets_matching_messages_only(
    session: Session, other_session: Session, queue: Queue, topic: Topic, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = session.create_consumer(destination, "StockSector = 'Technology'")
    assert consumer.message_selector == "StockSector = 'Technology'"
    send_texts(other_session, destination, "t1", StockSector="Technology")
    send_texts(other_session, destination, "b1", StockSector="Banking")
    send_texts(other_session, destination, "none")
    send_texts(other_session, destination, "t2", StockSector="Technology")
    assert receive_texts(consumer, 2) == ["t1", "t2"]
    expect_nothing(consumer, other_session, destination, StockSector="Technology")
