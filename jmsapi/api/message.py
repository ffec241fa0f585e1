"""The interface ``Message``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, TypeVar

from jmsapi.api._message_header import HeaderFields
from jmsapi.api._message_properties import MessageProperties

__all__ = ["Message"]

T = TypeVar("T")


class Message(HeaderFields, MessageProperties):
    """A message without a body, and what all kinds of message have in common: header fields, properties, acknowledging.

    A received message is read-only until ``clear_body`` and ``clear_properties``.

    Attributes:
        DEFAULT_DELIVERY_MODE: PERSISTENT.
        DEFAULT_PRIORITY: 4 of 0 to 9.
        DEFAULT_TIME_TO_LIVE: 0 milliseconds, which means for ever.
        DEFAULT_DELIVERY_DELAY: 0 milliseconds.

    Threads: one at a time; any thread.
    Spec: 3.3-1, 3.3-3, 3.4-1, 3.4.11-12, 3.5.7-4, 3.7-1, 3.11.4-2, 3.12-1, 4.3.5-13, 4.6.2.9-1.
    """

    __slots__ = ()

    DEFAULT_DELIVERY_MODE: Final[int] = 2
    DEFAULT_PRIORITY: Final[int] = 4
    DEFAULT_TIME_TO_LIVE: Final[int] = 0
    DEFAULT_DELIVERY_DELAY: Final[int] = 0

    @abstractmethod
    def acknowledge(self) -> None:
        """Acknowledge all messages that the session has delivered, this one and all others.

        In other modes than CLIENT_ACKNOWLEDGE, and for a message that was not received, it does nothing.

        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Threads: that of the session.
        Spec: 3.6-1, 4.3.5-8, 4.3.5-9, 4.4.1-10, 4.4.11-1, 4.4.11-5, 4.4.12-1, 4.5.3-3, 6.11-3.
        """

    @abstractmethod
    def clear_body(self) -> None:
        """Remove the body and make it writeable; header and properties stay.

        Spec: 3.9-1, 3.10-2, 3.10-3, 3.11.1-1, 3.11.1-2, 3.11.2-2, B.2.7-1, B.3.1-7.
        """

    @abstractmethod
    def get_body(self, body_type: type[T]) -> T | None:
        """Give a copy of the body as a Python type.

        Args:
            body_type: ``str`` for text, ``dict`` for a map, ``bytes`` for bytes, the type of an object; or any base
                of these.
        Returns:
            The body; None if there is none, for any type.
        Raises:
            MessageFormatException: The body is not of this type, or the message is a StreamMessage.
        Spec: 9.2.3-1, 9.4.4-3, 9.4.6-1, 9.4.10-1, B.5.14-1 to B.5.14-3.
        """

    @abstractmethod
    def is_body_assignable_to(self, body_type: type) -> bool:
        """Tell whether ``get_body`` with this type would work.

        Args:
            body_type: The type to ask for.
        Spec: B.5.14-2, B.5.14-3.
        """
