"""The interface ``XATopicSession``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.xa_session import XASession

if TYPE_CHECKING:
    from jmsapi.api.topic_session import TopicSession

__all__ = ["XATopicSession"]


class XATopicSession(XASession):
    """A session for distributed transactions that gives an ordinary TopicSession, as before JMS 1.1. Optional.

    Threads: one at a time; only ``close`` may come from another.
    Spec: 8.4-1.
    """

    @property
    @abstractmethod
    def topic_session(self) -> TopicSession:
        """Give the topic session whose work belongs to the transaction that ``xa_resource`` has started.

        Raises:
            JMSException: The provider failed, or the session is closed.
        Spec: 8.4-1.
        """
