"""Where messages wait: queues, and a stock for each subscriber of a topic.

Everything here happens under the board's one lock. Nobody is called back: what is due to a connection is put into its outbox,
whose thread passes it on.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from jmsapi.spi import Address, ConsumerSpec, Delivery, DestinationKind, Envelope, ErrorKind, Handle, Outcome, ProviderError, Tag
from jmsapi_board.selectors import Filter

__all__ = ["Board", "BoardConsumer", "board_of"]

DEAD: Final = Address(DestinationKind.QUEUE, "dead.letters")
_numbers = itertools.count(1)
_boards: dict[str, Board] = {}
_boards_lock = threading.Lock()


def board_of(name: str) -> Board:
    """Return the board of a name; it lives as long as the process."""
    with _boards_lock:
        if name not in _boards:
            _boards[name] = Board()
        return _boards[name]


@dataclass(frozen=True, slots=True)
class DeliveryNumber(Tag):
    """Names one delivery."""

    value: int


@dataclass(slots=True, eq=False)
class Waiting:
    """One message in one stock."""

    envelope: Envelope
    place: tuple[int, int]
    """The more urgent first, then in the order of sending; a message that comes back keeps its place."""
    failures: int = 0


@dataclass(slots=True)
class Stock:
    """Messages in order, and who takes them in turn."""

    waiting: list[Waiting] = field(default_factory=list[Waiting])
    consumers: deque[BoardConsumer] = field(default_factory=deque["BoardConsumer"])

    def put(self, message: Waiting) -> None:
        """Add a message, or one that comes back, at its place."""
        bisect.insort(self.waiting, message, key=lambda one: one.place)

    def give(self) -> None:
        """Hand out what somebody has credit for."""
        for message in list(self.waiting):
            if not any(one.credit > 0 for one in self.consumers):
                return
            ready = next((one for one in self.consumers if one.credit > 0 and one.wants(message)), None)
            if ready is None:
                continue
            # It takes its place behind the others.
            self.consumers.remove(ready)
            self.consumers.append(ready)
            self.waiting.remove(message)
            ready.take(message)


class BoardConsumer(Handle):
    """A consumer of one stock.

    Args:
        deliver: Puts a delivery into the outbox of its connection.
    """

    __slots__ = ("credit", "deliver", "filter", "held", "spec", "stock")

    def __init__(self, spec: ConsumerSpec, stock: Stock, deliver: Callable[[BoardConsumer, Delivery], None]) -> None:
        self.spec = spec
        self.filter = None if spec.selector is None else Filter(spec.selector)
        self.stock = stock
        self.deliver = deliver
        self.credit = 0
        self.held: dict[Tag, Waiting] = {}

    def wants(self, message: Waiting) -> bool:
        """Whether its selector, if it has one, takes the message."""
        return self.filter is None or self.filter.wants(message.envelope)

    def take(self, message: Waiting) -> None:
        """Hold a message until it is settled."""
        self.credit -= 1
        tag = DeliveryNumber(next(_numbers))
        self.held[tag] = message
        self.deliver(self, Delivery(tag, message.envelope, message.failures + 1))


class Board:
    """Queues and topics of one name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, Stock] = {}
        self._topics: dict[str, list[BoardConsumer]] = {}
        self._temporary: dict[str, object] = {}
        """By name, each with its owner."""

    def send(self, envelope: Envelope) -> None:
        """Put a message where it belongs; raises ``ProviderError(DESTINATION)`` for a temporary destination that is gone."""
        with self._lock:
            self._check(envelope.destination)
            self._send(envelope, envelope.destination)

    def _send(self, envelope: Envelope, to: Address) -> None:
        message = Waiting(envelope, (-envelope.priority, next(_numbers)))
        if to.kind.is_topic:
            # What a subscriber does not want would wait for ever in a stock that is its own.
            stocks = [consumer.stock for consumer in self._topics.get(to.name, ()) if consumer.wants(message)]
        else:
            stocks = [self._queues.setdefault(to.name, Stock())]
        for stock in stocks:
            stock.put(replace(message))
            stock.give()

    def open(self, owner: object, spec: ConsumerSpec, deliver: Callable[[BoardConsumer, Delivery], None]) -> BoardConsumer:
        """Add a consumer; only its owner may consume from a temporary destination."""
        with self._lock:
            self._check(spec.address)
            # Its name alone, as that of a queue or topic like any other, opens it to nobody else either.
            if self._temporary.get(spec.address.name, owner) is not owner:
                raise ProviderError(ErrorKind.DESTINATION, f"{spec.address.name} belongs to another connection")
            if spec.address.kind.is_topic:
                consumer = BoardConsumer(spec, Stock(), deliver)
                self._topics.setdefault(spec.address.name, []).append(consumer)
            else:
                consumer = BoardConsumer(spec, self._queues.setdefault(spec.address.name, Stock()), deliver)
            consumer.stock.consumers.append(consumer)
            return consumer

    def credit(self, consumer: BoardConsumer, n: int | None) -> None:
        """Allow ``n`` more; None takes all credit back."""
        with self._lock:
            consumer.credit = 0 if n is None else consumer.credit + n
            consumer.stock.give()

    def release(self, consumer: BoardConsumer) -> None:
        """End a consumer; what it holds goes back, and a topic's stock goes with it."""
        with self._lock:
            if consumer not in consumer.stock.consumers:
                return
            consumer.stock.consumers.remove(consumer)
            if consumer.spec.address.kind.is_topic:
                self._topics[consumer.spec.address.name].remove(consumer)
                return
            for message in consumer.held.values():
                consumer.stock.put(message)
            consumer.held.clear()
            consumer.stock.give()

    def settle(self, consumer: BoardConsumer, tag: Tag, outcome: Outcome, failures: int) -> None:
        """Say what became of a delivery."""
        with self._lock:
            message = consumer.held.pop(tag, None)
            if message is None:
                return
            if outcome is Outcome.REJECTED:
                self._send(message.envelope, DEAD)
            elif outcome is not Outcome.ACCEPTED:
                message.failures += failures if outcome is Outcome.FAILED else 0
                consumer.stock.put(message)
                consumer.stock.give()

    def create_temporary(self, owner: object, *, topic: bool) -> Address:
        """Make a destination that belongs to a connection."""
        kind = DestinationKind.TEMPORARY_TOPIC if topic else DestinationKind.TEMPORARY_QUEUE
        address = Address(kind, f"temporary.{next(_numbers)}")
        with self._lock:
            self._temporary[address.name] = owner
        return address

    def remove(self, address: Address) -> None:
        """Remove a temporary destination, unless somebody consumes from it."""
        with self._lock:
            stock = self._queues.get(address.name)
            if self._topics.get(address.name) or (stock is not None and stock.consumers):
                raise ProviderError(ErrorKind.IN_USE, f"{address.name} has a consumer")
            self._forget(address.name)

    def leave(self, owner: object) -> None:
        """Remove what belongs to a connection that ends."""
        with self._lock:
            for name in [name for name, whose in self._temporary.items() if whose is owner]:
                self._forget(name)

    def _forget(self, name: str) -> None:
        self._temporary.pop(name, None)
        self._queues.pop(name, None)
        self._topics.pop(name, None)

    def _check(self, address: Address) -> None:
        if address.kind.is_temporary and address.name not in self._temporary:
            raise ProviderError(ErrorKind.DESTINATION, f"{address.name} is gone: its connection has ended, or it was deleted")
