"""4.4 Session and 4.4.2 Producers and consumers of a session."""

import pytest

from jmsapi import (
    BytesMessage,
    MapMessage,
    Message,
    MessageConsumer,
    MessageProducer,
    ObjectMessage,
    Queue,
    QueueBrowser,
    Session,
    StreamMessage,
    TemporaryQueue,
    TemporaryTopic,
    TextMessage,
    Topic,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4-1")
def test_a_session_creates_producers_consumers_destinations_and_messages(session: Session, queue: Queue, topic: Topic) -> None:
    assert isinstance(session.create_producer(queue), MessageProducer)
    assert isinstance(session.create_producer(None), MessageProducer)
    assert isinstance(session.create_consumer(queue), MessageConsumer)
    assert isinstance(session.create_consumer(topic), MessageConsumer)
    assert isinstance(session.create_queue("q"), Queue)
    assert isinstance(session.create_topic("t"), Topic)
    for message, kind in (
        (session.create_message(), Message),
        (session.create_text_message(), TextMessage),
        (session.create_bytes_message(), BytesMessage),
        (session.create_map_message(), MapMessage),
        (session.create_stream_message(), StreamMessage),
        (session.create_object_message(), ObjectMessage),
    ):
        assert isinstance(message, kind)


@requirement("4.4-1")
@needs("browser")
def test_a_session_creates_browsers(session: Session, queue: Queue) -> None:
    browser = session.create_browser(queue)
    assert isinstance(browser, QueueBrowser)
    assert browser.queue == queue


@requirement("4.4-1")
@pytest.mark.parametrize(
    ("create", "kind"),
    [
        pytest.param("create_temporary_queue", TemporaryQueue, marks=needs("temporary_queue")),
        pytest.param("create_temporary_topic", TemporaryTopic, marks=needs("temporary_topic")),
    ],
)
def test_a_session_creates_temporary_destinations(session: Session, create: str, kind: type) -> None:
    assert isinstance(getattr(session, create)(), kind)


@requirement("4.4.2-1")
def test_a_session_serves_many_producers_and_consumers_side_by_side(session: Session, names: Names) -> None:
    queues = [session.create_queue(names.queue()) for _ in range(5)]
    topics = [session.create_topic(names.topic()) for _ in range(5)]
    destinations = [*queues, *topics]
    consumers = [session.create_consumer(destination) for destination in destinations]
    producers = [session.create_producer(destination) for destination in destinations]
    for turn in range(3):
        for number, producer in enumerate(producers):
            producer.send(session.create_text_message(f"{number}, {turn}"))
    for number, consumer in reversed(list(enumerate(consumers))):
        assert receive_texts(consumer, 3) == [f"{number}, {turn}" for turn in range(3)]


@requirement("4.4.2-1")
def test_several_producers_and_consumers_of_a_session_share_a_destination(session: Session, queue: Queue) -> None:
    consumers = [session.create_consumer(queue) for _ in range(2)]
    for number in range(10):
        send_texts(session, queue, str(number))
    consumers.pop(0).close()
    assert sorted(str(receive_text(consumers[0])) for _ in range(10)) == [str(number) for number in range(10)]
