"""RabbitMQ, as both wires need it. Seen on 4.0.5 unless said otherwise.

The broker knows queues, exchanges and bindings; subscriptions, locks and delays are queues that this library declares, under
the names made here, the same over both wires.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import uuid4

from jmsapi.spi import EMULATED, Address, Capabilities, DestinationKind, ErrorKind, ProviderError, Support, emulated, none
from jmsapi_brokers.error_words import ErrorWords
from jmsapi_brokers.names import check_destination, escaped, without_tildes
from jmsapi_selector.dialects import Dialect

__all__ = [
    "AMQP_SELECTORS",
    "ARGUMENT_PREFIXES",
    "DELAY_IDLE_MS",
    "ERRORS",
    "LONGEST_NAME",
    "PRODUCT",
    "STOMP_FRAME_LIMIT",
    "STOMP_SELECTORS",
    "TOPIC_EXCHANGE",
    "DelayQueue",
    "amqp_capabilities",
    "argument_pairs",
    "check_address",
    "check_queue_name",
    "client_id_lock",
    "delay_queue",
    "is_delay_queue",
    "is_missing_queue",
    "is_own_queue",
    "queue_arguments",
    "rounded_delay",
    "stomp_capabilities",
    "subscriber_queue",
    "subscription_lock",
    "subscription_queue",
    "subscription_terms",
    "terms_differ",
]

PRODUCT: Final = "rabbitmq"
LONGEST_NAME: Final = 255
"""Bytes of a queue's name or a binding's key."""
STOMP_FRAME_LIMIT: Final = 4 * 1024 * 1024
TOPIC_EXCHANGE: Final = "amq.topic"
"""The exchange that topics are keys of, unless an option names another."""

# ---------------------------------------------------------------------------------------------------------------- names

_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_LOCK: Final = "jmsapi.lock."
_DELAY: Final = "jmsapi.delay."
_OWN: Final = re.compile(r"jms\.[dsvn]\.|jmsapi\.(?:lock|delay)\.")


def check_address(address: Address) -> None:
    """Refuse names that are none, are too long, or are queues that this library keeps subscriptions, locks and delays in.

    Raises:
        ProviderError: DESTINATION.
    """
    check_destination(address)
    check_queue_name(address.name, "a destination")
    if address.kind is DestinationKind.QUEUE and _OWN.match(address.name) is not None:
        text = f"{address.name!r} is how jmsapi keeps subscriptions, locks or delays: no destination of JMS"
        raise ProviderError(ErrorKind.DESTINATION, text)


def is_own_queue(name: str) -> bool:
    """Return whether this library keeps subscriptions, locks or delays in a queue of this name."""
    return _OWN.match(name) is not None


def is_delay_queue(name: str) -> bool:
    """Return whether messages wait in a queue of this name until they fall due."""
    return name.startswith(_DELAY)


def check_queue_name(name: str, what: str) -> None:
    """Refuse a name that is longer than the broker takes.

    Args:
        name: The whole name of a queue, or a key.
        what: What it is the name of, for the error.
    Raises:
        ProviderError: DESTINATION.
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NAME:
        text = f"the name of {what} takes {size} bytes at RabbitMQ, {name[:80]!r}...; it takes at most {LONGEST_NAME}"
        raise ProviderError(ErrorKind.DESTINATION, text)


def subscriber_queue() -> str:
    """Return a new name for the queue of a subscriber without a name."""
    return f"jms.n.{uuid4()}"


def subscription_queue(client_id: str | None, name: str, *, durable: bool, shared: bool) -> str:
    """Return the queue of a named subscription, at most 255 bytes; no two subscriptions get the same (6.11.5-3)."""
    kind = ("s" if shared else "d") if durable else "v"
    return _owned(f"jms.{kind}", client_id, name)


def subscription_lock(client_id: str | None, name: str) -> str:
    """Return the exclusive queue that stands for the one consumer of an unshared durable subscription, at most 255 bytes."""
    return _owned(f"{_LOCK}sub", client_id, name)


def _owned(use: str, client_id: str | None, name: str) -> str:
    """Return the name of a subscription's queue; where it would be too long, a digest stands for the owner.

    JMS wants 128 characters to be enough for a subscription's name, and these may take 512 bytes. What stands before the name has
    no dot, so no two owners get the same; ``!h`` comes of no escaping, so no short name is that of a long one.

    Raises:
        ProviderError: DESTINATION; the broker would take line ends out, and another subscription may have what is left.
    """
    if _CONTROL.search(name) is not None:
        raise ProviderError(ErrorKind.DESTINATION, f"{name!r} is no name for a subscription on RabbitMQ")
    queue = f"{use}.{escaped(client_id or '')}.{without_tildes(name)}"
    whole = queue.encode("utf-8", "surrogatepass")
    if len(whole) <= LONGEST_NAME:
        return queue
    shortened = f"{use}.!h{sha256(whole).hexdigest()}.{without_tildes(name)}"
    return shortened.encode("utf-8", "surrogatepass")[:LONGEST_NAME].decode("utf-8", "ignore")


