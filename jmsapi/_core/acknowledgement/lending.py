"""Lending: one session receives deliveries, other sessions settle them.

A connection consumer lends to server sessions, a listener container's receiver to its workers. A delivery that is lent is in the
ledger of its borrower and in no other, and settled by the borrower's mode, in its transaction. The lender counts it as unsettled,
since the consumer at the provider is the lender's; the borrower's settlement reports it back (``Lender.returned``).

Spec: 8.2.1, MDB-44 to MDB-62.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from jmsapi._core.acknowledgement.ledger import BUFFERED, Entry, Inbox, SettlementPlan
from jmsapi._core.acknowledgement.settlement import Settlement
from jmsapi._core.session_state import SessionConsumer, SessionState
from jmsapi.errors import IllegalStateException

__all__ = ["Lender"]


class Lender:
    """Lends what one consumer receives. Its state is guarded by the lock of the session that receives.

    Args:
        state: That session's.
        settlement: That session's.
        returned: Called when borrowers have settled something, without the lock.
    """

    def __init__(self, state: SessionState, settlement: Settlement, returned: Callable[[], None]) -> None:
        self.state = state
        self.settlement = settlement
        self._returned = returned
        self._consumer: SessionConsumer | None = None
        self.lent: set[Entry] = set()
        """What is taken out of the inbox for borrowers and not settled by them."""

    @property
    def consumer(self) -> SessionConsumer:
        """The consumer that receives."""
        if self._consumer is None:
            raise IllegalStateException("nothing can be lent yet: the session has no consumer")
        return self._consumer

    @consumer.setter
    def consumer(self, consumer: SessionConsumer) -> None:
        self._consumer = consumer

    @property
    def inbox(self) -> Inbox:
        """The inbox by which deliveries come; see DeliveryOwner."""
        return self.consumer.inbox

    @property
    def last_release(self) -> Future[None] | None:
        """The end of the consumer at the provider, once it was asked for."""
        return self.settlement.last_release

    @property
    def awaiting_redelivery(self) -> int:
        """How many messages are kept here to be handed out again later."""
        return 0

    # ---- lending --------------------------------------------------------------------------------------------------
    def lend(self, entries: Iterable[Entry]) -> None:
        """Lend entries that were just taken out of the inbox. With the lock held."""
        inbox = self.inbox
        for entry in entries:
            entry.lender = self
            inbox.unsettled += 1
            self.lent.add(entry)

    def lend_delivered(self, entries: Iterable[Entry]) -> list[Entry]:
        """Lend entries that the receiving session has handed out; return those it still has. With the lock held."""
        living = self.state.ledger.cede(entries)
        for entry in living:
            entry.lender = self
            self.lent.add(entry)
        return living

    # ---- what comes back ------------------------------------------------------------------------------------------
    def returned(self, entries: Sequence[Entry]) -> None:
        """The borrower has settled entries at the provider; see DeliveryOwner."""
        inbox = self.inbox
        with self.state.lock:
            for entry in entries:
                if entry in self.lent:
                    self.lent.remove(entry)
                    inbox.unsettled -= 1
            if not self.lent:
                self.state.changed.notify_all()
            idle = inbox.idle
        if idle:
            self.settlement.release(inbox)
        self._returned()

    def waits_again(self, entry: Entry) -> None:
        """The borrower hands an entry out again; see DeliveryOwner."""
        # A server session hands out again by itself, from an inbox of its own. A worker's transaction gives back to all workers.
        if entry.inbox is self.inbox and entry in self.lent:
            self.lent.remove(entry)
            self.inbox.unsettled -= 1
            entry.lender = None

    def take_back(self, entries: Sequence[Entry], *, seen: bool) -> tuple[list[Entry], SettlementPlan]:
        """Take back entries that their borrower has ceded. With the lock held.

        Args:
            entries: In their order.
            seen: A listener has had them, so their count goes up.
        Returns:
            The entries, to be put in front of what waits by ``put_in_front`` or kept for later; and, if the consumer is closed,
            the plan that gives them back to the broker instead.
        """
        mine = [entry for entry in entries if entry in self.lent]
        if not mine:
            return [], SettlementPlan()
        for entry in mine:
            self.lent.remove(entry)
            entry.lender = None
            entry.inbox = self.inbox
        if self.inbox.closed:
            return [], self.state.ledger.give_back(mine, seen=seen)
        for entry in mine:
            self.inbox.unsettled -= 1
            entry.state = BUFFERED
            entry.enlisted = False
            entry.extra += seen
        return mine, SettlementPlan()

    def put_in_front(self, entries: Sequence[Entry]) -> None:
        """Let entries wait in front of the others, in their order. With the lock held."""
        if entries:
            self.inbox.buffer.extendleft(reversed(entries))

    # ---- what happens to the receiving session --------------------------------------------------------------------
    def void(self) -> None:
        """The connection or the consumer is lost, so all that is lent comes again from the broker. With the lock held."""
        for entry in self.lent:
            entry.lost = True
        if self.lent:
            self.inbox.unsettled -= len(self.lent)
        self.lent.clear()

    def receives_by(self, inbox: Inbox) -> bool:
        """Whether an inbox is the one by which deliveries come."""
        return self._consumer is not None and self._consumer.inbox is inbox

    def flow_changed(self) -> None:
        """The session was started or stopped. With the lock held."""

    def before_close(self) -> None:
        """The session is about to close: let borrowers go, and take back what nobody has seen."""
