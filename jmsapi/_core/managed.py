"""Connections, sessions and contexts of applications in a container: what they may not do, whose transactions they share.

A managed session that is made while the container has a transaction is transacted, and the transaction commits it or rolls it
back. Closing it (or its connection, or context) before that only shuts it for the application: what it has sent and received
still shares the transaction's fate. It then joins each later transaction in which it is used. Outside of transactions a session
is made to acknowledge automatically. The two are not mixed: a session of the one kind refuses to be used in the other's place,
since what it did there would be committed at another time than it seems.

Spec: 10.2-1 to 10.2-10, 10.3-1 to 10.3-12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar, cast

from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.consumer import ConsumerImpl, Listener
from jmsapi._core.container import ContainerRules, rules_here
from jmsapi._core.context import JMSContextImpl, new_context, runtime
from jmsapi._core.context_producer import JMSProducerImpl
from jmsapi._core.domain_parts import QueueReceiverImpl, TopicSubscriberImpl
from jmsapi._core.domains import QueueConnectionImpl, QueueSessionImpl, TopicConnectionImpl, TopicSessionImpl
from jmsapi._core.ledger import AUTO, DUPS_OK, TRANSACTED
from jmsapi._core.options_check import session_mode as checked_mode
from jmsapi._core.producer import ProducerImpl
from jmsapi._core.session import SessionImpl
from jmsapi.api import (
    CompletionListener,
    ConnectionConsumer,
    ExceptionListenerLike,
    JMSContext,
    JMSProducer,
    Message,
    MessageListener,
    MessageListenerLike,
)
from jmsapi.errors import IllegalStateException, JMSException, JMSRuntimeException
from jmsapi.spi import PlainEnvelope
from jmsapi.transactions import Transaction

__all__ = ["managed", "new_managed_context"]

K = TypeVar("K", bound=ConnectionImpl)
_ALONE: Final = (AUTO, DUPS_OK)
"""The modes that may be asked for outside of a transaction."""


def _refuse(what: str) -> NoReturn:
    raise JMSException(f"{what}: an application may not do this in a container; the container does", error_code="container")


def _mode(rules: ContainerRules, asked: int) -> int:
    """Return the mode that a session has, whatever is asked for (10.3-2, 10.3-4 to 10.3-7)."""
    if not rules.joins:
        return asked
    if _current(rules) is not None:
        return TRANSACTED
    return asked if asked in _ALONE else AUTO


def _current(rules: ContainerRules) -> Transaction | None:
    return None if rules.transactions is None else rules.transactions.current


# ---- consumers, producers ---------------------------------------------------------------------------------------------
class _ManagedConsumer(ConsumerImpl):
    @property
    def message_listener(self) -> Listener | None:
        """Refuse: only message-driven classes get messages asynchronously (10.2-5)."""
        _refuse("message_listener")

    @message_listener.setter
    def message_listener(self, message_listener: Listener | None) -> None:
        _refuse("message_listener")


class _ManagedQueueReceiver(_ManagedConsumer, QueueReceiverImpl):
    pass


class _ManagedTopicSubscriber(_ManagedConsumer, TopicSubscriberImpl):
    pass


_CONSUMERS: Final[dict[type[ConsumerImpl], type[ConsumerImpl]]] = {
    ConsumerImpl: _ManagedConsumer,
    QueueReceiverImpl: _ManagedQueueReceiver,
    TopicSubscriberImpl: _ManagedTopicSubscriber,
}


class _ManagedProducer(JMSProducerImpl):
    @property
    def async_(self) -> CompletionListener | None:
        """Return None."""
        return None

    @async_.setter
    @runtime
    def async_(self, completion_listener: CompletionListener | None) -> None:
        if completion_listener is not None:
            _refuse("async_")


# ---- sessions ---------------------------------------------------------------------------------------------------------
class _Part:
    """A session's part in one transaction."""

    def __init__(self, session: _ManagedSession) -> None:
        self._session = session

    def commit(self) -> None:
        """See Participant."""
        self._session.end(SessionImpl.commit)

    def rollback(self) -> None:
        """See Participant."""
        self._session.end(SessionImpl.rollback)

    def close(self) -> None:
        """See Participant."""
        self._session.left()


