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

from jmsapi._core.acknowledgement.ledger import AUTO, DUPS_OK, TRANSACTED
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.container import ContainerRules, rules_here
from jmsapi._core.context import JMSContextImpl, new_context
from jmsapi._core.context_producer import JMSProducerImpl
from jmsapi._core.domains import QueueConnectionImpl, TopicConnectionImpl
from jmsapi._core.options_check import session_mode as checked_mode
from jmsapi._core.request_reply import exchange
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.session import SessionImpl
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.session_rules import SessionRules
from jmsapi._core.waiting import run
from jmsapi.api import (
    CompletionListener,
    ConnectionConsumer,
    Destination,
    ExceptionListenerLike,
    JMSContext,
    JMSProducer,
    Message,
)
from jmsapi.errors import IllegalStateException, JMSException, JMSRuntimeException
from jmsapi.transactions import Transaction

__all__ = ["managed", "new_managed_context"]

K = TypeVar("K", bound=ConnectionImpl)
_ALONE: Final = (AUTO, DUPS_OK)
"""The modes that may be asked for outside of a transaction."""


def _refuse(what: str, instead: str = "the container does it") -> NoReturn:
    raise JMSException(f"{what} is not for an application in a container: {instead}", error_code="container")


def _mode(rules: ContainerRules, asked: int) -> int:
    """Return the mode that a session has, whatever is asked for (10.3-2, 10.3-4 to 10.3-7)."""
    if not rules.joins:
        return asked
    if _current(rules) is not None:
        return TRANSACTED
    return asked if asked in _ALONE else AUTO


def _current(rules: ContainerRules) -> Transaction | None:
    return None if rules.transactions is None else rules.transactions.current


# ---- producers ---------------------------------------------------------------------------------------------------------
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
class _ManagedRules(SessionRules):
    """What an application may not do with a session in a container, and how the session takes part in transactions.

    Args:
        rules: Those of the container.
        connection: The session's.
    """

    def __init__(self, rules: ContainerRules, connection: _ManagedConnection) -> None:
        self._rules = rules
        self._connection = connection
        self.session: SessionImpl | None = None
        """The session, once it is made."""
        self.joined: Transaction | None = None
        """The transaction that it takes part in, until that has ended."""
        self.shut = False
        """Closed for the application."""
        self._ending = False

    def check_use(self) -> None:
        """Raise when it is closed, and take part in the transaction in which it is used (10.3-12); see SessionRules."""
        session = self.session
        if session is None:
            return
        if self.shut and not self._ending:
            raise IllegalStateException("the session is closed", "closed")
        if self._ending or not self._rules.joins:
            return
        current = _current(self._rules)
        transacted = session.parts.mode == TRANSACTED
        if current is self.joined and (current is not None) == transacted:
            return
        if self.joined is not None:
            raise IllegalStateException("the session takes part in another transaction, which has not ended", "transaction")
        if current is None:
            raise IllegalStateException(
                "the session was made in a transaction and there is none now: make another outside of it", "transaction"
            )
        if not transacted:
            raise IllegalStateException(
                "the session was made outside of a transaction and takes part in none: make another in this one", "transaction"
            )
        current.join(_ManagedPart(self))
        self.joined = current

    def end(self, how: Callable[[SessionImpl], None]) -> None:
        """Commit or roll back, for the transaction."""
        session = self.session
        self._ending = True
        try:
            if session is not None and not session.parts.state.closed:
                how(session)
        finally:
            self._ending = False

    def left(self) -> None:
        """The transaction has ended: close now what the application has closed meanwhile."""
        self.joined = None
        if self.shut and self.session is not None:
            run(self.session.parts.close_steps())
        self._connection.close_if_shut()

    def check_commit(self, asked: str) -> None:
        """Refuse: there are no local transactions in a container (10.3-8); see SessionRules."""
        if self._rules.joins and not self._ending:
            raise IllegalStateException(f"{asked}: in a container there are no transactions of a session's own", "transaction")

    def check_session_listener(self, asked: str) -> None:
        """Refuse: this is for application servers (10.2-3, 10.2-4); see SessionRules."""
        if asked == "run":
            raise JMSRuntimeException(
                "Session.run is not for an application in a container: the container does it", error_code="container"
            )
        _refuse(f"Session.{asked}")

    def check_consumer_listener(self) -> None:
        """Refuse: only message-driven classes get messages asynchronously (10.2-5); see SessionRules."""
        _refuse("message_listener")

    def check_completion_listener(self) -> None:
        """Refuse: a send may not be asynchronous (10.2-10); see SessionRules."""
        _refuse("send with a completion listener")

    def may_close(self) -> bool:
        """Return whether it takes part in no transaction: else it is closed for the application only; see SessionRules."""
        self.shut = self.shut or not (self.joined is None or self._ending)
        return self.joined is None or self._ending


class _ManagedPart:
    """A session's part in one transaction."""

    def __init__(self, rules: _ManagedRules) -> None:
        self._rules = rules

    def commit(self) -> None:
        """See Participant."""
        self._rules.end(SessionImpl.commit)

    def rollback(self) -> None:
        """See Participant."""
        self._rules.end(SessionImpl.rollback)

    def close(self) -> None:
        """See Participant."""
        self._rules.left()


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

    def add_session(self, kind: Any, mode: Any, acknowledge_mode: int | None, transacted: bool | None, **_: Any) -> Any:
        """Create a managed session, the only one (10.2-1); see ConnectionImpl."""
        self.check_open()
        if any(not parts.state.closing and not _rules_of(parts).shut for parts in self.session_parts()):
            _refuse("a second session on one connection", "close the first one before")
        asked = _asked(mode, acknowledge_mode, transacted)
        managed = _ManagedRules(self.rules, self)
        session = super().add_session(kind, _mode(self.rules, asked), None, None, rules=managed)
        managed.session = session
        try:
            managed.check_use()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def client_id(self) -> str | None:
        """Return the client id, which comes from the factory (10.2-8)."""
        return super().client_id

    @client_id.setter
    def client_id(self, client_id: str | None) -> None:
        _refuse("setting client_id", "give it to the connection factory")

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
        self._shut = self._shut or any(_rules_of(parts).joined is not None for parts in self.session_parts())
        if self._shut:
            for session in self.sessions():
                session.close()
        self.close_if_shut() if self._shut else super().close_within(timeout_ms)

    def close_if_shut(self) -> None:
        """Close what the application has closed, once no session of it takes part in a transaction."""
        if self._shut and all(_rules_of(parts).joined is None for parts in self.session_parts()):
            self._shut = False
            super().close_within(self.link.options.close_timeout_ms)


def _rules_of(parts: SessionParts) -> _ManagedRules:
    return cast("_ManagedRules", parts.rules)


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

    def _exchange(self, destination: Destination, body: object, timeout_ms: float | None) -> Message | None:
        # The connection has no second session, and this one has no message listener.
        return exchange(self, destination, body, timeout_ms)


@runtime
def new_managed_context(connect: Callable[[], ConnectionImpl], session_mode: int | None) -> JMSContext:
    """Connect and return a context whose session is managed.

    Args:
        connect: Makes the managed connection.
        session_mode: What the application asks for.
    """
    asked = AUTO if session_mode is None else checked_mode(session_mode)
    return new_context(connect, _mode(rules_here() or ContainerRules(), asked), _ManagedContext)
