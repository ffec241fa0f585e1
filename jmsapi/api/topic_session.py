"""The interface ``TopicSession``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.session import Session

if TYPE_CHECKING:
    from jmsapi.api.topic import Topic
    from jmsapi.api.topic_publisher import TopicPublisher
    from jmsapi.api.topic_subscriber import TopicSubscriber

__all__ = ["TopicSession"]


class TopicSession(Session):
    """A session for topics only, as before JMS 1.1; methods for queues raise IllegalStateException.

    Threads: one at a time; only ``close`` may come from another.
    Spec: 1.5-1, 2.5-4, 6.1-1.
    """

    @abstractmethod
    def create_subscriber(self, topic: Topic, message_selector: str | None = None, no_local: bool = False) -> TopicSubscriber:
        """Create an unshared non-durable subscription of a topic with its consumer.

        Args:
            topic: What to subscribe to.
            message_selector: Condition on headers and properties; None or blank selects every message.
            no_local: True leaves out what this connection sends itself.
        Returns:
            A new subscriber without a listener.
        Raises:
            InvalidDestinationException: The topic is not valid, or a temporary one of another connection.
            InvalidSelectorException: The selector is not valid.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.8.1.1-52, 4.4.9-2, 6.9-1, 6.11-1, 6.11-5, 6.11.1-1, 6.11.1-4, B.5.7.1-1.
        """

    @abstractmethod
    def create_publisher(self, topic: Topic | None = None) -> TopicPublisher:
        """Create a producer for a topic.

        Args:
            topic: Where it publishes; None means that each call names a topic.
        Returns:
            A new publisher with the default options.
        Raises:
            InvalidDestinationException: The topic is not valid.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 6.9-1, 6.10-1.
        """
