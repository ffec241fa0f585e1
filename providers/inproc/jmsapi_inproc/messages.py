"""A message as a queue keeps it, and the number by which a consumer names it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol

from jmsapi.spi import Address, Envelope, ErrorKind, HeaderView, PlainEnvelope, ProviderError, Tag
from jmsapi.values import Value

__all__ = ["CONSUMER_SHIFT", "InprocTag", "Message", "Selector", "State", "StoredMessage", "compiled", "dead_letter"]

CONSUMER_SHIFT: Final = 40
"""A tag's number is its consumer's number shifted by this, plus a running number."""
GROUP: Final = "JMSXGroupID"


class InprocTag(int, Tag):
    """The number of one delivery, unique in its broker."""

    __slots__ = ()


class State(IntEnum):
    """Where a message is."""

    DELAYED = 0
    """Not before its delivery time."""
    WAITING = 1
    """Stored, for the next consumer with credit."""
    GONE = 2
    """With a consumer, settled or expired."""


DELAYED: Final = State.DELAYED
WAITING: Final = State.WAITING
GONE: Final = State.GONE


class Message:
    """One message in one queue or subscription. Its envelope may be shared with other subscriptions."""

    __slots__ = ("count", "envelope", "group", "order", "state", "timed")

    def __init__(self, envelope: Envelope, group: Value) -> None:
        self.envelope = envelope
        self.group = group
        self.order = 0
        """Its place among those of its priority: larger is later."""
        self.count = 0
        """How often it was handed out and failed."""
        self.state = GONE
        self.timed = False
        """Whether the broker's agenda has an entry for it."""


class Selector(Protocol):
    """A compiled selector."""

    def matches(self, values: HeaderView) -> bool:
        """Return whether the condition is TRUE."""
        ...


def compiled(text: str) -> Selector:
    """Return a selector's condition.

    Raises:
        ProviderError: SELECTOR when it is none.
    """
    from jmsapi_selector import InvalidSelector, compile_selector

    try:
        return compile_selector(text)
    except InvalidSelector as error:
        raise ProviderError(ErrorKind.SELECTOR, f"selector refused: {error}") from error


def group_of(envelope: Envelope) -> Value:
    """Return the message group, or None."""
    return envelope.properties.get(GROUP) or None


class StoredMessage(Message):
    """A message that has a row in the file."""

    __slots__ = ("key",)

    def __init__(self, envelope: Envelope, key: int, order: int, count: int = 0) -> None:
        super().__init__(envelope, group_of(envelope) if envelope.properties else None)
        self.key = key
        self.order = order
        self.count = count


def dead_letter(envelope: Envelope) -> Envelope:
    """Return the envelope as a dead letter keeps it: unchanged, but it never expires."""
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
