"""New and received messages. Spec: 3.4.7-1 to 3.4.7-3, 3.5.3-1, 3.5.11-1 to 3.5.11-3, 3.12-2, 4.4.5-1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsapi._core.destination import TemporaryOwner
from jmsapi._core.errors_map import jms_error
from jmsapi._core.message.base import MessageImpl
from jmsapi._core.message.bytes_message import BytesMessageImpl
from jmsapi._core.message.map_message import MapMessageImpl
from jmsapi._core.message.object_message import ObjectMessageImpl
from jmsapi._core.message.stream_message import StreamMessageImpl
from jmsapi._core.message.text_message import TextMessageImpl
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.spi import Delivery, MessageKind, ProviderError

__all__ = ["create", "received"]

_CLASSES: Final[dict[MessageKind, type[MessageImpl]]] = {
    MessageKind.MESSAGE: MessageImpl,
    MessageKind.OBJECT: ObjectMessageImpl,
    MessageKind.MAP: MapMessageImpl,
    MessageKind.BYTES: BytesMessageImpl,
    MessageKind.STREAM: StreamMessageImpl,
    MessageKind.TEXT: TextMessageImpl,
}


def create(kind: MessageKind, codec: ObjectCodec) -> MessageImpl:
    """Make a new, empty, writable message.

    Args:
        kind: Which of the six types.
        codec: Turns the object of an ObjectMessage into bytes and back.
    Threads: any.
    """
    return _CLASSES[kind](codec)


def received(
    delivery: Delivery,
    extra_count: int,
    acknowledge: Callable[[], None] | None,
    codec: ObjectCodec,
    owner: TemporaryOwner | None,
) -> MessageImpl:
    """Make the message object for one delivery to one receiver; nothing of the envelope is decoded yet.

    Args:
        delivery: What the provider handed over; the message keeps it as ``delivery``.
        extra_count: How often the session has handed it out itself, without the broker.
        acknowledge: What ``acknowledge()`` does; None: nothing, as in all modes but CLIENT_ACKNOWLEDGE.
        codec: Turns the bytes of an ObjectMessage into its object.
        owner: Who deletes temporary destinations met in the headers, if it may; None: nobody.
    Returns:
        A message with read-only body and properties, of its own for each call; the envelope is shared.
    Raises:
        JMSException: Not even the kind of message can be decoded; most often a MessageFormatException.
    Threads: any.
    """
    try:
        kind = delivery.envelope.kind
    except ProviderError as error:
        raise jms_error(error, "read a message") from error
    return _CLASSES[kind](codec, delivery, delivery.delivery_count + extra_count, acknowledge, owner)
