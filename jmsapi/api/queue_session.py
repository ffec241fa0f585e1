"""The interface ``QueueSession``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.session import Session

if TYPE_CHECKING:
    from jmsapi.api.queue import Queue
    from jmsapi.api.queue_receiver import QueueReceiver
    from jmsapi.api.queue_sender import QueueSender

__all__ = ["QueueSession"]


class QueueSession(Session):
    """A session for queues only, as before JMS 1.1; methods for topics and subscriptions raise IllegalStateException.

    Threads: one at a time; only ``close`` may come from another.
    Spec: 1.5-1, 2.5-4, 5.1-1.
    """

    @abstractmethod
    def create_receiver(self, queue: Queue, message_selector: str | None = None) -> QueueReceiver:
        """Create a consumer of a queue.

        Args:
            queue: Where to receive from.
            message_selector: Condition on headers and properties; None or blank selects every message.
        Returns:
            A new receiver without a listener.
        Raises:
            InvalidDestinationException: The queue is not valid, or a temporary one of another connection.
            InvalidSelectorException: The selector is not valid.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.8.1.1-52, 4.4.9-4, 5.4-1, 5.7-1, 5.8-1 to 5.8-3.
        """

    @abstractmethod
    def create_sender(self, queue: Queue | None = None) -> QueueSender:
        """Create a producer for a queue.

        Args:
            queue: Where it sends; None means that each send names a queue.
        Returns:
            A new sender with the default options.
        Raises:
            InvalidDestinationException: The queue is not valid.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 5.7-1, 5.8-5.
        """
