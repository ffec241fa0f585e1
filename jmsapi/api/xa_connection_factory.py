"""The interface ``XAConnectionFactory``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsapi.api.xa_connection import XAConnection
    from jmsapi.api.xa_jms_context import XAJMSContext

__all__ = ["XAConnectionFactory"]


class XAConnectionFactory(ABC):
    """A factory for work inside distributed transactions. Optional.

    Threads: any number at once.
    Spec: 4.4.8-1, 8.3.1-3, 8.4-1, 8.4-2, B.4.5.2-3, J11-24.
    """

    @abstractmethod
    def create_xa_connection(self, user_name: str | None = None, password: str | None = None) -> XAConnection:
        """Open a connection whose sessions can join distributed transactions.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new connection, to be closed by the caller.
        Raises:
            JMSSecurityException: User name or password were refused.
            UnsupportedFeatureException: The provider has no distributed transactions.
            JMSException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower error.
        Spec: 8.1-1, 8.3-1, 8.3.1-1, 8.3.1-2, B.4.4-1.
        """

    @abstractmethod
    def create_xa_context(self, user_name: str | None = None, password: str | None = None) -> XAJMSContext:
        """Open a connection with one session on it that can join distributed transactions, for the simplified API.

        Args:
            user_name: Name to sign in with; None means what the factory is set to.
            password: Password to sign in with; None means what the factory is set to.
        Returns:
            A new context, to be closed by the caller.
        Raises:
            JMSSecurityRuntimeException: User name or password were refused.
            UnsupportedFeatureRuntimeException: The provider has no distributed transactions.
            JMSRuntimeException: The broker cannot be reached, or refused the connection; ``__cause__`` is the lower
                error.
        Spec: 8.3.1-1, 8.3.1-2.
        """
