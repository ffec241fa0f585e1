"""The connection factory for asyncio."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast, overload

from jmsapi import _entry
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.factory import ConnectionFactoryImpl
from jmsapi.aio.context import AsyncJMSContext
from jmsapi.api import ConnectionFactory, Destination, JMSContext
from jmsapi.errors import IllegalArgumentException, JMSException
from jmsapi.spi import Capabilities

__all__ = ["AsyncConnectionFactory", "capabilities", "connection_factory", "lookup"]

T = TypeVar("T")
_WHAT: Final = "a factory of this library"


class AsyncConnectionFactory:
    """Makes contexts to one broker for asyncio. Holds no remote resource (4.2-1).

    Args:
        factory: A factory that ``jmsapi.connection_factory`` or ``jmsapi.lookup`` has returned.
    Raises:
        JMSException: It is of another library (``wrong-kind``).
    """

    def __init__(self, factory: ConnectionFactory) -> None:
        if not isinstance(factory, ConnectionFactoryImpl):
            raise JMSException(f"{factory!r} is not {_WHAT}", "wrong-kind")
        self._factory = factory

    def create_context(
        self, user_name: str | int | None = None, password: str | None = None, session_mode: int | None = None
    ) -> AsyncJMSContext:
        """Return a context that connects when it is entered with ``async with``, or awaited.

        Args:
            user_name: Instead of the URL's; or the session mode, alone.
            password: Instead of the URL's.
            session_mode: One of the constants of AsyncJMSContext; AUTO_ACKNOWLEDGE when None.
        Raises:
            IllegalArgumentException: A mode stands in the first place and something else behind it.
        """
        if isinstance(user_name, int | float):
            if password is not None or session_mode is not None:
                raise IllegalArgumentException("create_context takes a session mode, or a user name, password and session mode")
            user_name, session_mode = None, user_name
        user, factory = user_name, self._factory
        return AsyncJMSContext(lambda: factory.connect_steps(ConnectionImpl, user, password), session_mode)

    def __repr__(self) -> str:
        return f"<AsyncConnectionFactory of {self._factory!r}>"


def connection_factory(url: str, **options: object) -> AsyncConnectionFactory:
    """Make a connection factory for a URL; nothing is opened. See ``jmsapi.connection_factory``, which says what it raises."""
    return AsyncConnectionFactory(_entry.connection_factory(url, **options))


@overload
def lookup(name: str) -> AsyncConnectionFactory | Destination: ...


@overload
def lookup(name: str, kind: Callable[..., T]) -> T: ...


def lookup(name: str, kind: Callable[..., object] | None = None) -> object:
    """Find an administered object by name, a factory for asyncio or a destination; see ``jmsapi.lookup``.

    Args:
        name: As it was bound, or as the file says.
        kind: The class it must be of, such as ``AsyncConnectionFactory`` or ``Queue``; also the type that is returned.
    """
    asked = ConnectionFactory if kind is AsyncConnectionFactory else kind
    found = _entry.lookup(name) if asked is None else _entry.lookup(name, asked)
    return AsyncConnectionFactory(found) if isinstance(found, ConnectionFactory) else found


def capabilities(context: AsyncJMSContext) -> Capabilities:
    """Return what the broker behind an open context can do, and how; see ``jmsapi.capabilities``."""
    return _entry.capabilities(cast("JMSContext", context))
