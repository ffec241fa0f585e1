"""ActiveMQ Classic, as both wires need it. Seen on 6.3.1 unless said otherwise.

Durable subscriptions are the broker's own, by client id and name. Shared ones are queues of virtual topics: the broker copies
what is sent to the topic ``VirtualTopic.t`` into each queue ``Consumer.x.VirtualTopic.t`` that somebody has ever consumed from.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from jmsapi.spi import NATIVE, Address, Capabilities, ErrorKind, ProviderError, emulated, none
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import check_destination, word
from jmsapi_brokers.selector_dialects import GROUP_AND_USER, PRIVATE_PREFIXES, STOMP_HEADERS
from jmsapi_selector.dialects import Dialect

__all__ = [
    "AMQP_SELECTORS",
    "ERRORS",
    "PRODUCT",
    "STOMP_FRAME_LIMIT",
    "STOMP_HEADER_LIMIT",
    "STOMP_LINE_LIMIT",
    "STOMP_SELECTORS",
    "VIRTUAL_TOPIC_PREFIX",
    "amqp_capabilities",
    "check_address",
    "consumer_advisories",
    "members_name",
    "not_copied",
    "probe_names",
    "refused_unsubscribe",
    "shared_queue",
    "stomp_capabilities",
    "unwanted",
    "virtual_topic",
]

PRODUCT: Final = "classic"
STOMP_FRAME_LIMIT: Final = 100 * 1024 * 1024 - 1
STOMP_LINE_LIMIT: Final = 10_240
STOMP_HEADER_LIMIT: Final = 1000

# ---------------------------------------------------------------------------------------------------------------- names

VIRTUAL_TOPIC_PREFIX: Final = "VirtualTopic."
_INTERPRETED: Final = re.compile("[,*>?]")
_MEMBERS: Final = "jmsapi.members."


def check_address(address: Address) -> None:
    """Refuse names that are wildcards, composites or options to Classic, and those by which our consumers know of one another.

    The queues behind shared subscriptions are taken: ``Consumer.app.VirtualTopic.t`` is what any client of Classic may consume.

    Raises:
        ProviderError: DESTINATION.
    """
    check_destination(address)
    name = address.name
    bad = _INTERPRETED.search(name)
    if bad is not None:
        raise ProviderError(ErrorKind.DESTINATION, f"{name!r}: {bad[0]!r} has a meaning of its own in Classic's names")
    if not name.strip(" "):
        raise ProviderError(ErrorKind.DESTINATION, f"{name!r}: Classic cuts off the spaces around a name, and nothing is left")
    if name.startswith(_MEMBERS):
        raise ProviderError(ErrorKind.DESTINATION, f"{name!r} is how jmsapi keeps shared subscriptions: no destination of JMS")


def virtual_topic(topic: str) -> str:
    """Return the name of the virtual topic for a topic."""
    return topic if topic.startswith(VIRTUAL_TOPIC_PREFIX) else VIRTUAL_TOPIC_PREFIX + topic


def shared_queue(client_id: str | None, name: str, topic: str, *, durable: bool, pattern: str | None = None) -> str:
    """Return the queue behind a shared subscription.

    Args:
        client_id: Of the connection; None for none.
        name: The subscription's.
        topic: What is subscribed to.
        durable: Whether it outlives its consumers.
        pattern: How an operator who forwards topics himself names the queue, with ``{name}`` and ``{topic}``.
    """
    unique = f"{'' if durable else 'v-'}{word(client_id or '')}-{word(name)}"
    if pattern is not None:
        return pattern.replace("{name}", unique).replace("{topic}", topic)
    return f"Consumer.{unique}.{virtual_topic(topic)}"


def members_name(queue: str) -> str:
    """Return the name of a queue and a topic by which the consumers of a shared subscription's queue know of one another."""
    return _MEMBERS + queue


def consumer_advisories(queue: str) -> str:
    """Return the topic on which the broker tells of a queue's consumers; a new subscriber gets a message for each of them."""
    return f"ActiveMQ.Advisory.Consumer.Queue.{queue}"


