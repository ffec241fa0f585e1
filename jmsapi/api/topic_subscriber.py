"""The interface ``TopicSubscriber``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.message_consumer import MessageConsumer

if TYPE_CHECKING:
    from jmsapi.api.topic import Topic

__all__ = ["TopicSubscriber"]


class TopicSubscriber(MessageConsumer):
    """A consumer of a topic's subscription, as before JMS 1.1.

    Spec: 2.5-6, 6.1-1.
    """

    @property
    @abstractmethod
    def topic(self) -> Topic:
        """Give the topic it is subscribed to.

        Raises:
            IllegalStateException: The subscriber is closed.
        Spec: 6.11-1.
        """

    @property
    @abstractmethod
    def no_local(self) -> bool:
        """Tell whether messages sent by its own connection are left out.

        Raises:
            IllegalStateException: The subscriber is closed.
        Spec: 6.11-5.
        """
