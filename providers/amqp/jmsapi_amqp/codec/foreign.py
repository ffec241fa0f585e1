"""What a message of another client has besides what JMS shows, so that whoever passes it on can pass that on, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from jmsapi.values import Value
from jmsapi_amqp.codec.types import AmqpValue
from jmsapi_amqp.codec.writing import encode_symbol, encode_text, encode_value

__all__ = ["ForeignParts", "PassesOn"]


class ForeignParts(NamedTuple):
    """Parts of a received message as its sender wrote them."""

    content_type: AmqpValue
    content_encoding: AmqpValue
    reply_to_group: AmqpValue
    properties: Mapping[str, tuple[AmqpValue, Value]]
    """Application properties by name: the value of AMQP, and what it is shown as."""
    body: bytes
    """The sections of the body and the footer."""

    def content_field(self, value: AmqpValue) -> bytes:
        """Return the field for a content type or encoding, which is a symbol."""
        return encode_symbol(value) if isinstance(value, str) and value.isascii() else b"\x40"

    def group_field(self) -> bytes:
        """Return the field that names the group of a reply."""
        return encode_text(self.reply_to_group) if isinstance(self.reply_to_group, str) else b"\x40"

    def property_as_received(self, name: str, value: Value) -> bytes | None:
        """Return a property in the type it came in, if it still has the value that was shown.

        Returns:
            None for one that is new or changed.
        """
        known = self.properties.get(name)
        if known is None or type(known[1]) is not type(value) or known[1] != value:
            return None
        return encode_value(known[0])


@runtime_checkable
class PassesOn(Protocol):
    """A received envelope that knows such parts."""

    def foreign_parts(self) -> ForeignParts | None:
        """Return them; None when JMS shows all there is."""
        ...
