"""The ledger of one session: which delivery is where, and what must become of it.

Pure state: no I/O, no threads, no clock, no lock (the session's lock guards it). Each method is told what happened and
answers with what the caller must now do at the seam.

A delivery goes BUFFERED, DELIVERED, SETTLED; or from DELIVERED back to BUFFERED, in front, its count raised. An event that
finds an entry already settled or handed out again changes nothing.

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
| the link is lost         | all is forgotten: the broker hands out again by the next link           |
| the broker ends a consumer | all that came by it is forgotten: others get it                       |
| session closes           | buffered released, delivered failed (DUPS_OK first accepts its batch)   |

Spec: 4.4.11-1 to 4.4.11-9, 4.5.2-2, 4.5.2-4, 4.5.2-5, 4.5.3-3, 11.2.5.1-21 to 11.2.5.1-26.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from jmsapi._core.deliveries import BUFFERED, DELIVERED, SETTLED, Entry, Inbox, Plan
from jmsapi.spi import Delivery, Tag

__all__ = ["AUTO", "CLIENT", "DUPS_OK", "TRANSACTED", "Entry", "Inbox", "Ledger", "Plan"]

TRANSACTED: Final = 0
AUTO: Final = 1
CLIENT: Final = 2
DUPS_OK: Final = 3


class Ledger:
    """The acknowledgement state of one session.

    Args:
        mode: AUTO, CLIENT, DUPS_OK or TRANSACTED.
        max_redeliveries: A listener's failures on one message after which it is rejected; -1 for no limit.
        batch: The most acks DUPS_OK holds back.
    """

    __slots__ = ("_batch", "_delivered", "_lazy", "_limit", "mode")

    def __init__(self, mode: int, *, max_redeliveries: int = 6, batch: int = 100) -> None:
        self.mode = mode
        self._limit = max_redeliveries
        self._batch = batch
        self._delivered: dict[Entry, None] = {}
        self._lazy: list[Entry] = []

    # ---- arriving -------------------------------------------------------------------------------------------------
    def file(self, inbox: Inbox, deliveries: Sequence[Delivery]) -> None:
        """Buffer what came. What comes for a closed inbox goes back when its consumer is released."""
        if not inbox.closed or inbox.kept:
            inbox.buffer.extend([Entry(inbox, delivery) for delivery in deliveries])

    # ---- handing out ----------------------------------------------------------------------------------------------
    def take(self, inbox: Inbox) -> Entry | None:
        """Hand out the next entry: it is DELIVERED until something is said of it."""
        if not inbox.buffer:
            return None
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
        """The tag of an entry was settled at the provider; return whether its closed inbox is now idle."""
        inbox = entry.inbox
        inbox.unsettled -= 1
        return inbox.closed and not inbox.unsettled

    def carried_out(self, plan: Plan) -> list[Inbox]:
        """The plan's tags were settled at the provider; return the closed inboxes that are now idle."""
        return [entry.inbox for entry in plan.settled if self.left(entry)]

    def done(self, entry: Entry) -> Plan | None:
        """The receive call or the listener returned: what is to be settled now, if anything."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        if self.mode == DUPS_OK:
            del self._delivered[entry]
            self._lazy.append(entry)
            return self.flush() if len(self._lazy) >= self._batch or not entry.inbox.buffer else None
        plan = Plan()
        self._settle(entry, plan.accepted, plan)
        return plan

    def drop(self, entry: Entry) -> Plan:
        """The entry was not for the application (expired): settle it, whatever the mode."""
        plan = Plan()
        if entry.state == DELIVERED:
            self._settle(entry, plan.accepted, plan)
        return plan

    def flush(self) -> Plan | None:
        """Accept what DUPS_OK holds back."""
        if not self._lazy:
            return None
        plan = Plan()
        for entry in self._lazy:
            entry.state = SETTLED
            plan.accepted.append(entry.delivery.tag)
        plan.settled.extend(self._lazy)
        self._lazy.clear()
        return plan

    def listener_failed(self, entry: Entry) -> Plan | None:
        """The listener raised."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        plan = Plan()
        self._fail_here(entry, plan)
        return plan

    def unreadable(self, entry: Entry) -> Plan:
        """Nothing can be made of the entry, so nobody had it: whatever the mode, it comes again, or is rejected at the limit."""
        plan = Plan()
        if entry.state == DELIVERED:
            self._fail_here(entry, plan)
        return plan

    def wrong_body(self, entry: Entry) -> Plan | None:
        """A receive_body call could not give the body as the type asked for."""
        if entry.state != DELIVERED or self.mode in (CLIENT, TRANSACTED):
            return None
        plan = Plan()
        self._again(entry, plan, raised=False)
        return plan

    # ---- connection consumers -------------------------------------------------------------------------------------
    def put_back(self, entry: Entry) -> Plan:
        """Nobody has seen the entry: back in front with it, whatever the mode."""
        plan = Plan()
        if entry.state == DELIVERED:
            self._again(entry, plan, raised=False)
        return plan

    def lend(self, entry: Entry) -> bool:
        """Another session settles the entry, and says so with ``left``. False when there is nothing to settle any more."""
        if entry.state != DELIVERED:
            return False
        entry.state = SETTLED
        del self._delivered[entry]
        return True

    def unlend(self, entry: Entry) -> bool:
        """It has not, and will not. False when its link is lost."""
        if entry.lost:
            entry.inbox.unsettled -= 1
            return False
        entry.state = DELIVERED
        self._delivered[entry] = None
        return True

    # ---- the whole session ----------------------------------------------------------------------------------------
    def acknowledge(self) -> Plan | None:
        """Message.acknowledge was called: all that this session has delivered is done (CLIENT)."""
        if self.mode != CLIENT or not self._delivered:
            return None
        plan = Plan()
        for entry in list(self._delivered):
            self._settle(entry, plan.accepted, plan)
        return plan

    def recover(self) -> Plan:
        """Hand out again, in their order, all that is delivered and not accepted. DUPS_OK's batch counts as accepted."""
        plan = self.flush() or Plan()
        self._hand_out_again(plan)
        return plan

    def held(self) -> list[Tag]:
        """Return the tags that a commit must still accept under its transaction."""
        return [entry.delivery.tag for entry in self._delivered if not entry.enlisted]

    def enlist(self) -> list[Tag]:
        """Return the tags to accept under the running transaction already now, since the broker stops at a window."""
        tags: list[Tag] = []
        for entry in self._delivered:
            if not entry.enlisted:
                entry.enlisted = True
                tags.append(entry.delivery.tag)
        return tags

    def committed(self) -> Plan:
        """The transaction is committed: its deliveries are settled."""
        plan = Plan()
        for entry in list(self._delivered):
            self._settle(entry, [], plan)
        return plan

    def rolled_back(self, *, broker_returns: bool = False) -> Plan:
        """The transaction is rolled back: hand out again.

        Args:
            broker_returns: Entries whose ack was enlisted come back from the broker by themselves; forget them.
        """
        plan = Plan()
        if broker_returns:
            for entry in [entry for entry in self._delivered if entry.enlisted]:
                self._settle(entry, [], plan)
        self._hand_out_again(plan)
        return plan

    # ---- closing --------------------------------------------------------------------------------------------------
    def close_inbox(self, inbox: Inbox, *, keep: bool = False) -> Plan:
        """Close one consumer: what waits is released; what it delivered keeps its state (4.5.3-3).

        Args:
            inbox: The consumer's.
            keep: Nobody else can have what waits: as long as something is unsettled it stays here, for ``reopen``.
        """
        plan = Plan()
        inbox.closed = True
        inbox.kept = keep and inbox.unsettled > 0
        if not inbox.kept:
            self._release_buffer(inbox, plan)
        return plan

    def reopen(self, inbox: Inbox) -> None:
        """Let another consumer go on where a closed one stopped, with what waits and what is still unsettled."""
        inbox.closed = inbox.kept = False

    def close(self, inboxes: Sequence[Inbox], *, broker_returns: bool = False) -> Plan:
        """Close the session: accept DUPS_OK's batch, release what waits, fail what was delivered.

        Args:
            inboxes: All of the session.
            broker_returns: See ``rolled_back``.
        """
        plan = self.flush() or Plan()
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
        """The link of all deliveries is lost: forget them, as the broker hands out again whatever it has not been told of.

        Args:
            inboxes: All of the session.
        Returns:
            How many were delivered to the application and kept for ``acknowledge`` or ``commit``.
        """
        for inbox in inboxes:
            inbox.buffer.clear()
        return self._forget(lambda _: True)

    def ended(self, inbox: Inbox) -> int:
        """The broker has ended a consumer: what came by it others have, or will. See ``interrupted``.

        Args:
            inbox: The consumer's, of this session or another.
        """
        inbox.buffer.clear()
        return self._forget(lambda entry: entry.inbox is inbox)

    def _forget(self, which: Callable[[Entry], bool]) -> int:
        lost = [entry for entry in [*self._delivered, *self._lazy] if which(entry)]
        for entry in lost:
            entry.state = SETTLED
            entry.lost = True
            entry.inbox.unsettled -= 1
            self._delivered.pop(entry, None)
        self._lazy = [entry for entry in self._lazy if not entry.lost]
        return len(lost) if self.mode in (CLIENT, TRANSACTED) else 0

    @property
    def unsettled(self) -> int:
        """How many deliveries the session holds that nobody has settled."""
        return len(self._delivered) + len(self._lazy)

    # ---- moves ----------------------------------------------------------------------------------------------------
    def _settle(self, entry: Entry, tags: list[Tag], plan: Plan) -> None:
        self._delivered.pop(entry, None)
        entry.state = SETTLED
        tags.append(entry.delivery.tag)
        plan.settled.append(entry)

    def _fail(self, entry: Entry, plan: Plan) -> None:
        plan.failures.append(entry.extra + (entry.state == DELIVERED))
        self._settle(entry, plan.failed, plan)

    def _fail_here(self, entry: Entry, plan: Plan) -> None:
        if 0 <= self._limit <= entry.extra:
            self._settle(entry, plan.rejected, plan)
        else:
            self._again(entry, plan, raised=True)

    def _again(self, entry: Entry, plan: Plan, *, raised: bool) -> None:
        inbox = entry.inbox
        if inbox.closed:
            # Nobody is left here to hand it to: the broker has to.
            if raised:
                self._fail(entry, plan)
            else:
                self._settle(entry, plan.released, plan)
            return
        del self._delivered[entry]
        entry.state = BUFFERED
        entry.enlisted = False
        entry.extra += raised
        inbox.unsettled -= 1
        inbox.buffer.appendleft(entry)

    def _hand_out_again(self, plan: Plan) -> None:
        for entry in reversed(list(self._delivered)):
            self._again(entry, plan, raised=True)

    def _release_buffer(self, inbox: Inbox, plan: Plan) -> None:
        for entry in inbox.buffer:
            # An entry that was handed out here before has been seen, so it must not come as new to the next consumer.
            inbox.unsettled += 1
            if entry.extra:
                self._fail(entry, plan)
            else:
                self._settle(entry, plan.released, plan)
        inbox.buffer.clear()
