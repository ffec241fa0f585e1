"""The interface ``TopicConnectionFactory``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.connection_factory import ConnectionFactory

if TYPE_CHECKING:
    from jmsapi.api.topic_connection import TopicConnection

__all__ = ["TopicConnectionFactory"]


class TopicConnectionFactory(ConnectionFactory):
    """A factory whose connections serve topics only, as before JMS 1.1.

    Threads: any number at once.
    Spec: 1.5-1, 2.5-1, 6.1-1.
    """

    @abstractmethod
    def create_topic_connection(self, user_name: str | None = None, password: str | None = None) -> TopicConnection:
        """Open a connection for topics; it is stopped until ``start()``.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new connection, to be closed by the caller.
        Raises:
            JMSSecurityException: User name or password were refused.
            JMSException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower error.
        Spec: 6.7-1, 7.3-27.
        """
