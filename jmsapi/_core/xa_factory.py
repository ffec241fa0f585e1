"""The factory of a provider that has distributed transactions: the ordinary one, with more to make.

Spec: 8.3.1-1 to 8.3.1-3, 8.4-1.
"""

from __future__ import annotations

from typing import TypeVar

from jmsapi._core.context import SharedConnection
from jmsapi._core.factory import ConnectionFactoryImpl
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.xa_session import XAConnectionImpl, XAJMSContextImpl, XAQueueConnectionImpl, XATopicConnectionImpl
from jmsapi.api import (
    XAConnection,
    XAJMSContext,
    XAQueueConnection,
    XAQueueConnectionFactory,
    XATopicConnection,
    XATopicConnectionFactory,
)
from jmsapi.errors import JMSException

__all__ = ["XAConnectionFactoryImpl"]

K = TypeVar("K", bound=XAConnectionImpl)


class XAConnectionFactoryImpl(ConnectionFactoryImpl, XAQueueConnectionFactory, XATopicConnectionFactory):
    """Makes connections and contexts, with distributed transactions and without."""

    def create_xa_connection(self, user_name: str | None = None, password: str | None = None) -> XAConnection:
        """Connect; see XAConnectionFactory."""
        return self._connect_xa(XAConnectionImpl, user_name, password)

    def create_xa_queue_connection(self, user_name: str | None = None, password: str | None = None) -> XAQueueConnection:
        """Connect, for queues only; see XAQueueConnectionFactory."""
        return self._connect_xa(XAQueueConnectionImpl, user_name, password)

    def create_xa_topic_connection(self, user_name: str | None = None, password: str | None = None) -> XATopicConnection:
        """Connect, for topics only; see XATopicConnectionFactory."""
        return self._connect_xa(XATopicConnectionImpl, user_name, password)

    @runtime
    def create_xa_context(self, user_name: str | None = None, password: str | None = None) -> XAJMSContext:
        """Connect and create a context; see XAConnectionFactory."""
        return XAJMSContextImpl(SharedConnection(self._connect_xa(XAConnectionImpl, user_name, password)))

    def _connect_xa(self, kind: type[K], user: str | None, password: str | None) -> K:
        connection = self._connect(kind, user, password)
        try:
            connection.link.require("xa", "distributed transactions")
        except JMSException:
            connection.close()
            raise
        return connection
