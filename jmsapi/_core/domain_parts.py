"""Producers and consumers of the legacy domain interfaces: the common ones with one more member each."""

from __future__ import annotations

from typing import cast

from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.destination import destination_for
from jmsapi._core.producer import ProducerImpl
from jmsapi.api import Message, Queue, QueueReceiver, QueueSender, Topic, TopicPublisher, TopicSubscriber

__all__ = ["QueueReceiverImpl", "QueueSenderImpl", "TopicPublisherImpl", "TopicSubscriberImpl"]


class QueueReceiverImpl(ConsumerImpl, QueueReceiver):
    """A consumer of a queue."""

    @property
    def queue(self) -> Queue:
        """Return the queue; see QueueReceiver."""
        self.check_open()
        return cast("Queue", destination_for(self.spec.address, self.session.connection))


class TopicSubscriberImpl(ConsumerImpl, TopicSubscriber):
    """A consumer of a topic."""

    @property
    def topic(self) -> Topic:
        """Return the topic; see TopicSubscriber."""
        self.check_open()
        return cast("Topic", destination_for(self.spec.address, self.session.connection))

    @property
    def no_local(self) -> bool:
        """Return whether the own connection's messages are left out; see TopicSubscriber."""
        self.check_open()
        return self.spec.no_local


class QueueSenderImpl(ProducerImpl, QueueSender):
    """A producer for a queue."""

    @property
    def queue(self) -> Queue | None:
        """Return the queue, or None; see QueueSender."""
        return cast("Queue | None", self.destination)


class TopicPublisherImpl(ProducerImpl, TopicPublisher):
    """A producer for a topic."""

    @property
    def topic(self) -> Topic | None:
        """Return the topic, or None; see TopicPublisher."""
        return cast("Topic | None", self.destination)

    def publish(
        self,
        topic_or_message: Topic | Message,
        message: Message | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
    ) -> None:
        """Publish a message; see TopicPublisher."""
        self.check_open()
        topic, address, content = self._target(topic_or_message, message)
        self.send_to(topic, address, content, self.options(delivery_mode, priority, time_to_live_ms), None)
