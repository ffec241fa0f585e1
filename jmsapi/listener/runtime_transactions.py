"""The transaction around a callback: message, what its session sends, and whoever joins.

What is sent by the session of the callback is one local transaction with the message. Injected contexts join as participants:
each commits by itself, before the message does. A crash in between has it delivered again; it is never lost.

Spec: 10.3-1, 10.3-3, MDB-44 to MDB-47.
"""

from __future__ import annotations

from collections.abc import Callable

from jmsapi.transactions import Participants

__all__ = ["RunningTransaction"]


class RunningTransaction(Participants):
    """A transaction that has begun. It is ended once.

    Args:
        commit: Commits what the session of the callback has done.
        rollback: Undoes it.
    Threads: that of the callback.
    """

    def __init__(self, commit: Callable[[], None], rollback: Callable[[], None]) -> None:
        super().__init__()
        self._commit = commit
        self._rollback = rollback

    def commit(self) -> None:
        """Commit all: the participants, in the order in which they joined, then the callback's session.

        Raises:
            BaseException: What the first raised that could not be committed; those after it are rolled back.
        """
        uncommitted, _ = self.end(commit=True)
        if uncommitted is not None:
            self._rollback()
            raise uncommitted
        self._commit()

    def rollback(self) -> None:
        """Roll all back.

        Raises:
            JMSException: What the session has done could not be undone: its connection is lost, which undoes it, too.
        """
        self.end(commit=False)
        self._rollback()
