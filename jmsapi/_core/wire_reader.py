"""Reads messages that were kept as their wire brought them, without a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsapi._core.message.create import received
from jmsapi._core.object_codec import ObjectCodec
from jmsapi.api import Message
from jmsapi.spi import Delivery, Envelope, Tag

__all__ = ["WireReader"]


class WireReader:
    """Makes messages of what ``wire_form`` gives; call it with the data, the delivery count and the time of receipt.

    Args:
        envelope: See the attribute.
    Threads: any. Messages and envelopes are for one thread at a time.
    """

    def __init__(self, envelope: Callable[[bytes, int], Envelope]) -> None:
        self.envelope: Final = envelope
        """Takes the data and when it was received, in milliseconds since 1970; gives the message as the provider has it, which
        takes less time than a message object. Its parts raise ``ProviderError`` where they cannot be decoded."""
        self._codec = ObjectCodec()
        self._tag = Tag()

    def __call__(self, data: bytes, delivery_count: int, received_ms: int) -> Message:
        """Return a message with everything that can be read, which acknowledges nothing.

        Args:
            data: Of the form.
            delivery_count: How often the message had been delivered; 1: for the first time.
            received_ms: When it was received, in milliseconds since 1970.
        Raises:
            JMSException: Not even the kind of message can be decoded.
        """
        return self.message(self.envelope(data, received_ms), delivery_count)

    def message(self, envelope: Envelope, delivery_count: int) -> Message:
        """Return the message of an envelope that was made here; see ``__call__``."""
        return received(Delivery(self._tag, envelope, delivery_count), 0, None, self._codec, None)
