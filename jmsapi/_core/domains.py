"""The legacy domain interfaces: connections and sessions for queues only, and for topics only.

They behave as the common ones; what belongs to the other domain raises IllegalStateException (4.11, 7.3-6).
"""

from __future__ import annotations

from typing import NoReturn

from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.domain_parts import QueueReceiverImpl, QueueSenderImpl, TopicPublisherImpl, TopicSubscriberImpl
from jmsapi._core.session import SessionImpl
from jmsapi._core.session_rules import QUEUES, TOPICS
from jmsapi._core.waiting import run
from jmsapi.api import (
    ConnectionConsumer,
    Destination,
    Queue,
    QueueConnection,
    QueueReceiver,
    QueueSender,
    QueueSession,
    ServerSessionPool,
    Topic,
    TopicConnection,
    TopicPublisher,
    TopicSession,
    TopicSubscriber,
)
from jmsapi.errors import IllegalStateException, InvalidDestinationException

__all__ = ["QueueConnectionImpl", "QueueSessionImpl", "TopicConnectionImpl", "TopicSessionImpl"]


def _refuse(method: str, kind: str) -> NoReturn:
    raise IllegalStateException(
        f"{method} does not belong to a {kind}; use the common interfaces for both domains", "wrong-domain"
    )


class QueueSessionImpl(SessionImpl, QueueSession):
    """A session for queues."""

    domain = QUEUES

    def create_receiver(self, queue: Queue, message_selector: str | None = None) -> QueueReceiver:
        """Create a consumer of a queue; see QueueSession."""
        _check_kind(queue, Queue)
        return run(self.add_plain_steps(QueueReceiverImpl, queue, message_selector, no_local=False))

    def create_sender(self, queue: Queue | None = None) -> QueueSender:
        """Create a producer for a queue; see QueueSession."""
        if queue is not None:
            _check_kind(queue, Queue)
        return run(self.add_producer_steps(QueueSenderImpl, queue))


class TopicSessionImpl(SessionImpl, TopicSession):
    """A session for topics."""

    domain = TOPICS

    def create_subscriber(self, topic: Topic, message_selector: str | None = None, no_local: bool = False) -> TopicSubscriber:
        """Create a consumer of a topic; see TopicSession."""
        _check_kind(topic, Topic)
        return run(self.add_plain_steps(TopicSubscriberImpl, topic, message_selector, no_local))

    def create_publisher(self, topic: Topic | None = None) -> TopicPublisher:
        """Create a producer for a topic; see TopicSession."""
        if topic is not None:
            _check_kind(topic, Topic)
        return run(self.add_producer_steps(TopicPublisherImpl, topic))


class QueueConnectionImpl(ConnectionImpl, QueueConnection):
    """A connection for queues."""

    def create_queue_session(self, transacted: bool, acknowledge_mode: int) -> QueueSession:
        """Create a session for queues; see QueueConnection."""
        return self.add_session(QueueSessionImpl, None, acknowledge_mode, transacted)

    def create_connection_consumer(
        self, destination: Destination, message_selector: str | None, session_pool: ServerSessionPool, max_messages: int
    ) -> ConnectionConsumer:
        """Refuse topics, else as ConnectionImpl; see QueueConnection."""
        _check_kind(destination, Queue)
        return super().create_connection_consumer(destination, message_selector, session_pool, max_messages)

    def create_shared_connection_consumer(self, *_: object, **__: object) -> NoReturn:
        """Refuse: topics only."""
        _refuse("create_shared_connection_consumer", "QueueConnection")

    def create_durable_connection_consumer(self, *_: object, **__: object) -> NoReturn:
        """Refuse: topics only."""
        _refuse("create_durable_connection_consumer", "QueueConnection")

    def create_shared_durable_connection_consumer(self, *_: object, **__: object) -> NoReturn:
        """Refuse: topics only."""
        _refuse("create_shared_durable_connection_consumer", "QueueConnection")


class TopicConnectionImpl(ConnectionImpl, TopicConnection):
    """A connection for topics."""

    def create_topic_session(self, transacted: bool, acknowledge_mode: int) -> TopicSession:
        """Create a session for topics; see TopicConnection."""
        return self.add_session(TopicSessionImpl, None, acknowledge_mode, transacted)

    def create_connection_consumer(
        self, destination: Destination, message_selector: str | None, session_pool: ServerSessionPool, max_messages: int
    ) -> ConnectionConsumer:
        """Refuse queues, else as ConnectionImpl; see TopicConnection."""
        _check_kind(destination, Topic)
        return super().create_connection_consumer(destination, message_selector, session_pool, max_messages)


def _check_kind(destination: object, kind: type[Destination]) -> None:
    if not isinstance(destination, kind):
        raise InvalidDestinationException(f"a {kind.__name__} is wanted, not {destination!r}")
