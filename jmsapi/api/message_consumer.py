"""The interface ``MessageConsumer``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jmsapi.api.message import Message
    from jmsapi.api.message_listener import MessageListenerLike
    from jmsapi.values import Timeout

__all__ = ["MessageConsumer"]


class MessageConsumer(Closing):
    """Receives the messages of a queue or of a subscription; ``with`` closes it.

    Threads: those of its session; only ``close`` may come from another.
    Spec: 2.5-6, 2.8-4, 5.1-1, 6.1-1, 11-1.
    """

    @property
    @abstractmethod
    def message_selector(self) -> str | None:
        """Give the selector in use; None if every message is selected.

        Raises:
            IllegalStateException: The consumer is closed.
        Spec: 3.8.1.1-2, B.3.1-2.
        """

    @property
    @abstractmethod
    def message_listener(self) -> MessageListenerLike | None:
        """Give the listener that takes the messages, as it was set; None if there is none.

        Raises:
            IllegalStateException: The consumer is closed.
            JMSException: A container forbids listeners, or the provider failed.
        Spec: 3.4.9-6, 3.4.13-4, 4.3.3-1, 4.3.4-1, 4.3.5-11, 4.4.6-2, 4.4.6-4, 4.4.6-5, 4.4.14-1, 4.5.2-1, 4.12-2.
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
            IllegalStateException: Closed already, or the session has a message listener.
            JMSException: The provider failed; ``__cause__`` is its error.
        Spec: 3.4.13-4, 4.3.3-1, 4.3.4-1, 4.3.5-1, 4.4.1-1, 4.4.6-2, 4.4.10.1-1, 4.4.11-3, 4.5.1-1, 4.5.1-2, 5.8-4,
            7.2-6.
        """

    @abstractmethod
    def receive_no_wait(self) -> Message | None:
        """Take the next message if one is at hand.

        Returns:
            The message, or None when the broker has none now.
        Raises:
            IllegalStateException: Closed already, or the session has a message listener.
            JMSException: The provider failed; ``__cause__`` is its error.
        Spec: 4.3.3-1, 4.5.1-3.
        """

    @abstractmethod
    def close(self) -> None:
        """End the consumer; closed already, do nothing. A durable subscription stays.

        It waits for a running listener, unless that is the caller, and makes a pending receive call return.

        Raises:
            JMSException: The provider failed; the consumer is closed all the same.
        Threads: any.
        Spec: 4.3.5-12, 4.4.1-9, 4.5.3-1 to 4.5.3-4, 6.3-1, 6.11.1-2, 6.11.1-3, 6.11.2-5.
        """

    def __iter__(self) -> Iterator[Message]:
        """Take messages as ``receive`` does, until the consumer is closed, which ends the iteration. Beyond JMS.

        Raises:
            IllegalStateException: The session has a message listener.
            JMSException: The provider failed.
        """
        while (message := self.receive()) is not None:
            yield message
