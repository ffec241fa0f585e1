"""What becomes of deliveries. Each function is called under the broker's lock and returns how many tags were not in flight."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, cast

from jmsapi.spi import Address, DestinationKind, Outcome, ProviderError, Tag
from jmsapi.spi.label import message_label
from jmsapi_inproc.messages import CONSUMER_SHIFT, InprocTag, QueuedMessage, StoredMessage, dead_letter
from jmsapi_inproc.queue import BrokerQueue, QueueConsumer
from jmsapi_inproc.subscriptions import BrokerTopic
from jmsapi_inproc.transaction import Accepted, InProcessTransaction
from jmsapi_inproc.write_batch import WriteBatch

__all__ = ["accept", "accept_stored", "bury", "enlist", "give_up"]

Consumers = Mapping[int, QueueConsumer]
_log: Final = logging.getLogger("jmsapi.inproc")


def accept(consumers: Consumers, tags: Sequence[Tag]) -> int:
    """Forget messages that were acknowledged."""
    lost = 0
    for tag in cast("Sequence[InprocTag]", tags):
        consumer = consumers.get(tag >> CONSUMER_SHIFT)
        if consumer is None or consumer.in_flight.pop(tag, None) is None:
            lost += 1
    return lost


def accept_stored(consumers: Consumers, tags: Sequence[Tag], batch: WriteBatch) -> int:
    """Forget messages that were acknowledged once that is written; if it cannot be written, they are redelivered."""
    found = 0
    for consumer, _, message in _take(consumers, tags):
        found += 1
        if isinstance(message, StoredMessage):
            consumer.queue.forget(message, batch)
            batch.on_failed(partial(consumer.queue.redeliver, message))
    return len(tags) - found


def enlist(consumers: Consumers, tags: Sequence[Tag], tx: InProcessTransaction) -> int:
    """Forget messages that were acknowledged when the transaction commits."""
    found = 0
    for accepted in _take(consumers, tags):
        tx.accept(accepted)
        found += 1
    return len(tags) - found


def give_up(
    consumers: Consumers,
    tags: Sequence[Tag],
    outcome: Outcome,
    failures: Sequence[int],
    bury: Callable[[QueueConsumer, QueuedMessage], None],
) -> int:
    """Return messages that were not acknowledged to their queues, or with REJECTED hand them to ``bury``."""
    found = 0
    returned: dict[BrokerQueue, list[QueuedMessage]] = {}
    count = dict(zip(cast("Sequence[InprocTag]", tags), failures, strict=False))
    for consumer, tag, message in _take(consumers, tags):
        found += 1
        if outcome is Outcome.REJECTED:
            bury(consumer, message)
        else:
            if outcome is Outcome.FAILED:
                message.count += count.get(tag, 1)
                consumer.queue.recount(message)
            returned.setdefault(consumer.queue, []).append(message)
    for queue, messages in returned.items():
        queue.return_messages(messages)
        queue.dispatch()
    return len(tags) - found


def bury(
    resolve: Callable[[Address], BrokerQueue | BrokerTopic],
    pattern: str,
    batch: WriteBatch | None,
    consumer: QueueConsumer,
    message: QueuedMessage,
) -> None:
    """Move a message to its dead letter queue.

    Args:
        resolve: Finds the queue.
        pattern: The name of the dead letter queue, in which ``{name}`` stands for the message's queue; empty drops the message.
        batch: Writes it, in a stored broker.
        consumer: Rejected the message.
        message: Is redelivered if there can be no such queue.
    """
    queue = consumer.queue
    target = None
    if pattern:
        try:
            target = resolve(Address(DestinationKind.QUEUE, pattern.replace("{name}", queue.name)))
        except ProviderError as error:
            _log.warning("%s is dead and stays in %r: %s", message_label(message.envelope), queue.name, error)
            queue.redeliver(message)
            return
    if batch is not None:
        queue.forget(message, batch)
        batch.on_failed(partial(queue.redeliver, message))
    if isinstance(target, BrokerQueue):
        letter = dead_letter(message.envelope)
        if batch is not None:
            target.stage(letter, consumer.sender, batch)
        else:
            target.put(QueuedMessage(letter, message.group))


def _take(consumers: Consumers, tags: Sequence[Tag]) -> Iterator[Accepted]:
    for tag in cast("Sequence[InprocTag]", tags):
        consumer = consumers.get(tag >> CONSUMER_SHIFT)
        message = None if consumer is None else consumer.in_flight.pop(tag, None)
        if consumer is not None and message is not None:
            yield Accepted(consumer, tag, message)