def client_id_lock(client_id: str) -> str:
    """Return the exclusive queue that stands for a client id.

    Raises:
        ProviderError: CLIENT_ID; it is too long, or has what no queue's name may have.
    """
    if _CONTROL.search(client_id) is not None:
        raise ProviderError(ErrorKind.CLIENT_ID, f"{client_id!r} is no client id for RabbitMQ", fatal=True)
    queue = f"{_LOCK}{escaped(client_id)}"
    if len(queue.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        raise ProviderError(ErrorKind.CLIENT_ID, f"the client id {client_id[:40]!r}... is too long for RabbitMQ", fatal=True)
    return queue


def argument_pairs(text: str) -> list[tuple[str, str]]:
    """Return the arguments of queues that an option gives as ``name:value;name:value``."""
    pairs = [item.partition(":") for item in text.split(";") if item.strip()]
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def queue_arguments(text: str) -> dict[str, object]:
    """Return the same arguments with their types: whole numbers and booleans are taken as such."""
    found: dict[str, object] = {}
    for name, value in argument_pairs(text):
        number = value.removeprefix("-").isdecimal()
        found[name] = int(value) if number else value == "true" if value in ("true", "false") else value
    return found


# ---------------------------------------------------------------------------------------------------------------- topology

_TOPIC: Final = "x-jmsapi-topic"
_SELECTOR: Final = "x-jmsapi-selector"
ARGUMENT_PREFIXES: Final = (
    *("x-dead-letter-", "x-delivery-limit", "x-expires", "x-max-", "x-message-ttl", "x-overflow", "x-queue-", "x-quorum-"),
    *("x-single-active-", "x-stream-"),
)
"""How the names of a queue's arguments begin, which over STOMP are headers like any other."""
DELAY_IDLE_MS: Final = 60_000
"""How long a delay queue stays after its last use, unless an option says otherwise."""


class DelayQueue(NamedTuple):
    """A queue whose messages expire, and are then dead-lettered to where they were sent."""

    name: str
    delay_ms: int
    arguments: Mapping[str, int | str]


def rounded_delay(delay_ms: int) -> int:
    """Return a delay rounded up to three significant digits, so that there are few queues."""
    unit = int(10 ** max(0, len(str(delay_ms)) - 3))
    return -(-delay_ms // unit) * unit


def delay_queue(address: Address, delay_ms: int, *, exchange: str = TOPIC_EXCHANGE, idle_ms: int = DELAY_IDLE_MS) -> DelayQueue:
    """Return the queue in which messages for a destination wait.

    All that its arguments depend on is in its name, so that no two senders want one queue with two meanings.

    Args:
        address: Where the messages go.
        delay_ms: How long they wait; rounded up.
        exchange: The exchange for topics.
        idle_ms: How long the queue stays when nobody uses it.
    Raises:
        ProviderError: DESTINATION; the name is too long.
    """
    delay = rounded_delay(delay_ms)
    topic = address.kind.is_topic
    kind = "q" if not topic else "t" if exchange == TOPIC_EXCHANGE else f"t-{escaped(exchange)}"
    idle = "" if idle_ms == DELAY_IDLE_MS else f"-{idle_ms}"
    name = f"{_DELAY}{delay}{idle}.{kind}.{address.name}"
    check_queue_name(name, f"the queue that delays messages for {address.name[:40]!r}")
    arguments: dict[str, int | str] = {
        "x-message-ttl": delay,
        "x-expires": delay + idle_ms,
        "x-dead-letter-exchange": exchange if topic else "",
        "x-dead-letter-routing-key": address.name,
    }
    return DelayQueue(name, delay, arguments)


def subscription_terms(topic: str, terms: str | None) -> dict[str, str]:
    """Return the arguments by which a subscription's queue remembers topic and selector: the broker does not compare them."""
    return {_TOPIC: topic, _SELECTOR: terms or ""}


def terms_differ(kept: Mapping[str, object], wanted: Mapping[str, str]) -> bool:
    """Return whether a queue's arguments say that it was made with other terms; one without ours says nothing."""
    return any(name in kept and kept[name] != value for name, value in wanted.items())


# ---------------------------------------------------------------------------------------------------------------- errors

ERRORS: Final[ErrorWords] = (
    ("bad connect", ErrorKind.SECURITY),
    ("access refused", ErrorKind.SECURITY),
    ("access_refused", ErrorKind.SECURITY),
    ("access denied", ErrorKind.SECURITY),
    ("not_allowed", ErrorKind.SECURITY),
    ("resource_locked", ErrorKind.IN_USE),
    ("not_found", ErrorKind.DESTINATION),
    ("precondition_failed", ErrorKind.MISMATCH),
    ("subscription not found", ErrorKind.SUBSCRIPTION),
    ("server cancelled subscription", ErrorKind.DESTINATION),
)
"""The broker's reply codes, which come as words, and the titles of its STOMP errors."""


def is_missing_queue(text: str) -> bool:
    """Return whether an error says that there is no queue of that name, as it does where none may be declared."""
    return "NOT_FOUND - no queue" in text or "there is no such queue" in text


# ---------------------------------------------------------------------------------------------------------------- selectors

AMQP_SELECTORS: Final = Dialect("amqp-rabbitmq", evaluates=False)
STOMP_SELECTORS: Final = Dialect("stomp-rabbitmq", typed=False, evaluates=False)

# ---------------------------------------------------------------------------------------------------------------- abilities

_EXPIRY: Final = emulated("at the head of a queue only; the client checks too")
_DELAYED_TOPIC: Final = none("a delayed topic message is published when it falls due")


def amqp_capabilities(version: str, *, max_message: int | None) -> Capabilities:
    """Return what RabbitMQ 4 can do over AMQP 1.0.

    Args:
        version: The broker's version.
        max_message: Bytes of the largest message, as the broker gives it; None when it has not.
    """
    queues = emulated("by queues and bindings that the client declares")
    return Capabilities(
        provider="amqp",
        settle_answered=False,
        broker=PRODUCT,
        version=version,
        transactions=none("RabbitMQ 4 has no AMQP 1.0 transactions", emulate="tx"),
        transactions_atomic=none("RabbitMQ 4 has no AMQP 1.0 transactions"),
        queue_selector=none("RabbitMQ 4 ignores selectors", emulate="queue-selector"),
        topic_selector=none("RabbitMQ 4 ignores selectors; the client selects"),
        no_local=none("RabbitMQ 4 ignores it; the client selects by a mark on each topic message"),
        durable_subscription=queues,
        shared_subscription=queues,
        shared_durable_subscription=queues,
        unsubscribe=queues,
        browser=none(
            "RabbitMQ 4 has no browsing, and what is only looked at is hidden from others and then marked as redelivered"
        ),
        temporary_queue=queues,
        temporary_topic=queues,
        delivery_delay=emulated("by a queue a delay, whose messages expire into their destination"),
        xa=none("AMQP 1.0 has no XA"),
        client_id_exclusive=emulated("by an exclusive queue"),
        delivery_count_exact=none("classic queues only tell that a message was delivered before"),
        delay_keeps_subscribers=_DELAYED_TOPIC,
        priority_order=none("needs x-max-priority when the queue is declared"),
        message_groups=none("RabbitMQ keeps the group id and does not honour it"),
        dead_letter=emulated("needs a dead-letter exchange of the queue, else the message is dropped"),
        durable_exclusive=emulated("by an exclusive queue"),
        subscription_change_detected=emulated("by arguments of the subscription's queue"),
        unknown_subscription_reported=EMULATED,
        expiry_in_broker=_EXPIRY,
        max_message=max_message,
        selectors=AMQP_SELECTORS,
    )


def stomp_capabilities(version: str, *, emulate: Collection[str], max_message: int) -> Capabilities:
    """Return what RabbitMQ can do over STOMP.

    Args:
        version: The broker's version.
        emulate: The words of the option ``emulate``.
        max_message: Bytes of the largest frame.
    """
    tx: Support = (
        emulated("sends are replayed, then acknowledgements follow: a crash between repeats messages, it loses none")
        if "tx" in emulate
        else none("the broker replays transactions one message after the other", emulate="tx")
    )
    return Capabilities(
        provider="stomp",
        broker=PRODUCT,
        version=version,
        transactions=tx,
        transactions_atomic=none("acknowledgements follow the commit one by one"),
        queue_selector=none("the broker has no selectors", emulate="queue-selector"),
        topic_selector=none("the broker has no selectors"),
        no_local=none("the broker has no noLocal"),
        durable_subscription=emulated("a named queue and a lock"),
        shared_subscription=emulated("a named queue that goes with its last consumer"),
        shared_durable_subscription=emulated("a named queue"),
        unsubscribe=emulated("the subscription's queue is deleted"),
        browser=none("browser:true consumes, and what is only looked at is hidden from others and then marked as redelivered"),
        temporary_queue=emulated("an exclusive queue"),
        temporary_topic=emulated("a topic with a unique name"),
        delivery_delay=emulated("queues with a time to live that dead-letter into the destination"),
        map_message=emulated("JSON for jmsapi clients"),
        stream_message=emulated("JSON for jmsapi clients"),
        object_message=emulated("bytes for others"),
        plain_message=emulated("an empty body for others"),
        client_id_exclusive=emulated("an exclusive lock queue"),
        delivery_count_exact=none("only a flag says that a message came before; quorum queues count"),
        delay_keeps_subscribers=_DELAYED_TOPIC,
        priority_order=none("needs x-max-priority when the queue is declared: rabbit.queue_args"),
        message_groups=none("the broker has none"),
        receive_no_wait_exact=none("STOMP cannot ask what is on its way; a grace period is waited"),
        missing_queue_reported=none("the broker confirms what it cannot route"),
        dead_letter=emulated("the queue's dead-letter exchange, if it has one"),
        durable_exclusive=emulated("a lock queue"),
        subscription_change_detected=emulated("within this process"),
        unknown_subscription_reported=emulated("the queue is looked for on a connection of its own"),
        expiry_in_broker=_EXPIRY,
        rollback_returns=False,
        broker_credit=False,
        release_while_open=True,
        unsettled_window=None,
        assigns_message_id=True,
        max_message=max_message,
        selectors=STOMP_SELECTORS,
    )
