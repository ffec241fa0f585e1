"""A received message as its wire brought it."""

from __future__ import annotations

from typing import NamedTuple

from jmsapi.api import Message

__all__ = ["WireMessage"]


class WireMessage(NamedTuple):
    """A received message as it came, with what can be told of it without decoding more than its headers."""

    message_id: str | None
    """None also if it cannot be read."""
    timestamp: int
    """JMSTimestamp: milliseconds since 1970; 0 also if it cannot be read."""
    delivery_count: int
    how: str
    """As that of ``WireForm``; empty for a message that came by no wire."""
    data: bytes
    message: Message | None
    """A message that came by no wire."""
