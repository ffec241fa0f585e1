"""The simplified API's producer: options, properties and headers kept for all later sends.

Spec: 11.2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jmsapi._core import options_check as valid
from jmsapi._core.context import JMSContextImpl, runtime
from jmsapi._core.held_values import HeldValues
from jmsapi._core.producer import ProducerImpl, SendOptions
from jmsapi.api import CompletionListener, Destination, JMSProducer, Message
from jmsapi.errors import IllegalArgumentException, MessageFormatException

__all__ = ["JMSProducerImpl"]


class JMSProducerImpl(HeldValues):
    """A producer of one context. It needs no closing.

    Args:
        context: Its context.
    """

    def __init__(self, context: JMSContextImpl) -> None:
        super().__init__(context.connection.codec)
        self._context = context
        self._producer: ProducerImpl | None = None
        self._async: CompletionListener | None = None
        self._options = SendOptions()

    # ---- sending --------------------------------------------------------------------------------------------------
    @runtime
    def send(
        self,
        destination: Destination,
        body: Message | str | Mapping[str, Any] | bytes | bytearray | memoryview | Any,
        *,
        body_type: type | None = None,
    ) -> JMSProducer:
        """Send a message or a body; see JMSProducer."""
        session = self._context.session
        session.check_open()
        address = session.usable(destination)
        message = body if isinstance(body, Message) else self._message(body, body_type)
        self.apply_to(message)
        producer = self._producer
        if producer is None or producer.closed:
            producer = self._producer = session.add_producer(ProducerImpl, None)
        producer.send_to(destination, address, message, self._options, self._async)
        return self

    def _message(self, body: object, body_type: type | None) -> Message:
        session = self._context.session
        if body is None:
            return self._empty(body_type)
        if isinstance(body, str):
            return session.create_text_message(body)
        if isinstance(body, bytes | bytearray | memoryview):
            message = session.create_bytes_message()
            message.write_bytes(cast("bytes | bytearray | memoryview", body))
            return message
        if isinstance(body, Mapping):
            entries = session.create_map_message()
            named = cast("Mapping[str, Any]", body)
            for name, value in named.items():
                entries.set_object(name, value)
            return entries
        return session.create_object_message(body)

    def _empty(self, body_type: type | None) -> Message:
        session = self._context.session
        if body_type is str:
            return session.create_text_message()
        if body_type in (bytes, bytearray, memoryview):
            return session.create_bytes_message()
        if isinstance(body_type, type) and issubclass(body_type, Mapping):
            return session.create_map_message()
        if body_type is object:
            return session.create_object_message()
        raise MessageFormatException("send: a body of None needs body_type: str, dict, bytes or object")

    # ---- options --------------------------------------------------------------------------------------------------
    @property
    def disable_message_id(self) -> bool:
        """Return the hint; see JMSProducer."""
        return self._options.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, disable_message_id: bool) -> None:
        self._options.disable_message_id = bool(disable_message_id)

    def set_disable_message_id(self, value: bool) -> JMSProducer:
        """Set the hint; see JMSProducer."""
        self.disable_message_id = value
        return self

    @property
    def disable_message_timestamp(self) -> bool:
        """Return the hint; see JMSProducer."""
        return self._options.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disable_message_timestamp: bool) -> None:
        self._options.disable_message_timestamp = bool(disable_message_timestamp)

    def set_disable_message_timestamp(self, value: bool) -> JMSProducer:
        """Set the hint; see JMSProducer."""
        self.disable_message_timestamp = value
        return self

    @property
    def delivery_mode(self) -> int:
        """Return the delivery mode; see JMSProducer."""
        return self._options.delivery_mode

    @delivery_mode.setter
    @runtime
    def delivery_mode(self, delivery_mode: int) -> None:
        self._options.delivery_mode = valid.delivery_mode(delivery_mode)

    def set_delivery_mode(self, delivery_mode: int) -> JMSProducer:
        """Set the delivery mode; see JMSProducer."""
        self.delivery_mode = delivery_mode
        return self

    @property
    def priority(self) -> int:
        """Return the priority; see JMSProducer."""
        return self._options.priority

    @priority.setter
    @runtime
    def priority(self, priority: int) -> None:
        self._options.priority = valid.priority(priority)

    def set_priority(self, priority: int) -> JMSProducer:
        """Set the priority; see JMSProducer."""
        self.priority = priority
        return self

    @property
    def time_to_live(self) -> int:
        """Return the time to live in milliseconds; see JMSProducer."""
        return self._options.time_to_live

    @time_to_live.setter
    @runtime
    def time_to_live(self, time_to_live: int) -> None:
        self._options.time_to_live = valid.time_to_live(time_to_live)

    def set_time_to_live(self, time_to_live_ms: int) -> JMSProducer:
        """Set the time to live; see JMSProducer."""
        self.time_to_live = time_to_live_ms
        return self

    @property
    def delivery_delay(self) -> int:
        """Return the delivery delay in milliseconds; see JMSProducer."""
        return self._options.delivery_delay

    @delivery_delay.setter
    @runtime
    def delivery_delay(self, delivery_delay: int) -> None:
        delay = valid.delivery_delay(delivery_delay)
        if delay:
            self._context.connection.link.require("delivery_delay", "a delivery delay")
        self._options.delivery_delay = delay

    def set_delivery_delay(self, delivery_delay_ms: int) -> JMSProducer:
        """Set the delivery delay; see JMSProducer."""
        self.delivery_delay = delivery_delay_ms
        return self

    @property
    def async_(self) -> CompletionListener | None:
        """Return the completion listener, or None for synchronous sends; see JMSProducer."""
        return self._async

    @async_.setter
    def async_(self, completion_listener: CompletionListener | None) -> None:
        if completion_listener is not None and not (
            callable(getattr(completion_listener, "on_completion", None))
            and callable(getattr(completion_listener, "on_exception", None))
        ):
            raise IllegalArgumentException(
                f"a completion listener has on_completion and on_exception, not {completion_listener!r}"
            )
        self._async = completion_listener

    def set_async(self, completion_listener: CompletionListener | None) -> JMSProducer:
        """Set the completion listener; see JMSProducer."""
        self.async_ = completion_listener
        return self
