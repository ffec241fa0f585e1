"""What a JMSProducer keeps for its sends: how it sends, and the properties and headers that each message gets.

Properties and headers are held by a message that is never sent, so their conversions and rules are those of messages.

Spec: 11.2.4-16 to 11.2.4-20, 11.2.4-25, 11.2.4-26, 7.3-26, 7.3-32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from jmsapi._core.message import create
from jmsapi._core.producer import SendOptions
from jmsapi.errors import IllegalArgumentException, MessageNotWriteableException
from jmsapi.spi import MessageKind

if TYPE_CHECKING:
    from jmsapi._core.object_codec import ObjectCodec
    from jmsapi.api import Message
    from jmsapi.values import PropertyType

__all__ = ["ProducerDefaults"]

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
_CORRELATION_IDS: Final = frozenset({"jms_correlation_id", "jms_correlation_id_as_bytes"})


class ProducerDefaults:
    """What a producer's messages get unless they are changed.

    Args:
        codec: For the message that holds properties and headers.
    """

    def __init__(self, codec: ObjectCodec) -> None:
        self.options = SendOptions()
        self.message = create(MessageKind.MESSAGE, codec)
        """Holds the properties, and the headers in ``_headers``."""
        self._headers: set[str] = set()

    def set_property(self, name: str, value: Any, property_type: PropertyType | None) -> None:
        """Keep a property, of a Java type or of the type that the value has.

        Raises:
            IllegalArgumentException: There is no such type.
            MessageFormatException: The value does not fit the type.
        """
        if property_type is None:
            self.message.set_object_property(name, value)
            return
        # Callers that no type checker has seen may hand over anything.
        setter = cast("object", property_type)
        if not isinstance(setter, str) or setter not in _SETTERS:
            raise IllegalArgumentException(f"{property_type!r} is no property type; they are {sorted(_SETTERS)}")
        getattr(self.message, _SETTERS[setter])(name, value)

    def set_header(self, name: str, value: object) -> None:
        """Keep a header field, by the name of its attribute; None forgets it. Both forms of the correlation id are one field."""
        setattr(self.message, name, value)
        if name in _CORRELATION_IDS:
            self._headers -= _CORRELATION_IDS
        self._headers.discard(name)
        if value is not None:
            self._headers.add(name)

    def apply_to(self, message: Message) -> None:
        """Give properties and headers to a message, replacing what it has of the same name.

        Raises:
            MessageNotWriteableException: There are properties to add and the message's are read-only.
        """
        held = self.message
        for name in held.property_names:
            try:
                message.set_object_property(name, held.get_object_property(name))
            except MessageNotWriteableException as error:
                raise MessageNotWriteableException(
                    "send: the producer has properties to add, but those of the message are read-only; clear_properties() first"
                ) from error
        for name in self._headers:
            setattr(message, name, getattr(held, name))
