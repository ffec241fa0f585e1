"""Shared durable subscriptions on ActiveMQ Classic, through virtual topics: ``?classic.virtual_topics=true``.

The broker copies what is sent to a virtual topic into queues, whose consumers share it; ``jmsapi_brokers.classic`` has the names,
so that members of both wires meet. Such a queue cannot be deleted over AMQP: ending the subscription is refused, and says so.

Whether the broker copies at all is tried before the first member of a connection is believed: one message is sent to a topic of
our own and must come by its queue.

A member's selector is the broker's business. What no member wants would stay in the queue for ever: a second link takes it
away, with the selector that is TRUE of what the other is not.

A subscription that was another one, with another topic or selector, begins empty: what its queue holds is taken out, unless
somebody consumes from it. The broker's advisory messages tell: who subscribes to those of a queue gets one for each consumer.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from jmsapi.spi import Address, ConsumerSpec, DestinationKind
from jmsapi.wire import Promise
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, end_link
from jmsapi_amqp.brokers.base import AmqpBroker
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.draining import drained
from jmsapi_amqp.links import Ask, ReceiverLink, WireSession
from jmsapi_brokers import classic

__all__ = ["attach_member", "empty_unless_used", "prove_copying"]

_PATIENCE_S: Final = 10.0
_MESSAGE: Final = b"\x00\x53\x77\xa1\x01x"
"""A text of one letter."""
_AHEAD: Final = 100
"""Messages that are to be taken away and may be on their way."""


async def prove_copying(context: ConnectionContext, session: WireSession, broker: AmqpBroker, asked: str) -> None:
    """See that the broker copies what is sent to a virtual topic.

    Raises:
        ProviderError: UNSUPPORTED; nothing came.
    """
    topic, queue = classic.probe_names("amqp")
    near = Address(DestinationKind.QUEUE, queue)
    copied: Promise[None] = context.add_promise(Promise())
    link = await attach_receiver(context, session, Source(broker.queue_prefix + queue, capabilities=("queue",)), near, asked)
    link.raw_sink = lambda _: copied.resolve(None)
    link.grant(1)
    sender = await attach_sender(context, session, Target(broker.topic_prefix + topic, ("topic",)), asked)
    refusal = classic.not_copied(asked)
    timer = context.timers.later(_PATIENCE_S, partial(copied.fail, refusal))
    try:
        sender.offer(_MESSAGE, None, Ask(_taken, copied.fail))
        await copied
    finally:
        timer.cancel()
        await end_link(context, sender)
        await end_link(context, link)


def _taken(state: int, data: object) -> None:
    """Do nothing at the answer to the message: its copy tells."""


async def empty_unless_used(
    context: ConnectionContext, session: WireSession, broker: AmqpBroker, spec: ConsumerSpec, asked: str
) -> None:
    """Take out what the queue behind a subscription holds, if nobody consumes from it.

    Args:
        context: Whose connection.
        session: The session of the links that look and take.
        broker: How it names destinations.
        spec: The shared durable subscription that is made anew.
        asked: What is asked, as the beginning of a sentence.
    """
    queue = _queue_of(context, spec)
    advisories = Source(broker.topic_prefix + classic.consumer_advisories(queue), capabilities=("topic",))
    if not await _take_all(context, session, advisories, spec.address, asked):
        await _take_all(context, session, Source(broker.queue_prefix + queue, capabilities=("queue",)), spec.address, asked)


async def _take_all(context: ConnectionContext, session: WireSession, source: Source, near: Address, asked: str) -> int:
    """Receive and accept until nothing more comes; return how many messages that were."""
    link = await attach_receiver(context, session, source, near, asked)
    came: list[bytes] = []
    link.raw_sink = came.append
    total = empty = 0
    try:
        while empty < 2:
            # An answer that nothing is there counts when it is given twice: the broker may still be reading from its store.
            came.clear()
            link.grant(_AHEAD)
            await drained(context, link)
            total += len(came)
            empty = 0 if came else empty + 1
    finally:
        await end_link(context, link)
    return total


def _queue_of(context: ConnectionContext, spec: ConsumerSpec) -> str:
    return classic.shared_queue(context.options.client_id, spec.subscription or "", spec.address.name, durable=True)


async def attach_member(
    context: ConnectionContext, session: WireSession, spec: ConsumerSpec, source: Source, prefix: str, asked: str
) -> ReceiverLink:
    """Attach a consumer to the queue behind its subscription.

    Args:
        context: Whose consumer.
        session: The session of its links.
        spec: A shared durable subscription.
        source: What it asks for, with its selector as it is sent to the broker.
        prefix: What stands before the names of queues.
        asked: What is asked, as the beginning of a sentence.
    """
    address, selector = prefix + _queue_of(context, spec), source.selector
    link = await attach_receiver(
        context, session, Source(address, capabilities=("queue",), selector=selector), spec.address, asked
    )
    if selector is not None:
        unwanted = classic.unwanted(selector)
        misses = await attach_receiver(
            context, session, Source(address, capabilities=("queue",), selector=unwanted), spec.address, asked
        )
        misses.raw_sink = lambda _: misses.grant(1)
        misses.grant(_AHEAD)
        link.companion = misses
    return link
