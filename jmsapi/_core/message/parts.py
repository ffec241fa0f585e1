"""How a message reads the parts of its envelope: late, and with the SPI's error turned into a JMS one."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal

from jmsapi.errors import MessageFormatException
from jmsapi.spi import Address, DestinationKind, Envelope, MessageKind, PlainEnvelope, ProviderError

__all__ = ["BLANK", "NOWHERE", "UNREAD", "Part", "Unread", "read_part"]


class Unread(Enum):
    """Marks what is still only in the envelope."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD
Part = Literal[
    "destination",
    "message_id",
    "timestamp",
    "correlation_id",
    "reply_to",
    "delivery_mode",
    "jms_type",
    "expiration",
    "delivery_time",
    "priority",
    "properties",
    "body",
    "content_type",
]
NOWHERE: Final = Address(DestinationKind.QUEUE, "")
"""Stands in the envelope of a message that was never sent; no destination has an empty name."""
BLANK: Final = {kind: PlainEnvelope(kind, NOWHERE) for kind in MessageKind}
"""Behind each new message: the headers before a send."""


def read_part(envelope: Envelope, part: Part) -> Any:
    """Read one part of an envelope, which may have to decode it.

    Raises:
        MessageFormatException: It cannot be decoded.
    """
    try:
        return getattr(envelope, part)
    except ProviderError as error:
        raise MessageFormatException(f"the {part.replace('_', ' ')} of the message cannot be decoded: {error}") from error
