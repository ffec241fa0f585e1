"""The interface ``XAQueueSession``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.xa_session import XASession

if TYPE_CHECKING:
    from jmsapi.api.queue_session import QueueSession

__all__ = ["XAQueueSession"]


class XAQueueSession(XASession):
    """A session for distributed transactions that gives an ordinary QueueSession, as before JMS 1.1. Optional.

    Threads: one at a time; only ``close`` may come from another.
    Spec: 8.4-1.
    """

    @property
    @abstractmethod
    def queue_session(self) -> QueueSession:
        """Give the queue session whose work belongs to the transaction that ``xa_resource`` has started.

        Raises:
            JMSException: The provider failed, or the session is closed.
        Spec: 8.4-1.
        """
