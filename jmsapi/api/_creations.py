"""What Session and JMSContext create alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jmsapi.api.bytes_message import BytesMessage
    from jmsapi.api.map_message import MapMessage
    from jmsapi.api.message import Message
    from jmsapi.api.object_message import ObjectMessage
    from jmsapi.api.queue import Queue
    from jmsapi.api.stream_message import StreamMessage
    from jmsapi.api.temporary_queue import TemporaryQueue
    from jmsapi.api.temporary_topic import TemporaryTopic
    from jmsapi.api.text_message import TextMessage
    from jmsapi.api.topic import Topic

__all__ = ["Creations"]


class Creations(ABC):
    """What Session and JMSContext create alike: messages and destinations.

    The context raises the runtime twins of the exceptions named here.
    """

    @abstractmethod
    def create_bytes_message(self) -> BytesMessage:
        """Create a message with a body of bytes, in write-only mode.

        Returns:
            An empty message.
        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 4.4.5-1, 11.2.3-1.
        """

    @abstractmethod
    def create_map_message(self) -> MapMessage:
        """Create a message with a body of names and values.

        Returns:
            An empty message.
        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 4.4.5-1, 11.2.3-1.
        """

    @abstractmethod
    def create_message(self) -> Message:
        """Create a message without a body.

        Returns:
            A message of header and properties only.
        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 3.12-2, 4.4-1, 4.4.1-9, 4.4.5-1, 11.2.3-1.
        """

    @abstractmethod
    def create_object_message(self, object: Any = None) -> ObjectMessage:
        """Create a message with a Python object as its body.

        Args:
            object: The object, or None; it is copied into the message at once.
        Returns:
            A message with that body.
        Raises:
            MessageFormatException: The object is of no type that the connection's codec can carry.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 4.4.5-1, 11.2.3-1, 11.2.3-2.
        """

    @abstractmethod
    def create_stream_message(self) -> StreamMessage:
        """Create a message with a body of typed values in a row, in write-only mode.

        Returns:
            An empty message.
        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 4.4.5-1, 11.2.3-1.
        """

    @abstractmethod
    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Create a message with text as its body.

        Args:
            text: The text, without lone surrogates; None means no body.
        Returns:
            A message with that body.
        Raises:
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.3-1, 3.12-2, 4.3.5-11, 4.4.5-1, 4.4.5-2, 11.2.3-1 to 11.2.3-3, B.5.16-1.
        """

    @abstractmethod
    def create_queue(self, queue_name: str) -> Queue:
        """Name a queue of the provider; the queue itself is not created by this.

        Args:
            queue_name: The provider's name of the queue, not empty.
        Returns:
            An object for that name.
        Raises:
            InvalidDestinationException: The name cannot be one.
            IllegalStateException: The session is closed, or serves topics only.
        Spec: 4.2.1-1, 4.4-1, 4.4.4-1, 4.4.4-2, 1.3-1, 5.2-1, 11.2.4-3.
        """

    @abstractmethod
    def create_topic(self, topic_name: str) -> Topic:
        """Name a topic of the provider; the topic itself is not created by this.

        Args:
            topic_name: The provider's name of the topic, not empty.
        Returns:
            An object for that name.
        Raises:
            InvalidDestinationException: The name cannot be one.
            IllegalStateException: The session is closed, or serves queues only.
        Spec: 4.4-1, 4.4.4-1, 4.4.4-2, 1.3-1, 6.4-1, 6.5-2, 11.2.4-3.
        """

    @abstractmethod
    def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that lives as long as the connection.

        Returns:
            A queue with a new name, from which only this connection may receive.
        Raises:
            IllegalStateException: The session is closed, or serves topics only.
            JMSException: The provider failed.
        Spec: 4.4-1, 4.4.3-1, 4.4.3-2, 2.10-2, 5.2-1, 5.4-1, 11.1-2, 11.4.11-1.
        """

    @abstractmethod
    def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that lives as long as the connection.

        Returns:
            A topic with a new name, from which only this connection may receive.
        Raises:
            IllegalStateException: The session is closed, or serves queues only.
            JMSException: The provider failed.
        Spec: 4.4-1, 4.4.3-1, 2.10-2, 6.4-1, 6.6-1, B.4.4-1.
        """
