"""What a callback may ask of the container that called it.

Spec: MDB-45, MDB-53 to MDB-55.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import Final

from jmsapi.api import Session
from jmsapi.errors import IllegalStateRuntimeException

__all__ = ["CURRENT", "MessageDrivenContext", "UserTransaction", "message_driven_context"]


class UserTransaction(ABC):
    """The transaction that a callback with ``TransactionAttribute.BEAN`` begins and ends itself."""

    @abstractmethod
    def begin(self) -> None:
        """Begin one.

        Raises:
            IllegalStateRuntimeException: There is one already.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make lasting what was done since ``begin``.

        Raises:
            IllegalStateRuntimeException: None has begun.
            TransactionRolledBackRuntimeException: It was marked, and is rolled back.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Undo what was done since ``begin``.

        Raises:
            IllegalStateRuntimeException: None has begun.
        """

    @abstractmethod
    def set_rollback_only(self) -> None:
        """Have it rolled back when it ends, whatever comes.

        Raises:
            IllegalStateRuntimeException: None has begun.
        """


class MessageDrivenContext(ABC):
    """What a callback may ask of the container, as an argument annotated with this class, or by ``message_driven_context()``."""

    @abstractmethod
    def set_rollback_only(self) -> None:
        """Have the container's transaction rolled back when the callback ends.

        Raises:
            IllegalStateRuntimeException: The container has no transaction for this callback.
        """

    @property
    @abstractmethod
    def rollback_only(self) -> bool:
        """Whether the container's transaction will be rolled back.

        Raises:
            IllegalStateRuntimeException: The container has no transaction for this callback.
        """

    @property
    @abstractmethod
    def user_transaction(self) -> UserTransaction:
        """The transaction of a callback with ``TransactionAttribute.BEAN``.

        Raises:
            IllegalStateRuntimeException: It has another attribute.
        """

    @property
    @abstractmethod
    def session(self) -> Session:
        """The container's session for this callback: what it sends is one transaction with the message.

        With ``TransactionAttribute.BEAN`` it is that of the user transaction while there is one; without a transaction what
        it sends is sent at once. Take it anew after ``begin`` and after the end of the transaction: used in the other's
        place it raises ``IllegalStateException`` (``transaction``). It is not the callback's to commit, roll back, recover
        or close.

        Spec: 10.3-1, 10.3-8.
        """


CURRENT: Final[ContextVar[MessageDrivenContext | None]] = ContextVar("jmsapi-message-driven-context", default=None)
"""Set by the container around each callback."""


def message_driven_context() -> MessageDrivenContext:
    """Return the context of the callback that runs here.

    Raises:
        IllegalStateRuntimeException: None does.
    Threads: that of the callback.
    """
    found = CURRENT.get()
    if found is None:
        raise IllegalStateRuntimeException(
            "there is a MessageDrivenContext only while a container calls a callback", "no-delivery"
        )
    return found
