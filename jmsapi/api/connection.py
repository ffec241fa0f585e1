"""The interface ``Connection``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, overload

from jmsapi.api._closing import Closing

if TYPE_CHECKING:
    from jmsapi.api.connection_consumer import ConnectionConsumer
    from jmsapi.api.connection_meta_data import ConnectionMetaData
    from jmsapi.api.destination import Destination
    from jmsapi.api.exception_listener import ExceptionListenerLike
    from jmsapi.api.server_session_pool import ServerSessionPool
    from jmsapi.api.session import Session
    from jmsapi.api.topic import Topic

__all__ = ["Connection"]


class Connection(Closing):
    """A link to the broker, whose sessions send and receive; stopped until ``start()``.

    ``with`` closes it, and that closes all that was made from it. Any method of a closed connection but ``close``
    raises IllegalStateException.

    Threads: any number at once.
    Spec: 2.5-2, 5.1-1, 6.1-1, 11-1, 11.1-1.
    """

    @overload
    @abstractmethod
    def create_session(self, session_mode: int | None = None) -> Session: ...

    @overload
    @abstractmethod
    def create_session(self, session_mode: bool, acknowledge_mode: int | None = None) -> Session: ...

    @overload
    @abstractmethod
    def create_session(self, session_mode: None = None, acknowledge_mode: int | None = None, *, transacted: bool) -> Session: ...

    @abstractmethod
    def create_session(
        self, session_mode: int | bool | None = None, acknowledge_mode: int | None = None, *, transacted: bool | None = None
    ) -> Session:
        """Create a session: a serial line of sending, receiving and acknowledging.

        A bool in first place is Java's ``transacted``, an int its session mode.

        Args:
            session_mode: One of the constants of Session, or True for a transacted session; None means
                AUTO_ACKNOWLEDGE.
            acknowledge_mode: Mode to use if the first argument is False; ignored if it is True.
            transacted: The first argument by its Java name.
        Returns:
            A new session.
        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The mode is unknown, or the provider failed.
        Spec: 4.3.5-10, 4.3.6-1, 4.4.6-5, 4.4.7-1, 4.4.9-1, 4.4.11-2, 2.6.1-1, 2.8-3, 7.2-4.
        """

    @property
    @abstractmethod
    def client_id(self) -> str | None:
        """Give the client id, which names the owner of durable subscriptions; None if there is none.

        Set it before anything else is done with the connection.

        Raises:
            InvalidClientIDException: The id to be set is empty or in use.
            IllegalStateException: The factory sets the id, the connection was used already, or it is closed.
        Spec: 4.3.2-1 to 4.3.2-7, 4.3.5-10, 6.11.2-4, 6.11.3-4, 6.11.4-4, 7.3-11, 9.3.3.2-5, 10.2-6, 10.2-8.
        """

    @client_id.setter
    @abstractmethod
    def client_id(self, client_id: str | None) -> None: ...

    @property
    @abstractmethod
    def meta_data(self) -> ConnectionMetaData:
        """Describe the provider and the broker at the other end.

        Raises:
            IllegalStateException: The connection is closed.
        Spec: 3.5.9-2, 4.3.5-10, 4.3.7-1, 2.8-3.
        """

    @property
    @abstractmethod
    def exception_listener(self) -> ExceptionListenerLike | None:
        """Give the listener for problems that no call reports, as it was set; None if there is none.

        Raises:
            IllegalStateException: The connection is closed.
        Spec: 4.3.5-10, 4.3.8-1, 4.3.8-2, 10.2-6, B.2.19-1, B.4.3.2-2, B.5.17-1.
        """

    @exception_listener.setter
    @abstractmethod
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Start, or resume, the delivery of messages; started already, do nothing.

        Raises:
            IllegalStateException: The connection is closed.
            JMSException: The provider failed.
        Spec: 4.3.3-1, 4.3.3-2, 4.3.4-2, 4.3.4-4, 4.3.5-10, 4.4.6-4, 2.6.1-1, 2.8-3, 7.3-7.
        """

    @abstractmethod
    def stop(self) -> None:
        """Pause the delivery of messages; stopped already, do nothing.

        It returns when no listener runs and no receive call can return a message. Sending goes on, time limits run on.

        Raises:
            IllegalStateException: The connection is closed, or one of its own message listeners calls.
            JMSException: The provider failed.
        Spec: 4.3.3-3, 4.3.4-1 to 4.3.4-9, 4.3.5-10, 2.8-3, 10.2-6, 10.2-9, B.5.17-3, B.5.18-1, ASF-16.
        """

    @abstractmethod
    def close(self) -> None:
        """End the connection and all that was made from it; closed already, do nothing.

        It waits for running listeners and makes pending receive calls return. Open transactions roll back; messages
        that are not acknowledged go back.

        Raises:
            IllegalStateException: One of its own message or completion listeners calls.
            JMSException: The provider failed; the connection is closed all the same.
        Spec: 4.3.2-7, 4.3.5-1 to 4.3.5-9, 4.3.5-14, 4.3.8-6, 4.4.1-5, 4.4.3-5, 4.6.2.4-1, 4.6.2.4-4, 9.1.3-1.
        """

    @abstractmethod
    def create_connection_consumer(
        self, destination: Destination, message_selector: str | None, session_pool: ServerSessionPool, max_messages: int
    ) -> ConnectionConsumer:
        """Have messages of a destination processed by the sessions of a pool, in parallel. Optional.

        Args:
            destination: Where to take messages from.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing.
        Raises:
            InvalidDestinationException: The destination is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: There is no pool, or the provider failed.
        Spec: 8.1-1, 8.2-1, 8.2.3-4, 8.2.4-1 to 8.2.4-5, 8.2.4-7, 8.2.7-1, 10.2-3.
        """

    @abstractmethod
    def create_shared_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have messages of a shared non-durable subscription processed by the sessions of a pool. Optional.

        Args:
            topic: What to subscribe to.
            subscription_name: Name of the subscription, which all its consumers share.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing.
        Raises:
            IllegalStateException: The connection is closed, or serves queues only.
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: There is no pool, or the provider failed.
        Spec: 10.2-3, SHS-46, SHS-48.
        """

    @abstractmethod
    def create_durable_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have messages of an unshared durable subscription processed by the sessions of a pool. Optional.

        Args:
            topic: What to subscribe to.
            subscription_name: Name of the subscription; with the client id it names it in the broker.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing and keeps the subscription.
        Raises:
            IllegalStateException: The connection is closed, serves queues only, or has no client id.
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: The subscription is in use, there is no pool, or the provider failed.
        Spec: 10.2-3, B.4.4-1, J11-26.
        """

    @abstractmethod
    def create_shared_durable_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have messages of a shared durable subscription processed by the sessions of a pool. Optional.

        Args:
            topic: What to subscribe to.
            subscription_name: Name of the subscription, which all its consumers share.
            message_selector: Condition on headers and properties; None or blank selects every message.
            session_pool: Where the sessions come from.
            max_messages: The largest number of messages to load into a session at a time; at least 1.
        Returns:
            The consumer; closing it ends the processing and keeps the subscription.
        Raises:
            IllegalStateException: The connection is closed, or serves queues only.
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: An unshared subscription has this name, there is no pool, or the provider failed.
        Spec: 10.2-3, SHS-47.
        """
