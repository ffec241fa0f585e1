"""How much a consumer lets come: its window of credit at the provider.

The provider may have at most ``prefetch`` messages on their way or waiting here; it is topped up when half is used. With
prefetch 0 each receive asks for one message and takes the credit back when time is up, so nothing is held ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsapi.errors import JMSException

if TYPE_CHECKING:
    from jmsapi._core.deliveries import Inbox
    from jmsapi._core.link import Link
    from jmsapi._core.session import SessionImpl
    from jmsapi.api import Message, MessageListener
    from jmsapi.spi import ConsumerSpec, Handle, ProviderError

__all__ = ["Crediting"]

_log = logging.getLogger("jmsapi")


class Crediting:
    """The part of a consumer that grants credit; ``ConsumerImpl`` begins its state."""

    session: SessionImpl
    spec: ConsumerSpec
    inbox: Inbox
    handle: Handle
    receiving: int
    listener: MessageListener | Callable[[Message], None] | None
    closed: bool
    cause: ProviderError | None
    _link: Link
    _prefetch: int
    _limit: int | None
    _credit: int

    def _due(self) -> int:
        """Return how much credit is to be granted now, taking note of it. With the session's lock held."""
        most = self._prefetch
        n = most - self._credit - len(self.inbox.buffer)
        if self._limit is not None:
            most = min(most, self._limit)
            n = min(n, self._room())
        if n * 2 < most or n <= 0 or self.closed:
            return 0
        self._credit += n
        return n

    def _room(self) -> int:
        """Return how many more messages may come before ``max_unacknowledged`` is reached. With the session's lock held."""
        if self._limit is None:
            return 1
        return self._limit - self._credit - len(self.inbox.buffer) - self.inbox.unsettled

    def make_room(self) -> None:
        """Let more messages come, since some are acknowledged."""
        if self._prefetch:
            self._top_up()
        elif self.receiving or self.listener is not None:
            self._ask_for_one()

    def _top_up(self) -> None:
        with self.session.lock:
            due = self._due()
        if due:
            self._grant(due)

    def _ask_for_one(self) -> None:
        with self.session.lock:
            due = 0 if self._credit or self.inbox.buffer or self.closed or self._room() <= 0 else 1
            self._credit += due
        if due:
            self._grant(due)

    def _grant(self, n: int) -> None:
        if self._link.lost is None:
            self._link.ask(lambda: self._link.provider.credit(self.handle, n))

    def stop_flow(self, timeout: float) -> None:
        """Take all credit back before closing, so that nothing more comes for nobody."""
        with self.session.lock:
            open_credit = self._credit > 0
        if open_credit and self._link.lost is None and not self._link.interrupted and self.cause is None:
            try:
                self._link.call(lambda: self._link.provider.drain(self.handle), "stop a consumer", timeout)
            except JMSException as error:
                _log.debug("a consumer on %r could not be drained: %s", self.spec.address.name, error)
        with self.session.lock:
            self._credit = 0
