"""Transactions that several contexts take part in: the interface that a transaction manager has, and one for a single process.

With JMS alone each context commits by itself when the transaction does, one after the other. A crash in between leaves
the first ones committed and the others not: what has to be atomic over several resources needs XA, which the broker in the
process has (``jmsapi.xa``).

Spec: 10.3-1, 10.3-3, 10.3-12.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from jmsapi._callbacks import check_methods
from jmsapi.errors import IllegalStateRuntimeException

__all__ = ["LocalTransactions", "Participant", "Participants", "Transaction", "Transactions"]

_log = logging.getLogger("jmsapi")


class Participant(Protocol):
    """What takes part in a transaction."""

    def commit(self) -> None:
        """Make it last."""

    def rollback(self) -> None:
        """Undo it."""

    def close(self) -> None:
        """The transaction has ended. Called once, after one of the others."""


class Transaction(Protocol):
    """A transaction that has begun and not ended."""

    def join(self, participant: Participant) -> None:
        """Have somebody take part."""
        ...

    def set_rollback_only(self) -> None:
        """Have it rolled back when it ends, whatever comes."""
        ...


class Transactions(Protocol):
    """Who knows whether there is a transaction."""

    @property
    def current(self) -> Transaction | None:
        """Return the transaction of the calling thread or task, if there is one."""
        ...


class Participants:
    """Those who take part in one transaction, which is ended once; a ``Transaction``.

    Threads: that of the transaction.
    """

    def __init__(self) -> None:
        self._joined: list[Participant] = []
        self.rollback_only = False

    def join(self, participant: Participant) -> None:
        """See Transaction."""
        check_methods(participant, "commit", "rollback", "close", what="a participant of the transaction")
        self._joined.append(participant)

    def set_rollback_only(self) -> None:
        """See Transaction."""
        self.rollback_only = True

    def end(self, *, commit: bool) -> tuple[BaseException | None, BaseException | None]:
        """Commit all or roll all back, then close them; nothing that one raises keeps the others from their end.

        Returns:
            What the first raised that could not be committed: those after it are rolled back. And the first thing that is no
            Exception, such as KeyboardInterrupt, of what was raised after that or by a rollback.
        """
        uncommitted: BaseException | None = None
        struck: BaseException | None = None
        for one in self._joined:
            committing = commit and uncommitted is None
            try:
                if committing:
                    one.commit()
                else:
                    one.rollback()
            except BaseException as error:
                if committing:
                    uncommitted = error
                else:
                    struck = _noted(struck, error, "rolled back")
        for one in self._joined:
            try:
                one.close()
            except BaseException as error:
                struck = _noted(struck, error, "closed")
        return uncommitted, struck


def _noted(struck: BaseException | None, error: BaseException, what: str) -> BaseException | None:
    _log.warning("a participant of a transaction could not be %s: %r", what, error)
    return error if struck is None and not isinstance(error, Exception) else struck


class LocalTransactions:
    """A transaction manager for one process.

    Threads: any; a transaction belongs to the thread or task in which it began.
    Spec: 10.3-1, 10.3-3.
    """

    def __init__(self) -> None:
        self._running: ContextVar[Participants | None] = ContextVar("jmsapi-transaction", default=None)

    @property
    def current(self) -> Transaction | None:
        """Return the transaction that has begun here, if there is one."""
        return self._running.get()

    @contextmanager
    def begin(self) -> Generator[Transaction]:
        """Have a transaction for a ``with`` block: committed at its end, rolled back when it raises.

        Yields:
            The transaction; ``set_rollback_only()`` has it rolled back without an exception.
        Raises:
            IllegalStateRuntimeException: There is one already.
            JMSRuntimeException: It could not be committed; what of it is not committed is rolled back.
        """
        if self._running.get() is not None:
            raise IllegalStateRuntimeException(
                "a transaction has begun already, and there are none inside another", "transaction"
            )
        running = Participants()
        token = self._running.set(running)
        try:
            try:
                yield running
            except BaseException as raised:
                _, struck = running.end(commit=False)
                if struck is not None:
                    raise struck from raised
                raise
            for error in running.end(commit=not running.rollback_only):
                if error is not None:
                    raise error
        finally:
            self._running.reset(token)
