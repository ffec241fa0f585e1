"""The receiver of a listener container, which lends to the workers' sessions.

The workers' sessions share its lock, so that a delivery goes from its inbox to a worker, and back, in one step. A delivery whose
redelivery is delayed is in no ledger and not in the inbox, but here.

Spec: MDB-62 to MDB-67.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from jmsapi._core.acknowledgement.ledger import Entry, Inbox
from jmsapi._core.acknowledgement.lending import Lender
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.credit import Credit
from jmsapi._core.session import SessionImpl
from jmsapi._core.waiting import StateCondition
from jmsapi.spi import ProviderError

__all__ = ["IdleWorker", "PoolObserver", "ReceiverTerms", "WorkerLender"]

_MOST_DELAYED: Final = 1000
"""When the redelivery of so many is delayed, no more are asked for."""


class PoolObserver(Protocol):
    """Looks after the workers. Both calls come with a lock held, perhaps on a provider's thread: they only take note."""

    def backlog(self) -> None:
        """Messages wait and no worker is idle; or, without prefetch, nobody is left to ask for one."""

    def delayed(self) -> None:
        """The redelivery of a message is delayed."""


class IdleWorker(Protocol):
    """A worker that waits for messages."""

    called: StateCondition
    """Notified when it may take some, or is to go."""


@dataclass(frozen=True, slots=True)
class ReceiverTerms:
    """How much a receiver takes, and for whom.

    Args:
        room: How many messages may be here at a time, waiting or with a worker; 0: as many as idle workers can take.
        most: How many messages a worker takes at a time.
        workers: The most workers.
        ordered: Messages of one group go to one worker at a time, in order.
        observer: Told what workers there should be.
    """

    room: int
    most: int
    workers: int
    ordered: bool
    observer: PoolObserver


