"""The interface ``XASession``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.session import Session

if TYPE_CHECKING:
    from jmsapi.api.xa_resource import XAResource

__all__ = ["XASession"]


class XASession(Session):
    """A session whose transactions a transaction manager runs, through ``xa_resource``. Optional.

    Threads: one at a time; only ``close`` may come from another.
    Spec: 4.4.8-1, 8.4-2, B.4.5.2-3.
    """

    @property
    @abstractmethod
    def session(self) -> Session:
        """Give an ordinary session for the application.

        Its work belongs to the transaction that ``xa_resource`` has started.

        Raises:
            JMSException: The provider failed, or the session is closed.
        Spec: 8.3.3-1, B.4.4-1.
        """

    @property
    @abstractmethod
    def xa_resource(self) -> XAResource:
        """Give the resource through which a transaction manager starts and ends this session's transactions.

        Spec: 8.3.3-2, 8.3.3-3, 8.3.5-1 to 8.3.5-4, J11-24.
        """

    @property
    @abstractmethod
    def transacted(self) -> bool:
        """Tell that the session is transacted: always True.

        Raises:
            IllegalStateException: The session is closed.
        Spec: 8.3.3-4.
        """

    @abstractmethod
    def commit(self) -> None:
        """Refuse: only the transaction manager commits.

        Raises:
            TransactionInProgressException: Always.
        Spec: 7.3-28, 8.3.3-4.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Refuse: only the transaction manager rolls back.

        Raises:
            TransactionInProgressException: Always.
        Spec: 7.3-28, 8.3.3-4.
        """
