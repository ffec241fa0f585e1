"""The header fields that a JMSProducer gives to its messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from jmsapi.api.destination import Destination

__all__ = ["ProducerHeader"]


class ProducerHeader(ABC):
    """The header fields that a JMSProducer gives to its messages."""

    @property
    @abstractmethod
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """Give the correlation id for the next sends as bytes; None if there is none.

        Raises:
            UnsupportedOperationException: The provider has no correlation ids of bytes.
        Spec: 11.2.4-19.
        """

    @jms_correlation_id_as_bytes.setter
    @abstractmethod
    def jms_correlation_id_as_bytes(self, jms_correlation_id_as_bytes: bytes | None) -> None: ...

    @abstractmethod
    def set_jms_correlation_id_as_bytes(self, correlation_id: bytes | bytearray | memoryview | None) -> Self:
        """Set ``jms_correlation_id_as_bytes`` and return this producer.

        Spec: 11.2.4-19.
        """

    @property
    @abstractmethod
    def jms_correlation_id(self) -> str | None:
        """Give the correlation id for the next sends; None if there is none.

        Spec: 11.2.4-18, 11.2.4-20.
        """

    @jms_correlation_id.setter
    @abstractmethod
    def jms_correlation_id(self, jms_correlation_id: str | None) -> None: ...

    @abstractmethod
    def set_jms_correlation_id(self, correlation_id: str | None) -> Self:
        """Set ``jms_correlation_id`` and return this producer.

        Spec: 11.2.4-18, 11.2.4-20.
        """

    @property
    @abstractmethod
    def jms_type(self) -> str | None:
        """Give the message type for the next sends; None if there is none.

        Spec: 11.2.4-18, 11.2.4-20.
        """

    @jms_type.setter
    @abstractmethod
    def jms_type(self, jms_type: str | None) -> None: ...

    @abstractmethod
    def set_jms_type(self, jms_type: str | None) -> Self:
        """Set ``jms_type`` and return this producer.

        Spec: 11.2.4-18, 11.2.4-20.
        """

    @property
    @abstractmethod
    def jms_reply_to(self) -> Destination | None:
        """Give the destination for replies to the next sends; None if there is none.

        Raises:
            InvalidDestinationRuntimeException: The value to be set is no destination.
        Spec: 11.2.4-18.
        """

    @jms_reply_to.setter
    @abstractmethod
    def jms_reply_to(self, jms_reply_to: Destination | None) -> None: ...

    @abstractmethod
    def set_jms_reply_to(self, reply_to: Destination | None) -> Self:
        """Set ``jms_reply_to`` and return this producer.

        Spec: 11.2.4-18.
        """
