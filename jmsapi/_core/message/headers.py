"""The eleven header fields.

A message keeps one envelope behind it: a blank one, the received one, or the one it was last sent as. The three fields
that belong to the client (correlation id, reply-to, type) are the message's own; the others come from the envelope unless
somebody stored another value, which the next send throws away.

Spec: 3.4.1-1 to 3.4.13-4, 3.10-1.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from jmsapi._core.destination import TemporaryOwner, address_of, destination_for
from jmsapi._core.message import accept
from jmsapi._core.message.parts import NOWHERE, UNREAD, Part, Unread, read_part
from jmsapi.api import Destination, Message
from jmsapi.spi import Address, Envelope

__all__ = ["Headers"]

_BINARY_ID = "ID:AMQP_BINARY:"
"""The form in which a correlation id of bytes reads as text, as in the JMS clients of AMQP; a reply may carry it back."""


class Headers(Message):
    """The header fields of our messages, over an envelope."""

    __slots__ = ("_correlation", "_destination", "_envelope", "_overrides", "_owner", "_redelivered", "_reply_to", "_type")

    _envelope: Envelope
    _overrides: dict[Part, Any] | None
    _correlation: str | bytes | Unread | None
    _reply_to: Destination | Unread | None
    _type: str | Unread | None
    _destination: Destination | Unread | None
    _redelivered: bool
    _owner: TemporaryOwner | None

    def _stamped(self, part: Part) -> Any:
        overrides = self._overrides
        if overrides is not None and part in overrides:
            return overrides[part]
        return read_part(self._envelope, part)

    def _override(self, part: Part, value: object) -> None:
        if self._overrides is None:
            self._overrides = {}
        self._overrides[part] = value

    def _stamp(self, envelope: Envelope, destination: Destination) -> None:
        """Show the header fields of a send from now on."""
        self._envelope = envelope
        self._overrides = None
        self._destination = destination

    def _destination_in(self, part: Part) -> Destination | None:
        address: Address | None = read_part(self._envelope, part)
        return None if address is None or address == NOWHERE else destination_for(address, self._owner)

    @property
    def jms_message_id(self) -> str | None:
        value: str | None = self._stamped("message_id")
        return value

    @jms_message_id.setter
    def jms_message_id(self, jms_message_id: str | None) -> None:
        self._override("message_id", accept.string(jms_message_id))

    @property
    def jms_timestamp(self) -> int:
        value: int = self._stamped("timestamp")
        return value

    @jms_timestamp.setter
    def jms_timestamp(self, jms_timestamp: SupportsIndex) -> None:
        self._override("timestamp", int(accept.long(jms_timestamp)))

    def _correlation_id(self) -> str | bytes | None:
        value = self._correlation
        if value is UNREAD:
            value = self._correlation = read_part(self._envelope, "correlation_id")
        return value

    @property
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        value = self._correlation_id()
        return value.encode() if isinstance(value, str) else value

    @jms_correlation_id_as_bytes.setter
    def jms_correlation_id_as_bytes(self, jms_correlation_id_as_bytes: bytes | bytearray | memoryview | None) -> None:
        self._correlation = accept.byte_array(jms_correlation_id_as_bytes)

    @property
    def jms_correlation_id(self) -> str | None:
        value = self._correlation_id()
        return _BINARY_ID + value.hex().upper() if isinstance(value, bytes) else value

    @jms_correlation_id.setter
    def jms_correlation_id(self, jms_correlation_id: str | None) -> None:
        self._correlation = accept.string(jms_correlation_id)

    @property
    def jms_reply_to(self) -> Destination | None:
        value = self._reply_to
        if value is UNREAD:
            value = self._reply_to = self._destination_in("reply_to")
        return value

    @jms_reply_to.setter
    def jms_reply_to(self, jms_reply_to: Destination | None) -> None:
        if jms_reply_to is not None:
            address_of(jms_reply_to)
        self._reply_to = jms_reply_to

    @property
    def jms_destination(self) -> Destination | None:
        value = self._destination
        if value is UNREAD:
            value = self._destination = self._destination_in("destination")
        return value

    @jms_destination.setter
    def jms_destination(self, jms_destination: Destination | None) -> None:
        if jms_destination is not None:
            address_of(jms_destination)
        self._destination = jms_destination

    @property
    def jms_delivery_mode(self) -> int:
        value: int = self._stamped("delivery_mode")
        return value

    @jms_delivery_mode.setter
    def jms_delivery_mode(self, jms_delivery_mode: SupportsIndex) -> None:
        self._override("delivery_mode", accept.int_(jms_delivery_mode))

    @property
    def jms_redelivered(self) -> bool:
        return self._redelivered

    @jms_redelivered.setter
    def jms_redelivered(self, jms_redelivered: bool) -> None:
        self._redelivered = accept.boolean(jms_redelivered)

    @property
    def jms_type(self) -> str | None:
        value = self._type
        if value is UNREAD:
            value = self._type = read_part(self._envelope, "jms_type")
        return value

    @jms_type.setter
    def jms_type(self, jms_type: str | None) -> None:
        self._type = accept.string(jms_type)

    @property
    def jms_expiration(self) -> int:
        value: int = self._stamped("expiration")
        return value

    @jms_expiration.setter
    def jms_expiration(self, jms_expiration: SupportsIndex) -> None:
        self._override("expiration", int(accept.long(jms_expiration)))

    @property
    def jms_delivery_time(self) -> int:
        value: int = self._stamped("delivery_time")
        return value or self.jms_timestamp

    @jms_delivery_time.setter
    def jms_delivery_time(self, jms_delivery_time: SupportsIndex) -> None:
        self._override("delivery_time", int(accept.long(jms_delivery_time)))

    @property
    def jms_priority(self) -> int:
        value: int = self._stamped("priority")
        return value

    @jms_priority.setter
    def jms_priority(self, jms_priority: SupportsIndex) -> None:
        self._override("priority", accept.int_(jms_priority))
