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


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            lambda connection, topic, pool: connection.create_durable_connection_consumer(topic, "name", None, pool, 1),
            marks=requirement("4.11-1"),
            id="create_durable_connection_consumer",
        ),
        pytest.param(
            lambda connection, topic, pool: connection.create_shared_durable_connection_consumer(topic, "name", None, pool, 1),
            marks=requirement("4.11-2"),
            id="create_shared_durable_connection_consumer",
        ),
        pytest.param(
            lambda connection, topic, pool: connection.create_shared_connection_consumer(topic, "name", None, pool, 1),
            marks=requirement("4.11-3"),
            id="create_shared_connection_consumer",
        ),
    ],
)
def test_a_queue_connection_has_no_connection_consumers_of_topics(
    queue_connection: QueueConnection, topic: Topic, call: OnConnection
) -> None:
    with pytest.raises(IllegalStateException):
        call(queue_connection, topic, Pool())


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(
            [
                lambda session, topic: session.create_durable_subscriber(topic, "name"),
                lambda session, topic: session.create_durable_subscriber(topic, "name", "a = 1", True),
            ],
            marks=requirement("4.11-4"),
            id="create_durable_subscriber",
        ),
        pytest.param(
            [
                lambda session, topic: session.create_durable_consumer(topic, "name"),
                lambda session, topic: session.create_durable_consumer(topic, "name", "a = 1", True),
            ],
            marks=requirement("4.11-5"),
            id="create_durable_consumer",
        ),
        pytest.param(
            [
                lambda session, topic: session.create_shared_consumer(topic, "name"),
                lambda session, topic: session.create_shared_consumer(topic, "name", "a = 1"),
            ],
            marks=requirement("4.11-6"),
            id="create_shared_consumer",
        ),
        pytest.param(
            [
                lambda session, topic: session.create_shared_durable_consumer(topic, "name"),
                lambda session, topic: session.create_shared_durable_consumer(topic, "name", "a = 1"),
            ],
            marks=requirement("4.11-7"),
            id="create_shared_durable_consumer",
        ),
        pytest.param(
            [lambda session, topic: session.create_temporary_topic()],
            marks=requirement("4.11-8"),
            id="create_temporary_topic",
        ),
        pytest.param([lambda session, topic: session.create_topic("name")], marks=requirement("4.11-9"), id="create_topic"),
        pytest.param([lambda session, topic: session.unsubscribe("name")], marks=requirement("4.11-10"), id="unsubscribe"),
    ],
)
def test_a_queue_session_has_nothing_of_topics(
    queue_connection: QueueConnection, topic: Topic, calls: list[OnQueueSession]
) -> None:
    session = queue_connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    for call in calls:
        with pytest.raises(IllegalStateException):
            call(session, topic)
    assert session.create_message() is not None


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(
            [
                lambda session, queue: session.create_browser(queue),
                lambda session, queue: session.create_browser(queue, "a = 1"),
            ],
            marks=requirement("4.11-11"),
            id="create_browser",
        ),
        pytest.param([lambda session, queue: session.create_queue("name")], marks=requirement("4.11-12"), id="create_queue"),
        pytest.param(
            [lambda session, queue: session.create_temporary_queue()],
            marks=requirement("4.11-13"),
            id="create_temporary_queue",
        ),
    ],
)
def test_a_topic_session_has_nothing_of_queues(topic_session: TopicSession, queue: Queue, calls: list[OnTopicSession]) -> None:
    for call in calls:
        with pytest.raises(IllegalStateException):
            call(topic_session, queue)
    assert topic_session.create_message() is not None
