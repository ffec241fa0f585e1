"""Transactions that several contexts take part in: the interface that a transaction manager has, and one for a single process.

With JMS alone each context commits by itself when the transaction does, one after the other. A crash in between leaves
the first ones committed and the others not: what has to be atomic over several resources needs XA, which no provider has yet.

Spec: 10.3-1, 10.3-3, 10.3-12.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from jmsapi.errors import IllegalStateRuntimeException

__all__ = ["LocalTransactions", "Participant", "Transaction", "Transactions"]

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


class _Local:
    def __init__(self) -> None:
        self._participants: list[Participant] = []
        self.rollback_only = False

    def join(self, participant: Participant) -> None:
        """See Transaction."""
        self._participants.append(participant)

    def set_rollback_only(self) -> None:
        """See Transaction."""
        self.rollback_only = True

    def end(self, *, commit: bool) -> None:
        """Commit all or roll all back, then close them.

        Raises:
            BaseException: What the first participant raised that could not be committed; those after it are rolled back. What
                is no Exception, such as KeyboardInterrupt, from whichever it comes.
        """
        failed: BaseException | None = None
        for one in self._participants:
            try:
                if commit and failed is None:
                    one.commit()
                else:
                    one.rollback()
            except BaseException as error:
                if failed is None and (commit or not isinstance(error, Exception)):
                    failed = error
                else:
                    _log.warning("a participant of a transaction could not be rolled back: %s", error)
        for one in self._participants:
            try:
                one.close()
            except BaseException as error:
                if failed is None and not isinstance(error, Exception):
                    failed = error
                else:
                    _log.warning("a participant of a transaction could not be closed: %s", error)
        if failed is not None:
            raise failed


class LocalTransactions:
    """A transaction manager for one process.

    Threads: any; a transaction belongs to the thread or task in which it began.
    Spec: 10.3-1, 10.3-3.
    """

    def __init__(self) -> None:
        self._running: ContextVar[_Local | None] = ContextVar("jmsapi-transaction", default=None)

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
        running = _Local()
        token = self._running.set(running)
        try:
            try:
                yield running
            except BaseException:
                running.end(commit=False)
                raise
            running.end(commit=not running.rollback_only)
        finally:
            self._running.reset(token)