def probe_names(wire: str) -> tuple[str, str]:
    """Return a virtual topic of our own and its queue, to see whether the broker copies from one to the other."""
    topic = f"{VIRTUAL_TOPIC_PREFIX}jmsapi.{'probe' if wire == 'stomp' else 'amqp-probe'}"
    return topic, f"Consumer.jmsapi.{topic}"


def not_copied(asked: str) -> ProviderError:
    """Return the refusal to share a subscription where the broker does not copy virtual topics to their queues.

    Args:
        asked: What is asked, as the beginning of a sentence.
    """
    text = (
        f"{asked}: the broker does not copy virtual topics to their queues; its configuration needs a destinationInterceptor "
        'with virtualTopic name="VirtualTopic.>" and prefix="Consumer.*.", as it has by default'
    )
    return ProviderError(ErrorKind.UNSUPPORTED, text)


def refused_unsubscribe(name: str, wire: str) -> ProviderError:
    """Return the refusal to end a subscription that is the queue of a virtual topic."""
    text = f"unsubscribe {name!r}: it is a queue of a virtual topic, which {wire} cannot delete: the broker's administrator can"
    return ProviderError(ErrorKind.UNSUPPORTED, text)


# ---------------------------------------------------------------------------------------------------------------- errors

ERRORS: Final[ErrorWords] = (
    ("already connected from", ErrorKind.CLIENT_ID),
    ("durable consumer is in use", ErrorKind.IN_USE),
    ("already has an active", ErrorKind.IN_USE),
    ("no durable subscription exists", ErrorKind.SUBSCRIPTION),
    ("invalidselectorexception", ErrorKind.SELECTOR),
    ("couldn't create topicsubscription", ErrorKind.SELECTOR),
    ("poison ack cannot be transacted", ErrorKind.PROTOCOL),
    ("cannot consume from temporary destination", ErrorKind.DESTINATION),
    ("created by another connection", ErrorKind.DESTINATION),
    # Of a temporary destination that is gone the error has the name alone.
    ("temp-queue://", ErrorKind.DESTINATION),
    ("temp-topic://", ErrorKind.DESTINATION),
    ("destinationdoesnotexist", ErrorKind.DESTINATION),
    ("invaliddestinationexception", ErrorKind.DESTINATION),
    ("the destination", ErrorKind.DESTINATION),
    ("user name", ErrorKind.SECURITY),
    ("password is invalid", ErrorKind.SECURITY),
)
"""The broker has no codes: these are its words and the names of its exceptions."""

# ---------------------------------------------------------------------------------------------------------------- selectors

_CLOSED: Final = GROUP_AND_USER | {"JMSXProducerTXID"}
"""Classic shows the transaction of the sender as well."""
AMQP_SELECTORS: Final = Dialect("amqp-classic", closed_names=_CLOSED, closed_prefixes=PRIVATE_PREFIXES, bracketed=True)
STOMP_SELECTORS: Final = Dialect(
    "stomp-classic",
    typed=False,
    names=MappingProxyType({"JMSMessageID": "JMS_PY_id"}),
    closed_names=STOMP_HEADERS | _CLOSED,
    closed_prefixes=PRIVATE_PREFIXES,
    longest=10_000,
)


def unwanted(selector: str) -> str:
    """Return the selector of what a selector is not TRUE of: in a shared subscription's queue it would stay for ever.

    Classic takes a condition for a value: IS NULL finds what is neither TRUE nor FALSE.
    """
    return f"(NOT ({selector})) OR (({selector}) IS NULL)"


# ---------------------------------------------------------------------------------------------------------------- abilities

_DELAY: Final = "where the broker has schedulerSupport, which the first delayed send of a connection finds out"
_NO_SCHEDULER: Final = 'the broker delivered a delayed message at once; its configuration needs schedulerSupport="true"'
_DELAYED_TOPIC: Final = none("a delayed topic message goes to those who are subscribed when it falls due")
_PRIORITY: Final = none("needs prioritizedMessages in the broker's destination policy")


