"""The interface ``JMSProducer``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, overload

from jmsapi.api._producer_header import ProducerHeader
from jmsapi.api._producer_options import ProducerOptions
from jmsapi.api._producer_properties import ProducerProperties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jmsapi.api.destination import Destination
    from jmsapi.api.message import Message

__all__ = ["JMSProducer"]


class JMSProducer(ProducerOptions, ProducerHeader, ProducerProperties):
    """Holds options, headers and properties and sends with them, in the simplified API.

    Each option is a property and a ``set_`` method that returns the producer, so that calls can be chained. It needs no
    closing.

    Threads: those of its context.
    Spec: 2.8-4, 11-1, 11.2.4-23.
    """

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: Message) -> JMSProducer: ...

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: str) -> JMSProducer: ...

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: bytes | bytearray | memoryview) -> JMSProducer: ...

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: Mapping[str, Any]) -> JMSProducer: ...

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: None, *, body_type: type) -> JMSProducer: ...

    @overload
    @abstractmethod
    def send(self, destination: Destination, body: Any, *, body_type: type | None = None) -> JMSProducer: ...

    @abstractmethod
    def send(
        self,
        destination: Destination,
        body: Message | str | Mapping[str, Any] | bytes | bytearray | memoryview | Any,
        *,
        body_type: type | None = None,
    ) -> JMSProducer:
        """Send a message, or a new message made of a body, with the options, headers and properties of the producer.

        A str makes a TextMessage, bytes a BytesMessage, a mapping a MapMessage. An instance of a dataclass or of a pydantic
        model makes a TextMessage of JSON in ASCII with the property ``content_type`` = ``application/json``, which is beyond
        JMS: its class is neither given to ``register_class`` nor named in ``object_allow``. Any other object makes an
        ObjectMessage.

        Args:
            destination: Where to send it.
            body: A message, or the body for one. For None, body_type says which kind of message.
            body_type: ``str``, ``dict``, ``bytes`` or ``object``, for a body that is None.
        Returns:
            This producer.
        Raises:
            MessageFormatRuntimeException: The body cannot be carried, or is None and body_type says nothing.
            InvalidDestinationRuntimeException: The destination is not valid.
            MessageNotWriteableRuntimeException: Properties are to be added to a message with read-only properties.
            JMSRuntimeException: The broker refused the message, the context is closed, or the provider failed.
        Spec: 3.4.11-12, 3.12-1, 4.6.2.3-1, 7.2-5, 7.2-7, 7.3-15, 7.3-26, 11.1-3, 11.2.4-1, 11.2.4-2, 11.2.4-4 to
            11.2.4-8, 11.2.4-22, 11.2.4-24, 11.2.4-27.
        """
