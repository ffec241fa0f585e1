"""The interface ``XAQueueConnectionFactory``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.queue_connection_factory import QueueConnectionFactory
from jmsapi.api.xa_connection_factory import XAConnectionFactory

if TYPE_CHECKING:
    from jmsapi.api.xa_queue_connection import XAQueueConnection

__all__ = ["XAQueueConnectionFactory"]


class XAQueueConnectionFactory(XAConnectionFactory, QueueConnectionFactory):
    """A factory for work on queues inside distributed transactions, as before JMS 1.1. Optional.

    Threads: any number at once.
    Spec: 8.4-1.
    """

    @abstractmethod
    def create_xa_queue_connection(self, user_name: str | None = None, password: str | None = None) -> XAQueueConnection:
        """Open a connection for queues whose sessions can join distributed transactions.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new connection, to be closed by the caller.
        Raises:
            JMSSecurityException: User name or password were refused.
            JMSException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower error.
        Spec: 8.4-1.
        """
