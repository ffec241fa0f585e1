"""2.3 Administration, 2.5 JMS interfaces and 2.6.1 Developing a client."""

import inspect

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    Destination,
    JMSContext,
    MessageConsumer,
    MessageProducer,
    Queue,
    QueueBrowser,
    QueueConnection,
    QueueConnectionFactory,
    QueueReceiver,
    QueueSender,
    QueueSession,
    Session,
    Topic,
    TopicConnection,
    TopicConnectionFactory,
    TopicPublisher,
    TopicSession,
    TopicSubscriber,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import PATIENCE_MS, expect_nothing_for, receive_text, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("2.3-1")
def test_a_client_that_is_given_factory_and_destination_names_nothing_of_the_provider(
    factory: ConnectionFactory, queue: Queue, topic: Topic
) -> None:
    assert portable_client(factory, queue) == ["hello", "bye"]
    assert portable_client(factory, topic) == ["hello", "bye"]


@pytest.mark.parametrize(
    ("common", "of_queues", "of_topics"),
    [
        pytest.param(
            ConnectionFactory, QueueConnectionFactory, TopicConnectionFactory, marks=requirement("2.5-1"), id="factories"
        ),
        pytest.param(Connection, QueueConnection, TopicConnection, marks=requirement("2.5-2"), id="connections"),
        pytest.param(Destination, Queue, Topic, marks=requirement("2.5-3"), id="destinations"),
        pytest.param(Session, QueueSession, TopicSession, marks=requirement("2.5-4"), id="sessions"),
        pytest.param(MessageProducer, QueueSender, TopicPublisher, marks=requirement("2.5-5"), id="producers"),
        pytest.param(MessageConsumer, QueueReceiver, TopicSubscriber, marks=requirement("2.5-6"), id="consumers"),
    ],
)
def test_the_interfaces_of_a_domain_are_special_forms_of_the_common_ones(
    connect: Connect, queue: Queue, topic: Topic, factory: ConnectionFactory, common: type, of_queues: type, of_topics: type
) -> None:
    queues, topics = connect.queues(), connect.topics()
    sends = queues.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    publishes = topics.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    for kind, objects in (
        (of_queues, (factory, queues, queue, sends, sends.create_sender(queue), sends.create_receiver(queue))),
        (of_topics, (factory, topics, topic, publishes, publishes.create_publisher(topic), publishes.create_subscriber(topic))),
    ):
        assert issubclass(kind, common)
        assert kind is not common
        (found,) = (one for one in objects if isinstance(one, kind))
        assert isinstance(found, common)
    assert not issubclass(of_queues, of_topics)
    assert not issubclass(of_topics, of_queues)


@requirement("2.5-6")
@needs("browser")
def test_a_browser_is_no_consumer(session: Session, queue: Queue) -> None:
    assert not issubclass(QueueBrowser, MessageConsumer)
    assert not isinstance(session.create_browser(queue), MessageConsumer)


@requirement("2.6.1-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_client_is_set_up_step_by_step_and_nothing_is_delivered_before_start(
    factory: ConnectionFactory, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    with factory.create_connection() as connection:
        session = connection.create_session()
        producer, consumer = session.create_producer(destination), session.create_consumer(destination)
        producer.send(session.create_text_message("own"))
        send_texts(other_session, destination, "from another")
        expect_nothing_for(consumer)
        connection.start()
        assert {receive_text(consumer), receive_text(consumer)} == {"own", "from another"}


@requirement("5.2-1", "6.4-1")
@pytest.mark.parametrize("interface", [Connection, Session, JMSContext, Queue, Topic, QueueSession, TopicSession])
def test_no_method_creates_or_deletes_a_lasting_destination(interface: type) -> None:
    words = ("delete", "purge", "declare", "destroy", "drop", "remove")
    names = [name for name, _ in inspect.getmembers(interface) if not name.startswith("_")]
    assert not [name for name in names if any(word in name for word in words)]
    assert {name for name in names if name.startswith("create") and name.endswith(("queue", "topic"))} <= {
        "create_queue",
        "create_topic",
        "create_temporary_queue",
        "create_temporary_topic",
    }


@requirement("5.2-1", "6.4-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_making_a_destination_object_creates_nothing_and_its_end_deletes_nothing(
    session: Session, other_session: Session, names: Names, kind: str
) -> None:
    name = names.queue() if kind == "queue" else names.topic()
    create = session.create_queue if kind == "queue" else session.create_topic
    consumer = other_session.create_consumer(create(name))
    first = create(name)
    assert not hasattr(first, "delete")
    del first
    send_texts(session, create(name), "text")
    assert receive_text(consumer) == "text"


def portable_client(factory: ConnectionFactory, destination: Destination) -> list[str | None]:
    """Send and receive through either API, with nothing but a factory and a destination."""
    received: list[str | None] = []
    with factory.create_connection() as connection:
        session = connection.create_session()
        consumer = session.create_consumer(destination)
        connection.start()
        session.create_producer(destination).send(session.create_text_message("hello"))
        received.append(text_of(consumer.receive(PATIENCE_MS)))
    with factory.create_context() as context:
        of_context = context.create_consumer(destination)
        context.create_producer().send(destination, "bye")
        received.append(of_context.receive_body(str, PATIENCE_MS))
    return received
