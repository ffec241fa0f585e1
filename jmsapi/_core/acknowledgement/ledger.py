"""The ledger of one session: which delivery is where, and what must become of it.

Pure state: no I/O, no threads, no clock, no lock (the session's lock guards it). Each method records an event and
returns what the caller must now tell the provider.

A delivery goes BUFFERED, DELIVERED, SETTLED; or from DELIVERED back to BUFFERED, in front, its count raised. An event that
finds an entry already settled or handed out again changes nothing. A session can also borrow deliveries that another session has
received (``lending.py``): they are DELIVERED in its ledger and counted as unsettled by the lender.

Who may do what, by session mode:

| event                    | AUTO                         | DUPS_OK         | CLIENT   | TRANSACTED            |
|--------------------------|------------------------------|-----------------|----------|-----------------------|
| receive/listener returns | accept                       | accept, batched | keep     | keep                  |
| listener raises          | again, count + 1; reject at  | as AUTO         | keep     | keep                  |
|                          | the limit                    |                 |          |                       |
| body of the wrong type   | back in front, count as was  | as AUTO         | keep     | keep                  |
| acknowledge              | nothing                      | nothing         | accept   | nothing               |
| recover                  | what is not yet accepted is handed out again | | again    | refused by the session|
| commit, rollback         | refused by the session       |                 |          | accept; hand out again|
| the same again and again | rejected at the limit where the broker is sure to keep it (``_is_worn_out``)    |
| the connection is lost   | all is forgotten: the broker hands out again by the next connection     |
| the broker ends a consumer | all that came by it is forgotten: others get it                       |
| session closes           | buffered released, delivered failed (DUPS_OK first accepts its batch)   |

Spec: 4.4.11-1 to 4.4.11-9, 4.5.2-2, 4.5.2-4, 4.5.2-5, 4.5.3-3, 11.2.5.1-21 to 11.2.5.1-26, MDB-44 to MDB-70.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from jmsapi.spi import PERSISTENT, Delivery, Envelope, Outcome, Tag

__all__ = [
    "AUTO",
    "BUFFERED",
    "CLIENT",
    "DELIVERED",
    "DUPS_OK",
    "SETTLED",
    "TRANSACTED",
    "DeliveryOwner",
    "Entry",
    "Inbox",
    "Ledger",
    "SettlementPlan",
]

TRANSACTED: Final = 0
AUTO: Final = 1
CLIENT: Final = 2
DUPS_OK: Final = 3

BUFFERED: Final = 0
DELIVERED: Final = 1
SETTLED: Final = 2


class DeliveryOwner(Protocol):
    """The lender of a borrowed delivery, which counts it as unsettled until it is reported as returned."""

    @property
    def inbox(self) -> Inbox:
        """The inbox by which the delivery came."""
        ...

    def returned(self, entries: Sequence[Entry]) -> None:
        """The borrower has settled deliveries at the provider. Without any session's lock held."""

    def waits_again(self, entry: Entry) -> None:
        """The borrower hands a delivery out again, from the inbox that the entry names. With the borrower's lock held."""


class Entry:
    """One delivery in the ledger's hands."""

    __slots__ = ("arrived", "delivery", "enlisted", "extra", "failure", "inbox", "lender", "lost", "state")

    def __init__(self, inbox: Inbox, delivery: Delivery, arrived: float) -> None:
        self.inbox = inbox
        """Where it waits, and waits again when it is handed out again."""
        self.delivery = delivery
        self.arrived = arrived
        """When it came, in the clock's monotonic seconds."""
        self.extra = 0
        """Times it was handed out again here, which the broker does not know of."""
        self.failure = ""
        """In words, what its container's listener raised last."""
        self.state = BUFFERED
        self.enlisted = False
        """Accepted under the running transaction before its commit."""
        self.lost = False
        """Its connection or its consumer is lost, so it comes again whatever is settled here."""
        self.lender: DeliveryOwner | None = None
        """The receiver that has lent this entry to the session whose ledger holds it; None for an entry of its own."""

    @property
    def source(self) -> Inbox:
        """The inbox of the consumer that received it."""
        return self.inbox if self.lender is None else self.lender.inbox


class Inbox:
    """What one consumer has received: entries waiting, and how many are delivered and not yet settled at the provider."""

    __slots__ = ("buffer", "closed", "kept", "only_here", "unsettled")

    def __init__(self) -> None:
        self.buffer: deque[Entry] = deque()
        self.unsettled = 0
        self.closed = False
        self.kept = False
        """Closed, yet it keeps what waits, for the next consumer of its subscription."""
        self.only_here = False
        """What waits comes to nobody again when the connection is lost."""

    @property
    def idle(self) -> bool:
        """Whether nothing binds this inbox to its consumer at the provider any more."""
        return self.closed and not self.unsettled


