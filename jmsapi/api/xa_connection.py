"""The interface ``XAConnection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.connection import Connection

if TYPE_CHECKING:
    from jmsapi.api.xa_session import XASession

__all__ = ["XAConnection"]


class XAConnection(Connection):
    """A connection that has sessions for distributed transactions beside ordinary ones. Optional.

    Threads: any number at once.
    Spec: 4.4.8-1, 8.3.2-1, 8.4-1, 8.4-2.
    """

    @abstractmethod
    def create_xa_session(self) -> XASession:
        """Create a session that can join distributed transactions.

        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The provider failed.
        Spec: 8.3.2-1, B.4.4-1.
        """