def amqp_capabilities(version: str, *, virtual_topics: bool, scheduler: bool) -> Capabilities:
    """Return what Classic can do over AMQP.

    Args:
        version: The broker's version.
        virtual_topics: Shared subscriptions are made by virtual topics.
        scheduler: The broker is known to have schedulerSupport; else it is found out.
    """
    shared = "Classic 6.3 takes a shared link and gives every message to each consumer"
    lacking = none(f"{shared}; say ?classic.virtual_topics=true where VirtualTopic.> is configured (the broker's default)")
    return Capabilities(
        provider="amqp",
        settle_answered=False,
        broker=PRODUCT,
        version=version,
        no_local=none("kept by the client: the broker's own filter works by connection, also where JMS has none"),
        shared_subscription=none(f"{shared}, and the queue of a virtual topic would outlive its consumers"),
        shared_durable_subscription=(
            emulated("consumers of a virtual topic's queue, which outlives them") if virtual_topics else lacking
        ),
        shared_unsubscribe=none("AMQP cannot delete a virtual topic's queue") if virtual_topics else lacking,
        subscription_change_detected=(
            emulated("another topic is noticed within this process; of virtual topics the broker keeps the old one's messages")
            if virtual_topics
            else NATIVE
        ),
        delivery_delay=NATIVE if scheduler else emulated(f"the broker's scheduler, {_DELAY}"),
        delay_trial=None if scheduler else _NO_SCHEDULER,
        delay_keeps_subscribers=_DELAYED_TOPIC,
        delivery_count_exact=emulated("a closed link does not count"),
        priority_order=_PRIORITY,
        xa=none("AMQP 1.0 has no XA"),
        rollback_returns=True,
        release_while_open=False,
        # 6.3.1: what a consumer gives back goes behind what others have given back and this one has not been sent yet.
        unused_credit_reorders=True,
        # 6.1: whatever transaction ends, it ends for all that was accepted on a link in any of them.
        transactions_apart=False,
        assigns_message_id=True,
        forwards_shared=not virtual_topics,
        selectors=AMQP_SELECTORS,
    )


def stomp_capabilities(
    version: str, *, emulate: Collection[str], virtual_topics: bool, scheduler: bool, max_message: int
) -> Capabilities:
    """Return what Classic can do over STOMP.

    Args:
        version: The broker's version.
        emulate: The words of the option ``emulate``.
        virtual_topics: Shared subscriptions are made by virtual topics, or by queues that an operator forwards topics to.
        scheduler: The broker is known to have schedulerSupport; else it is found out.
        max_message: Bytes of the largest frame.
    """
    lacking = none("the broker has none; set classic.virtual_topics=1 where VirtualTopic.> is configured (the broker's default)")
    return Capabilities(
        provider="stomp",
        broker=PRODUCT,
        version=version,
        no_local=none("checked locally, so that it outlives a reconnect"),
        shared_subscription=(
            emulated("a virtual topic's queue; what is left from before the first consumer is thrown away")
            if virtual_topics and "shared-volatile" in emulate
            else none("the broker has none; needs classic.virtual_topics=1 as well", emulate="shared-volatile")
        ),
        shared_durable_subscription=emulated("consumers of a virtual topic's queue") if virtual_topics else lacking,
        forwards_shared=not virtual_topics,
        shared_unsubscribe=none("STOMP cannot delete a virtual topic's queue") if virtual_topics else lacking,
        delivery_delay=emulated("the broker's scheduler" if scheduler else f"the broker's scheduler, {_DELAY}"),
        map_message=emulated("JSON for jmsapi clients, text for others"),
        stream_message=emulated("JSON for jmsapi clients, text for others"),
        object_message=emulated("bytes for others"),
        plain_message=emulated("an empty text for others"),
        delivery_count_exact=none("only a flag says that a message came before"),
        redelivered_flag=none("right on queues; what a durable subscription left unacknowledged comes again without a mark"),
        temporary_owner_only=emulated("checked by this library; an ordinary queue of the same name is another queue"),
        delay_keeps_subscribers=_DELAYED_TOPIC,
        delay_trial=None if scheduler else _NO_SCHEDULER,
        priority_order=none("needs prioritizedMessages in the broker's policy for the queue"),
        receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
        missing_queue_reported=NATIVE,
        rollback_returns=False,
        broker_credit=False,
        release_while_open=False,
        unsettled_window=None,
        assigns_message_id=True,
        max_message=max_message,
        selectors=STOMP_SELECTORS,
    )
