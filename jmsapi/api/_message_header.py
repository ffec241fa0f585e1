"""The header fields of a message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsapi.api.destination import Destination

__all__ = ["HeaderFields"]


class HeaderFields(ABC):
    """The header fields of a message."""

    __slots__ = ()

    @property
    @abstractmethod
    def jms_message_id(self) -> str | None:
        """Give the message's id, which begins with ``ID:``; None before it is sent, or if the producer leaves ids out.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.3-1 to 3.4.3-5, 3.4.5-2, 3.4.11-6, 3.4.11-14, 3.9-2, 3.10-1, 4.4.13-2, B.5.20-1.
        """

    @jms_message_id.setter
    @abstractmethod
    def jms_message_id(self, jms_message_id: str | None) -> None: ...

    @property
    @abstractmethod
    def jms_timestamp(self) -> int:
        """Give the time of the send call, in milliseconds since 1970 UTC; 0 before, or if the producer leaves it out.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.4-1 to 3.4.4-3, 3.4.11-7, 3.4.11-14, B.5.20-1, J11-33.
        """

    @jms_timestamp.setter
    @abstractmethod
    def jms_timestamp(self, jms_timestamp: int) -> None: ...

    @property
    @abstractmethod
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """Give the correlation id as bytes; None if there is none. Set a copy of the bytes given.

        Raises:
            UnsupportedOperationException: The provider has no correlation ids of bytes.
            JMSException: The id cannot be read as bytes.
        Spec: 3.4.5-3, 3.4.11-8, 3.12-3.
        """

    @jms_correlation_id_as_bytes.setter
    @abstractmethod
    def jms_correlation_id_as_bytes(self, jms_correlation_id_as_bytes: bytes | None) -> None: ...

    @property
    @abstractmethod
    def jms_correlation_id(self) -> str | None:
        """Give the id of what this message belongs to, often the id of a request; None if there is none.

        Raises:
            JMSException: The id cannot be read as text.
        Spec: 3.4.5-1, 3.4.5-2, 3.4.11-8, 3.10-1, 2.10-1, B.2.17-1.
        """

    @jms_correlation_id.setter
    @abstractmethod
    def jms_correlation_id(self, jms_correlation_id: str | None) -> None: ...

    @property
    @abstractmethod
    def jms_reply_to(self) -> Destination | None:
        """Give the destination for replies; None if the sender wants none.

        Spec: 3.4.6-1, 3.4.6-2, 3.4.11-9, 3.10-1, 4.4.3-4, 2.10-1, 11.2.9-3, 11.4.11-3, B.3.1-8.
        """

    @jms_reply_to.setter
    @abstractmethod
    def jms_reply_to(self, jms_reply_to: Destination | None) -> None: ...

    @property
    @abstractmethod
    def jms_destination(self) -> Destination | None:
        """Give the destination the message is sent to; None before it is sent.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.1-1, 3.4.1-2, 3.4.11-1, 3.4.11-14, B.5.20-1.
        """

    @jms_destination.setter
    @abstractmethod
    def jms_destination(self, jms_destination: Destination | None) -> None: ...

    @property
    @abstractmethod
    def jms_delivery_mode(self) -> int:
        """Give the delivery mode it was sent with, a constant of DeliveryMode.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.2-1, 3.4.11-2, 3.4.12-1, 3.4.12-2, B.5.20-1, J11-20, J11-21.
        """

    @jms_delivery_mode.setter
    @abstractmethod
    def jms_delivery_mode(self, jms_delivery_mode: int) -> None: ...

    @property
    @abstractmethod
    def jms_redelivered(self) -> bool:
        """Tell whether the message was, or may have been, delivered before.

        Only delivery sets it; it is not sent.

        Spec: 3.4.7-1 to 3.4.7-3, 3.4.11-11, 3.5.11-3, 4.4.11-9, 4.4.12-2, 4.10-2, 11.2.5.1-22, ASF-48.
        """

    @jms_redelivered.setter
    @abstractmethod
    def jms_redelivered(self, jms_redelivered: bool) -> None: ...

    @property
    @abstractmethod
    def jms_type(self) -> str | None:
        """Give the message type, any text the sender chose; None if there is none.

        Spec: 3.4.8-1, 3.4.8-2, 3.4.11-10, 3.10-1, B.2.17-1.
        """

    @jms_type.setter
    @abstractmethod
    def jms_type(self, jms_type: str | None) -> None: ...

    @property
    @abstractmethod
    def jms_expiration(self) -> int:
        """Give the time when the message expires, in milliseconds since 1970 UTC; 0 means never.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.9-1 to 3.4.9-5, 3.4.11-3, 3.4.12-2, B.5.20-1, B.5.22-1, J11-13 to J11-15, J11-20, J11-21.
        """

    @jms_expiration.setter
    @abstractmethod
    def jms_expiration(self, jms_expiration: int) -> None: ...

    @property
    @abstractmethod
    def jms_delivery_time(self) -> int:
        """Give the earliest time of delivery, in milliseconds since 1970 UTC.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.11-4, 3.4.12-2, 3.4.13-1 to 3.4.13-3, B.5.9-1, B.5.20-1.
        """

    @jms_delivery_time.setter
    @abstractmethod
    def jms_delivery_time(self, jms_delivery_time: int) -> None: ...

    @property
    @abstractmethod
    def jms_priority(self) -> int:
        """Give the priority it was sent with, from 0 (lowest) to 9.

        Sending sets it; what an application sets before is overwritten.

        Spec: 3.4.10-1, 3.4.11-5, 3.4.12-2, 3.10-1, B.5.20-1, J11-20, J11-21.
        """

    @jms_priority.setter
    @abstractmethod
    def jms_priority(self, jms_priority: int) -> None: ...
