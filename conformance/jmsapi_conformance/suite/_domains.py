"""One domain by its own interfaces and by the common ones: what must do the same through either."""

from __future__ import annotations

import pytest

from jmsapi import (
    Connection,
    MessageConsumer,
    MessageProducer,
    Queue,
    QueueConnection,
    QueueSession,
    Session,
    Topic,
    TopicConnection,
    TopicSession,
)
from jmsapi_conformance.fixtures import Connect

__all__ = ["each_interface", "producer_for", "queue_consumer", "queue_session", "session_of", "topic_consumer", "topic_session"]

each_interface = pytest.mark.parametrize("interface", ["own", "common"])
"""Whether a domain is used by its own interfaces or by those common to both."""


def queue_session(connect: Connect, interface: str, mode: int = Session.AUTO_ACKNOWLEDGE) -> Session:
    """Create a session for queues, on a started connection of its own."""
    return session_of(connect.queues() if interface == "own" else connect(), mode)


def topic_session(
    connect: Connect, interface: str, mode: int = Session.AUTO_ACKNOWLEDGE, client_id: str | None = None
) -> Session:
    """Create a session for topics, on a started connection of its own."""
    return session_of(connect.topics(client_id=client_id) if interface == "own" else connect(client_id=client_id), mode)


def session_of(connection: Connection, mode: int = Session.AUTO_ACKNOWLEDGE) -> Session:
    """Create a QueueSession, a TopicSession or a plain one, as the connection has it."""
    if isinstance(connection, QueueConnection):
        return connection.create_queue_session(mode == Session.SESSION_TRANSACTED, mode)
    if isinstance(connection, TopicConnection):
        return connection.create_topic_session(mode == Session.SESSION_TRANSACTED, mode)
    return connection.create_session(mode)


def producer_for(session: Session, destination: Queue | Topic) -> MessageProducer:
    """Create a QueueSender, a TopicPublisher or a plain producer, as the session has it."""
    if isinstance(session, QueueSession):
        assert isinstance(destination, Queue)
        return session.create_sender(destination)
    if isinstance(session, TopicSession):
        assert isinstance(destination, Topic)
        return session.create_publisher(destination)
    return session.create_producer(destination)


def queue_consumer(session: Session, queue: Queue, selector: str | None = None) -> MessageConsumer:
    """Create a QueueReceiver or a plain consumer, as the session has it."""
    if isinstance(session, QueueSession):
        return session.create_receiver(queue, selector)
    return session.create_consumer(queue, selector)


def topic_consumer(session: Session, topic: Topic, selector: str | None = None, no_local: bool = False) -> MessageConsumer:
    """Create a TopicSubscriber or a plain consumer, as the session has it."""
    if isinstance(session, TopicSession):
        return session.create_subscriber(topic, selector, no_local)
    return session.create_consumer(topic, selector, no_local)
