"""The transaction around a callback: message, what its session sends, and whoever joins.

What is sent by the session of the callback is one local transaction with the message. Injected contexts join as participants:
each commits by itself, before the message does. A crash in between has it delivered again; it is never lost.

Spec: 10.3-1, 10.3-3, MDB-44 to MDB-47.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi.listener.message_driven_context import CURRENT
from jmsapi.transactions import Participant, Transaction

if TYPE_CHECKING:
    from jmsapi.listener.runtime_context import RuntimeContext

__all__ = ["ContainerTransactions", "RunningTransaction"]

_log = logging.getLogger("jmsapi.listener")


class RunningTransaction:
    """A transaction that has begun. It is ended once.

    Args:
        commit: Commits what the session of the callback has done.
        rollback: Undoes it.
    Threads: that of the callback.
    """

    def __init__(self, commit: Callable[[], None], rollback: Callable[[], None]) -> None:
        self._commit = commit
        self._rollback = rollback
        self._participants: list[Participant] = []
        self.rollback_only = False

    def join(self, participant: Participant) -> None:
        """See Transaction."""
        self._participants.append(participant)

    def set_rollback_only(self) -> None:
        """See Transaction."""
        self.rollback_only = True

    def commit(self) -> None:
        """Commit all: the participants, in the order in which they joined, then the callback's session.

        Raises:
            Exception: What the first raised that could not be committed; those after it are rolled back.
        """
        participants = self._participants
        if not participants:
            self._commit()
            return
        for number, one in enumerate(participants):
            try:
                one.commit()
            except BaseException:
                self._undo(participants[number + 1 :])
                self._close()
                self._rollback()
                raise
        self._close()
        self._commit()

    def rollback(self) -> None:
        """Roll all back.

        Raises:
            JMSException: What the session has done could not be undone: its connection is lost, which undoes it, too.
        """
        self._undo(self._participants)
        self._close()
        self._rollback()

    def _undo(self, participants: list[Participant]) -> None:
        for one in participants:
            try:
                one.rollback()
            except BaseException as error:  # such as SystemExit: the others are still to be told
                _log.warning("a participant of a callback's transaction could not be rolled back: %s", error)

    def _close(self) -> None:
        for one in self._participants:
            try:
                one.close()
            except BaseException as error:  # such as SystemExit: the others are still to be told
                _log.warning("a participant of a callback's transaction could not be closed: %s", error)
        self._participants = []


class ContainerTransactions:
    """Who knows of the transactions of callbacks: for ``Injector(transactions=...)``, so that contexts join them.

    Threads: any.
    Spec: 10.3-1.
    """

    @property
    def current(self) -> Transaction | None:
        """Return the transaction of the callback that runs here, if there is one."""
        context: RuntimeContext | None = CURRENT.get()  # type: ignore[assignment]
        return None if context is None else context.transaction