@dataclass(slots=True)
class SettlementPlan:
    """What the caller must tell the provider. When it has, it reports with ``Ledger.carried_out``."""

    accepted: list[Tag] = field(default_factory=list[Tag])
    released: list[Tag] = field(default_factory=list[Tag])
    failed: list[Tag] = field(default_factory=list[Tag])
    failures: list[int] = field(default_factory=list[int])
    """How often each of the failed was handed out here."""
    rejected: list[Tag] = field(default_factory=list[Tag])
    given_up: list[Entry] = field(default_factory=list[Entry])
    """The entries that are rejected because they have failed too often."""
    settled: list[Entry] = field(default_factory=list[Entry])
    """The entries that these outcomes, or the end of a transaction, settle."""

    def outcomes(self) -> tuple[tuple[list[Tag], Outcome, list[int]], ...]:
        """Return what to tell the provider, in order: tags, their outcome, and how often each failed."""
        return (
            (self.accepted, Outcome.ACCEPTED, []),
            (self.released, Outcome.RELEASED, []),
            (self.failed, Outcome.FAILED, self.failures),
            (self.rejected, Outcome.REJECTED, []),
        )


class Ledger:
    """The acknowledgement state of one session.

    Args:
        mode: AUTO, CLIENT, DUPS_OK or TRANSACTED.
        max_redeliveries: Failures on one message after which it is rejected; -1 for no limit.
        keeps_rejected: The broker is sure to keep what is rejected. Else only what a listener fails on is.
        batch: The most acks DUPS_OK holds back.
    """

    __slots__ = ("_batch", "_delivered", "_keeps_rejected", "_lazy", "_limit", "borrows", "mode", "repeats")

    def __init__(self, mode: int, *, max_redeliveries: int = 6, keeps_rejected: bool = False, batch: int = 100) -> None:
        self.mode = mode
        self._limit = max_redeliveries
        self._keeps_rejected = keeps_rejected
        self._batch = batch
        self._delivered: dict[Entry, None] = {}
        self._lazy: list[Entry] = []
        self.borrows = False
        """Some entries are, or were, borrowed from another session."""
        self.repeats = 0
        """How often the most failed of what was handed out again last had been delivered before, as far as is known."""

    # ---- arriving -------------------------------------------------------------------------------------------------
    def file(self, inbox: Inbox, deliveries: Sequence[Delivery], arrived: float) -> None:
        """Buffer what came. What comes for a closed inbox goes back when its consumer is released.

        Args:
            inbox: That of the consumer.
            deliveries: In order.
            arrived: When they came, in the clock's monotonic seconds.
        """
        if not inbox.closed or inbox.kept:
            inbox.buffer.extend([Entry(inbox, delivery, arrived) for delivery in deliveries])

    # ---- handing out ----------------------------------------------------------------------------------------------
    def take(self, inbox: Inbox) -> Entry:
        """Hand out the next entry of an inbox in which one waits: it is DELIVERED until its outcome is recorded."""
        entry = inbox.buffer.popleft()
        entry.state = DELIVERED
        inbox.unsettled += 1
        self._delivered[entry] = None
        return entry

    def accept(self, entry: Entry) -> bool:
        """The receive call or the listener returned, in AUTO mode: the common case of ``done``, without a plan.

        Returns:
            Whether the caller must now accept the entry's tag, and then call ``left``.
        """
        if self.mode != AUTO or entry.state != DELIVERED:
            return False
        entry.state = SETTLED
        del self._delivered[entry]
        return True

    def left(self, entry: Entry) -> bool:
        """The tag of an entry was settled at the provider; return whether its closed inbox is now idle.

        A borrowed entry is reported to its lender besides, who counts it.
        """
        if entry.lender is not None:
            return False
        inbox = entry.inbox
        inbox.unsettled -= 1
        return inbox.closed and not inbox.unsettled

    def carried_out(self, plan: SettlementPlan) -> list[Inbox]:
        """The plan's tags were settled at the provider; return the closed inboxes that are now idle."""
        idle: list[Inbox] = []
        for entry in plan.settled:
            if entry.lender is None:
                inbox = entry.inbox
                inbox.unsettled -= 1
                if inbox.closed and not inbox.unsettled:
                    idle.append(inbox)
        return idle

    def done(self, entry: Entry) -> SettlementPlan | None:
        """The receive call or the listener returned: what is to be settled now, if anything."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        if self.mode == DUPS_OK:
            del self._delivered[entry]
            self._lazy.append(entry)
            return self.flush() if len(self._lazy) >= self._batch or not entry.inbox.buffer else None
        plan = SettlementPlan()
        self._settle(entry, plan.accepted, plan)
        return plan

    def drop(self, entry: Entry) -> SettlementPlan:
        """The entry was not for the application (expired): settle it, whatever the mode."""
        plan = SettlementPlan()
        if entry.state == DELIVERED:
            self._settle(entry, plan.accepted, plan)
        return plan

    def flush(self) -> SettlementPlan | None:
        """Accept what DUPS_OK holds back."""
        if not self._lazy:
            return None
        plan = SettlementPlan()
        for entry in self._lazy:
            entry.state = SETTLED
            plan.accepted.append(entry.delivery.tag)
        plan.settled.extend(self._lazy)
        self._lazy.clear()
        return plan

    def listener_failed(self, entry: Entry) -> SettlementPlan | None:
        """The listener raised."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        plan = SettlementPlan()
        self._fail_here(entry, plan)
        return plan

    def listener_failed_at_broker(self, entry: Entry) -> SettlementPlan:
        """The listener raised, and the broker hands out again: it goes by the broker's count."""
        plan = SettlementPlan()
        if entry.state == DELIVERED and self.mode in (AUTO, DUPS_OK):
            if 0 <= self._limit < entry.delivery.delivery_count:
                self._give_up(entry, plan)
            else:
                self._fail(entry, plan)
        return plan

    def unreadable(self, entry: Entry) -> SettlementPlan:
        """Nothing can be made of the entry, so nobody had it: whatever the mode, it comes again, or is rejected at the limit."""
        plan = SettlementPlan()
        if entry.state == DELIVERED:
            self._fail_here(entry, plan)
        return plan

    def wrong_body(self, entry: Entry) -> SettlementPlan | None:
        """A receive_body call could not give the body as the type asked for."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        plan = SettlementPlan()
        self._again(entry, plan, raised=False)
        return plan

    # ---- interruptions by a handler of a signal --------------------------------------------------------------------
    def restore(self, entry: Entry) -> None:
        """Put back in front what was taken, or nearly, and perhaps accepted, and neither handed out nor settled."""
        if entry.lost or entry.lender is not None:
            return
        self._delivered.pop(entry, None)
        self._lazy = [one for one in self._lazy if one is not entry]
        entry.state = BUFFERED
        if entry not in entry.inbox.buffer:
            entry.inbox.buffer.appendleft(entry)

    def recount(self, inboxes: Iterable[Inbox]) -> None:
        """Count anew what is unsettled, where nothing is on its way to the application or back."""
        held = [*self._delivered, *self._lazy]
        for inbox in inboxes:
            inbox.unsettled = sum(entry.inbox is inbox for entry in held)

    # ---- borrowing and lending ------------------------------------------------------------------------------------
    def borrow(self, entries: Sequence[Entry]) -> None:
        """Take over entries that another session has received: they are DELIVERED here, to be settled here."""
        self.borrows = True
        for entry in entries:
            entry.state = DELIVERED
            self._delivered[entry] = None

    def cede(self, entries: Iterable[Entry]) -> list[Entry]:
        """Let another session have entries, or their lender have them back; return those that are still here to be given."""
        living = [entry for entry in entries if entry in self._delivered]
        for entry in living:
            del self._delivered[entry]
        return living

    def holds(self, entry: Entry) -> bool:
        """Whether an entry is here to be settled."""
        return entry in self._delivered

    def give_back(self, entries: Sequence[Entry], *, seen: bool) -> SettlementPlan:
        """Let the broker have entries that nobody here can have: a listener has seen them, or nobody has."""
        plan = SettlementPlan()
        for entry in entries:
            if seen:
                self._fail(entry, plan)
            else:
                self._settle(entry, plan.released, plan)
        return plan

    def rejected(self, entries: Sequence[Entry]) -> SettlementPlan:
        """Nobody can handle these entries: the broker is to put them away."""
        plan = SettlementPlan()
        for entry in entries:
            if entry in self._delivered:
                self._settle(entry, plan.rejected, plan)
        return plan

    # ---- the whole session ----------------------------------------------------------------------------------------
    def acknowledge(self) -> SettlementPlan | None:
        """Message.acknowledge was called: all that this session has delivered is done (CLIENT)."""
        if self.mode != CLIENT or not self._delivered:
            return None
        plan = SettlementPlan()
        for entry in list(self._delivered):
            self._settle(entry, plan.accepted, plan)
        return plan

    def recover(self) -> SettlementPlan:
        """Hand out again, in their order, all that is delivered and not accepted. DUPS_OK's batch counts as accepted."""
        plan = self.flush() or SettlementPlan()
        self._count_repeats(self._delivered)
        self._hand_out_again(plan)
        return plan

    def failed(self) -> SettlementPlan:
        """Give back to the broker all that is delivered and not accepted, for it to hand out again; see ``recover``."""
        plan = self.flush() or SettlementPlan()
        for entry in list(self._delivered):
            self._fail(entry, plan)
        return plan

    def held(self) -> list[Tag]:
        """Return the tags that a commit must still accept under its transaction."""
        return [entry.delivery.tag for entry in self._delivered if not entry.enlisted]

    def delivered(self) -> list[Envelope]:
        """Return the messages that a commit accepts and a rollback hands out again."""
        return [entry.delivery.envelope for entry in self._delivered]

    def enlist(self) -> list[Tag]:
        """Return the tags to accept under the running transaction already now, since the broker stops at a window."""
        tags: list[Tag] = []
        for entry in self._delivered:
            if not entry.enlisted:
                entry.enlisted = True
                tags.append(entry.delivery.tag)
        return tags

    def sources(self) -> list[Inbox] | None:
        """Return the inboxes of what is delivered and not settled; None when some of it belongs to another session."""
        if any(entry.lender is not None or entry.lost for entry in self._delivered):
            return None
        return list(dict.fromkeys(entry.inbox for entry in self._delivered))

    def release_waiting(self, inboxes: Iterable[Inbox]) -> SettlementPlan:
        """Give back what waits behind deliveries that the broker hands out again."""
        plan = SettlementPlan()
        for inbox in inboxes:
            self._release_buffer(inbox, plan)
        return plan

    def committed(self) -> SettlementPlan:
        """The transaction is committed: its deliveries are settled."""
        plan = SettlementPlan()
        for entry in list(self._delivered):
            self._settle(entry, [], plan)
        return plan

    def rolled_back(self, *, broker_returns: bool = False) -> SettlementPlan:
        """The transaction is rolled back: hand out again.

        Args:
            broker_returns: Entries whose ack was enlisted come back from the broker by themselves; forget them.
        """
        plan = SettlementPlan()
        self._count_repeats(self._delivered)
        if broker_returns:
            for entry in [entry for entry in self._delivered if entry.enlisted]:
                self._settle(entry, [], plan)
        self._hand_out_again(plan)
        return plan

    # ---- closing --------------------------------------------------------------------------------------------------
    def close_inbox(self, inbox: Inbox, *, keep: bool = False) -> SettlementPlan:
        """Close one consumer: what waits is released; what it delivered keeps its state (4.5.3-3).

        Args:
            inbox: The consumer's.
            keep: Nobody else can have what waits: as long as something is unsettled it stays here, for ``reopen``.
        """
        plan = SettlementPlan()
        inbox.closed = True
        inbox.kept = keep and inbox.unsettled > 0
        if not inbox.kept:
            self._release_buffer(inbox, plan)
        return plan

    def reopen(self, inbox: Inbox) -> None:
        """Let another consumer go on where a closed one stopped, with what waits and what is still unsettled."""
        inbox.closed = inbox.kept = False

    def close(self, inboxes: Sequence[Inbox], *, broker_returns: bool = False) -> SettlementPlan:
        """Close the session: accept DUPS_OK's batch, release what waits, fail what was delivered.

        Args:
            inboxes: All of the session.
            broker_returns: See ``rolled_back``.
        """
        plan = self.flush() or SettlementPlan()
        for entry in list(self._delivered):
            if entry.enlisted and broker_returns:
                self._settle(entry, [], plan)
            else:
                self._fail(entry, plan)
        for inbox in inboxes:
            inbox.closed = True
            self._release_buffer(inbox, plan)
        return plan

    def interrupted(self, inboxes: Iterable[Inbox]) -> int:
        """The connection of all deliveries is lost: forget them, as the broker hands out again what was not settled.

        Args:
            inboxes: All of the session.
        Returns:
            How many were delivered to the application and kept for ``acknowledge`` or ``commit``.
        """
        for inbox in inboxes:
            inbox.buffer.clear()
        return self._forget(lambda _: True)

    @staticmethod
    def lost(inboxes: Iterable[Inbox]) -> None:
        """The connection is lost for good: hand out nothing that the broker hands out again.

        Args:
            inboxes: All of the session.
        """
        for inbox in inboxes:
            if not inbox.only_here:
                inbox.buffer.clear()

    def ended(self, inbox: Inbox) -> int:
        """The broker has ended a consumer: what came by it goes to others. See ``interrupted``.

        Args:
            inbox: The consumer's, of this session or of a lender.
        """
        inbox.buffer.clear()
        return self._forget(lambda entry: entry.source is inbox)

    def _forget(self, which: Callable[[Entry], bool]) -> int:
        lost = [entry for entry in [*self._delivered, *self._lazy] if which(entry)]
        for entry in lost:
            entry.state = SETTLED
            entry.lost = True
            if entry.lender is None:
                entry.inbox.unsettled -= 1
            self._delivered.pop(entry, None)
        self._lazy = [entry for entry in self._lazy if not entry.lost]
        return len(lost) if self.mode in (CLIENT, TRANSACTED) else 0

    def in_flight(self, inboxes: Iterable[Inbox], lent: int) -> int:
        """Return how many deliveries are taken from an inbox and neither here nor settled at the provider: they are on their way.

        Args:
            inboxes: All of the session.
            lent: How many other sessions have.
        """
        own = sum(entry.lender is None for entry in (*self._delivered, *self._lazy))
        return sum(inbox.unsettled for inbox in inboxes) - own - lent

    def left_behind(self, inboxes: Iterable[Inbox]) -> None:
        """Forget what waits, and what threads of the parent of this forked process had on its way."""
        for inbox in inboxes:
            inbox.buffer.clear()
            inbox.unsettled = 0
        for entry in (*self._delivered, *self._lazy):
            entry.inbox.unsettled += 1

    @property
    def unsettled(self) -> int:
        """How many deliveries the session holds that nobody has settled."""
        return len(self._delivered) + len(self._lazy)

    # ---- moves ----------------------------------------------------------------------------------------------------
    def _settle(self, entry: Entry, tags: list[Tag], plan: SettlementPlan) -> None:
        self._delivered.pop(entry, None)
        entry.state = SETTLED
        tags.append(entry.delivery.tag)
        plan.settled.append(entry)

    def _fail(self, entry: Entry, plan: SettlementPlan) -> None:
        plan.failures.append(entry.extra + (entry.state == DELIVERED))
        self._settle(entry, plan.failed, plan)

    def _fail_here(self, entry: Entry, plan: SettlementPlan) -> None:
        self._count_repeats((entry,))
        if 0 <= self._limit <= entry.extra:
            self._give_up(entry, plan)
        else:
            self._again(entry, plan, raised=True)

    def _give_up(self, entry: Entry, plan: SettlementPlan) -> None:
        self._settle(entry, plan.rejected, plan)
        plan.given_up.append(entry)

    def _count_repeats(self, entries: Iterable[Entry]) -> None:
        self.repeats = max((entry.delivery.delivery_count + entry.extra for entry in entries), default=0)

    def _is_worn_out(self, entry: Entry) -> bool:
        """Whether what was rolled back or recovered is put away instead of coming again.

        Not where it might be lost by that: a broker without a place for it, or one that keeps only PERSISTENT messages there. Nor
        for a worker of a container, which has rules of its own.
        """
        if not self._keeps_rejected or not 0 <= self._limit <= entry.extra or entry.lost or entry.inbox.closed:
            return False
        of_worker = entry.lender is not None and entry.inbox is entry.lender.inbox
        return not of_worker and entry.delivery.envelope.delivery_mode == PERSISTENT

    def _again(self, entry: Entry, plan: SettlementPlan, *, raised: bool) -> None:
        inbox = entry.inbox
        if entry.lost:
            # A borrowed entry whose lender knows already that it comes again from the broker.
            del self._delivered[entry]
            entry.state = SETTLED
            return
        if inbox.closed:
            # No consumer is left here to have it, so the broker hands it out again.
            if raised:
                self._fail(entry, plan)
            else:
                self._settle(entry, plan.released, plan)
            return
        del self._delivered[entry]
        entry.state = BUFFERED
        entry.enlisted = False
        entry.extra += raised
        if entry.lender is None:
            inbox.unsettled -= 1
        else:
            entry.lender.waits_again(entry)
        inbox.buffer.appendleft(entry)

    def _hand_out_again(self, plan: SettlementPlan) -> None:
        for entry in reversed(list(self._delivered)):
            if self._is_worn_out(entry):
                self._give_up(entry, plan)
            else:
                self._again(entry, plan, raised=True)

    def _release_buffer(self, inbox: Inbox, plan: SettlementPlan) -> None:
        for entry in inbox.buffer:
            # An entry that was handed out here before has been seen, so it must not come as new to the next consumer.
            if entry.lender is None:
                inbox.unsettled += 1
            if entry.extra:
                self._fail(entry, plan)
            else:
                self._settle(entry, plan.released, plan)
        inbox.buffer.clear()
