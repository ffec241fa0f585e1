"""The interface ``QueueSender``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, overload

from jmsapi.api.message_producer import MessageProducer

if TYPE_CHECKING:
    from jmsapi.api.completion_listener import CompletionListener
    from jmsapi.api.message import Message
    from jmsapi.api.queue import Queue

__all__ = ["QueueSender"]


class QueueSender(MessageProducer):
    """A producer for queues, as before JMS 1.1.

    Spec: 2.5-5, 5.1-1.
    """

    @property
    @abstractmethod
    def queue(self) -> Queue | None:
        """Give the queue it sends to; None if each send names one.

        Raises:
            IllegalStateException: The sender is closed.
        Spec: 5.8-5.
        """

    # Java overloads this by the class of the destination; Python has one name for it.
    @overload  # type: ignore[override]
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
        destination_or_message: Queue,
        message: Message,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None: ...

    @abstractmethod
    def send(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        destination_or_message: Queue | Message,
        message: Message | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live_ms: int | None = None,
        completion_listener: CompletionListener | None = None,
    ) -> None:
        """Send a message to a queue; all arguments are those of ``MessageProducer.send``.

        Args:
            destination_or_message: The message; or the queue to send it to, if the sender has none.
            message: The message, if a queue comes first.
            delivery_mode: A constant of DeliveryMode for this send; None means the sender's.
            priority: 0 to 9 for this send; None means the sender's.
            time_to_live_ms: Milliseconds until the message expires, 0 for never; None means the sender's.
            completion_listener: Called when the send is done, in another thread; None waits instead.
        Raises:
            MessageFormatException: It is no message, or of a kind that cannot be sent.
            InvalidDestinationException: The queue is not valid.
            UnsupportedOperationException: A queue is named twice, or not at all.
            IllegalStateException: The sender is closed.
            JMSException: The broker refused the message, or the provider failed.
        Spec: 4.6.1-1, 5.8-5, 7.3-22, B.3.3-2.
        """
