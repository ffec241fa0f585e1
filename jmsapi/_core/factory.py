"""The connection factory: settings that an administrator fixed, and what is made from them.

Spec: 4.2.2-1, 4.3.1-1, 11.2.1-5 to 11.2.1-8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.container import rules_here
from jmsapi._core.context import new_context
from jmsapi._core.domains import QueueConnectionImpl, TopicConnectionImpl
from jmsapi._core.options_check import check_credential
from jmsapi._core.plugins import providers
from jmsapi._core.waiting import Steps, run
from jmsapi.api import (
    Connection,
    JMSContext,
    QueueConnection,
    QueueConnectionFactory,
    TopicConnection,
    TopicConnectionFactory,
)
from jmsapi.errors import IllegalArgumentException
from jmsapi.spi import Clock, KeepsTime, ProviderEntry, SystemClock

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["ConnectionFactoryImpl"]

K = TypeVar("K", bound=ConnectionImpl)


class ConnectionFactoryImpl(QueueConnectionFactory, TopicConnectionFactory):
    """Makes connections and contexts to one broker. Holds no remote resource (4.2-1).

    Args:
        entry: The provider.
        options: Validated settings.
        clock: Time; None: that of a broker which keeps its own, else the machine's.
    """

    def __init__(self, entry: ProviderEntry, options: ProviderOptions, clock: Clock | None = None) -> None:
        self._entry = entry
        self._options = options
        self._clock = clock

    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Connect; see ConnectionFactory."""
        return self._connect(ConnectionImpl, user_name, password)

    def create_queue_connection(self, user_name: str | None = None, password: str | None = None) -> QueueConnection:
        """Connect, for queues only; see QueueConnectionFactory."""
        return self._connect(QueueConnectionImpl, user_name, password)

    def create_topic_connection(self, user_name: str | None = None, password: str | None = None) -> TopicConnection:
        """Connect, for topics only; see TopicConnectionFactory."""
        return self._connect(TopicConnectionImpl, user_name, password)

    def create_context(
        self, user_name: str | int | None = None, password: str | None = None, session_mode: int | None = None
    ) -> JMSContext:
        """Connect and create a context; see ConnectionFactory."""
        if isinstance(user_name, int | float):
            if password is not None or session_mode is not None:
                raise IllegalArgumentException("create_context takes a session mode, or a user name, password and session mode")
            user_name, session_mode = None, user_name
        user = user_name
        if rules_here() is not None:
            from jmsapi._core.managed import new_managed_context

            return new_managed_context(lambda: self._connect(ConnectionImpl, user, password), session_mode)
        return new_context(lambda: self._connect(ConnectionImpl, user, password), session_mode)

    def _connect(self, kind: type[K], user: str | None, password: str | None) -> K:
        return run(self.connect_steps(kind, user, password))

    def connect_steps(self, kind: type[K], user: str | None, password: str | None) -> Steps[K]:
        """Make a connection of one class and open it."""
        options = self._options
        if user is not None or password is not None:
            from pydantic import SecretStr

            check_credential(user, "a user name")
            check_credential(password, "a password")

            secret = None if password is None else SecretStr(password)
            options = options.having(user=user, password=secret)
        if rules_here() is not None:
            from jmsapi._core.managed import managed

            kind = managed(kind)
        connection = kind(self._entry, options, self._clock or self._time_of(options))
        yield from connection.open_steps()
        return connection

    def _time_of(self, options: ProviderOptions) -> Clock:
        server = options if options.failover is None else options.failover.servers[0]
        own = self._entry.clock(server) if isinstance(self._entry, KeepsTime) else None
        return own or SystemClock()

    def __repr__(self) -> str:
        options = self._options
        if options.failover is not None:
            return f"<ConnectionFactory failover:({','.join(map(_place, options.failover.servers))})>"
        return f"<ConnectionFactory {_place(options)}>"

    def __getstate__(self) -> ProviderOptions:
        # Only where it leads: providers and clocks belong to a process.
        return self._options

    def __setstate__(self, options: ProviderOptions) -> None:
        self.__init__(providers[options.scheme], options)  # type: ignore[misc]


def _place(options: ProviderOptions) -> str:
    where = f"{options.host}:{options.port}" if options.port is not None else options.host
    return f"{options.scheme}://{where}"
