"""Messages: one class for each of the six kinds, over the frozen envelopes of the SPI.

A new message writes into its own containers; a send freezes them into an envelope that the message copies before it writes
again. A received message is a view of the provider's envelope: nothing is decoded before it is read, and what cannot be
decoded is a MessageFormatException of the read. The same envelope may stand behind the messages of many receivers.

| module | duty |
|---|---|
| ``create`` | new and received messages |
| ``freeze``, ``foreign`` | what a send does; messages that others implement |
| ``passing_on`` | what tools that pass messages on need beyond the specification |
| ``headers``, ``properties``, ``base`` | what all kinds share |
| ``text_message`` and its like | one body each |
| ``accept``, ``convert``, ``java_text``, ``names``, ``mutf8`` | the rules of values, in and out |
"""

from jmsapi._core.message.base import MessageImpl
from jmsapi._core.message.bytes_message import BytesMessageImpl
from jmsapi._core.message.create import create, received
from jmsapi._core.message.freeze import snapshot, stamp, was_received
from jmsapi._core.message.map_message import MapMessageImpl
from jmsapi._core.message.object_message import ObjectMessageImpl
from jmsapi._core.message.passing_on import drop_properties, encoded_object, set_encoded_object
from jmsapi._core.message.stream_message import StreamMessageImpl
from jmsapi._core.message.text_message import TextMessageImpl

__all__ = [
    "BytesMessageImpl",
    "MapMessageImpl",
    "MessageImpl",
    "ObjectMessageImpl",
    "StreamMessageImpl",
    "TextMessageImpl",
    "create",
    "drop_properties",
    "encoded_object",
    "received",
    "set_encoded_object",
    "snapshot",
    "stamp",
    "was_received",
]
