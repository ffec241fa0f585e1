"""Messages that somebody else implements, taken over through their public getters.

Spec: 3.12-1, B.3.1-8.
"""

from __future__ import annotations

from jmsapi._core.destination import address_of
from jmsapi._core.message.base import MessageImpl
from jmsapi._core.message.bytes_message import BytesMessageImpl
from jmsapi._core.message.map_message import MapMessageImpl
from jmsapi._core.message.names import PROVIDER_SET
from jmsapi._core.message.object_message import ObjectMessageImpl
from jmsapi._core.message.stream_message import StreamMessageImpl
from jmsapi._core.message.text_message import TextMessageImpl
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.api import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsapi.errors import InvalidDestinationException, JMSException, MessageEOFException, UnsupportedOperationException

__all__ = ["adopt"]


def adopt(message: Message, codec: ObjectCodec) -> MessageImpl:
    """Copy a message of another implementation into one of ours.

    Args:
        message: The message; a BytesMessage or StreamMessage is reset, as only then it can be read.
        codec: Encodes the object of an ObjectMessage.
    Returns:
        A message with the client's header fields, properties and body; a reply destination we cannot address is left out.
    Raises:
        MessageFormatException: A property or the body holds a value that JMS does not know.
        IllegalArgumentException: A property has a name that JMS does not allow.
    """
    copy = _with_body(message, codec)
    for name in message.property_names:
        if name not in PROVIDER_SET:
            copy.set_object_property(name, message.get_object_property(name))
    copy.jms_type = message.jms_type
    text = message.jms_correlation_id
    if text is None:
        copy.jms_correlation_id_as_bytes = _correlation_bytes(message)
    else:
        copy.jms_correlation_id = text
    try:
        reply_to = message.jms_reply_to
        if reply_to is not None:
            address_of(reply_to)
            copy.jms_reply_to = reply_to
    except InvalidDestinationException:
        copy.jms_reply_to = None
    return copy


def _with_body(message: Message, codec: ObjectCodec) -> MessageImpl:
    if isinstance(message, TextMessage):
        text = TextMessageImpl(codec)
        text.text = message.text
        return text
    if isinstance(message, BytesMessage):
        data = BytesMessageImpl(codec)
        data.write_bytes(_all_bytes(message))
        return data
    if isinstance(message, MapMessage):
        entries = MapMessageImpl(codec)
        for name in message.map_names:
            entries.set_object(name, message.get_object(name))
        return entries
    if isinstance(message, StreamMessage):
        return _all_values(message, codec)
    if isinstance(message, ObjectMessage):
        holder = ObjectMessageImpl(codec)
        holder.object = message.object
        return holder
    return MessageImpl(codec)


def _all_bytes(message: BytesMessage) -> bytearray:
    message.reset()
    data = bytearray(message.body_length)
    with memoryview(data) as view:
        read = 0
        while read < len(data) and (count := message.read_bytes(view[read:])) > 0:
            read += count
    del data[read:]
    return data


def _all_values(message: StreamMessage, codec: ObjectCodec) -> StreamMessageImpl:
    copy = StreamMessageImpl(codec)
    message.reset()
    while True:
        try:
            copy.write_object(message.read_object())
        except MessageEOFException:
            return copy


def _correlation_bytes(message: Message) -> bytes | None:
    try:
        return message.jms_correlation_id_as_bytes
    except (UnsupportedOperationException, JMSException):
        return None
