"""Apache Artemis, as both wires need it. Seen on 2.56.0 unless said otherwise.

Subscriptions are queues that the broker names ``<client id>.<name>``, which Java clients know too; so names are changed only
where two of them would meet (``subscription_name``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from jmsapi.spi import NONE, Address, Capabilities, ErrorKind, Level, ProviderError, Support, emulated, none
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import check_destination, escaped, without_tildes
from jmsapi_brokers.selector_dialects import GROUP_AND_USER, PRIVATE_PREFIXES, STOMP_HEADERS
from jmsapi_selector.dialects import Dialect

__all__ = [
    "AMQP_SELECTORS",
    "CONVERT_STRINGS",
    "DUPLICATE_ID",
    "ERRORS",
    "GLOBAL_CLIENT_ID",
    "PRODUCT",
    "STOMP_FRAME_LIMIT",
    "STOMP_SELECTORS",
    "SUBSCRIPTION_REST_S",
    "VOLATILE_PREFIX",
    "amqp_capabilities",
    "check_address",
    "check_client_id",
    "client_id_lock",
    "is_of_other_routing_type",
    "less_urgent",
    "stomp_capabilities",
    "subscription_name",
    "volatile_name",
]

PRODUCT: Final = "artemis"

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""The property by which the broker knows a message that it has had."""

CONVERT_STRINGS: Final = "convert_string_expressions:"
"""Before a selector: text is converted to numbers, as messages of STOMP senders need. Classic takes it too."""

STOMP_FRAME_LIMIT: Final = 100 * 1024 * 1024
"""Bytes of the largest STOMP frame."""

SUBSCRIPTION_REST_S: Final = 1.0
"""How long the broker is given to delete the queue of a shared non-durable subscription, in seconds.

It says neither that it has nor that it will: a consumer who comes too early stays attached, to a queue that is gone. Looking
for the queue is no way out, since that is one more consumer whose end deletes the queue by its name, at some later time. Seen
with two processors and forty processes that wanted them: after 5 ms 3 of 30 subscriptions were dead, after 50 ms 2 of 30,
after 100 ms none of 30, after 300 ms none of 100.
"""

GLOBAL_CLIENT_ID: Final = "jmsapi-global"
"""The client id under which shared durable subscriptions without a client id are kept over STOMP."""

VOLATILE_PREFIX: Final = "~volatile-"
"""What stands before the name of a shared non-durable subscription over STOMP; no name that is escaped begins so."""

# ---------------------------------------------------------------------------------------------------------------- names

_QUEUE_OF_ADDRESS: Final = "::"
_WILDCARDS: Final = re.compile("[*#]")
_SUFFIXES: Final = (":global", ":shared-volatile")


def check_address(address: Address) -> None:
    """Refuse names that are none, wildcards, and those that name one queue of an address: that is how subscriptions are kept.

    A consumer of a wildcard would get what was sent to others, and a send to one ends a connection over STOMP.

    Raises:
        ProviderError: DESTINATION.
    """
    check_destination(address)
    wildcard = _WILDCARDS.search(address.name)
    if wildcard is not None:
        raise ProviderError(ErrorKind.DESTINATION, f"{address.name!r}: {wildcard[0]!r} is a wildcard in Artemis' names")
    if _QUEUE_OF_ADDRESS in address.name:
        text = f"{address.name!r} names a queue of an address, which is how Artemis keeps subscriptions: no destination of JMS"
        raise ProviderError(ErrorKind.DESTINATION, text)


def check_client_id(client_id: str) -> None:
    """Refuse the client id that this library uses itself.

    Raises:
        ProviderError: CLIENT_ID.
    """
    if client_id == GLOBAL_CLIENT_ID:
        raise ProviderError(ErrorKind.CLIENT_ID, f"the client id {client_id!r} is kept for shared subscriptions", fatal=True)


def subscription_name(client_id: str | None, name: str) -> str:
    """Return the name by which the broker is to know a subscription.

    The broker puts client id and name together with a dot, and adds words after a colon for some kinds. Without care client
    ``a`` with ``b.c`` and client ``a.b`` with ``c`` would have one queue, and opening one could delete what the other has. So a
    name that belongs to a client id is written without dots (``names.escaped``), and one that ends as the broker ends the
    queues of shared subscriptions without colons. All others stay as they are, so that other JMS clients find them.
    """
    name = without_tildes(name) if client_id is None else escaped(name)
    return name.replace(":", "!3") if name.endswith(_SUFFIXES) else name


def volatile_name(name: str) -> str:
    """Return the name under which a shared non-durable subscription is kept over STOMP, as a durable one of the broker's."""
    return VOLATILE_PREFIX + escaped(name)


def client_id_lock(client_id: str) -> str:
    """Return the queue that stands for a client id, where an operator lets such queues have one consumer only."""
    return f"jmsapi.lock.{client_id}"


# ---------------------------------------------------------------------------------------------------------------- errors

_OTHER_ROUTING_TYPE: Final = "is not configured for"
ERRORS: Final[ErrorWords] = (
    ("amq229020", ErrorKind.SELECTOR),
    ("security error", ErrorKind.SECURITY),
    ("amq229031", ErrorKind.SECURITY),
    ("amq229032", ErrorKind.SECURITY),
    ("amq229213", ErrorKind.SECURITY),
    ("amq229017", ErrorKind.DESTINATION),
    (_OTHER_ROUTING_TYPE, ErrorKind.DESTINATION),
    ("amq229200", ErrorKind.IN_USE),
    ("amq229025", ErrorKind.IN_USE),
    ("maximum consumer limit", ErrorKind.IN_USE),
    ("amq229102", ErrorKind.RESOURCE),
    ("address is full", ErrorKind.RESOURCE),
)
"""The broker's error codes, or its words where no code comes with them."""


