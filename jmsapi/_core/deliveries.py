"""What a ledger keeps books of: deliveries, where they wait, and what is to be said of them at the seam. Spec: 4.4.11, 4.5.2."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from jmsapi.spi import Delivery, Outcome, Tag

__all__ = ["BUFFERED", "DELIVERED", "SETTLED", "Entry", "Inbox", "Plan"]

BUFFERED: Final = 0
DELIVERED: Final = 1
SETTLED: Final = 2


class Entry:
    """One delivery in the ledger's hands."""

    __slots__ = ("delivery", "enlisted", "extra", "failure", "inbox", "lost", "state")

    def __init__(self, inbox: Inbox, delivery: Delivery) -> None:
        self.inbox = inbox
        self.delivery = delivery
        self.extra = 0
        """Times it was handed out again here, which the broker does not know of."""
        self.failure = ""
        """In words, what its container's listener raised last."""
        self.state = BUFFERED
        self.enlisted = False
        """Accepted under the running transaction before its commit."""
        self.lost = False
        """Its link is lost: it comes again, whatever is said of it."""


class Inbox:
    """What one consumer has received: entries waiting, and how many are delivered and not yet settled at the provider."""

    __slots__ = ("buffer", "closed", "kept", "unsettled")

    def __init__(self) -> None:
        self.buffer: deque[Entry] = deque()
        self.unsettled = 0
        self.closed = False
        self.kept = False
        """Closed, yet it keeps what waits, for the next consumer of its subscription."""

    @property
    def idle(self) -> bool:
        """Whether nothing binds this inbox to its consumer at the provider any more."""
        return self.closed and not self.unsettled


@dataclass(slots=True)
class Plan:
    """What the caller must do at the seam. When it has, it says so with ``Ledger.carried_out``."""

    accepted: list[Tag] = field(default_factory=list[Tag])
    released: list[Tag] = field(default_factory=list[Tag])
    failed: list[Tag] = field(default_factory=list[Tag])
    failures: list[int] = field(default_factory=list[int])
    """How often each of the failed was handed out here."""
    rejected: list[Tag] = field(default_factory=list[Tag])
    settled: list[Entry] = field(default_factory=list[Entry])
    """The entries that these outcomes, or the end of a transaction, settle."""

    def outcomes(self) -> tuple[tuple[list[Tag], Outcome, list[int]], ...]:
        """Return what to say at the seam, in order: tags, their outcome, and how often each failed."""
        return (
            (self.accepted, Outcome.ACCEPTED, []),
            (self.released, Outcome.RELEASED, []),
            (self.failed, Outcome.FAILED, self.failures),
            (self.rejected, Outcome.REJECTED, []),
        )
