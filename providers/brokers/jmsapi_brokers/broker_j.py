"""Apache Qpid Broker-J, over AMQP 1.0. Seen on 9.2.0, with a virtual host that creates queues when they are used.

A topic is a routing key of the exchange ``amq.topic``, as it is for Qpid's own JMS client when an application names it so.
"""

from __future__ import annotations

from typing import Final

from jmsapi.spi import Address, Capabilities, DestinationKind, ErrorKind, ProviderError, emulated, none
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import check_destination
from jmsapi_selector.dialects import Dialect

__all__ = [
    "AMQP_SELECTORS",
    "ERRORS",
    "PRODUCT",
    "TOPIC_PREFIX",
    "UNSUBSCRIBING",
    "address_of",
    "amqp_capabilities",
    "check_address",
    "named_by",
]

PRODUCT: Final = "broker-j"

TOPIC_PREFIX: Final = "amq.topic/"
"""What stands before the name of a topic: the exchange that all topics share."""

UNSUBSCRIBING: Final = f"{TOPIC_PREFIX}jmsapi.unsubscribing"
"""A topic to which nothing is sent: a subscription that moves to it loses what it holds."""

# ---------------------------------------------------------------------------------------------------------------- names


def address_of(address: Address) -> str:
    """Return a destination's address. A slash would part an exchange from a key: in a queue's name it becomes ``%2F``."""
    if address.kind is DestinationKind.TOPIC:
        return TOPIC_PREFIX + address.name
    if address.kind is DestinationKind.QUEUE:
        return address.name.replace("%", "%25").replace("/", "%2F")
    return address.name


def named_by(address: str, kind: DestinationKind) -> Address:
    """Return the destination of an address that is not a temporary one's."""
    if address.startswith(TOPIC_PREFIX):
        return Address(DestinationKind.TOPIC, address[len(TOPIC_PREFIX) :])
    if kind is DestinationKind.QUEUE:
        return Address(kind, address.replace("%2F", "/").replace("%25", "%"))
    return Address(kind, address)


def check_address(address: Address) -> None:
    """Refuse names that are none, and topics that would be a pattern of keys.

    Raises:
        ProviderError: DESTINATION.
    """
    check_destination(address)
    if address.kind is DestinationKind.TOPIC and any(word in ("*", "#") for word in address.name.split(".")):
        raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r} is a pattern of topics at Broker-J, not the name of one")


# ---------------------------------------------------------------------------------------------------------------- errors

ERRORS: Final[ErrorWords] = ()
"""The broker's words: it sends AMQP's own conditions."""

# ---------------------------------------------------------------------------------------------------------------- selectors

AMQP_SELECTORS: Final = Dialect("amqp-broker-j", evaluates=False)
"""To the broker's selectors a comparison with NULL is FALSE, so NOT of it is TRUE: they are not used."""

# ---------------------------------------------------------------------------------------------------------------- abilities


def amqp_capabilities(version: str) -> Capabilities:
    """Return what Broker-J can do over AMQP."""
    return Capabilities(
        provider="amqp",
        settle_answered=False,
        broker=PRODUCT,
        version=version,
        queue_selector=none(
            "the broker's selectors know no third value: NOT of a comparison with NULL is TRUE", emulate="queue-selector"
        ),
        topic_selector=emulated("evaluated here; what does not match is acknowledged and dropped"),
        priority_order=none("a queue has priorities when it is declared so, which AMQP cannot ask"),
        message_groups=none("a queue keeps groups together when it is declared so, which AMQP cannot ask"),
        dead_letter=none("a message that is given up stays in its queue, for other consumers"),
        missing_queue_reported=none("a virtual host may make queues when they are used"),
        delivery_delay=none("a queue holds messages when it is declared so, which AMQP cannot ask"),
        no_local=none("kept by the client by a mark on each topic message"),
        unknown_subscription_reported=none("a shared one that belongs to no client id ends without a word when there is none"),
        temporary_owner_only=emulated("the client lets only its own connection consume"),
        xa=none("AMQP 1.0 has no XA"),
        redelivery_policy=True,
        selectors=AMQP_SELECTORS,
    )