def is_of_other_routing_type(text: str) -> bool:
    """Return whether an error says that an address is so far only one of the other kind, queue or topic."""
    return _OTHER_ROUTING_TYPE in text


# ---------------------------------------------------------------------------------------------------------------- selectors

_NAMES: Final = MappingProxyType(
    {
        "JMSPriority": "AMQPriority",
        "JMSTimestamp": "AMQTimestamp",
        "JMSMessageID": "AMQUserID",
        "JMSDeliveryMode": "AMQDurable",
        "JMSXGroupID": "AMQGroupID",
    }
)
AMQP_SELECTORS: Final = Dialect(
    "amqp-artemis",
    names=_NAMES,
    persistent="DURABLE",
    non_persistent="NON_DURABLE",
    closed_names=GROUP_AND_USER,
    closed_prefixes=PRIVATE_PREFIXES,
    translates_literals=True,
)
STOMP_SELECTORS: Final = Dialect(
    "stomp-artemis",
    typed=False,
    names=_NAMES,
    persistent="DURABLE",
    non_persistent="NON_DURABLE",
    prefix=CONVERT_STRINGS,
    closed_names=STOMP_HEADERS | GROUP_AND_USER,
    closed_prefixes=PRIVATE_PREFIXES,
    stamps=True,
)


def less_urgent(selector: str | None, priority: int) -> str:
    """Return the broker's selector for what ``selector`` matches and is less urgent than a priority."""
    text = (selector or "").removeprefix(CONVERT_STRINGS)
    prefix = CONVERT_STRINGS if text != (selector or "") else ""
    urgency = f"AMQPriority < {priority}"
    return f"{prefix}({text}) AND {urgency}" if text.strip() else urgency


# ---------------------------------------------------------------------------------------------------------------- abilities

_DUPLICATES: Final = Support(Level.NATIVE, f"by the property {DUPLICATE_ID}, of its last 20,000 unless configured")


def amqp_capabilities(version: str) -> Capabilities:
    """Return what Artemis can do over AMQP."""
    return Capabilities(
        provider="amqp",
        settle_answered=False,
        broker=PRODUCT,
        version=version,
        no_local=none("kept by the client: the broker's own filter hides messages of STOMP senders"),
        temporary_owner_only=emulated("the client lets only its own connection consume"),
        redelivered_flag=none("right after an orderly end; the broker does not count every delivery whose link was lost"),
        shared_subscription=emulated("within this process its name rests for a moment when it has ended"),
        shared_durable_subscription=emulated("that its name is an unshared one's is known within this process only"),
        duplicate_detection=_DUPLICATES,
        xa=none("AMQP 1.0 has no XA"),
        rollback_returns=True,
        browser_shows_expired=True,
        redelivery_policy=True,
        duplicate_property=DUPLICATE_ID,
        selectors=AMQP_SELECTORS,
    )


def stomp_capabilities(version: str, *, emulate: Collection[str], lock: bool, max_message: int) -> Capabilities:
    """Return what Artemis can do over STOMP.

    Args:
        version: The broker's version.
        emulate: The words of the option ``emulate``.
        lock: Client ids are locked by queues, as an operator has set it up.
        max_message: Bytes of the largest frame.
    """
    sends_first = "sends are committed before the acknowledgements: a crash between repeats messages, it loses none"
    return Capabilities(
        provider="stomp",
        broker=PRODUCT,
        version=version,
        transactions=emulated(sends_first) if "tx" in emulate else none("Artemis obeys a STOMP ACK at once", emulate="tx"),
        transactions_atomic=none("acknowledgements follow the commit one by one"),
        no_local=none("the broker's mark is missing on sends inside transactions"),
        durable_subscription=emulated("a named queue of the client id"),
        shared_subscription=(
            emulated("a queue on the topic; what is left is drained by the last consumer")
            if "shared-volatile" in emulate
            else none("STOMP can share durable subscriptions only", emulate="shared-volatile")
        ),
        shared_durable_subscription=emulated("consumers of one durable name share it"),
        browser=emulated("listed and copied by activemq.management, where the user may manage; refused where not"),
        temporary_queue=emulated("a queue with a unique name"),
        temporary_topic=emulated("a topic with a unique name"),
        map_message=emulated("JSON for jmsapi clients, text for others"),
        stream_message=emulated("JSON for jmsapi clients, text for others"),
        object_message=emulated("bytes for others"),
        plain_message=emulated("an empty text for others"),
        client_id_exclusive=(
            emulated("a lock queue")
            if lock
            else none("client ids are not checked unless the broker limits jmsapi.lock.# to one consumer: set artemis.lock=1")
        ),
        delivery_count_exact=none("only a flag says that a message came before"),
        redelivered_flag=none("after DISCONNECT only the oldest message is marked"),
        receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
        temporary_owner_only=none("the name is secret, not protected"),
        dead_letter=emulated("a copy is sent, then the message acknowledged"),
        durable_exclusive=emulated("checked within this process; other processes may share the subscription"),
        subscription_change_detected=emulated("within this process; the broker keeps the old filter"),
        unknown_subscription_reported=emulated(
            "asked of activemq.management, where the user may; else the broker confirms what it does not know"
        ),
        same_name_queue_and_topic=none("an address used both ways mixes them up"),
        duplicate_detection=_DUPLICATES,
        rollback_returns=False,
        broker_credit=False,
        release_while_open=False,
        browser_shows_expired=True,
        unsettled_window=None,
        assigns_message_id=True,
        max_message=max_message,
        duplicate_property=DUPLICATE_ID,
        xa=NONE,
        selectors=STOMP_SELECTORS,
    )