class WorkerLender(Lender):
    """Receives by one consumer and lends to workers. Its state is guarded by the lock that their sessions share.

    Args:
        session: The receiving session. Its consumer is made after this.
        terms: How much it takes, and for whom.
    """

    def __init__(self, session: SessionImpl, terms: ReceiverTerms) -> None:
        super().__init__(session.parts.state, session.parts.settlement, self.make_room_held)
        self.room = terms.room
        self.most = terms.most
        self.ordered = terms.ordered
        self.observer = terms.observer
        self.stopping = False
        self.idle: list[IdleWorker] = []
        """Workers that wait; the last to come is the first to go, so that too many stay idle together."""
        self.delayed: list[tuple[float, int, Entry]] = []
        """When each may go back into the inbox: a heap."""
        self.groups: dict[str, int] = {}
        """How many messages of a group are with a worker, until it leaves, or delayed."""
        self._order = itertools.count()
        self._receiver: ConsumerImpl | None = None
        # What the provider may be asked for at one time.
        session.prefetch = self.room or (self.most if terms.workers == 1 else self.most * terms.workers)
        session.prepare = self._prepare

    def _prepare(self, consumer: ConsumerImpl) -> None:
        consumer.credit = _SharedCredit(self, consumer.credit)
        consumer.arrived = self.call_workers
        self.consumer = self._receiver = consumer

    @property
    def receiver(self) -> ConsumerImpl:
        """Its one consumer; see ``Lender.consumer``."""
        assert self._receiver is not None, "the receiver has no consumer yet"
        return self._receiver

    @property
    def awaiting_redelivery(self) -> int:
        """How many messages wait for their redelivery delay; see Lender."""
        return len(self.delayed)

    def flow_changed(self) -> None:
        """The session was started or stopped; see Lender."""
        self.call_workers()

    def stop_taking(self) -> None:
        """Hand out no more; workers that wait come back with nothing."""
        with self.state.lock:
            self.stopping = True
            for one in self.idle:
                one.called.notify_all()
            self.state.changed.notify_all()

    def call_workers(self) -> None:
        """Wake as many workers as there are messages. With the lock held."""
        if self._receiver is None:
            return
        waiting = len(self._receiver.inbox.buffer)
        while waiting > 0 and self.idle:
            self.idle.pop().called.notify_all()
            waiting -= self.most
        if waiting > 0:
            self.observer.backlog()

    def pick(self, inbox: Inbox, most: int, first: bool, held: list[str]) -> list[Entry]:
        """Take up to so many out of the inbox, and add their groups to those held. With the lock held.

        One that comes again here comes alone.
        """
        buffer, taken = inbox.buffer, list[Entry]()
        if self.ordered:
            return self._pick_ordered(inbox, most, first, held)
        while buffer and len(taken) < most:
            if buffer[0].extra and not (first and not taken):
                break
            entry = buffer.popleft()
            taken.append(entry)
            if entry.extra:
                break
        return taken

    def _pick_ordered(self, inbox: Inbox, most: int, first: bool, held: list[str]) -> list[Entry]:
        taken: list[Entry] = []
        own: set[str] = set(held)
        passed: set[str] = set()
        for entry in list(inbox.buffer):
            if len(taken) >= most or (entry.extra and not (first and not taken)):
                break
            group = _group_of(entry)
            if group is not None:
                if group in passed or (group in self.groups and group not in own):
                    passed.add(group)
                    continue
                own.add(group)
                held.append(group)
                self._hold(group)
            inbox.buffer.remove(entry)
            taken.append(entry)
            if entry.extra:
                break
        return taken

    def _hold(self, group: str) -> None:
        self.groups[group] = self.groups.get(group, 0) + 1

    def free_groups(self, held: Sequence[str]) -> None:
        """Others may have messages of these groups now. With the lock held."""
        for group in held:
            self.groups[group] -= 1
            if not self.groups[group]:
                del self.groups[group]
        if held:
            self.call_workers()

    def delay(self, entries: Sequence[Entry], until: float) -> None:
        """Keep entries that were taken back until their time has come. With the lock held."""
        for entry in entries:
            heapq.heappush(self.delayed, (until, next(self._order), entry))
            for group in self._groups_of((entry,)):
                self._hold(group)
        if entries:
            self.observer.delayed()

    def _groups_of(self, entries: Sequence[Entry]) -> list[str]:
        return [group for group in map(_group_of, entries) if group is not None] if self.ordered else []

    def redeliver_due(self, now: float) -> float | None:
        """Put back in front what has waited long enough; return when the next is due."""
        with self.state.lock:
            due: list[Entry] = []
            while self.delayed and self.delayed[0][0] <= now:
                due.append(heapq.heappop(self.delayed)[2])
            self._wait_again(due)
            following = self.delayed[0][0] if self.delayed else None
        if due:
            self.make_room()
        return following

    def redeliver_all(self) -> None:
        """Put back in front all whose redelivery is delayed, for whom it goes to next."""
        with self.state.lock:
            due, self.delayed = [entry for *_, entry in sorted(self.delayed)], []
            self._wait_again(due)

    def _wait_again(self, due: list[Entry]) -> None:
        self.put_in_front(due)
        if due:
            self.free_groups(self._groups_of(due))
            self.call_workers()

    def make_room(self) -> None:
        """Let more messages come, since some are done with."""
        self.receiver.make_room()

    def make_room_held(self) -> None:
        """What a worker had is settled or has gone back. Without prefetch the next worker that waits asks for its own."""
        if self.room:
            self.make_room()

    def before_close(self) -> None:
        """Let workers go, and have what is delayed go back with the rest; see Lender."""
        self.stop_taking()
        self.redeliver_all()

    def void(self) -> None:
        """Give up what is lent and what is delayed: both come again; see Lender."""
        delayed, self.delayed = [entry for *_, entry in self.delayed], []
        self.free_groups(self._groups_of(delayed))
        super().void()


class _SharedCredit(Credit):
    """The credit of a receiver's consumer: for what its workers can take."""

    def __init__(self, lender: WorkerLender, own: Credit) -> None:
        super().__init__(own.state, own.inbox, own.handle, own.prefetch)
        self._lender = lender

    def due(self) -> int:
        """Return how much credit is to be granted now; see Credit."""
        lender = self._lender
        if self.stopped or lender.stopping or len(lender.delayed) >= _MOST_DELAYED:
            return 0
        coming = self.granted + len(self.inbox.buffer)
        free = lender.room - self.inbox.unsettled if lender.room else len(lender.idle) * lender.most
        # Half of the room at a time: a message each would cost more. Where there is no room, each asks for its own.
        n = free - coming
        if n <= 0 or (lender.room and n < coming):
            return 0
        return self._record(n)


def _group_of(entry: Entry) -> str | None:
    try:
        found = entry.delivery.envelope.properties.get("JMSXGroupID")
    except ProviderError:
        return None
    return found if isinstance(found, str) else None
