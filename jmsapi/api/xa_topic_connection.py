"""The interface ``XATopicConnection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.topic_connection import TopicConnection
from jmsapi.api.xa_connection import XAConnection

if TYPE_CHECKING:
    from jmsapi.api.xa_topic_session import XATopicSession

__all__ = ["XATopicConnection"]


class XATopicConnection(XAConnection, TopicConnection):
    """A connection for topics with sessions for distributed transactions, as before JMS 1.1. Optional.

    Threads: any number at once.
    Spec: 8.4-1.
    """

    @abstractmethod
    def create_xa_topic_session(self) -> XATopicSession:
        """Create a session for topics that can join distributed transactions.

        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The provider failed.
        Spec: 8.4-1.
        """