class _ManagedSession(SessionImpl):
    def __init__(self, connection: ConnectionImpl, mode: int, number: int) -> None:
        self.rules = cast("_ManagedConnection", connection).rules
        self.joined: Transaction | None = None
        """The transaction that it takes part in, until that has ended."""
        self.shut = False
        """Closed for the application."""
        self._ending = False
        super().__init__(connection, mode, number)
        self._join()

    def check_open(self) -> None:
        """See SessionImpl; and take part in the transaction in which the session is used (10.3-12)."""
        if self.shut and not self._ending:
            raise IllegalStateException("the session is closed", "closed")
        super().check_open()
        self._join()

    def _join(self) -> None:
        if self._ending or not self.rules.joins:
            return
        current = _current(self.rules)
        if current is self.joined and (current is not None) == (self.mode == TRANSACTED):
            return
        if self.joined is not None:
            raise IllegalStateException("the session takes part in another transaction, which has not ended", "transaction")
        if current is None:
            raise IllegalStateException(
                "the session was made in a transaction and there is none now: make another outside of it", "transaction"
            )
        if self.mode != TRANSACTED:
            raise IllegalStateException(
                "the session was made outside of a transaction and takes part in none: make another in this one", "transaction"
            )
        current.join(_Part(self))
        self.joined = current

    def end(self, how: Callable[[SessionImpl], None]) -> None:
        """Commit or roll back, for the transaction."""
        self._ending = True
        try:
            if not self.closed:
                how(self)
        finally:
            self._ending = False

    def left(self) -> None:
        """The transaction has ended: close now what the application has closed meanwhile."""
        self.joined = None
        if self.shut:
            super().close()
        cast("_ManagedConnection", self.connection).close_if_shut()

    def commit(self) -> None:
        """Refuse: there are no local transactions in a container (10.3-8)."""
        if self.rules.joins:
            raise IllegalStateException("commit: in a container there are no transactions of a session's own", "transaction")
        super().commit()

    def rollback(self) -> None:
        """Refuse: there are no local transactions in a container (10.3-8)."""
        if self.rules.joins:
            raise IllegalStateException("rollback: in a container there are no transactions of a session's own", "transaction")
        super().rollback()

    def add_consumer(self, kind: type[Any], *args: Any, **kwargs: Any) -> Any:
        """Create a managed consumer; see SessionImpl."""
        return super().add_consumer(_CONSUMERS.get(kind, kind), *args, **kwargs)

    def send(
        self, producer: ProducerImpl, envelope: PlainEnvelope, message: Message, listener: CompletionListener | None
    ) -> None:
        """Send, and not asynchronously (10.2-10); see SessionImpl."""
        if listener is not None:
            _refuse("send with a completion listener")
        super().send(producer, envelope, message, listener)

    @property
    def message_listener(self) -> MessageListener | None:
        """Refuse: this is for application servers (10.2-3)."""
        _refuse("Session.message_listener")

    @message_listener.setter
    def message_listener(self, message_listener: MessageListenerLike | None) -> None:
        _refuse("Session.message_listener")

    def run(self) -> None:
        """Refuse: this is for application servers (10.2-4)."""
        raise JMSRuntimeException("Session.run: an application may not do this in a container", error_code="container")

    def close(self) -> None:
        """Close, for the application at once, and at the end of a transaction that it takes part in."""
        if self.joined is None or self._ending:
            super().close()
        else:
            self.shut = True


class _ManagedQueueSession(_ManagedSession, QueueSessionImpl):
    pass


class _ManagedTopicSession(_ManagedSession, TopicSessionImpl):
    pass


_SESSIONS: Final[dict[object, type[_ManagedSession]]] = {
    SessionImpl: _ManagedSession,
    QueueSessionImpl: _ManagedQueueSession,
    TopicSessionImpl: _ManagedTopicSession,
}


