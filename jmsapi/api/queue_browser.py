"""The interface ``QueueBrowser``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jmsapi.api.message import Message
    from jmsapi.api.queue import Queue

__all__ = ["QueueBrowser"]


class QueueBrowser(Closing):
    """Looks at the messages of a queue without taking them; ``with`` closes it, ``for`` goes through them.

    Threads: those of its session.
    Spec: 2.5-6.
    """

    @property
    @abstractmethod
    def queue(self) -> Queue:
        """Give the queue it looks at.

        Raises:
            IllegalStateException: The browser is closed.
        Spec: 5.9-3.
        """

    @property
    @abstractmethod
    def message_selector(self) -> str | None:
        """Give the selector in use; None if every message is selected.

        Raises:
            IllegalStateException: The browser is closed.
        Spec: 5.9-3.
        """

    @property
    @abstractmethod
    def enumeration(self) -> Iterator[Message]:
        """Begin to look at the messages, in the order in which they would be received.

        Returns:
            A new iterator; whether it shows messages that come or go meanwhile is up to the broker.
        Raises:
            IllegalStateException: The browser is closed.
            JMSException: The provider failed; also raised by the iterator.
        Spec: 3.4.9-5, 4.4.7-3, 5.9-1, 5.9-3 to 5.9-5, A.3.1-2.
        """

    @abstractmethod
    def close(self) -> None:
        """End the browser; closed already, do nothing.

        Raises:
            JMSException: The provider failed; the browser is closed all the same.
        Spec: 4.3.5-12, 4.5.3-4, B.5.11-1.
        """

    def __iter__(self) -> Iterator[Message]:
        """Begin to look at the messages: the same as ``enumeration``. Beyond JMS."""
        return self.enumeration
