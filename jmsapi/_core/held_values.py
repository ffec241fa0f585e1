"""The properties and headers that a JMSProducer keeps for its sends.

A message that is never sent holds them, so their conversions and rules are those of messages.

Spec: 11.2.4-16 to 11.2.4-20, 11.2.4-25, 11.2.4-26, 7.3-26, 7.3-32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from jmsapi._core.context import runtime
from jmsapi._core.message import create
from jmsapi.api import Destination, JMSProducer, Message
from jmsapi.errors import IllegalArgumentException, MessageNotWriteableException
from jmsapi.spi import MessageKind
from jmsapi.values import PropertyType

if TYPE_CHECKING:
    from jmsapi._core.object_codec import ObjectCodec

__all__ = ["HeldValues"]

_SETTERS: Final = {
    "boolean": "set_boolean_property",
    "byte": "set_byte_property",
    "short": "set_short_property",
    "int": "set_int_property",
    "long": "set_long_property",
    "float": "set_float_property",
    "double": "set_double_property",
    "string": "set_string_property",
}


def _setter(property_type: object) -> str:
    setter = _SETTERS.get(property_type) if isinstance(property_type, str) else None
    if setter is None:
        raise IllegalArgumentException(f"{property_type!r} is no property type; they are {sorted(_SETTERS)}")
    return setter


class HeldValues(JMSProducer):
    """The part of a JMSProducer that holds properties and headers."""

    def __init__(self, codec: ObjectCodec) -> None:
        self._held = create(MessageKind.MESSAGE, codec)
        self._headers: set[str] = set()

    def apply_to(self, message: Message) -> None:
        """Put what is held on a message, replacing what it has of the same name.

        Raises:
            MessageNotWriteableException: There are properties to add and the message's are read-only.
        """
        held = self._held
        for name in held.property_names:
            try:
                message.set_object_property(name, held.get_object_property(name))
            except MessageNotWriteableException as error:
                raise MessageNotWriteableException(
                    "send: the producer has properties to add, but those of the message are read-only; clear_properties() first"
                ) from error
        for name in self._headers:
            setattr(message, name, getattr(held, name))

    # ---- properties -----------------------------------------------------------------------------------------------
    @runtime
    def set_property(self, name: str, value: Any, property_type: PropertyType | None = None) -> Self:
        """Hold a property for later sends; see JMSProducer."""
        if property_type is None:
            self._held.set_object_property(name, value)
            return self
        getattr(self._held, _setter(property_type))(name, value)
        return self

    @runtime
    def clear_properties(self) -> Self:
        """Forget the held properties; see JMSProducer."""
        self._held.clear_properties()
        return self

    @runtime
    def property_exists(self, name: str) -> bool:
        """Return whether a property is held; see JMSProducer."""
        return self._held.property_exists(name)

    @runtime
    def get_boolean_property(self, name: str) -> bool:
        """Return a held property as a boolean; see JMSProducer."""
        return self._held.get_boolean_property(name)

    @runtime
    def get_byte_property(self, name: str) -> int:
        """Return a held property as a byte; see JMSProducer."""
        return self._held.get_byte_property(name)

    @runtime
    def get_short_property(self, name: str) -> int:
        """Return a held property as a short; see JMSProducer."""
        return self._held.get_short_property(name)

    @runtime
    def get_int_property(self, name: str) -> int:
        """Return a held property as an int; see JMSProducer."""
        return self._held.get_int_property(name)

    @runtime
    def get_long_property(self, name: str) -> int:
        """Return a held property as a long; see JMSProducer."""
        return self._held.get_long_property(name)

    @runtime
    def get_float_property(self, name: str) -> float:
        """Return a held property as a float; see JMSProducer."""
        return self._held.get_float_property(name)

    @runtime
    def get_double_property(self, name: str) -> float:
        """Return a held property as a double; see JMSProducer."""
        return self._held.get_double_property(name)

    @runtime
    def get_string_property(self, name: str) -> str | None:
        """Return a held property as text; see JMSProducer."""
        return self._held.get_string_property(name)

    @runtime
    def get_object_property(self, name: str) -> Any:
        """Return a held property as it was set; see JMSProducer."""
        return self._held.get_object_property(name)

    @property
    def property_names(self) -> set[str]:
        """Return the names of the held properties; see JMSProducer."""
        return set(self._held.property_names)

    # ---- headers --------------------------------------------------------------------------------------------------
    @runtime
    def _hold(self, header: str, value: object) -> Self:
        setattr(self._held, header, value)
        field = "jms_correlation_id" if header == "jms_correlation_id_as_bytes" else header
        if value is None:
            self._headers.discard(field)
            self._headers.discard("jms_correlation_id_as_bytes" if field == "jms_correlation_id" else field)
        else:
            if field == "jms_correlation_id":
                self._headers -= {"jms_correlation_id", "jms_correlation_id_as_bytes"}
            self._headers.add(header)
        return self

    @property
    @runtime
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """Return the held correlation id as bytes; see JMSProducer."""
        return self._held.jms_correlation_id_as_bytes

    @jms_correlation_id_as_bytes.setter
    def jms_correlation_id_as_bytes(self, jms_correlation_id_as_bytes: bytes | None) -> None:
        self._hold("jms_correlation_id_as_bytes", jms_correlation_id_as_bytes)

    def set_jms_correlation_id_as_bytes(self, correlation_id: bytes | bytearray | memoryview | None) -> Self:
        """Hold a correlation id of bytes; see JMSProducer."""
        return self._hold("jms_correlation_id_as_bytes", correlation_id)

    @property
    @runtime
    def jms_correlation_id(self) -> str | None:
        """Return the held correlation id; see JMSProducer."""
        return self._held.jms_correlation_id

    @jms_correlation_id.setter
    def jms_correlation_id(self, jms_correlation_id: str | None) -> None:
        self._hold("jms_correlation_id", jms_correlation_id)

    def set_jms_correlation_id(self, correlation_id: str | None) -> Self:
        """Hold a correlation id; see JMSProducer."""
        return self._hold("jms_correlation_id", correlation_id)

    @property
    @runtime
    def jms_type(self) -> str | None:
        """Return the held type; see JMSProducer."""
        return self._held.jms_type

    @jms_type.setter
    def jms_type(self, jms_type: str | None) -> None:
        self._hold("jms_type", jms_type)

    def set_jms_type(self, jms_type: str | None) -> Self:
        """Hold a type; see JMSProducer."""
        return self._hold("jms_type", jms_type)

    @property
    @runtime
    def jms_reply_to(self) -> Destination | None:
        """Return the held reply destination; see JMSProducer."""
        return self._held.jms_reply_to

    @jms_reply_to.setter
    def jms_reply_to(self, jms_reply_to: Destination | None) -> None:
        self._hold("jms_reply_to", jms_reply_to)

    def set_jms_reply_to(self, reply_to: Destination | None) -> Self:
        """Hold a reply destination; see JMSProducer."""
        return self._hold("jms_reply_to", reply_to)
