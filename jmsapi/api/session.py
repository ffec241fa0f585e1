"""The interface ``Session``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from jmsapi.api._closing import Closing
from jmsapi.api._creations import Creations

if TYPE_CHECKING:
    from jmsapi.api.destination import Destination
    from jmsapi.api.message_consumer import MessageConsumer
    from jmsapi.api.message_listener import MessageListenerLike
    from jmsapi.api.message_producer import MessageProducer
    from jmsapi.api.queue import Queue
    from jmsapi.api.queue_browser import QueueBrowser
    from jmsapi.api.topic import Topic
    from jmsapi.api.topic_subscriber import TopicSubscriber

__all__ = ["Session"]


class Session(Creations, Closing):
    """Sends and receives in one serial order, with one transaction or one rule of acknowledgement; ``with`` closes it.

    Any method of a closed session but ``close`` raises IllegalStateException.

    Attributes:
        AUTO_ACKNOWLEDGE: A message counts as received when ``receive`` or the listener returns.
        CLIENT_ACKNOWLEDGE: ``Message.acknowledge`` acknowledges all messages delivered so far.
        DUPS_OK_ACKNOWLEDGE: As AUTO_ACKNOWLEDGE, but later and in batches: a failure may bring messages again.
        SESSION_TRANSACTED: ``commit`` sends and acknowledges, ``rollback`` takes both back.

    Threads: one at a time; only ``close`` may come from another. On a started connection with a message listener that
    is the session's own thread.
    Spec: 4.6.2.7-1, 2.5-4, 2.8-4, 5.1-1, 6.1-1, 11-1, 11.1-1.
    """

    AUTO_ACKNOWLEDGE: Final[int] = 1
    CLIENT_ACKNOWLEDGE: Final[int] = 2
    DUPS_OK_ACKNOWLEDGE: Final[int] = 3
    SESSION_TRANSACTED: Final[int] = 0

    @property
    @abstractmethod
    def transacted(self) -> bool:
        """Tell whether the session is transacted.

        Raises:
            IllegalStateException: The session is closed.
        Spec: 4.4.7-1, 9.1.4-1, 10.3-4.
        """

    @property
    @abstractmethod
    def acknowledge_mode(self) -> int:
        """Give the session's mode, one of its four constants; fixed when the session was created.

        Raises:
            IllegalStateException: The session is closed.
        Spec: 4.4.7-1, 8.2.7-1, 9.1.4-1, 10.3-7, B.4.5.1-2.
        """

    @abstractmethod
    def commit(self) -> None:
        """Send what the transaction produced, acknowledge what it consumed, and begin the next transaction.

        It first waits for asynchronous sends and their listeners.

        Raises:
            TransactionRolledBackException: The broker rolled back instead.
            IllegalStateException: The session is not transacted, or a completion listener of it calls.
            JMSException: The provider failed; if the link broke, the text says that the outcome is not known.
        Spec: 3.4.4-2, 3.4.9-2, 3.4.13-2, 4.3.5-7, 4.3.5-11, 4.4.1-9, 4.4.7-2, 4.4.7-3, 4.4.7-5 to 4.4.7-8, 4.4.10.2-3,
            4.4.11-1, 4.4.12-1, 4.5.2-5, 4.5.3-3.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Destroy what the transaction produced, have what it consumed delivered again, and begin the next transaction.

        It first waits for asynchronous sends and their listeners.

        Raises:
            IllegalStateException: The session is not transacted, or a completion listener of it calls.
            JMSException: The provider failed.
        Spec: 3.4.7-1, 3.5.11-2, 3.10-3, 4.4.1-9, 4.4.7-4 to 4.4.7-8, 4.4.11-1, 4.5.2-5, 4.6.2.4-2, 4.6.2.4-5, 6.12-1.
        """

    @abstractmethod
    def close(self) -> None:
        """End the session, its producers, consumers and browsers; closed already, do nothing.

        It waits for a running listener and makes pending receive calls return. An open transaction rolls back; messages
        that are not acknowledged go back.

        Raises:
            IllegalStateException: A message or completion listener of the session calls.
            JMSException: The provider failed; the session is closed all the same.
        Threads: any.
        Spec: 4.3.5-12, 4.4.1-1 to 4.4.1-8, 4.4.1-10, 4.4.1-11, 4.6.2.4-1, 4.6.2.4-4, 5.7-2, 6.9-2, 6.9-3.
        """

    @abstractmethod
    def recover(self) -> None:
        """Deliver all messages again that were delivered and not acknowledged.

        They carry ``jms_redelivered`` and a higher ``JMSXDeliveryCount``.

        Raises:
            IllegalStateException: The session is transacted or closed.
            JMSException: The provider failed.
        Spec: 3.4.7-1, 3.5.11-2, 3.10-3, 4.4.1-9, 4.4.9-1, 4.4.11-7 to 4.4.11-9, 4.4.12-1, 4.4.13-2, 4.5.2-4, 6.11-3,
            6.12-1.
        """

    @property
    @abstractmethod
    def message_listener(self) -> MessageListenerLike | None:
        """Give the session's own listener, which ``run`` calls; None if there is none. For application servers.

        With one set the session receives in no other way.

        Raises:
            IllegalStateException: The session is closed.
            JMSException: The session has consumers already.
        Spec: 8.2.1-1, 8.2.1-2, 8.2.1-4, 10.2-3, ASF-1, ASF-5, ASF-6, ASF-29, ASF-51.
        """

    @message_listener.setter
    @abstractmethod
    def message_listener(self, message_listener: MessageListenerLike | None) -> None: ...

    @abstractmethod
    def run(self) -> None:
        """Call the session's own listener with each message that was loaded into it, and return after the last.

        Raises:
            JMSRuntimeException: The session is closed, or the provider failed.
        Threads: the one that a ServerSession owns.
        Spec: 8.1-1, 8.2.1-2, 8.2.1-3, 8.2.2-2, 10.2-4, ASF-6 to ASF-9, ASF-23, ASF-48.
        """

    @abstractmethod
    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Create a producer.

        Args:
            destination: Where it sends; None means that each send names a destination.
        Returns:
            A new producer with the default options.
        Raises:
            InvalidDestinationException: The destination is not valid.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 4.4-1, 4.4.1-9, 4.4.2-1, 4.6-1, 4.6-2, 5.8-5, 6.1-2, 6.10-1, 7.3-7, 8.2.1-4.
        """

    @abstractmethod
    def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create a consumer of a queue, or an unshared non-durable subscription of a topic with its consumer.

        Args:
            destination: Where to receive from.
            message_selector: Condition on headers and properties; None or blank selects every message.
            no_local: True leaves out what this connection sends itself; for topics only.
        Returns:
            A new consumer without a listener.
        Raises:
            InvalidDestinationException: The destination is not valid, or a temporary one of another connection.
            InvalidSelectorException: The selector is not valid.
            UnsupportedFeatureException: The provider cannot do it, for instance filter here; the text says how to
                go on.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.8.1-1 to 3.8.1-3, 3.8.1.1-1, 3.8.1.1-2, 4.4.3-3, 4.4.9-4, 4.5-1, 5.8-1 to 5.8-3, 6.11-1, 6.11.1-1,
            6.11.1-4, 7.3-13, 7.3-16, B.5.7.1-1.
        """

    @abstractmethod
    def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> MessageConsumer:
        """Create a consumer of a shared non-durable subscription, and the subscription if it is new.

        Args:
            topic: What to subscribe to.
            shared_subscription_name: Name that all consumers of the subscription give; letters, digits, ``_``,
                ``.``, ``-``.
            message_selector: Condition on headers and properties; None or blank selects every message.
        Returns:
            A new consumer; each message goes to one consumer of the subscription.
        Raises:
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: A consumer holds the subscription with another topic or selector.
            UnsupportedFeatureException: The broker has no such subscriptions.
            IllegalStateException: The session is closed.
        Spec: 4.3.2-8, 6.11.2-1 to 6.11.2-4, 6.11.2-6 to 6.11.2-9, 7.3-16, B.5.7.1-2, B.5.15-1, B.5.15-2, SHS-2, SHS-38
            to SHS-42.
        """

    @abstractmethod
    def create_durable_subscriber(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> TopicSubscriber:
        """Create the one consumer of an unshared durable subscription, and the subscription if it is new.

        As ``create_durable_consumer``, with JMS 1.1's class of result.

        Args:
            topic: What to subscribe to; not a temporary topic.
            name: Name of the subscription; with the client id it names it in the broker.
            message_selector: Condition on headers and properties; None or blank selects every message.
            no_local: True leaves out what connections with this client id send themselves.
        Returns:
            A new consumer.
        Raises:
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            IllegalStateException: The connection has no client id, or the session is closed.
            JMSException: The subscription has a consumer already, or the provider failed.
        Spec: 3.8.1.1-52, 6.3-2, 6.6-2, 6.11-5, 6.11.3-1, 6.11.3-3, 6.11.3-8 to 6.11.3-12, 9.3.3-1, 9.3.3.2-2.
        """

    @abstractmethod
    def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create the one consumer of an unshared durable subscription, and the subscription if it is new.

        The subscription keeps messages while it has no consumer, until ``unsubscribe``. Another topic, selector or
        no_local value replaces it.

        Args:
            topic: What to subscribe to; not a temporary topic.
            name: Name of the subscription; with the client id it names it in the broker.
            message_selector: Condition on headers and properties; None or blank selects every message.
            no_local: True leaves out what connections with this client id send themselves.
        Returns:
            A new consumer.
        Raises:
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            IllegalStateException: The connection has no client id, or the session is closed.
            JMSException: The subscription has a consumer already, a shared one has this name, or the provider
                failed.
        Spec: 4.3.2-8, 6.3-2 to 6.3-5, 6.11.3-1 to 6.11.3-4, 6.11.3-8 to 6.11.3-12, 6.11.5-1, 7.3-16, B.5.6-1, B.5.7.2-1
            to B.5.7.2-4, B.5.8-2, B.5.19-1.
        """

    @abstractmethod
    def create_shared_durable_consumer(self, topic: Topic, name: str, message_selector: str | None = None) -> MessageConsumer:
        """Create a consumer of a shared durable subscription, and the subscription if it is new.

        The subscription keeps messages while it has no consumer, until ``unsubscribe``.

        Args:
            topic: What to subscribe to; not a temporary topic.
            name: Name that all consumers of the subscription give; with the client id, if set, it names it in the
                broker.
            message_selector: Condition on headers and properties; None or blank selects every message.
        Returns:
            A new consumer; each message goes to one consumer of the subscription.
        Raises:
            InvalidDestinationException: The topic is not valid.
            InvalidSelectorException: The selector is not valid.
            JMSException: A consumer holds it with another topic or selector, or an unshared one has this name.
            UnsupportedFeatureException: The broker has no such subscriptions.
            IllegalStateException: The session is closed.
        Spec: 4.3.2-8, 6.11.4-1 to 6.11.4-4, 6.11.4-7 to 6.11.4-10, 6.11.5-1, B.5.7.2-3, B.5.8-1, SHS-1, SHS-8 to
            SHS-11, SHS-18 to SHS-21.
        """

    @abstractmethod
    def create_browser(self, queue: Queue, message_selector: str | None = None) -> QueueBrowser:
        """Create a browser, which looks at the messages of a queue and takes none.

        Args:
            queue: What to look at.
            message_selector: Condition on headers and properties; None or blank selects every message.
        Returns:
            A new browser.
        Raises:
            InvalidDestinationException: The queue is not valid.
            InvalidSelectorException: The selector is not valid.
            UnsupportedFeatureException: The provider cannot browse.
            IllegalStateException: The session is closed.
            JMSException: The provider failed.
        Spec: 3.8.1.1-52, 4.4-1, 5.9-1 to 5.9-3, 7.3-13, 7.3-16, B.4.4-1.
        """

    @abstractmethod
    def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription, and with it the messages it keeps.

        Args:
            name: Name of the subscription; with the client id, if set, it names it in the broker.
        Raises:
            InvalidDestinationException: There is no such subscription.
            JMSException: It has a consumer, or messages of it are not acknowledged yet; or the provider failed.
            IllegalStateException: The session is closed.
        Spec: 6.3-4, 6.11.3-5 to 6.11.3-7, 6.11.4-5, 6.11.4-6, 6.11.5-1, 9.3.3.2-1, SHS-35 to SHS-37.
        """
