"""The ledger of a worker: what its container decides of a delivery, whatever the session's mode.

Pure state, as its base. Deliveries come from an inbox of another session, under the lock that both share.

Spec: MDB-44 to MDB-62, MDB-66 to MDB-70.
"""

from __future__ import annotations

from collections.abc import Sequence

from jmsapi._core.ledger import Entry, Ledger, Plan

__all__ = ["WorkLedger"]


class WorkLedger(Ledger):
    """The acknowledgement state of one worker's session."""

    __slots__ = ()

    def adopt(self, entries: Sequence[Entry]) -> None:
        """Take note of entries that were just taken out of their inbox: they are DELIVERED."""
        for entry in entries:
            entry.inbox.unsettled += 1
        self.receive(entries)

    def receive(self, entries: Sequence[Entry]) -> None:
        """Take entries over from another ledger."""
        for entry in entries:
            self.unlend(entry)

    def holds(self, entry: Entry) -> bool:
        """Whether an entry is here to be settled."""
        return entry in self._delivered

    def cede(self, entries: Sequence[Entry]) -> list[Entry]:
        """Give entries to another ledger; return those that are still here to be given."""
        living = [entry for entry in entries if entry in self._delivered]
        for entry in living:
            del self._delivered[entry]
        return living

    def seen(self, entries: Sequence[Entry]) -> tuple[Plan, list[Entry]]:
        """The listener has failed on entries.

        Returns:
            What to tell the broker of those whose consumer is closed; and the others in their order, buffered and one count up,
            for the caller to put somewhere.
        """
        plan, waiting = Plan(), list[Entry]()
        for entry in entries:
            if entry not in self._delivered:
                continue
            if entry.inbox.closed:
                self._fail(entry, plan)
            else:
                self._again(entry, plan, raised=True)
                entry.inbox.buffer.popleft()
                waiting.append(entry)
        return plan, waiting

    def rejected(self, entries: Sequence[Entry]) -> Plan:
        """The listener has failed on them once too often."""
        plan = Plan()
        for entry in entries:
            if entry in self._delivered:
                self._settle(entry, plan.rejected, plan)
        return plan
