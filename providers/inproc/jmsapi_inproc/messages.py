"""A message as a queue keeps it, and the tag by which a consumer refers to its delivery."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, Protocol

from jmsapi.spi import Address, Envelope, ErrorKind, HeaderView, PlainEnvelope, ProviderError, Tag
from jmsapi.values import Value

__all__ = [
    "CONSUMER_SHIFT",
    "CompiledSelector",
    "InprocTag",
    "MessageState",
    "QueuedMessage",
    "SendingConnection",
    "StoredMessage",
    "compiled",
    "dead_letter",
    "group_of",
]

CONSUMER_SHIFT: Final = 40
"""A tag's number is its consumer's number shifted by this, plus a running number."""
GROUP: Final = "JMSXGroupID"


class InprocTag(int, Tag):
    """The number of one delivery, unique in its broker."""

    __slots__ = ()


class MessageState(IntEnum):
    """Where a message is."""

    DELAYED = 0
    """Its delivery time has not come."""
    WAITING = 1
    """In the queue, for the next consumer with credit."""
    GONE = 2
    """In flight to a consumer, settled or expired."""


DELAYED: Final = MessageState.DELAYED
WAITING: Final = MessageState.WAITING
GONE: Final = MessageState.GONE


class QueuedMessage:
    """One message in one queue or subscription. Its envelope may be shared with other subscriptions."""

    __slots__ = ("count", "envelope", "group", "order", "state", "timed")

    def __init__(self, envelope: Envelope, group: Value) -> None:
        self.envelope = envelope
        self.group = group
        self.order = 0
        """Its position among the messages of its priority: larger is later."""
        self.count = 0
        """How many deliveries of it have failed."""
        self.state = GONE
        self.timed = False
        """Whether the broker's scheduler has an entry for it."""


class SendingConnection(Protocol):
    """The connection that sends a message, as far as subscriptions ask."""

    @property
    def client_id(self) -> str | None:
        """The client id of the connection."""
        ...


class CompiledSelector(Protocol):
    """A compiled selector."""

    @property
    def matches(self) -> Callable[[HeaderView], bool]:
        """A function that returns whether the condition is TRUE."""
        ...


def compiled(text: str) -> CompiledSelector:
    """Compile a selector.

    Raises:
        ProviderError: SELECTOR when the text is not a valid selector.
    """
    from jmsapi_selector import InvalidSelector, compile_selector

    try:
        return compile_selector(text)  # pyright: ignore[reportReturnType]  # its ``matches`` is an attribute, taken here for a method
    except InvalidSelector as error:
        raise ProviderError(ErrorKind.SELECTOR, f"selector refused: {error}") from error


def group_of(envelope: Envelope) -> Value:
    """Return the message group, or None."""
    return envelope.properties.get(GROUP) or None


class StoredMessage(QueuedMessage):
    """A message that has a row in the store's file."""

    __slots__ = ("key", "stored_count")

    def __init__(self, envelope: Envelope, key: int, order: int, count: int = 0) -> None:
        super().__init__(envelope, group_of(envelope) if envelope.properties else None)
        self.key = key
        self.order = order
        self.count = self.stored_count = count


def dead_letter(envelope: Envelope) -> Envelope:
    """Return the envelope of a dead letter: unchanged, except that it never expires."""
    if not envelope.expiration:
        return envelope
    return PlainEnvelope(
        kind=envelope.kind,
        destination=Address(envelope.destination.kind, envelope.destination.name),
        body=envelope.body,
        properties=envelope.properties,
        message_id=envelope.message_id,
        timestamp=envelope.timestamp,
        correlation_id=envelope.correlation_id,
        reply_to=envelope.reply_to,
        delivery_mode=envelope.delivery_mode,
        jms_type=envelope.jms_type,
        delivery_time=envelope.delivery_time,
        priority=envelope.priority,
        content_type=envelope.content_type,
        origin=envelope.origin,
    )
