"""What a send does with a message: freeze it into an envelope, and write the header fields of the send back.

Spec: 3.4.11-1 to 3.4.11-15, 3.9-1, 3.9-2, 3.12-1.
"""

# The functions here are friends of the message classes: what they touch is nobody else's business.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from jmsapi._core.destination import address_of
from jmsapi._core.message.base import MessageImpl
from jmsapi._core.message.foreign import adopt
from jmsapi._core.message.parts import UNREAD, read_part
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.api import Destination, Message
from jmsapi.spi import Address, PlainEnvelope

__all__ = ["snapshot", "stamp", "was_received"]


def snapshot(
    message: Message,
    *,
    destination: Address,
    message_id: str | None,
    timestamp: int,
    delivery_mode: int,
    priority: int,
    expiration: int,
    delivery_time: int,
    origin: str | None,
    codec: ObjectCodec | None = None,
    user: str | None = None,
) -> PlainEnvelope:
    """Freeze a message for one send; later changes of the message do not show in the envelope.

    Args:
        message: One of ours, new or received, or any other implementation of Message.
        destination: Where the send goes.
        message_id: Text that begins with ``ID:``, or None.
        timestamp: Milliseconds since 1970, or 0.
        delivery_mode: 1 NON_PERSISTENT, 2 PERSISTENT.
        priority: 0 to 9.
        expiration: Milliseconds since 1970; 0 never.
        delivery_time: Milliseconds since 1970.
        origin: Who sends, for no-local.
        user: Who sends, as the property JMSXUserID that the message shows from then on; None: nobody says.
        codec: For the object of an ObjectMessage that is not ours; None: the data-only codec.
    Raises:
        MessageFormatException: A message of another implementation holds what JMS does not know, or a received one
            cannot be decoded.
    Threads: that of the message.
    """
    if not isinstance(message, MessageImpl):
        message = adopt(message, codec or ObjectCodec())
    body, content_type = message._freeze_body()
    correlation, reply_to, jms_type = message._correlation, message._reply_to, message._type
    # By position: with keywords the call takes more than twice as long.
    return PlainEnvelope(
        message._kind,
        destination,
        body,
        message._freeze_properties(user),
        message_id,
        timestamp,
        read_part(message._envelope, "correlation_id") if correlation is UNREAD else correlation,
        read_part(message._envelope, "reply_to") if reply_to is UNREAD else None if reply_to is None else address_of(reply_to),
        delivery_mode,
        read_part(message._envelope, "jms_type") if jms_type is UNREAD else jms_type,
        expiration,
        delivery_time,
        priority,
        content_type,
        origin,
        message.delivery.envelope if message._body_read_only and message.delivery is not None else None,
    )


def was_received(message: Message) -> bool:
    """Tell whether a message was received by this library, whatever has been changed in it since."""
    return isinstance(message, MessageImpl) and message.delivery is not None


def stamp(message: Message, envelope: PlainEnvelope, destination: Destination) -> None:
    """Write the seven header fields that the send sets into the message; the client's own fields stay.

    Args:
        message: The message that was sent, ours or not.
        envelope: As what it was sent.
        destination: Where to, as the object that the application named.
    Raises:
        Exception: Whatever a setter of a message that is not ours raises.
    Threads: that of the message.
    """
    if isinstance(message, MessageImpl):
        message._stamp(envelope, destination)
        return
    message.jms_destination = destination
    message.jms_delivery_mode = envelope.delivery_mode
    message.jms_message_id = envelope.message_id
    message.jms_timestamp = envelope.timestamp
    message.jms_expiration = envelope.expiration
    message.jms_priority = envelope.priority
    message.jms_delivery_time = envelope.delivery_time
