"""The interface ``JMSConsumer``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jmsapi.api.message import Message
    from jmsapi.api.message_listener import MessageListenerLike
    from jmsapi.values import Timeout

__all__ = ["JMSConsumer"]

T = TypeVar("T")


class JMSConsumer(Closing):
    """Receives the messages of a queue or of a subscription, in the simplified API; ``with`` closes it.

    Threads: those of its context; only ``close`` may come from another.
    Spec: 2.8-4, 11-1.
    """

    @property
    @abstractmethod
    def message_selector(self) -> str | None:
        """Give the selector in use; None if every message is selected.

        Raises:
            IllegalStateRuntimeException: The context is closed.
            JMSRuntimeException: The provider failed.
        Spec: 3.8.1.1-2, B.3.1-2.
        """

    @property
    @abstractmethod
    def message_listener(self) -> MessageListenerLike | None:
        """Give the listener that takes the messages, as it was set; None if there is none.

        Raises:
            IllegalStateRuntimeException: The consumer is closed.
            JMSRuntimeException: A container forbids listeners, or the provider failed.
        Spec: 10.2-5, 11.2.1-4, 11.2.5-1, 11.2.5.2-1, 11.2.8-4, 11.2.8-5, 11.4.7-1, 11.4.9-1.
        """

    @message_listener.setter
    @abstractmethod
    def message_listener(self, message_listener: MessageListenerLike | None) -> None: ...

    @abstractmethod
    def receive(self, timeout_ms: Timeout | None = None) -> Message | None:
        """Take the next message, waiting for one if none is here.

        Args:
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 waits for ever. Not negative.
                A float below 10 that is not named, as in ``receive(2.0)``, is warned of once: it looks like seconds.
        Returns:
            The message, or None when time is up or another thread closed the consumer.
        Raises:
            IllegalStateRuntimeException: Closed already, or the context has a message listener.
            JMSRuntimeException: The provider failed; ``__cause__`` is its error.
        Spec: 4.5.1-1, 4.5.1-2, 7.2-5, 11.2.5-1, 11.2.5-2, 11.2.5.3-1, 11.2.5.3-2, 11.2.9-2, 11.4.10-1.
        """

    @abstractmethod
    def receive_no_wait(self) -> Message | None:
        """Take the next message if one is at hand.

        Returns:
            The message, or None when the broker has none now.
        Raises:
            IllegalStateRuntimeException: Closed already, or the context has a message listener.
            JMSRuntimeException: The provider failed; ``__cause__`` is its error.
        Spec: 4.5.1-3, 11.2.5.3-3.
        """

    @abstractmethod
    def close(self) -> None:
        """End the consumer; closed already, do nothing. A durable subscription stays.

        It waits for a running listener, unless that is the caller, and makes a pending receive call return.

        Raises:
            JMSRuntimeException: The provider failed; the consumer is closed all the same.
        Threads: any.
        Spec: 4.5.3-1, 4.5.3-2, 4.5.3-4, B.5.11-1, B.5.18-3.
        """

    @abstractmethod
    def receive_body(self, body_type: type[T], timeout_ms: Timeout | None = None) -> T | None:
        """Take the next message and give its body.

        If the type does not fit, an automatically acknowledged message comes again next; with the other modes it counts
        as delivered.

        Args:
            body_type: ``str``, ``bytes``, ``dict`` or the type of an object, or a base of it; see
                ``Message.get_body``.
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 waits for ever. Not negative.
                A float below 10 that is not named, as in ``receive(2.0)``, is warned of once: it looks like seconds.
        Returns:
            The body, or None when time is up or another thread closed the consumer.
        Raises:
            MessageFormatRuntimeException: The body is not of that type, or the message has none.
            IllegalStateRuntimeException: Closed already, or the context has a message listener.
            JMSRuntimeException: The provider failed; ``__cause__`` is its error.
        Spec: 7.2-7, 11.1-3, 11.2.5-1, 11.2.5.1-11, 11.2.5.1-12, 11.2.5.1-14 to 11.2.5.1-26.
        """

    @abstractmethod
    def receive_body_no_wait(self, body_type: type[T]) -> T | None:
        """Take the next message if one is at hand, and give its body.

        Args:
            body_type: ``str``, ``bytes``, ``dict`` or the type of an object, or a base of it; see
                ``Message.get_body``.
        Returns:
            The body, or None when the broker has no message now.
        Raises:
            MessageFormatRuntimeException: The body is not of that type, or the message has none.
            IllegalStateRuntimeException: Closed already, or the context has a message listener.
            JMSRuntimeException: The provider failed; ``__cause__`` is its error.
        Spec: 11.2.5.1-13.
        """

    def __iter__(self) -> Iterator[Message]:
        """Take messages as ``receive`` does, until the consumer is closed, which ends the iteration. Beyond JMS.

        Raises:
            IllegalStateRuntimeException: The context has a message listener.
            JMSRuntimeException: The provider failed.
        """
        while (message := self.receive()) is not None:
            yield message
