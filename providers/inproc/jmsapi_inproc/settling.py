"""What becomes of deliveries. Each function is called under the broker's lock and returns how many tags nobody held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from jmsapi.spi import Address, DestinationKind, Outcome, Tag
from jmsapi_inproc.messages import CONSUMER_SHIFT, InprocTag, Message, dead_letter
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.transactions import Accepted, Transaction

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker

__all__ = ["accept", "enlist", "give_up"]


def accept(broker: Broker, tags: Sequence[Tag]) -> int:
    """Forget what was done."""
    consumers = broker.consumers
    lost = 0
    for tag in cast("Sequence[InprocTag]", tags):
        consumer = consumers.get(tag >> CONSUMER_SHIFT)
        if consumer is None or consumer.taken.pop(tag, None) is None:
            lost += 1
    return lost


def enlist(broker: Broker, tags: Sequence[Tag], tx: Transaction) -> int:
    """Have what was done forgotten when the transaction commits."""
    found = 0
    for accepted in _take(broker, tags):
        tx.accept(accepted)
        found += 1
    return len(tags) - found


def give_up(broker: Broker, tags: Sequence[Tag], outcome: Outcome, failures: Sequence[int], dead_letter_queue: str) -> int:
    """Put back what was not done, or with REJECTED on the dead letter queue."""
    found = 0
    returned: dict[Queue, list[Message]] = {}
    count = dict(zip(cast("Sequence[InprocTag]", tags), failures, strict=False))
    for consumer, tag, message in _take(broker, tags):
        found += 1
        if outcome is Outcome.REJECTED:
            _bury(broker, message, consumer.queue, dead_letter_queue)
        else:
            if outcome is Outcome.FAILED:
                message.count += count.get(tag, 1)
            returned.setdefault(consumer.queue, []).append(message)
    for queue, messages in returned.items():
        queue.give_back(messages)
        queue.share()
    return len(tags) - found


def _take(broker: Broker, tags: Sequence[Tag]) -> Iterator[Accepted]:
    for tag in cast("Sequence[InprocTag]", tags):
        consumer = broker.consumers.get(tag >> CONSUMER_SHIFT)
        message = None if consumer is None else consumer.taken.pop(tag, None)
        if consumer is not None and message is not None:
            yield Accepted(consumer, tag, message)


def _bury(broker: Broker, message: Message, queue: Queue, pattern: str) -> None:
    """Put a message on the dead letter queue; without a pattern, drop it."""
    if pattern:
        target = broker.resolve(Address(DestinationKind.QUEUE, pattern.replace("{name}", queue.name)))
        if isinstance(target, Queue):
            target.put(Message(dead_letter(message.envelope), message.group))
