"""The interface ``XAQueueConnection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.queue_connection import QueueConnection
from jmsapi.api.xa_connection import XAConnection

if TYPE_CHECKING:
    from jmsapi.api.xa_queue_session import XAQueueSession

__all__ = ["XAQueueConnection"]


class XAQueueConnection(XAConnection, QueueConnection):
    """A connection for queues with sessions for distributed transactions, as before JMS 1.1. Optional.

    Threads: any number at once.
    Spec: 8.4-1.
    """

    @abstractmethod
    def create_xa_queue_session(self) -> XAQueueSession:
        """Create a session for queues that can join distributed transactions.

        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The provider failed.
        Spec: 8.4-1.
        """
