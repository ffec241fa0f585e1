"""The interface ``QueueConnection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from jmsapi.api.connection import Connection

if TYPE_CHECKING:
    from jmsapi.api.connection_consumer import ConnectionConsumer
    from jmsapi.api.queue import Queue
    from jmsapi.api.queue_session import QueueSession
    from jmsapi.api.server_session_pool import ServerSessionPool

__all__ = ["QueueConnection"]


class QueueConnection(Connection):
    """A connection for queues only, as before JMS 1.1; methods for subscriptions raise IllegalStateException.

    Threads: any number at once.
    Spec: 2.5-2, 5.1-1.
    """

    @abstractmethod
    def create_queue_session(self, transacted: bool, acknowledge_mode: int) -> QueueSession:
        """Create a session for queues.

        Args:
            transacted: True for a transacted session.
            acknowledge_mode: One of the constants of Session; ignored if transacted.
        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The mode is unknown, or the provider failed.
        Spec: 5.6-1, 10.3-9.
        """

    # Java overloads this by the class of the destination; Python has one name for it.
    @abstractmethod
    def create_connection_consumer(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        destination: Queue,  # type: ignore[override]
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have messages of a queue processed by the sessions of a pool, in parallel. Optional.

        Args:
            destination: Where to take messages from.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing.
        Raises:
            InvalidDestinationException: The queue is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: There is no pool, or the provider failed.
        Spec: 8.2.5-2, ASF-10.
        """