# ---- connections ------------------------------------------------------------------------------------------------------
class _ManagedConnection(ConnectionImpl):
    def __init__(self, *args: Any) -> None:
        self.rules = rules_here() or ContainerRules()
        self._shut = False
        super().__init__(*args)

    def check_open(self) -> None:
        """See ConnectionImpl."""
        if self._shut:
            raise IllegalStateException("the connection is closed", "closed")
        super().check_open()

    def add_session(self, kind: Any, mode: Any, acknowledge_mode: int | None, transacted: bool | None) -> Any:
        """Create a managed session, the only one (10.2-1); see ConnectionImpl."""
        self.check_open()
        if any(not session.closing and not cast("_ManagedSession", session).shut for session in self.sessions()):
            _refuse("a second session on one connection: close the first; to make it")
        asked = _asked(mode, acknowledge_mode, transacted)
        return super().add_session(_SESSIONS[kind], _mode(self.rules, asked), None, None)

    @property
    def client_id(self) -> str | None:
        """Return the client id, which comes from the factory (10.2-8)."""
        return super().client_id

    @client_id.setter
    def client_id(self, client_id: str | None) -> None:
        _refuse("client_id: the factory has it; to set it")

    @property
    def exception_listener(self) -> Any:
        """Return None; see Connection."""
        return super().exception_listener

    @exception_listener.setter
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None:
        _refuse("exception_listener")

    def stop(self) -> None:
        """Refuse (10.2-6)."""
        _refuse("stop")

    def create_connection_consumer(self, *_: Any, **__: Any) -> ConnectionConsumer:
        """Refuse: this is for application servers (10.2-3)."""
        _refuse("create_connection_consumer")

    def create_shared_connection_consumer(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: this is for application servers (10.2-3)."""
        _refuse("create_shared_connection_consumer")

    def create_durable_connection_consumer(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: this is for application servers (10.2-3)."""
        _refuse("create_durable_connection_consumer")

    def create_shared_durable_connection_consumer(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: this is for application servers (10.2-3)."""
        _refuse("create_shared_durable_connection_consumer")

    def close_within(self, timeout_ms: float) -> None:
        """Close, for the application at once, and at the end of a transaction that a session takes part in."""
        self._shut = self._shut or any(cast("_ManagedSession", session).joined is not None for session in self.sessions())
        if self._shut:
            for session in self.sessions():
                session.close()
        self.close_if_shut() if self._shut else super().close_within(timeout_ms)

    def close_if_shut(self) -> None:
        """Close what the application has closed, once no session of it takes part in a transaction."""
        if self._shut and all(cast("_ManagedSession", session).joined is None for session in self.sessions()):
            self._shut = False
            super().close_within(self.link.options.close_timeout_ms)


class _ManagedQueueConnection(_ManagedConnection, QueueConnectionImpl):
    pass


class _ManagedTopicConnection(_ManagedConnection, TopicConnectionImpl):
    pass


_CONNECTIONS: Final[dict[type[ConnectionImpl], type[ConnectionImpl]]] = {
    ConnectionImpl: _ManagedConnection,
    QueueConnectionImpl: _ManagedQueueConnection,
    TopicConnectionImpl: _ManagedTopicConnection,
}


def managed(kind: type[K]) -> type[K]:
    """Return the class of a connection that a container manages.

    One with distributed transactions stays as it is: it takes part in them by the branches that its user begins.
    """
    return cast("type[K]", _CONNECTIONS.get(kind, kind))


def _asked(mode: object, acknowledge_mode: object, transacted: object) -> int:
    """Return the mode that is asked for in one of the forms of ``create_session``; nonsense counts as none (10.3-7)."""
    if isinstance(mode, bool) or transacted:
        return TRANSACTED if mode is True or transacted else _number(acknowledge_mode)
    return _number(acknowledge_mode if mode is None else mode)


def _number(mode: object) -> int:
    return mode if isinstance(mode, int) and not isinstance(mode, bool) else AUTO


# ---- contexts ---------------------------------------------------------------------------------------------------------
class _ManagedContext(JMSContextImpl):
    @runtime
    def create_context(self, session_mode: int) -> JMSContext:
        """Refuse: it would have a second session on the connection (10.2-2, 10.3-10)."""
        _refuse("create_context")

    @runtime
    def create_producer(self) -> JMSProducer:
        """Create a managed producer; see JMSContext."""
        self.connection.check_open()
        self.connection.touch()
        return _ManagedProducer(self)


@runtime
def new_managed_context(connect: Callable[[], ConnectionImpl], session_mode: int | None) -> JMSContext:
    """Connect and return a context whose session is managed.

    Args:
        connect: Makes the managed connection.
        session_mode: What the application asks for.
    """
    asked = AUTO if session_mode is None else checked_mode(session_mode)
    return new_context(connect, _mode(rules_here() or ContainerRules(), asked), _ManagedContext)
