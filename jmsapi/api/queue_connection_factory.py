"""The interface ``QueueConnectionFactory``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.connection_factory import ConnectionFactory

if TYPE_CHECKING:
    from jmsapi.api.queue_connection import QueueConnection

__all__ = ["QueueConnectionFactory"]


class QueueConnectionFactory(ConnectionFactory):
    """A factory whose connections serve queues only, as before JMS 1.1.

    Threads: any number at once.
    Spec: 1.5-1, 2.5-1, 5.1-1.
    """

    @abstractmethod
    def create_queue_connection(self, user_name: str | None = None, password: str | None = None) -> QueueConnection:
        """Open a connection for queues; it is stopped until ``start()``.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new connection, to be closed by the caller.
        Raises:
            JMSSecurityException: User name or password were refused.
            JMSException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower error.
        Spec: 5.5-1.
        """
