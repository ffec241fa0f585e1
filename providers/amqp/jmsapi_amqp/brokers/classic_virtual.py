"""Shared durable subscriptions on ActiveMQ Classic, through virtual topics: ``?classic.virtual_topics=true``.

The broker copies what is sent to the topic ``VirtualTopic.t`` into each queue ``Consumer.x.VirtualTopic.t`` that somebody has
ever consumed from, and consumers of one such queue share it. Names are those of the STOMP provider, so that members of both
wires meet. Such a queue cannot be deleted over AMQP: ending the subscription is refused, and says so.

Whether the broker copies at all is tried before the first member of a connection is believed: one message is sent to a topic of
our own and must come by its queue.

A member's selector is the broker's business. What no member wants would stay in the queue for ever: a second link takes it
away, with the selector that is TRUE of what the other is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import Address, ConsumerSpec, DestinationKind, ErrorKind, ProviderError
from jmsapi_amqp.attach import Source, Target, attach_receiver, attach_sender, end_link
from jmsapi_amqp.links import Ask, ReceiverLink, WireSession
from jmsapi_amqp.tasks import Promise

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["attach_member", "prove_copying", "refuse_unsubscribe", "virtual_name"]

_TOPIC: Final = "VirtualTopic."
_PROBE: Final = "jmsapi.amqp-probe"
_PATIENCE_S: Final = 10.0
_MESSAGE: Final = b"\x00\x53\x77\xa1\x01x"
"""A text of one letter."""
_AHEAD: Final = 100
"""Unwanted messages that may be on their way."""


def virtual_name(topic: str) -> str:
    """Return the name of the virtual topic for a topic."""
    return topic if topic.startswith(_TOPIC) else _TOPIC + topic


def _word(text: str) -> str:
    """Return text as one part of a queue's name: a dot would begin another, and no two texts may become one."""
    return "".join([char if char.isalnum() else f"_{ord(char):x}_" for char in text])


async def prove_copying(connection: Connection, session: WireSession, asked: str) -> None:
    """See that the broker copies what is sent to a virtual topic.

    Raises:
        ProviderError: UNSUPPORTED; nothing came.
    """
    book = connection.book
    near = Address(DestinationKind.QUEUE, _PROBE)
    copied: Promise[None] = connection.add_promise(Promise())
    queue = Source(f"{book.queue_prefix}Consumer.jmsapi.{_TOPIC}{_PROBE}", capabilities=("queue",))
    link = await attach_receiver(connection, session, queue, near, asked)
    link.raw_sink = lambda _: copied.keep(None)
    link.grant(1)
    topic = Target(f"{book.topic_prefix}{_TOPIC}{_PROBE}", ("topic",))
    sender = await attach_sender(connection, session, topic, asked)
    text = (
        f"{asked}: this broker does not copy {_TOPIC}> to Consumer.*.{_TOPIC}>; its virtualDestinations must have the "
        f"default virtualTopic, or leave classic.virtual_topics out"
    )
    refusal = ProviderError(ErrorKind.UNSUPPORTED, text)
    timer = connection.clock.call_later(_PATIENCE_S, lambda: connection.submit(copied.fail, refusal))
    try:
        sender.offer(_MESSAGE, None, Ask(_taken, copied.fail))
        await copied
    finally:
        timer.cancel()
        await end_link(connection, sender)
        await end_link(connection, link)


def _taken(state: int, data: object) -> None:
    """Do nothing at the answer to the message: its copy tells."""


async def attach_member(
    connection: Connection, session: WireSession, spec: ConsumerSpec, selector: str | None, asked: str
) -> ReceiverLink:
    """Attach a consumer to the queue behind its subscription.

    Args:
        connection: Whose consumer.
        session: The session of its links.
        spec: A shared durable subscription.
        selector: Its selector as it is sent to the broker.
        asked: What is asked, as the beginning of a sentence.
    """
    name = f"{_word(connection.options.client_id or '')}-{_word(spec.subscription or '')}"
    address = f"{connection.book.queue_prefix}Consumer.{name}.{virtual_name(spec.address.name)}"
    link = await attach_receiver(
        connection, session, Source(address, capabilities=("queue",), selector=selector), spec.address, asked
    )
    if selector is not None:
        # Classic takes a condition for a value: IS NULL finds what it is neither TRUE nor FALSE of.
        unwanted = f"(NOT ({selector})) OR (({selector}) IS NULL)"
        misses = await attach_receiver(
            connection, session, Source(address, capabilities=("queue",), selector=unwanted), spec.address, asked
        )
        misses.raw_sink = lambda _: misses.grant(1)
        misses.grant(_AHEAD)
        link.companion = misses
    return link


def refuse_unsubscribe(name: str) -> ProviderError:
    """Return the refusal to end a subscription that this process knows as a shared one."""
    text = f"unsubscribe {name!r}: it is a queue of a virtual topic, which AMQP cannot delete: the broker's administrator can"
    return ProviderError(ErrorKind.UNSUPPORTED, text)
