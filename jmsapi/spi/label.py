"""What a line of the log calls a message: its id and its destination, whatever of it can be decoded."""

from __future__ import annotations

from jmsapi.spi._errors import ProviderError
from jmsapi.spi.model import Envelope

__all__ = ["message_label"]


def message_label(envelope: Envelope) -> str:
    """Return ``message ID:... of 'orders'``. Never raises, and tells nothing of the content."""
    try:
        identity = envelope.message_id or "without an id"
    except ProviderError:
        identity = "with an id that cannot be read"
    try:
        return f"message {identity} of {envelope.destination.name!r}"
    except ProviderError:
        return f"message {identity} of a destination that cannot be read"
