"""4.11 Method inheritance across messaging domains: methods that belong to the other domain."""

from collections.abc import Callable, Iterator

import pytest

from jmsapi import (
    ConnectionFactory,
    IllegalStateException,
    Queue,
    QueueConnection,
    QueueConnectionFactory,
    QueueSession,
    ServerSession,
    ServerSessionPool,
    Session,
    Topic,
    TopicConnectionFactory,
    TopicSession,
)
from jmsapi_conformance.marks import requirement


class Pool(ServerSessionPool):
    """A pool that nobody should ask."""

    def get_server_session(self) -> ServerSession:
        """Fail."""
        raise AssertionError("a pool was asked for a session")


OnConnection = Callable[[QueueConnection, Topic, ServerSessionPool], object]
OnQueueSession = Callable[[QueueSession, Topic], object]
OnTopicSession = Callable[[TopicSession, Queue], object]


@pytest.fixture
def queue_connection(factory: ConnectionFactory) -> Iterator[QueueConnection]:
    """Give a connection for queues only."""
    assert isinstance(factory, QueueConnectionFactory)
    with factory.create_queue_connection() as connection:
        yield connection


@pytest.fixture
def topic_session(factory: ConnectionFactory) -> Iterator[TopicSession]:
    """Give a session for topics only."""
    assert isinstance(factory, TopicConnectionFactory)
    with factory.create_topic_connection() as connection:
        yield connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)


OF_A_QUEUE_CONNECTION: dict[str, OnConnection] = {
    "durable": lambda connection, topic, pool: connection.create_durable_connection_consumer(topic, "name", None, pool, 1),
    "shared": lambda connection, topic, pool: connection.create_shared_connection_consumer(topic, "name", None, pool, 1),
    "shared durable": lambda connection, topic, pool: connection.create_shared_durable_connection_consumer(
        topic, "name", None, pool, 1
    ),
}


@requirement("7.3-6", "B.4.5.2-4")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("durable", marks=requirement("4.11-1")),
        pytest.param("shared durable", marks=requirement("4.11-2")),
        pytest.param("shared", marks=requirement("4.11-3")),
    ],
)
def test_a_queue_connection_has_no_connection_consumers_of_topics(
    queue_connection: QueueConnection, topic: Topic, kind: str
) -> None:
    with pytest.raises(IllegalStateException):
        OF_A_QUEUE_CONNECTION[kind](queue_connection, topic, Pool())


OF_A_QUEUE_SESSION: dict[str, list[OnQueueSession]] = {
    "create_durable_subscriber": [
        lambda session, topic: session.create_durable_subscriber(topic, "name"),
        lambda session, topic: session.create_durable_subscriber(topic, "name", "a = 1", True),
    ],
    "create_durable_consumer": [
        lambda session, topic: session.create_durable_consumer(topic, "name"),
        lambda session, topic: session.create_durable_consumer(topic, "name", "a = 1", True),
    ],
    "create_shared_consumer": [
        lambda session, topic: session.create_shared_consumer(topic, "name"),
        lambda session, topic: session.create_shared_consumer(topic, "name", "a = 1"),
    ],
    "create_shared_durable_consumer": [
        lambda session, topic: session.create_shared_durable_consumer(topic, "name"),
        lambda session, topic: session.create_shared_durable_consumer(topic, "name", "a = 1"),
    ],
    "create_temporary_topic": [lambda session, topic: session.create_temporary_topic()],
    "create_topic": [lambda session, topic: session.create_topic("name")],
    "unsubscribe": [lambda session, topic: session.unsubscribe("name")],
}


@requirement("7.3-6", "B.4.5.2-4")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param("create_durable_subscriber", marks=requirement("4.11-4")),
        pytest.param("create_durable_consumer", marks=requirement("4.11-5")),
        pytest.param("create_shared_consumer", marks=requirement("4.11-6")),
        pytest.param("create_shared_durable_consumer", marks=requirement("4.11-7")),
        pytest.param("create_temporary_topic", marks=requirement("4.11-8")),
        pytest.param("create_topic", marks=requirement("4.11-9")),
        pytest.param("unsubscribe", marks=requirement("4.11-10")),
    ],
)
def test_a_queue_session_has_nothing_of_topics(queue_connection: QueueConnection, topic: Topic, method: str) -> None:
    session = queue_connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    for call in OF_A_QUEUE_SESSION[method]:
        with pytest.raises(IllegalStateException):
            call(session, topic)
    assert session.create_message() is not None


OF_A_TOPIC_SESSION: dict[str, list[OnTopicSession]] = {
    "create_browser": [
        lambda session, queue: session.create_browser(queue),
        lambda session, queue: session.create_browser(queue, "a = 1"),
    ],
    "create_queue": [lambda session, queue: session.create_queue("name")],
    "create_temporary_queue": [lambda session, queue: session.create_temporary_queue()],
}


@requirement("7.3-6", "B.4.5.2-4")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param("create_browser", marks=requirement("4.11-11")),
        pytest.param("create_queue", marks=requirement("4.11-12")),
        pytest.param("create_temporary_queue", marks=requirement("4.11-13")),
    ],
)
def test_a_topic_session_has_nothing_of_queues(topic_session: TopicSession, queue: Queue, method: str) -> None:
    for call in OF_A_TOPIC_SESSION[method]:
        with pytest.raises(IllegalStateException):
            call(topic_session, queue)
    assert topic_session.create_message() is not None
