"""Sessions, connections and contexts whose transactions a transaction manager runs.

An XA session is the ordinary session that it gives: it looks like one, and only its commit and rollback are the manager's.

Spec: 4.4.7-8, 7.3-28, 8.3.2-1 to 8.3.4-2, 8.4-1, 8.4-2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from jmsapi._core.acknowledgement.ledger import TRANSACTED
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.context import JMSContextImpl
from jmsapi._core.domains import QueueConnectionImpl, QueueSessionImpl, TopicConnectionImpl, TopicSessionImpl
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.session import SessionImpl
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.xa_resource import BranchTransaction, XAResourceImpl
from jmsapi.api import (
    JMSContext,
    QueueSession,
    Session,
    TopicSession,
    XAConnection,
    XAJMSContext,
    XAQueueConnection,
    XAQueueSession,
    XAResource,
    XASession,
    XATopicConnection,
    XATopicSession,
)
from jmsapi.errors import TransactionInProgressException, TransactionInProgressRuntimeException

if TYPE_CHECKING:
    from jmsapi._core.context import SharedConnection

__all__ = ["XAConnectionImpl", "XAJMSContextImpl", "XAQueueConnectionImpl", "XASessionImpl", "XATopicConnectionImpl"]

S = TypeVar("S", bound="XASessionImpl")
_WHY = "the transaction manager ends the transactions of an XA session, through its xa_resource"


class XASessionImpl(SessionImpl, XASession):
    """A session for distributed transactions."""

    def __init__(self, parts: SessionParts) -> None:
        super().__init__(parts)
        parts.transaction = work = BranchTransaction(parts)
        # Outside of a branch nobody could say what becomes of a message that is handed out.
        parts.check_hand_out = work.handle
        self._resource = XAResourceImpl(parts, work)

    @property
    def session(self) -> Session:
        """Return the session as an ordinary one; see XASession."""
        self.parts.check_open()
        return self

    @property
    def xa_resource(self) -> XAResource:
        """Return what the transaction manager calls; see XASession."""
        return self._resource

    def commit(self) -> NoReturn:
        """Refuse; see XASession."""
        raise TransactionInProgressException(f"commit: {_WHY}")

    def rollback(self) -> NoReturn:
        """Refuse; see XASession."""
        raise TransactionInProgressException(f"rollback: {_WHY}")


class XAQueueSessionImpl(XASessionImpl, QueueSessionImpl, XAQueueSession):
    """A session for queues and distributed transactions."""

    @property
    def queue_session(self) -> QueueSession:
        """Return the session as an ordinary one; see XAQueueSession."""
        self.parts.check_open()
        return self


class XATopicSessionImpl(XASessionImpl, TopicSessionImpl, XATopicSession):
    """A session for topics and distributed transactions."""

    @property
    def topic_session(self) -> TopicSession:
        """Return the session as an ordinary one; see XATopicSession."""
        self.parts.check_open()
        return self


class XAConnectionImpl(ConnectionImpl, XAConnection):
    """A connection that has sessions for distributed transactions, too."""

    def create_xa_session(self) -> XASession:
        """Create a session; see XAConnection."""
        return self.add_xa_session(XASessionImpl)

    def add_xa_session(self, kind: type[S]) -> S:
        """Create a session of one class and remember it."""
        self.check_open()
        self.link.require("xa", "a session for distributed transactions")
        return self.add_session(kind, TRANSACTED, None, None)


class XAQueueConnectionImpl(XAConnectionImpl, QueueConnectionImpl, XAQueueConnection):
    """A connection for queues and distributed transactions."""

    def create_xa_queue_session(self) -> XAQueueSession:
        """Create a session; see XAQueueConnection."""
        return self.add_xa_session(XAQueueSessionImpl)


class XATopicConnectionImpl(XAConnectionImpl, TopicConnectionImpl, XATopicConnection):
    """A connection for topics and distributed transactions."""

    def create_xa_topic_session(self) -> XATopicSession:
        """Create a session; see XATopicConnection."""
        return self.add_xa_session(XATopicSessionImpl)


class XAJMSContextImpl(JMSContextImpl, XAJMSContext):
    """A context for distributed transactions."""

    session_kind = XASessionImpl

    def __init__(self, shared: SharedConnection) -> None:
        super().__init__(shared, TRANSACTED)

    @property
    def context(self) -> JMSContext:
        """Return the context as an ordinary one; see XAJMSContext."""
        self.connection  # noqa: B018  closed contexts raise
        return self

    @property
    @runtime
    def xa_resource(self) -> XAResource:
        """Return what the transaction manager calls; see XAJMSContext."""
        session = self.session
        assert isinstance(session, XASessionImpl)
        return session.xa_resource

    def commit(self) -> NoReturn:
        """Refuse; see XAJMSContext."""
        raise TransactionInProgressRuntimeException(f"commit: {_WHY}")

    def rollback(self) -> NoReturn:
        """Refuse; see XAJMSContext."""
        raise TransactionInProgressRuntimeException(f"rollback: {_WHY}")
