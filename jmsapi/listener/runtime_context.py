"""What a callback asks its container: one object for each worker, set up anew for each delivery.

Spec: 10.3-8, MDB-45, MDB-53 to MDB-55.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, cast

from jmsapi.api import Session
from jmsapi.errors import (
    IllegalStateException,
    IllegalStateRuntimeException,
    JMSException,
    JMSRuntimeException,
    TransactionRolledBackException,
    TransactionRolledBackRuntimeException,
    to_runtime,
)
from jmsapi.listener.message_driven_context import CURRENT, MessageDrivenContext, UserTransaction
from jmsapi.listener.runtime_transactions import RunningTransaction
from jmsapi.listener.transaction_attribute import TransactionAttribute
from jmsapi.transactions import Transaction

if TYPE_CHECKING:
    from jmsapi._core.endpoint import WorkerSession

__all__ = ["ContainerTransactions", "RuntimeContext"]

_log = logging.getLogger("jmsapi.listener")
_REQUIRED: Final = TransactionAttribute.REQUIRED
R = TypeVar("R")


class RuntimeContext(MessageDrivenContext, UserTransaction):
    """The context of one worker's callbacks, and the user transaction of those that have their own.

    Args:
        attribute: Who has a transaction around the callback.
        work: The worker's session.
        further: Makes or finds a transacted session of the same worker, for user transactions.
        drop: Closes that session, since its transaction could not be ended.
    Threads: that of the worker.
    """

    def __init__(
        self, attribute: TransactionAttribute, work: WorkerSession, further: Callable[[], WorkerSession], drop: Callable[[], None]
    ) -> None:
        self._attribute = attribute
        self._work = work
        self._further = further
        self._drop = drop
        self.transaction: RunningTransaction | None = None
        """The transaction that has begun and not ended, the container's or the callback's own."""
        self._ending = False
        """The callback's own is being ended."""
        if attribute is TransactionAttribute.BEAN:
            work.check_place_by(self._check_alone)
        elif attribute is _REQUIRED:
            work.check_place_by(self._check_with_message)

    # ---- of the container -----------------------------------------------------------------------------------------
    @property
    def session(self) -> Session:
        """The session of the callback; see MessageDrivenContext."""
        if self._attribute is TransactionAttribute.BEAN and self.transaction is not None:
            return self._further().session
        return self._work.session

    def set_rollback_only(self) -> None:
        """Have the running transaction rolled back; see MessageDrivenContext."""
        self._running("set_rollback_only").set_rollback_only()

    @property
    def rollback_only(self) -> bool:
        """Whether the running transaction will be rolled back; see MessageDrivenContext."""
        return self._running("rollback_only").rollback_only

    # ---- where a session may be used ------------------------------------------------------------------------------
    # In the other's place it would do its work at another time than it seems, with the next message or at once.
    def _check_alone(self) -> None:
        if self.transaction is not None:
            raise IllegalStateException(
                "the session was got outside of a transaction and takes part in none: take container.session in this one",
                "transaction",
            )

    def _check_in_transaction(self) -> None:
        if self.transaction is None and not self._ending and not self._of_container:
            raise IllegalStateException(
                "the session was got in a transaction and there is none now: take container.session outside of it", "transaction"
            )

    def _check_with_message(self) -> None:
        if self.transaction is None and not self._of_container:
            raise IllegalStateException(
                "the session is of a callback that has ended: what it did now would be another message's", "transaction"
            )

    @property
    def _of_container(self) -> bool:
        """Whether the container itself is at work here, as when it gives a message up."""
        return CURRENT.get() is None and self._work.is_own_thread

    def _running(self, asked: str) -> RunningTransaction:
        if self.transaction is None:
            raise IllegalStateRuntimeException(
                f"{asked}: there is no transaction; the callback's attribute is {self._attribute.value}", "transaction"
            )
        return self.transaction

    # ---- of the callback ------------------------------------------------------------------------------------------
    @property
    def user_transaction(self) -> UserTransaction:
        """The callback's own transaction; see MessageDrivenContext."""
        if self._attribute is not TransactionAttribute.BEAN:
            raise IllegalStateRuntimeException(
                f"user_transaction: the callback's attribute is {self._attribute.value}, set it to Bean", "transaction"
            )
        return self

    def begin(self) -> None:
        """Begin one; see UserTransaction."""
        if self.transaction is not None:
            raise IllegalStateRuntimeException("begin: a transaction has begun already", "transaction")
        session = _runtime(self._further)
        session.check_place_by(self._check_in_transaction)
        self.transaction = RunningTransaction(self._sure(lambda: session.commit_work(())), self._sure(session.undo))

    def _sure(self, end: Callable[[], None]) -> Callable[[], None]:
        """What was not committed, and not rolled back either, must not be found in the next transaction."""

        def ending() -> None:
            try:
                end()
            except TransactionRolledBackException:
                raise
            except BaseException:
                self._drop()
                raise

        return ending

    def commit(self) -> None:
        """Commit it; see UserTransaction."""
        running = self._taken("commit")
        if running.rollback_only:
            self._end(running.rollback)
            raise TransactionRolledBackRuntimeException("commit: the transaction was marked, so it is rolled back")
        self._end(running.commit)

    def rollback(self) -> None:
        """Roll it back; see UserTransaction."""
        self._end(self._taken("rollback").rollback)

    def _taken(self, asked: str) -> RunningTransaction:
        running, self.transaction = self._running(asked), None
        return running

    def _end(self, how: Callable[[], None]) -> None:
        self._ending = True
        try:
            how()
        except JMSException as error:
            raise cast("Exception", to_runtime(error)) from error
        finally:
            self._ending = False

    def end_left_open(self) -> bool:
        """Roll back what the callback has begun and not ended; return whether there was something."""
        if self.transaction is None:
            return False
        try:
            self._end(self._taken("rollback").rollback)
        except JMSRuntimeException as error:
            _log.warning("a transaction that a callback left open could not be rolled back: %s", error)
        return True


class ContainerTransactions:
    """Who knows of the transactions of callbacks: for ``Injector(transactions=...)``, so that contexts join them.

    Threads: any.
    Spec: 10.3-1.
    """

    @property
    def current(self) -> Transaction | None:
        """Return the transaction of the callback that runs here, if there is one."""
        context = CURRENT.get()
        return context.transaction if isinstance(context, RuntimeContext) else None


def _runtime(call: Callable[[], R]) -> R:
    try:
        return call()
    except JMSException as error:
        raise cast("Exception", to_runtime(error)) from error
