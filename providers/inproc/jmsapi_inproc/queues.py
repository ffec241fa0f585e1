"""A queue: the messages that wait, the consumers that have credit, and the rule that they never wait for each other.

Every method is called under the broker's lock. Between two calls there is no waiting message that a consumer with credit
would take; so a new message can go straight to a consumer, and new credit concerns only the one who gave it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from jmsapi.spi import Delivery, Envelope, HeaderView
from jmsapi.values import Value
from jmsapi_inproc.handles import Consumer
from jmsapi_inproc.messages import GONE, WAITING, Message, group_of
from jmsapi_inproc.waiting import LEVELS, Waiting

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.connection import InprocProvider
    from jmsapi_inproc.store import Shelf
    from jmsapi_inproc.store_filing import Filing
    from jmsapi_inproc.topics import Sender

__all__ = ["Queue"]

MOST_GROUPS: Final = 10_000
"""Above so many pinned message groups those are forgotten that have no message here or with a consumer."""


class Queue:
    """Messages in order of priority and age, shared out to consumers in turn."""

    __slots__ = (
        "_broker",
        "_delayed",
        "_grouped",
        "_groups",
        "_most_groups",
        "_order",
        "_ready",
        "_selective",
        "consumers",
        "enlisted",
        "gone",
        "name",
        "owner",
        "shelf",
        "waiting",
    )

    def __init__(
        self,
        broker: Broker,
        name: str,
        owner: InprocProvider | None = None,
        shelf: Shelf | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self._broker = broker
        self.name = name
        """Of the queue, or of the subscription's topic."""
        self.owner = owner
        """The connection of a temporary queue."""
        self.gone = False
        self.shelf = shelf
        """Its part of the store, if it is kept there; then ``waiting`` is a ``StoredWaiting``."""
        self.waiting = Waiting() if waiting is None else waiting
        self.consumers: list[Consumer] = []
        self.enlisted = 0
        """Messages accepted in transactions that are still open."""
        self._ready: deque[Consumer] = deque()
        """Those with credit, the next in turn first."""
        self._selective = 0
        """How many consumers have selectors."""
        self._groups: dict[Value, Consumer] = {}
        self._most_groups = MOST_GROUPS
        self._grouped = 0
        """How many waiting messages belong to a group."""
        self._order = 0
        self._delayed = 0

    def publish(self, envelope: Envelope, sender: Sender) -> None:
        """File a message now or at its delivery time."""
        message = Message(envelope, group_of(envelope) if envelope.properties else None)
        due = envelope.delivery_time
        # Equal times are the rule, and reading the clock costs more than the comparison.
        if due > envelope.timestamp and due > self._broker.clock.now_ms():
            self.delay(message)
        else:
            self.put(message)

    def delay(self, message: Message) -> None:
        """Have a message filed when its time has come."""
        self._delayed += 1
        self._broker.agenda.delay(message, self)

    def put_off(self, message: Message) -> None:
        """Have a delayed message in memory no more: its row stays."""
        self._delayed -= 1
        message.state = GONE
        self._broker.agenda.forget()

    def now_ms(self) -> int:
        """Return milliseconds since 1970, as the broker has it."""
        return self._broker.clock.now_ms()

    def next_order(self) -> int:
        """Return the order number of a message that is about to be written."""
        self._order += 1
        return self._order

    @property
    def latest(self) -> int:
        """The highest order number that was given."""
        return self._order

    def restored(self, order: int) -> None:
        """Take note of the highest order number in the file."""
        self._order = order

    def plan(self, envelope: Envelope, sender: Sender, filing: Filing) -> None:
        """Have a message filed when what belongs to it is written; in a stored broker."""
        filing.then(lambda: None if self.gone else self.publish(envelope, sender))

    def put(self, message: Message) -> None:
        """Hand a new message to a consumer with credit, or let it wait."""
        if not message.order:
            order = self._order + 1
            self._order = order
            message.order = order
        envelope = message.envelope
        if 0 < envelope.expiration <= self._broker.clock.now_ms():
            self._dropped(message)
            return
        ready = self._ready
        if ready:
            if message.group is None and not self._selective:
                consumer = ready[0]
            else:
                found = self._choose(message)
                if found is None:
                    self._wait(message)
                    return
                consumer = found
            delivery = consumer.hold(message)
            consumer.credit -= 1
            if not consumer.credit:
                ready.popleft()
            elif len(ready) > 1:
                ready.rotate(-1)
            outbox = self._broker.outbox
            if outbox is None:
                consumer.events.on_deliveries(consumer, (delivery,))
            else:
                outbox.setdefault(consumer, []).append(delivery)
        else:
            self._wait(message)

    def due(self, message: Message) -> None:
        """File a delayed message whose time has come."""
        self._delayed -= 1
        message.state = GONE
        if self.shelf is None:
            self.put(message)
        else:
            self.shelf.fall_due(message, self)

    def expire(self, message: Message) -> None:
        """Take away a waiting message that has expired."""
        self.waiting.remove(message)
        message.state = GONE
        if message.group is not None:
            self._grouped -= 1
        self._dropped(message)

    def attach(self, consumer: Consumer) -> None:
        """Let a consumer take part. It has no credit yet."""
        self.consumers.append(consumer)
        if consumer.selector is not None:
            self._selective += 1

    def detach(self, consumer: Consumer) -> None:
        """Let a consumer go; what it holds goes back uncounted, to its place."""
        self.consumers.remove(consumer)
        self.stop(consumer)
        if consumer.selector is not None:
            self._selective -= 1
        if self._groups:
            self._groups = {group: owner for group, owner in self._groups.items() if owner is not consumer}
            for other in self.consumers:
                other.seen = []
        held = consumer.taken
        consumer.taken = {}
        self.give_back(held.values())
        self._share_out()

    def stop(self, consumer: Consumer) -> None:
        """Take all credit of a consumer back."""
        if consumer.credit:
            consumer.credit = 0
            self._ready.remove(consumer)

    def allow(self, consumer: Consumer, n: int) -> None:
        """Give a consumer credit, and what waits for it."""
        if n < 1:
            return
        if not consumer.credit:
            self._ready.append(consumer)
        consumer.credit += n
        if self.waiting:
            deliveries = self._take(consumer, consumer.credit)
            if deliveries:
                consumer.events.on_deliveries(consumer, deliveries)

    def give_back(self, messages: Iterable[Message]) -> None:
        """Put messages that were handed out back to their places; ``share`` hands them out again."""
        if self.gone:
            return
        for message in messages:
            if self._expired(message):
                self._dropped(message)
                continue
            self.waiting.insert(message)
            self._stored(message)
            self.look_again(message)

    def look_again(self, message: Message) -> None:
        """Have consumers that have looked farther than a message look at it."""
        for consumer in self.consumers:
            if consumer.seen:
                level = message.envelope.priority
                consumer.seen[level] = min(consumer.seen[level], message.order - 1)

    def share(self) -> None:
        """Hand out what consumers with credit would take."""
        if self.waiting and self._ready:
            self._share_out()

    def kept(self) -> list[Message]:
        """Return what is here in memory, delayed messages too."""
        return [*self.waiting.kept(), *self._broker.agenda.delayed(self)]

    def close(self) -> None:
        """Drop everything; nothing can be filed here any more."""
        if self.gone:
            return
        delayed = [] if self.shelf is None else self._broker.agenda.delayed(self)
        self.gone = True
        entries = self._delayed
        for message in self.waiting.kept():
            message.state = GONE
            entries += message.timed
        self._broker.agenda.abandon(entries)
        self.waiting = Waiting()
        if self.shelf is not None:
            self.shelf.closed(delayed)
        self._groups.clear()

    def _wait(self, message: Message) -> None:
        self.waiting.append(message)
        self._stored(message)

    def _stored(self, message: Message) -> None:
        if message.group is not None:
            self._grouped += 1
        if message.envelope.expiration and message.state is WAITING:
            self._broker.agenda.expire(message, self)

    def _removed(self, message: Message) -> bool:
        """Take note that a message left the waiting ones; return whether it can be handed out."""
        message.state = GONE
        if message.group is not None:
            self._grouped -= 1
        if message.timed:
            self._broker.agenda.forget()
        if self._expired(message):
            self._dropped(message)
            return False
        return True

    def _dropped(self, message: Message) -> None:
        if self.shelf is not None:
            self.shelf.store.drop(message)

    def _expired(self, message: Message) -> bool:
        expiration = message.envelope.expiration
        return expiration != 0 and expiration <= self._broker.clock.now_ms()

    def _choose(self, message: Message) -> Consumer | None:
        """Find the consumer for a new message and put it first in the turn."""
        ready = self._ready
        for index, consumer in enumerate(ready):
            if self._suits(consumer, message):
                if index:
                    del ready[index]
                    ready.appendleft(consumer)
                return consumer
        return None

    def _suits(self, consumer: Consumer, message: Message) -> bool:
        """Return whether a consumer may take a message, which it then does: a new group becomes its own."""
        group = message.group
        if group is not None:
            owner = self._groups.get(group)
            if owner is not None and owner is not consumer:
                return False
        if consumer.selector is not None and not consumer.selector.matches(HeaderView(message.envelope)):
            return False
        if group is not None:
            self._pin(group, consumer)
        return True

    def _pin(self, group: Value, consumer: Consumer) -> None:
        if len(self._groups) >= self._most_groups and group not in self._groups:
            alive = {message.group for one in self.consumers for message in one.taken.values()}
            alive.update(message.group for message in self.waiting)
            self._groups = {name: owner for name, owner in self._groups.items() if name in alive}
            self._most_groups = max(MOST_GROUPS, 2 * len(self._groups))
        self._groups[group] = consumer

    def _take(self, consumer: Consumer, limit: int) -> list[Delivery]:
        """Take waiting messages for a consumer, at most its credit."""
        deliveries: list[Delivery] = []
        waiting = self.waiting
        while waiting and len(deliveries) < limit:
            if consumer.selector is None and not self._grouped and not (self.shelf is not None and self.shelf.grouped):
                message = waiting.pop()
                if self._removed(message):
                    deliveries.append(consumer.hold(message))
                continue
            consumer.seen = consumer.seen or [0] * LEVELS
            found = waiting.sift(limit - len(deliveries), lambda message: self._suits(consumer, message), consumer.seen)
            if not found:
                break
            deliveries += [consumer.hold(message) for message in found if self._removed(message)]
        if deliveries:
            consumer.credit -= len(deliveries)
            if not consumer.credit:
                self._ready.remove(consumer)
        return deliveries

    def _share_out(self) -> None:
        """Give the consumers with credit one message each in turn, until none wants more."""
        outbox: dict[Consumer, list[Delivery]] = {}
        idle = 0
        while self.waiting and idle < len(self._ready):
            consumer = self._ready[0]
            deliveries = self._take(consumer, 1)
            if deliveries:
                outbox.setdefault(consumer, []).extend(deliveries)
                idle = 0
            else:
                idle += 1
            if consumer.credit:
                self._ready.rotate(-1)
        for consumer, batch in outbox.items():
            consumer.events.on_deliveries(consumer, batch)
