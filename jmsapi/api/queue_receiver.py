"""The interface ``QueueReceiver``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.message_consumer import MessageConsumer

if TYPE_CHECKING:
    from jmsapi.api.queue import Queue

__all__ = ["QueueReceiver"]


class QueueReceiver(MessageConsumer):
    """A consumer of a queue, as before JMS 1.1.

    Spec: 2.5-6, 5.1-1, 5.8-4.
    """

    @property
    @abstractmethod
    def queue(self) -> Queue:
        """Give the queue it receives from.

        Raises:
            IllegalStateException: The receiver is closed.
        Spec: 5.8-1.
        """
