"""The interface ``TopicPublisher``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, overload

from jmsapi.api.message_producer import MessageProducer

if TYPE_CHECKING:
    from jmsapi.api.message import Message
    from jmsapi.api.topic import Topic

__all__ = ["TopicPublisher"]


class TopicPublisher(MessageProducer):
    """A producer for topics, as before JMS 1.1.

    Spec: 2.5-5, 6.1-1.
    """

    @property
    @abstractmethod
    def topic(self) -> Topic | None:
        """Give the topic it publishes to; None if each call names one.

        Raises:
            IllegalStateException: The publisher is closed.
        Spec: 6.10-1.
        """

    @overload
    @abstractmethod
    def publish(
        self,
        topic_or_message: Message,
        message: None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> None: ...

    @overload
    @abstractmethod
    def publish(
        self,
        topic_or_message: Topic,
        message: Message,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> None: ...

    @abstractmethod
    def publish(
        self,
        topic_or_message: Topic | Message,
        message: Message | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> None:
        """Publish a message to a topic.

        Args:
            topic_or_message: The message; or the topic to publish it to, if the publisher has none.
            message: The message, if a topic comes first.
            delivery_mode: A constant of DeliveryMode for this call; None means the publisher's.
            priority: 0 to 9 for this call; None means the publisher's.
            time_to_live_ms: Milliseconds until the message expires, 0 for never; None means the publisher's.
        Raises:
            MessageFormatException: It is no message, or of a kind that cannot be sent.
            InvalidDestinationException: The topic is not valid.
            UnsupportedOperationException: A topic is named twice, or not at all.
            IllegalStateException: The publisher is closed.
            JMSException: The broker refused the message, or the provider failed.
        Spec: 4.6.1-1, 6.10-1, 7.3-22, B.3.3-2.
        """
