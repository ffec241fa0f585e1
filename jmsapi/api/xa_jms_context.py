"""The interface ``XAJMSContext``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.jms_context import JMSContext

if TYPE_CHECKING:
    from jmsapi.api.xa_resource import XAResource

__all__ = ["XAJMSContext"]


class XAJMSContext(JMSContext):
    """A context whose transactions a transaction manager runs, through ``xa_resource``. Optional.

    Threads: one at a time; only ``close`` and ``create_context`` may come from another.
    Spec: 8.4-2.
    """

    @property
    @abstractmethod
    def context(self) -> JMSContext:
        """Give an ordinary context for the application.

        Its work belongs to the transaction that ``xa_resource`` has started.

        Spec: 8.3.4-1.
        """

    @property
    @abstractmethod
    def xa_resource(self) -> XAResource:
        """Give the resource through which a transaction manager starts and ends this context's transactions.

        Spec: 8.3.4-2.
        """

    @property
    @abstractmethod
    def transacted(self) -> bool:
        """Tell that the context is transacted: always True.

        Raises:
            IllegalStateRuntimeException: The context is closed.
        Spec: 7.3-28, 8.3.4-2.
        """

    @abstractmethod
    def commit(self) -> None:
        """Refuse: only the transaction manager commits.

        Raises:
            TransactionInProgressRuntimeException: Always.
        Spec: 7.3-28.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Refuse: only the transaction manager rolls back.

        Raises:
            TransactionInProgressRuntimeException: Always.
        Spec: 7.3-28, 8.3.4-2.
        """
