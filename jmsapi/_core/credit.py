"""Credit: how many messages the provider may still deliver to a consumer.

The provider may have at most ``prefetch`` messages on their way or waiting here; it is topped up when half is used. With
prefetch 0 each receive asks for one message and takes the credit back when time is up, so nothing is held ahead.
"""

from __future__ import annotations

import logging
from typing import Final

from jmsapi._core.acknowledgement.ledger import Inbox
from jmsapi._core.session_state import SessionState
from jmsapi._core.waiting import ConditionWait, Steps
from jmsapi.errors import JMSException
from jmsapi.spi import Handle, stop_consumer

__all__ = ["Credit"]

_log: Final = logging.getLogger("jmsapi")
_TOLD_S: Final = 1.0
"""How long a grant may take that another thread is about to tell of. One that a signal has interrupted is never told of."""


class Credit:
    """The credit of one consumer at its provider. Its state is guarded by the session's lock.

    Args:
        state: The session's.
        inbox: The consumer's.
        handle: The consumer at the provider.
        prefetch: The most messages on their way or waiting.
    """

    def __init__(self, state: SessionState, inbox: Inbox, handle: Handle, prefetch: int) -> None:
        self.state = state
        self.inbox = inbox
        self.handle = handle
        self._limit = state.link.options.max_unacknowledged
        self.prefetch = prefetch
        self.granted = 0
        """Messages the provider may still deliver."""
        self.stopped = False
        """The consumer is closed: nothing more is asked for."""
        self._untold = 0
        """Grants that are recorded and of which the provider has not been told yet."""

    def due(self) -> int:
        """Return how much credit is to be granted now, and record it as granted. With the session's lock held."""
        most = self.prefetch
        n = most - self.granted - len(self.inbox.buffer)
        if self._limit is not None:
            most = min(most, self._limit)
            n = min(n, self._room())
        if n * 2 < most or n <= 0 or self.stopped:
            return 0
        return self._record(n)

    def _record(self, n: int) -> int:
        """Record credit that ``grant`` is about to tell of. With the session's lock held."""
        self.granted += n
        self._untold += 1
        return n

    def _room(self) -> int:
        """Return how many more messages may come before ``max_unacknowledged`` is reached."""
        if self._limit is None:
            return 1
        return self._limit - self.granted - len(self.inbox.buffer) - self.inbox.unsettled

    def top_up(self) -> None:
        """Grant what is due."""
        with self.state.lock:
            due = self.due()
        if due:
            self.grant(due)

    def ask_for_one(self) -> None:
        """Grant one message, unless one is here or on its way already."""
        with self.state.lock:
            due = 0 if self.granted or self.inbox.buffer or self.stopped or self._room() <= 0 else self._record(1)
        if due:
            self.grant(due)

    def grant(self, n: int) -> None:
        """Tell the provider of credit that is recorded as granted."""
        link = self.state.link
        try:
            if link.lost is None:
                link.ask(lambda: link.provider.credit(self.handle, n))
        finally:
            with self.state.lock:
                self._untold -= 1
                if self.stopped:
                    self.state.changed.notify_all()

    def take_back_steps(self, *, look: bool) -> Steps[None]:
        """Take all credit back: when this is done, nothing more is on its way.

        Args:
            look: If nothing has come by then, the broker has nothing for the consumer.

        Raises:
            JMSException: The provider does not confirm it.
        """
        link = self.state.link
        if look:
            yield link.awaiting(link.ask(lambda: link.provider.drain(self.handle)), "ask for messages at hand")
        else:
            yield link.awaiting(link.ask(lambda: stop_consumer(link.provider, self.handle)), "take back what is asked for")
        with self.state.lock:
            self.granted = 0

    def stop_steps(self, name: str, timeout: float) -> Steps[None]:
        """Take all credit back before closing, so that nothing more comes for nobody.

        Args:
            name: Of the destination, for the log.
            timeout: Seconds.
        """
        link = self.state.link
        with self.state.lock:
            open_credit = self.granted > 0
        if open_credit and link.lost is None and not link.interrupted:
            # A grant that another thread is about to tell of would come behind the drain, and bring messages for nobody.
            yield ConditionWait(self.state.changed, lambda: not self._untold, min(timeout, _TOLD_S))
            try:
                yield link.awaiting(link.ask(lambda: stop_consumer(link.provider, self.handle)), "stop a consumer", timeout)
            except JMSException as error:
                _log.debug("a consumer on %r could not be drained: %s", name, error)
        with self.state.lock:
            self.granted = 0
