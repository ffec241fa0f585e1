"""The session by which an endpoint receives, for all of its workers.

The workers' sessions share its lock, so that a delivery can go from the inbox here into the ledger of a worker, and back, in
one step. A delivery that a worker has taken is in that worker's ledger and in no other. One that waits for its time to be handed
out again is *parked*: in no ledger, and not in the inbox.

Spec: MDB-62 to MDB-67; field reports B15, B18.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.ledger import CLIENT, Entry, Inbox
from jmsapi._core.session import SessionImpl
from jmsapi.errors import IllegalStateException
from jmsapi.spi import Address, Delivery, ProviderError

if TYPE_CHECKING:
    from jmsapi._core.connection import ConnectionImpl
    from jmsapi._core.work_session import WorkSession

__all__ = ["IntakeConsumer", "IntakeSession", "IntakeTerms", "Watcher"]

C = TypeVar("C", bound=ConsumerImpl)
_MOST_PARKED: Final = 1000
"""When so many wait to be handed out again, no more are asked for."""


class Watcher(Protocol):
    """Who looks after the workers. Both calls come with a lock held, perhaps on a provider's thread: they only take note."""

    def backlog(self) -> None:
        """Messages wait and no worker is idle; or, without prefetch, nobody is left to ask for one."""

    def parked(self) -> None:
        """A message waits to be handed out again at a later time."""


@dataclass(frozen=True, slots=True)
class IntakeTerms:
    """How much an intake takes, and for whom.

    Args:
        room: How many messages may be here at a time, waiting or in a worker's hand; 0: as many as idle workers can take.
        most: How many messages a worker takes at a time.
        workers: The most workers.
        ordered: Messages of one group go to one worker at a time, in order.
        watcher: Told what workers there should be.
    """

    room: int
    most: int
    workers: int
    ordered: bool
    watcher: Watcher


class IntakeSession(SessionImpl):
    """Receives for all workers.

    Args:
        connection: Its connection.
        number: Which session of the connection this is.
        terms: How much it takes, and for whom.
    """

    closes_last = True

    def __init__(self, connection: ConnectionImpl, number: int, terms: IntakeTerms) -> None:
        self.room = terms.room
        self.most = terms.most
        self.ordered = terms.ordered
        self.watcher = terms.watcher
        self.stopping = False
        self.idle: list[WorkSession] = []
        """Workers that wait; the last to come is the first to go, so that too many stay idle together."""
        self.parked: list[tuple[float, int, Entry]] = []
        """When each may go back into the inbox: a heap."""
        self.groups: dict[str, int] = {}
        """How many messages of a group are with a worker, until it leaves, or parked."""
        self._order = itertools.count()
        self._consumer: IntakeConsumer | None = None
        super().__init__(connection, CLIENT, number)
        # What the provider may be asked for at one time.
        self.prefetch = self.room or (self.most if terms.workers == 1 else self.most * terms.workers)

    @property
    def consumer(self) -> IntakeConsumer:
        """Its one consumer."""
        if self._consumer is None:
            raise IllegalStateException("the intake has no consumer yet")
        return self._consumer

    def add_consumer(self, kind: type[C], address: Address, message_selector: str | None, **terms: Any) -> C:
        """Create the consumer, which is one of its own kind whatever is asked for."""
        self._consumer = super().add_consumer(IntakeConsumer, address, message_selector, **terms)
        return cast("C", self._consumer)

    @property
    def in_hand(self) -> int:
        """What is taken is in the hands of workers, whose threads are waited for."""
        return 0

    def set_flowing(self, flowing: bool) -> None:
        """Start or stop handing out."""
        super().set_flowing(flowing)
        with self.lock:
            self.call_workers()

    def stop_taking(self) -> None:
        """Hand out no more; workers that wait come back with nothing."""
        with self.lock:
            self.stopping = True
            for one in self.idle:
                one.called.notify_all()
            self.changed.notify_all()

    def call_workers(self) -> None:
        """Wake as many workers as there are messages. With the lock held."""
        if self._consumer is None:
            return
        waiting = len(self._consumer.inbox.buffer)
        while waiting > 0 and self.idle:
            self.idle.pop().called.notify_all()
            waiting -= self.most
        if waiting > 0:
            self.watcher.backlog()

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

    def park(self, entry: Entry, until: float) -> None:
        """Keep one that is in no ledger any more until its time has come. With the lock held."""
        heapq.heappush(self.parked, (until, next(self._order), entry))
        for group in self._groups_of((entry,)):
            self._hold(group)

    def _groups_of(self, entries: Sequence[Entry]) -> list[str]:
        return [group for group in map(_group_of, entries) if group is not None] if self.ordered else []

    def unpark(self, now: float) -> float | None:
        """Put back in front what has waited long enough; return when the next is due."""
        with self.lock:
            due: list[Entry] = []
            while self.parked and self.parked[0][0] <= now:
                due.append(heapq.heappop(self.parked)[2])
            self._put_in_front(due)
            following = self.parked[0][0] if self.parked else None
        if due:
            self.make_room()
        return following

    def unpark_all(self) -> None:
        """Put back in front all that waits, for whom it goes to next."""
        with self.lock:
            due, self.parked = [entry for *_, entry in sorted(self.parked)], []
            self._put_in_front(due)

    def _put_in_front(self, due: list[Entry]) -> None:
        for entry in reversed(due):
            entry.inbox.buffer.appendleft(entry)
        if due:
            self.free_groups(self._groups_of(due))
            self.call_workers()

    def make_room(self) -> None:
        """Let more messages come, since some are done with."""
        self.consumer.make_room()

    def begin_close(self) -> bool:
        """Let workers go, and have what is parked go back with the rest."""
        self.stop_taking()
        self.unpark_all()
        return super().begin_close()

    def interrupted(self, cause: ProviderError) -> None:
        """What is parked comes again, too."""
        with self.lock:
            parked, self.parked = [entry for *_, entry in self.parked], []
            self.free_groups(self._groups_of(parked))
        super().interrupted(cause)


class IntakeConsumer(ConsumerImpl):
    """Takes messages for the workers. Its session is an IntakeSession."""

    session: IntakeSession

    def open(self) -> None:
        """Let messages come, as many as there is room for."""
        self._top_up()

    def make_room(self) -> None:
        """Let more messages come."""
        self._top_up()

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """File deliveries and wake workers."""
        session = self.session
        with session.lock:
            self._credit -= len(deliveries)
            session.ledger.file(self.inbox, deliveries)
            session.call_workers()

    def _due(self) -> int:
        session = self.session
        if self.closed or session.stopping or len(session.parked) >= _MOST_PARKED:
            return 0
        coming = self._credit + len(self.inbox.buffer)
        free = session.room - self.inbox.unsettled if session.room else len(session.idle) * session.most
        # Half of the room at a time: a message each would cost more. Where there is no room, each asks for its own.
        n = free - coming
        if n <= 0 or (session.room and n < coming):
            return 0
        self._credit += n
        return n

    def is_expired(self, entry: Entry) -> bool:
        """Whether nobody wants to see it any more."""
        return self._expired(entry)


def _group_of(entry: Entry) -> str | None:
    try:
        found = entry.delivery.envelope.properties.get("JMSXGroupID")
    except ProviderError:
        return None
    return found if isinstance(found, str) else None
