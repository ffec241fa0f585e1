"""A session's transaction: begun at the broker when first needed, and again as soon as one has ended.

A session talks to one of these and never asks whether it is transacted. Not thread-safe: a session is used by one thread,
and closing waits for it.

Spec: 4.4.7-2, 4.4.7-5, 4.4.7-7.
"""

from __future__ import annotations

from concurrent.futures import Future

from jmsapi._core.link import Link
from jmsapi.errors import JMSException
from jmsapi.spi import Handle, Outcome, Tag

__all__ = ["LocalTransaction", "NoTransaction"]


class NoTransaction:
    """What a session without local transactions has."""

    def handle(self) -> Handle | None:
        """Return None: sends and acks stand for themselves."""
        return None

    def abandon(self, timeout: float) -> None:
        """Do nothing: there is nothing open."""


class LocalTransaction:
    """The running transaction of one transacted session.

    Args:
        link: The connection's link.
        session: The provider's session.
    """

    def __init__(self, link: Link, session: Handle) -> None:
        self._link = link
        self._session = session
        self._begun: Future[Handle] | None = None
        self._running: Handle | None = None
        """What has been begun, once it has been waited for."""
        self._used = False

    def handle(self) -> Handle:
        """Return the provider's transaction, beginning it if none is open.

        Raises:
            JMSException: The broker refused, or did not answer in time.
        """
        self._used = True
        if self._running is not None:
            return self._running
        if self._begun is None:
            self._begun = self._link.ask(lambda: self._link.provider.begin(self._session))
        begun = self._begun
        try:
            self._running = self._link.wait(begun, "begin a transaction")
        except BaseException:
            self._begun = None
            raise
        return self._running

    @property
    def used(self) -> bool:
        """Whether anything has been done under it."""
        return self._used

    def commit(self, tx: Handle, tags: list[Tag]) -> None:
        """Accept the deliveries under the transaction and commit it; the next one begins behind it.

        Args:
            tx: What ``handle`` gave.
            tags: Of the deliveries.
        Raises:
            TransactionRolledBackException: The broker rolled it back.
            JMSException: Code ``in-doubt`` when the outcome is not known.
        """
        settled = self._link.ask(lambda: self._link.provider.settle(tags, Outcome.ACCEPTED, tx)) if tags else None
        self._end(tx, commit=True)
        if settled is not None:
            self._link.wait(settled, "acknowledge in the transaction")

    def rollback(self) -> None:
        """Roll back what was sent and acknowledged under the transaction."""
        if self._used:
            self._end(self.handle(), commit=False)

    def abandon(self, timeout: float) -> None:
        """Roll back at the end of the session, also a transaction begun ahead.

        Args:
            timeout: Seconds to wait for it; the end of the session, which comes next, rolls back too.
        """
        begun, self._begun, self._running, self._used = self._begun, None, None, False
        if begun is not None:
            tx = self._link.wait(begun, "begin a transaction", timeout)
            self._link.call(lambda: self._link.provider.end(tx, commit=False), "roll back", timeout)

    def _end(self, tx: Handle, *, commit: bool) -> None:
        provider = self._link.provider
        self._running, self._used = None, False
        ended = self._link.ask(lambda: provider.end(tx, commit=commit))
        # The next one is asked for before the answer is here: one round trip a transaction, not two.
        self._begun = None if self._link.lost else self._link.ask(lambda: provider.begin(self._session))
        try:
            self._link.wait(ended, "commit" if commit else "roll back")
        except JMSException as error:
            if commit and error.error_code == "timeout":
                raise JMSException(f"{error}; the transaction may or may not be committed", "in-doubt") from error
            raise
