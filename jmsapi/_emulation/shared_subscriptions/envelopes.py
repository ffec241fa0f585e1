"""Messages on their way through the queue of a shared subscription: copied into it, and shown as of their topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsapi.spi import Address, Body, Envelope, MessageKind, PlainEnvelope
from jmsapi.values import Value

__all__ = ["OfTopic", "forwarded"]

_MESSAGE_ID: Final = "JMS_jmsapi_message_id"
"""Property of a message in the queue: the sender's message id. The message's own id is the broker's, for Classic 6.3.1 takes no
acknowledgement over STOMP of a message whose id an AMQP client has given (``test_classic_shared_subscriptions.py``)."""


def forwarded(envelope: Envelope, queue: Address) -> PlainEnvelope:
    """Return the message to put into the queue: the sender's in everything but its destination.

    Raises:
        ProviderError: FORMAT; a part of it cannot be decoded.
    """
    message_id = envelope.message_id
    properties = envelope.properties if message_id is None else {**envelope.properties, _MESSAGE_ID: message_id}
    return PlainEnvelope(
        envelope.kind,
        queue,
        body=envelope.body,
        properties=properties,
        timestamp=envelope.timestamp,
        correlation_id=envelope.correlation_id,
        reply_to=envelope.reply_to,
        delivery_mode=envelope.delivery_mode,
        jms_type=envelope.jms_type,
        expiration=envelope.expiration,
        priority=envelope.priority,
        content_type=envelope.content_type,
        origin=envelope.origin,
    )


class OfTopic:
    """A message of the queue as its members see it: it was sent to the topic.

    Args:
        envelope: As it came.
        topic: Of the subscription.
    """

    __slots__ = ("_envelope", "_properties", "destination")

    def __init__(self, envelope: Envelope, topic: Address) -> None:
        self._envelope = envelope
        self._properties: Mapping[str, Value] | None = None
        self.destination = topic

    @property
    def kind(self) -> MessageKind:
        """See Envelope."""
        return self._envelope.kind

    @property
    def message_id(self) -> str | None:
        """See Envelope; None when the sender gave none."""
        message_id = self._envelope.properties.get(_MESSAGE_ID)
        return message_id if isinstance(message_id, str) else None

    @property
    def timestamp(self) -> int:
        """See Envelope."""
        return self._envelope.timestamp

    @property
    def correlation_id(self) -> str | bytes | None:
        """See Envelope."""
        return self._envelope.correlation_id

    @property
    def reply_to(self) -> Address | None:
        """See Envelope."""
        return self._envelope.reply_to

    @property
    def delivery_mode(self) -> int:
        """See Envelope."""
        return self._envelope.delivery_mode

    @property
    def jms_type(self) -> str | None:
        """See Envelope."""
        return self._envelope.jms_type

    @property
    def expiration(self) -> int:
        """See Envelope."""
        return self._envelope.expiration

    @property
    def delivery_time(self) -> int:
        """See Envelope."""
        return self._envelope.delivery_time

    @property
    def priority(self) -> int:
        """See Envelope."""
        return self._envelope.priority

    @property
    def properties(self) -> Mapping[str, Value]:
        """See Envelope."""
        if self._properties is None:
            self._properties = {name: value for name, value in self._envelope.properties.items() if name != _MESSAGE_ID}
        return self._properties

    @property
    def body(self) -> Body:
        """See Envelope."""
        return self._envelope.body

    @property
    def content_type(self) -> str | None:
        """See Envelope."""
        return self._envelope.content_type

    @property
    def origin(self) -> str | None:
        """See Envelope."""
        return self._envelope.origin
