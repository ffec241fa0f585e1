"""What becomes of deliveries. Each function is called under the broker's lock and returns how many tags nobody held."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from jmsapi.spi import Address, DestinationKind, Outcome, ProviderError, Tag
from jmsapi_inproc.filing import forget, recount
from jmsapi_inproc.messages import CONSUMER_SHIFT, InprocTag, Message, StoredMessage, dead_letter
from jmsapi_inproc.queues import Queue
from jmsapi_inproc.store_filing import Filing
from jmsapi_inproc.transactions import Accepted, Transaction

if TYPE_CHECKING:
    from jmsapi_inproc.broker import Broker
    from jmsapi_inproc.handles import Consumer

__all__ = ["accept", "accept_stored", "enlist", "give_up"]

_log = logging.getLogger("jmsapi.inproc")


def accept(broker: Broker, tags: Sequence[Tag]) -> int:
    """Forget what was done."""
    consumers = broker.consumers
    lost = 0
    for tag in cast("Sequence[InprocTag]", tags):
        consumer = consumers.get(tag >> CONSUMER_SHIFT)
        if consumer is None or consumer.taken.pop(tag, None) is None:
            lost += 1
    return lost


def accept_stored(broker: Broker, tags: Sequence[Tag], filing: Filing) -> int:
    """Have what was done forgotten when that is written; when it cannot be, it comes again."""
    found = 0
    for consumer, _, message in _take(broker, tags):
        found += 1
        if isinstance(message, StoredMessage):
            forget(consumer.queue, message, filing)
            filing.otherwise(partial(_again, consumer.queue, message))
    return len(tags) - found


def _again(queue: Queue, message: Message) -> None:
    message.count += 1
    queue.give_back((message,))
    queue.share()


def enlist(broker: Broker, tags: Sequence[Tag], tx: Transaction) -> int:
    """Have what was done forgotten when the transaction commits."""
    found = 0
    for accepted in _take(broker, tags):
        tx.accept(accepted)
        found += 1
    return len(tags) - found


def give_up(
    broker: Broker, tags: Sequence[Tag], outcome: Outcome, failures: Sequence[int], pattern: str, filing: Filing | None
) -> int:
    """Put back what was not done, or with REJECTED on the dead letter queue: in a stored broker by a filing."""
    found = 0
    returned: dict[Queue, list[Message]] = {}
    count = dict(zip(cast("Sequence[InprocTag]", tags), failures, strict=False))
    for consumer, tag, message in _take(broker, tags):
        found += 1
        if outcome is Outcome.REJECTED:
            _bury(broker, message, consumer, pattern, filing)
        else:
            if outcome is Outcome.FAILED:
                message.count += count.get(tag, 1)
                recount(message, consumer.queue)
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


def _bury(broker: Broker, message: Message, consumer: Consumer, pattern: str, filing: Filing | None) -> None:
    """Put a message on the dead letter queue; without a pattern, drop it. If there can be no such queue, it comes again."""
    queue = consumer.queue
    target = None
    if pattern:
        try:
            target = broker.resolve(Address(DestinationKind.QUEUE, pattern.replace("{name}", queue.name)))
        except ProviderError as error:
            _log.warning("a dead letter of %r stays where it is: %s", queue.name, error)
            _again(queue, message)
            return
    if filing is not None:
        forget(queue, message, filing)
        filing.otherwise(partial(_again, queue, message))
    if isinstance(target, Queue):
        letter = dead_letter(message.envelope)
        if filing is not None:
            target.plan(letter, consumer.session.connection, filing)
        else:
            target.put(Message(letter, message.group))
