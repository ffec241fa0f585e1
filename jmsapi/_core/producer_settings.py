"""The options, properties and headers that a producer of the simplified API keeps for all later sends.

Spec: 11.2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from jmsapi._core import options_check as valid
from jmsapi._core.producer_defaults import ProducerDefaults
from jmsapi._core.runtime_exceptions import runtime
from jmsapi.api import CompletionListener, Destination
from jmsapi.api._producer_header import ProducerHeader
from jmsapi.api._producer_options import ProducerOptions
from jmsapi.api._producer_properties import ProducerProperties
from jmsapi.values import PropertyType

if TYPE_CHECKING:
    from jmsapi._core.connection import ConnectionImpl

__all__ = ["ProducerSettings", "SettingsContext"]


class SettingsContext(Protocol):
    """What the settings of a producer use of its context."""

    @property
    def connection(self) -> ConnectionImpl:
        """The connection; raises when the context is closed."""
        ...


class ProducerSettings(ProducerOptions, ProducerHeader, ProducerProperties):
    """What a producer of one context keeps.

    Args:
        context: Its context.
    """

    def __init__(self, context: SettingsContext) -> None:
        self._context = context
        self._async: CompletionListener | None = None
        self._defaults = ProducerDefaults(context.connection.codec)

    # ---- options --------------------------------------------------------------------------------------------------
    @property
    def disable_message_id(self) -> bool:
        """Return the hint; see JMSProducer."""
        return self._defaults.options.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, disable_message_id: bool) -> None:
        self._defaults.options.disable_message_id = bool(disable_message_id)

    def set_disable_message_id(self, value: bool) -> Self:
        """Set the hint; see JMSProducer."""
        self.disable_message_id = value
        return self

    @property
    def disable_message_timestamp(self) -> bool:
        """Return the hint; see JMSProducer."""
        return self._defaults.options.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disable_message_timestamp: bool) -> None:
        self._defaults.options.disable_message_timestamp = bool(disable_message_timestamp)

    def set_disable_message_timestamp(self, value: bool) -> Self:
        """Set the hint; see JMSProducer."""
        self.disable_message_timestamp = value
        return self

    @property
    def delivery_mode(self) -> int:
        """Return the delivery mode; see JMSProducer."""
        return self._defaults.options.delivery_mode

    @delivery_mode.setter
    @runtime
    def delivery_mode(self, delivery_mode: int) -> None:
        self._defaults.options.delivery_mode = valid.delivery_mode(delivery_mode)

    def set_delivery_mode(self, delivery_mode: int) -> Self:
        """Set the delivery mode; see JMSProducer."""
        self.delivery_mode = delivery_mode
        return self

    @property
    def priority(self) -> int:
        """Return the priority; see JMSProducer."""
        return self._defaults.options.priority

    @priority.setter
    @runtime
    def priority(self, priority: int) -> None:
        self._defaults.options.priority = valid.priority(priority)

    def set_priority(self, priority: int) -> Self:
        """Set the priority; see JMSProducer."""
        self.priority = priority
        return self

    @property
    def time_to_live(self) -> int:
        """Return the time to live in milliseconds; see JMSProducer."""
        return self._defaults.options.time_to_live

    @time_to_live.setter
    @runtime
    def time_to_live(self, time_to_live: int) -> None:
        self._defaults.options.time_to_live = valid.time_to_live(time_to_live)

    def set_time_to_live(self, time_to_live_ms: int) -> Self:
        """Set the time to live; see JMSProducer."""
        self.time_to_live = time_to_live_ms
        return self

    @property
    def delivery_delay(self) -> int:
        """Return the delivery delay in milliseconds; see JMSProducer."""
        return self._defaults.options.delivery_delay

    @delivery_delay.setter
    @runtime
    def delivery_delay(self, delivery_delay: int) -> None:
        delay = valid.delivery_delay(delivery_delay)
        if delay:
            self._context.connection.link.require("delivery_delay", "a delivery delay")
        self._defaults.options.delivery_delay = delay

    def set_delivery_delay(self, delivery_delay_ms: int) -> Self:
        """Set the delivery delay; see JMSProducer."""
        self.delivery_delay = delivery_delay_ms
        return self

    @property
    def async_(self) -> CompletionListener | None:
        """Return the completion listener, or None for synchronous sends; see JMSProducer."""
        return self._async

    @async_.setter
    def async_(self, completion_listener: CompletionListener | None) -> None:
        valid.check_completion_listener(completion_listener)
        self._async = completion_listener

    def set_async(self, completion_listener: CompletionListener | None) -> Self:
        """Set the completion listener; see JMSProducer."""
        self.async_ = completion_listener
        return self

    # ---- properties -----------------------------------------------------------------------------------------------
    @runtime
    def set_property(self, name: str, value: Any, property_type: PropertyType | None = None) -> Self:
        """Hold a property for later sends; see JMSProducer."""
        self._defaults.set_property(name, value, property_type)
        return self

    @runtime
    def clear_properties(self) -> Self:
        """Forget the held properties; see JMSProducer."""
        self._defaults.message.clear_properties()
        return self

    @runtime
    def property_exists(self, name: str) -> bool:
        """Return whether a property is held; see JMSProducer."""
        return self._defaults.message.property_exists(name)

    @runtime
    def get_boolean_property(self, name: str) -> bool:
        """Return a held property as a boolean; see JMSProducer."""
        return self._defaults.message.get_boolean_property(name)

    @runtime
    def get_byte_property(self, name: str) -> int:
        """Return a held property as a byte; see JMSProducer."""
        return self._defaults.message.get_byte_property(name)

    @runtime
    def get_short_property(self, name: str) -> int:
        """Return a held property as a short; see JMSProducer."""
        return self._defaults.message.get_short_property(name)

    @runtime
    def get_int_property(self, name: str) -> int:
        """Return a held property as an int; see JMSProducer."""
        return self._defaults.message.get_int_property(name)

    @runtime
    def get_long_property(self, name: str) -> int:
        """Return a held property as a long; see JMSProducer."""
        return self._defaults.message.get_long_property(name)

    @runtime
    def get_float_property(self, name: str) -> float:
        """Return a held property as a float; see JMSProducer."""
        return self._defaults.message.get_float_property(name)

    @runtime
    def get_double_property(self, name: str) -> float:
        """Return a held property as a double; see JMSProducer."""
        return self._defaults.message.get_double_property(name)

    @runtime
    def get_string_property(self, name: str) -> str | None:
        """Return a held property as text; see JMSProducer."""
        return self._defaults.message.get_string_property(name)

    @runtime
    def get_object_property(self, name: str) -> Any:
        """Return a held property as it was set; see JMSProducer."""
        return self._defaults.message.get_object_property(name)

    @property
    def property_names(self) -> set[str]:
        """Return the names of the held properties; see JMSProducer."""
        return set(self._defaults.message.property_names)

    # ---- headers --------------------------------------------------------------------------------------------------
    @property
    @runtime
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """Return the held correlation id as bytes; see JMSProducer."""
        return self._defaults.message.jms_correlation_id_as_bytes

    @jms_correlation_id_as_bytes.setter
    @runtime
    def jms_correlation_id_as_bytes(self, jms_correlation_id_as_bytes: bytes | None) -> None:
        self._defaults.set_header("jms_correlation_id_as_bytes", jms_correlation_id_as_bytes)

    @runtime
    def set_jms_correlation_id_as_bytes(self, correlation_id: bytes | bytearray | memoryview | None) -> Self:
        """Hold a correlation id of bytes; see JMSProducer."""
        self._defaults.set_header("jms_correlation_id_as_bytes", correlation_id)
        return self

    @property
    @runtime
    def jms_correlation_id(self) -> str | None:
        """Return the held correlation id; see JMSProducer."""
        return self._defaults.message.jms_correlation_id

    @jms_correlation_id.setter
    @runtime
    def jms_correlation_id(self, jms_correlation_id: str | None) -> None:
        self._defaults.set_header("jms_correlation_id", jms_correlation_id)

    @runtime
    def set_jms_correlation_id(self, correlation_id: str | None) -> Self:
        """Hold a correlation id; see JMSProducer."""
        self._defaults.set_header("jms_correlation_id", correlation_id)
        return self

    @property
    @runtime
    def jms_type(self) -> str | None:
        """Return the held type; see JMSProducer."""
        return self._defaults.message.jms_type

    @jms_type.setter
    @runtime
    def jms_type(self, jms_type: str | None) -> None:
        self._defaults.set_header("jms_type", jms_type)

    @runtime
    def set_jms_type(self, jms_type: str | None) -> Self:
        """Hold a type; see JMSProducer."""
        self._defaults.set_header("jms_type", jms_type)
        return self

    @property
    @runtime
    def jms_reply_to(self) -> Destination | None:
        """Return the held reply destination; see JMSProducer."""
        return self._defaults.message.jms_reply_to

    @jms_reply_to.setter
    @runtime
    def jms_reply_to(self, jms_reply_to: Destination | None) -> None:
        self._defaults.set_header("jms_reply_to", jms_reply_to)

    @runtime
    def set_jms_reply_to(self, reply_to: Destination | None) -> Self:
        """Hold a reply destination; see JMSProducer."""
        self._defaults.set_header("jms_reply_to", reply_to)
        return self
