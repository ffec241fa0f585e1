"""What the core holds: sessions, producers, consumers, browsers and transactions of one connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from jmsapi.spi import Delivery, Envelope, Events, Handle
from jmsapi_inproc.messages import CONSUMER_SHIFT, InprocTag, Message, Selector

if TYPE_CHECKING:
    from jmsapi_inproc.connection import InprocProvider
    from jmsapi_inproc.queues import Queue
    from jmsapi_inproc.topics import Subscription, Topic
    from jmsapi_inproc.transactions import Transaction

__all__ = ["Browser", "Consumer", "Producer", "Session"]

_new_delivery = cast("Callable[[type[Delivery], tuple[object, ...]], Delivery]", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""Builds a Delivery without the Python code of a named tuple's constructor: half the time."""

_END: Final[tuple[None, int]] = (None, 0)


class Session(Handle):
    """A token: it owns what was opened through it."""

    __slots__ = ("children", "closed", "connection", "transacted", "transaction")

    def __init__(self, connection: InprocProvider, transacted: bool) -> None:
        self.connection = connection
        self.transacted = transacted
        self.closed = False
        self.children: set[Producer | Consumer | Browser] = set()
        self.transaction: Transaction | None = None


class Producer(Handle):
    """Sends to one destination, or with None to that of each envelope."""

    __slots__ = ("closed", "session", "target")

    def __init__(self, session: Session, target: Queue | Topic | None) -> None:
        self.session = session
        self.target = target
        self.closed = False


class Consumer(Handle):
    """Takes from one queue, which may be that of a subscription."""

    __slots__ = ("closed", "credit", "events", "last", "queue", "seen", "selector", "session", "subscription", "taken")

    def __init__(
        self,
        session: Session,
        number: int,
        queue: Queue,
        events: Events,
        *,
        selector: Selector | None = None,
        subscription: Subscription | None = None,
    ) -> None:
        self.session = session
        self.queue = queue
        self.events = events
        self.selector = selector
        self.subscription = subscription
        self.credit = 0
        self.last = number << CONSUMER_SHIFT
        self.taken: dict[int, Message] = {}
        """Handed out and not settled, by tag."""
        self.seen: list[int] = []
        """How far it has looked at the waiting messages; empty as long as it takes whatever is first."""
        self.closed = False

    @property
    def number(self) -> int:
        """Its number in the broker."""
        return self.last >> CONSUMER_SHIFT

    def hold(self, message: Message) -> Delivery:
        """Make a delivery of a message and keep it until it is settled."""
        number = self.last + 1
        self.last = number
        tag = InprocTag(number)
        self.taken[tag] = message
        return _new_delivery(Delivery, (tag, message.envelope, message.count + 1))


class Browser(Handle):
    """Shows what waited in a queue when it was opened."""

    __slots__ = ("closed", "events", "number", "queue", "rest", "session")

    def __init__(self, session: Session, number: int, queue: Queue, events: Events, rest: Iterator[tuple[Envelope, int]]) -> None:
        self.session = session
        self.number = number
        self.queue = queue
        self.events = events
        self.rest = rest
        self.closed = False

    def show(self, limit: int, now: int) -> list[Delivery]:
        """Return the next deliveries, at most ``limit``, without those that have expired."""
        shown: list[Delivery] = []
        while len(shown) < limit:
            envelope, count = next(self.rest, _END)
            if envelope is None:
                break
            if not 0 < envelope.expiration <= now:
                shown.append(Delivery(InprocTag(self.number << CONSUMER_SHIFT), envelope, count))
        return shown
