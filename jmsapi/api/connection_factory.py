"""The interface ``ConnectionFactory``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from jmsapi.api.connection import Connection
    from jmsapi.api.jms_context import JMSContext

__all__ = ["ConnectionFactory"]


class ConnectionFactory(ABC):
    """The settings from which connections are made; making or finding one opens nothing.

    Threads: any number at once.
    Spec: 4.2-1, 4.2-2, 4.4.11-6, 1.3-1, 2.3-1, 2.5-1, 5.1-1, 6.1-1, 9.1.1-1.
    """

    @abstractmethod
    def create_connection(self, user_name: str | None = None, password: str | None = None) -> Connection:
        """Open a connection for the classic API; it is stopped until ``start()``.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new connection, to be closed by the caller.
        Raises:
            JMSSecurityException: User name or password were refused.
            JMSException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower error.
        Spec: 4.2.2-1, 4.3.1-1, 4.3.1-2, 4.3.2-1, 4.3.2-5, 4.3.3-1, 7.2-6, 7.2-12, 7.3-8, 7.3-27.
        """

    @overload
    @abstractmethod
    def create_context(
        self, user_name: str | None = None, password: str | None = None, session_mode: int | None = None
    ) -> JMSContext: ...

    @overload
    @abstractmethod
    def create_context(self, user_name: int) -> JMSContext: ...

    @abstractmethod
    def create_context(
        self, user_name: str | int | None = None, password: str | None = None, session_mode: int | None = None
    ) -> JMSContext:
        """Open a connection with one session on it, for the simplified API.

        An int alone in first place is the session mode.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
            session_mode: One of the constants of JMSContext; None means AUTO_ACKNOWLEDGE.
        Returns:
            A new context, to be closed by the caller.
        Raises:
            JMSSecurityRuntimeException: User name or password were refused.
            JMSRuntimeException: The broker cannot be reached, or the mode is unknown; ``__cause__`` is the lower
                error.
        Spec: 4.2.2-1, 4.3.1-1, 4.3.1-2, 4.4.7-1, 2.8-2, 7.2-7, 7.3-9, 11.2.1-5 to 11.2.1-8, 11.3.2-2.
        """
