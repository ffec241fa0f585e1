"""The interface ``TopicConnection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.connection import Connection

if TYPE_CHECKING:
    from jmsapi.api.connection_consumer import ConnectionConsumer
    from jmsapi.api.server_session_pool import ServerSessionPool
    from jmsapi.api.topic import Topic
    from jmsapi.api.topic_session import TopicSession

__all__ = ["TopicConnection"]


class TopicConnection(Connection):
    """A connection for topics only, as before JMS 1.1.

    Threads: any number at once.
    Spec: 2.5-2, 6.1-1.
    """

    @abstractmethod
    def create_topic_session(self, transacted: bool, acknowledge_mode: int) -> TopicSession:
        """Create a session for topics.

        Args:
            transacted: True for a transacted session.
            acknowledge_mode: One of the constants of Session; ignored if transacted.
        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The mode is unknown, or the provider failed.
        Spec: 6.8-1, 10.3-9.
        """

    # Java overloads this by the class of the destination; Python has one name for it.
    @abstractmethod
    def create_connection_consumer(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        destination: Topic,  # type: ignore[override]
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have messages of a topic processed by the sessions of a pool, in parallel. Optional.

        Args:
            destination: What to subscribe to.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing.
        Raises:
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: There is no pool, or the provider failed.
        Spec: 8.2.5-2.
        """
