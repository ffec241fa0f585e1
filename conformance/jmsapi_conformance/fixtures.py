"""What a requirement test gets handed. Everything made here is closed, drained and forgotten after the test."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TypeVar

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    InvalidDestinationException,
    JMSContext,
    JMSError,
    JMSException,
    Queue,
    QueueConnection,
    QueueConnectionFactory,
    Session,
    Topic,
    TopicConnection,
    TopicConnectionFactory,
)
from jmsapi_conformance.backend import Backend, Restart
from jmsapi_conformance.interceptor import Interceptor

__all__ = [
    "Connect",
    "Names",
    "connect",
    "connection",
    "context",
    "contract",
    "factory",
    "interceptor",
    "names",
    "other_session",
    "queue",
    "restart",
    "session",
    "topic",
]


C = TypeVar("C", bound=Connection)


@pytest.fixture
def contract() -> Iterator[None]:
    """Fail the test when core or provider broke the contract between them."""
    broken = _Broken()
    logger = logging.getLogger("jmsapi.contract")
    logger.addHandler(broken)
    try:
        yield
    finally:
        logger.removeHandler(broken)
    assert not broken.words, "\n".join(broken.words)


class _Broken(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(record.getMessage())


class Names:
    """Names that only this test uses. What is left under them is removed afterwards."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.queues: list[str] = []
        self.subscriptions: list[str] = []
        self.client_ids: list[str] = []

    def queue(self) -> str:
        """Return a name for a queue."""
        return self._keep(self.queues, "q")

    def topic(self) -> str:
        """Return a name for a topic."""
        return self._backend.unique("t")

    def subscription(self) -> str:
        """Return a name for a durable or shared subscription; it is unsubscribed after the test."""
        return self._keep(self.subscriptions, "sub")

    def client_id(self) -> str:
        """Return a client identifier."""
        return self._keep(self.client_ids, "client")

    def _keep(self, where: list[str], word: str) -> str:
        name = self._backend.unique(word)
        where.append(name)
        return name


class Connect:
    """Makes connections and contexts that are closed after the test."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._made: list[Connection | JMSContext] = []

    def __call__(self, *, client_id: str | None = None, started: bool = True, **options: object) -> Connection:
        """Return a new connection.

        Args:
            client_id: Set on the connection, not on the factory.
            started: Whether ``start()`` was called.
            options: For ``jmsapi.connection_factory``.
        """
        return self._keep(self._backend.factory(**options).create_connection(), client_id, started)

    def queues(self, *, client_id: str | None = None, started: bool = True, **options: object) -> QueueConnection:
        """Return a new connection for queues only; arguments as above."""
        factory = self._backend.factory(**options)
        assert isinstance(factory, QueueConnectionFactory)
        return self._keep(factory.create_queue_connection(), client_id, started)

    def topics(self, *, client_id: str | None = None, started: bool = True, **options: object) -> TopicConnection:
        """Return a new connection for topics only; arguments as above."""
        factory = self._backend.factory(**options)
        assert isinstance(factory, TopicConnectionFactory)
        return self._keep(factory.create_topic_connection(), client_id, started)

    def context(
        self, *, client_id: str | None = None, session_mode: int = JMSContext.AUTO_ACKNOWLEDGE, **options: object
    ) -> JMSContext:
        """Return a new context with a connection of its own.

        Args:
            client_id: Set on the context, not on the factory.
            session_mode: One of the four modes.
            options: For ``jmsapi.connection_factory``.
        """
        made = self._backend.factory(**options).create_context(session_mode=session_mode)
        self._made.append(made)
        if client_id is not None:
            made.client_id = client_id
        return made

    def _keep(self, made: C, client_id: str | None, started: bool) -> C:
        self._made.append(made)
        if client_id is not None:
            made.client_id = client_id
        if started:
            made.start()
        return made

    def close(self) -> None:
        """Close all of them, the youngest first; report the first failure when all have been tried."""
        with contextlib.ExitStack() as stack:
            for made in self._made:
                stack.callback(made.close)


@pytest.fixture
def factory(backend: Backend) -> ConnectionFactory:
    """Give a new factory for the backend."""
    return backend.factory()


@pytest.fixture
def names(backend: Backend) -> Iterator[Names]:
    """Give names of the test's own."""
    made = Names(backend)
    yield made
    _forget(backend, made)


def _forget(backend: Backend, names: Names) -> None:
    """Empty the queues and end the subscriptions of a test. Best effort: another test never meets these names."""
    if backend.url.startswith("inproc:"):
        return
    if names.queues:
        with contextlib.suppress(JMSError), backend.factory().create_connection() as connection:
            connection.start()
            session = connection.create_session()
            for name in names.queues:
                with contextlib.suppress(JMSException), session.create_consumer(session.create_queue(name)) as consumer:
                    while consumer.receive_no_wait() is not None:
                        continue
    for client_id in (None, *names.client_ids) if names.subscriptions else ():
        with contextlib.suppress(JMSError), backend.factory().create_connection() as connection:
            if client_id is not None:
                connection.client_id = client_id
            session = connection.create_session()
            for name in names.subscriptions:
                with contextlib.suppress(InvalidDestinationException):
                    session.unsubscribe(name)


@pytest.fixture
def connect(backend: Backend, names: Names) -> Iterator[Connect]:
    """Give the means to make further connections."""
    made = Connect(backend)
    yield made
    made.close()


@pytest.fixture
def connection(connect: Connect) -> Connection:
    """Give a started connection without a client id."""
    return connect()


@pytest.fixture
def session(connection: Connection) -> Session:
    """Give an AUTO_ACKNOWLEDGE session of ``connection``."""
    return connection.create_session(Session.AUTO_ACKNOWLEDGE)


@pytest.fixture
def other_session(connect: Connect) -> Session:
    """Give an AUTO_ACKNOWLEDGE session of a second, started connection: it sends, and looks at what the first one left."""
    return connect().create_session(Session.AUTO_ACKNOWLEDGE)


@pytest.fixture
def context(factory: ConnectionFactory, names: Names) -> Iterator[JMSContext]:
    """Give an AUTO_ACKNOWLEDGE context with a connection of its own."""
    with factory.create_context() as made:
        yield made


@pytest.fixture
def interceptor(backend: Backend, names: Names) -> Iterator[Interceptor]:
    """Give a hand on the provider of further connections: to hold back answers, refuse sends, break the link, count calls."""
    made = Interceptor(backend)
    yield made
    made.close()


@pytest.fixture
def restart(backend: Backend) -> Restart:
    """Give the means to restart the broker: ``restart(True)`` ends it as kill -9 does; for tests that need ``broker_restart``."""
    assert backend.restart is not None, "a test that restarts the broker needs broker_restart"
    return backend.restart


@pytest.fixture
def queue(session: Session, names: Names) -> Queue:
    """Give an empty queue that only this test uses."""
    return session.create_queue(names.queue())


@pytest.fixture
def topic(session: Session, names: Names) -> Topic:
    """Give a topic that only this test uses."""
    return session.create_topic(names.topic())
