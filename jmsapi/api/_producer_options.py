"""The options of a JMSProducer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from jmsapi.api.completion_listener import CompletionListener

__all__ = ["ProducerOptions"]


class ProducerOptions(ABC):
    """The options of a JMSProducer."""

    @property
    @abstractmethod
    def disable_message_id(self) -> bool:
        """Tell whether the provider may leave out message ids; a hint that it may ignore. False at first.

        Spec: 3.4.3-5, 11.2.4-14.
        """

    @disable_message_id.setter
    @abstractmethod
    def disable_message_id(self, disable_message_id: bool) -> None: ...

    @abstractmethod
    def set_disable_message_id(self, value: bool) -> Self:
        """Set ``disable_message_id`` and return this producer.

        Spec: 3.4.3-5, 11.2.4-14.
        """

    @property
    @abstractmethod
    def disable_message_timestamp(self) -> bool:
        """Tell whether the provider may leave out timestamps; a hint that it may ignore. False at first.

        Spec: 11.2.4-13, 11.4.3-1.
        """

    @disable_message_timestamp.setter
    @abstractmethod
    def disable_message_timestamp(self, disable_message_timestamp: bool) -> None: ...

    @abstractmethod
    def set_disable_message_timestamp(self, value: bool) -> Self:
        """Set ``disable_message_timestamp`` and return this producer.

        Spec: 11.2.4-13, 11.4.3-1.
        """

    @property
    @abstractmethod
    def delivery_mode(self) -> int:
        """Give the delivery mode of the next sends, a constant of DeliveryMode; PERSISTENT at first.

        Raises:
            JMSRuntimeException: The mode to be set is unknown.
        Spec: 3.4.11-15, 11.2.4-9, 11.2.4-21, 11.4.3-1.
        """

    @delivery_mode.setter
    @abstractmethod
    def delivery_mode(self, delivery_mode: int) -> None: ...

    @abstractmethod
    def set_delivery_mode(self, delivery_mode: int) -> Self:
        """Set ``delivery_mode`` and return this producer.

        Spec: 3.4.11-15, 11.2.4-9, 11.2.4-21, 11.4.3-1.
        """

    @property
    @abstractmethod
    def priority(self) -> int:
        """Give the priority of the next sends, from 0 (lowest) to 9; 4 at first.

        Raises:
            JMSRuntimeException: The value to be set is not 0 to 9.
        Spec: 3.4.10-2, 11.2.4-10.
        """

    @priority.setter
    @abstractmethod
    def priority(self, priority: int) -> None: ...

    @abstractmethod
    def set_priority(self, priority: int) -> Self:
        """Set ``priority`` and return this producer.

        Spec: 3.4.10-2, 11.2.4-10.
        """

    @property
    @abstractmethod
    def time_to_live(self) -> int:
        """Give the milliseconds after which messages of the next sends expire; 0, as at first, means never.

        Raises:
            JMSRuntimeException: The value to be set is negative or no 64-bit number.
        Spec: 4.8-1, 11.2.4-11, 11.2.4-21.
        """

    @time_to_live.setter
    @abstractmethod
    def time_to_live(self, time_to_live: int) -> None: ...

    @abstractmethod
    def set_time_to_live(self, time_to_live_ms: int) -> Self:
        """Set ``time_to_live`` and return this producer.

        Spec: 4.8-1, 11.2.4-11, 11.2.4-21.
        """

    @property
    @abstractmethod
    def delivery_delay(self) -> int:
        """Give the milliseconds before which messages of the next sends are not delivered; 0 at first.

        Raises:
            UnsupportedFeatureRuntimeException: The broker cannot delay.
            JMSRuntimeException: The value to be set is negative or no 64-bit number.
        Spec: 3.4.13-1, 4.12-1, 11.2.4-12.
        """

    @delivery_delay.setter
    @abstractmethod
    def delivery_delay(self, delivery_delay: int) -> None: ...

    @abstractmethod
    def set_delivery_delay(self, delivery_delay_ms: int) -> Self:
        """Set ``delivery_delay`` and return this producer.

        Spec: 3.4.13-1, 4.12-1, 11.2.4-12.
        """

    @property
    @abstractmethod
    def async_(self) -> CompletionListener | None:
        """Give the listener that makes the next sends asynchronous; None, as at first, makes them wait.

        Raises:
            JMSRuntimeException: A container forbids asynchronous sends.
        Spec: 3.4.11-13, 10.2-10, 11.2.4-15.
        """

    @async_.setter
    @abstractmethod
    def async_(self, completion_listener: CompletionListener | None) -> None: ...

    @abstractmethod
    def set_async(self, completion_listener: CompletionListener | None) -> Self:
        """Set ``async_`` and return this producer.

        Spec: 3.4.11-13, 10.2-10, 11.2.4-15.
        """
