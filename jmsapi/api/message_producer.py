"""The interface ``MessageProducer``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, overload

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from jmsapi.api.completion_listener import CompletionListener
    from jmsapi.api.destination import Destination
    from jmsapi.api.message import Message

__all__ = ["MessageProducer"]


class MessageProducer(Closing):
    """Sends messages to one destination, or to the one that each send names; ``with`` closes it.

    Options count for the sends that follow. A closed producer raises IllegalStateException.

    Threads: those of its session.
    Spec: 2.5-5, 2.8-4, 5.1-1, 6.1-1, 11-1.
    """

    @property
    @abstractmethod
    def disable_message_id(self) -> bool:
        """Tell whether the provider may leave out message ids; a hint that it may ignore. False at first.

        Raises:
            IllegalStateException: The producer is closed.
        Spec: 3.4.3-5.
        """

    @disable_message_id.setter
    @abstractmethod
    def disable_message_id(self, disable_message_id: bool) -> None: ...

    @property
    @abstractmethod
    def disable_message_timestamp(self) -> bool:
        """Tell whether the provider may leave out timestamps; a hint that it may ignore. False at first.

        Raises:
            IllegalStateException: The producer is closed.
        Spec: 3.4.4-3, B.3.2-3.
        """

    @disable_message_timestamp.setter
    @abstractmethod
    def disable_message_timestamp(self, disable_message_timestamp: bool) -> None: ...

    @property
    @abstractmethod
    def delivery_mode(self) -> int:
        """Give the delivery mode of the next sends, a constant of DeliveryMode; PERSISTENT at first.

        Raises:
            IllegalStateException: The producer is closed.
            JMSException: The mode to be set is unknown.
        Spec: 3.4.2-1, 3.4.11-15, 4.4.10.2-2, 4.6-3, 4.7-1 to 4.7-3, 6.12-2, 6.15-1 to 6.15-4, B.4.3.2-3, SHS-33.
        """

    @delivery_mode.setter
    @abstractmethod
    def delivery_mode(self, delivery_mode: int) -> None: ...

    @property
    @abstractmethod
    def priority(self) -> int:
        """Give the priority of the next sends, from 0 (lowest) to 9; 4 at first.

        Raises:
            IllegalStateException: The producer is closed.
            JMSException: The value to be set is not 0 to 9.
        Spec: 3.4.10-1, 3.4.10-2, 3.4.11-15, 4.3.5-11, 4.6-3.
        """

    @priority.setter
    @abstractmethod
    def priority(self, priority: int) -> None: ...

    @property
    @abstractmethod
    def time_to_live(self) -> int:
        """Give the milliseconds after which messages of the next sends expire; 0, as at first, means never.

        Raises:
            IllegalStateException: The producer is closed.
            JMSException: The value to be set is negative or no 64-bit number.
        Spec: 3.4.9-1, 3.4.9-4, 3.4.11-15, 4.6-3, 4.8-1, 4.8-2, 6.3-3, B.2.19-2, J11-15.
        """

    @time_to_live.setter
    @abstractmethod
    def time_to_live(self, time_to_live: int) -> None: ...

    @property
    @abstractmethod
    def delivery_delay(self) -> int:
        """Give the milliseconds before which messages of the next sends are not delivered; 0 at first.

        Raises:
            IllegalStateException: The producer is closed.
            UnsupportedFeatureException: The broker cannot delay.
            JMSException: The value to be set is negative or no 64-bit number.
        Spec: 3.4.11-15, 3.4.13-1, 3.4.13-4, 4.4.10.2-1, 4.6-3, 4.12-1, 4.12-3, 5.9-5.
        """

    @delivery_delay.setter
    @abstractmethod
    def delivery_delay(self, delivery_delay: int) -> None: ...

    @property
    @abstractmethod
    def destination(self) -> Destination | None:
        """Give the destination this producer sends to; None if each send names one.

        Raises:
            IllegalStateException: The producer is closed.
        Spec: 4.6-1, B.4.4-1.
        """

    @abstractmethod
    def close(self) -> None:
        """End the producer; closed already, do nothing. It waits for asynchronous sends and their listeners.

        Raises:
            IllegalStateException: A completion listener of the producer calls.
            JMSException: The provider failed; the producer is closed all the same.
        Spec: 4.3.5-12, 4.4.1-9, 4.5.3-4, 4.6.2.4-1, 4.6.2.4-4, B.5.11-1.
        """

    @overload
    @abstractmethod
    def send(
        self,
        destination_or_message: Message,
        message: None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None: ...

    @overload
    @abstractmethod
    def send(
        self,
        destination_or_message: Destination,
        message: Message,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None: ...

    @abstractmethod
    def send(
        self,
        destination_or_message: Destination | Message,
        message: Message | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None:
        """Send a message.

        It sets the message's header fields. A PERSISTENT message outside a transaction is in the broker's hands when
        the call returns; with a completion listener the call does not wait for that.

        Args:
            destination_or_message: The message; or where to send it, if the producer has no destination.
            message: The message, if a destination comes first.
            delivery_mode: A constant of DeliveryMode for this send; None means the producer's.
            priority: 0 to 9 for this send; None means the producer's.
            time_to_live_ms: Milliseconds until the message expires, 0 for never; None means the producer's.
            completion_listener: Called when the send is done, in another thread; None waits instead.
        Raises:
            MessageFormatException: It is no message, or of a kind that cannot be sent.
            InvalidDestinationException: The destination is not valid.
            UnsupportedOperationException: A destination is named twice, or not at all.
            IllegalStateException: The producer is closed.
            JMSException: The broker refused the message, or the provider failed.
        Spec: 3.4.11-1 to 3.4.11-7, 3.4.11-12 to 3.4.11-14, 3.12-1, 4.4.10.1-1, 4.6-1, 4.6-2, 4.6-4, 4.6.1-1, 4.6.2-1,
            4.6.2.2-1, 7.3-13, 7.3-14, 7.3-22, B.3.3-2.
        """
