"""The interface ``JMSContext``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from jmsapi.api._closing import Closing
from jmsapi.api._creations import Creations

if TYPE_CHECKING:
    from jmsapi.api.connection_meta_data import ConnectionMetaData
    from jmsapi.api.destination import Destination
    from jmsapi.api.exception_listener import ExceptionListenerLike
    from jmsapi.api.jms_consumer import JMSConsumer
    from jmsapi.api.jms_producer import JMSProducer
    from jmsapi.api.message import Message
    from jmsapi.api.queue import Queue
    from jmsapi.api.queue_browser import QueueBrowser
    from jmsapi.api.topic import Topic
    from jmsapi.values import Timeout

__all__ = ["JMSContext"]


class JMSContext(Creations, Closing):
    """A connection and a session in one object, for the simplified API; ``with`` closes it.

    Creating a consumer starts the delivery, unless ``auto_start`` is off. Any method of a closed context but ``close``
    raises IllegalStateRuntimeException. On an injected context the methods that change its state raise it, too.

    Attributes:
        AUTO_ACKNOWLEDGE: A message counts as received when ``receive`` or the listener returns.
        CLIENT_ACKNOWLEDGE: ``acknowledge`` acknowledges all messages delivered so far.
        DUPS_OK_ACKNOWLEDGE: As AUTO_ACKNOWLEDGE, but later and in batches: a failure may bring messages again.
        SESSION_TRANSACTED: ``commit`` sends and acknowledges, ``rollback`` takes both back.

    Threads: one at a time; only ``close`` and ``create_context`` may come from another.
    Spec: 11-1, 11.2.1-1, 11.3.2-1, 11.3.3-1, 11.3.4-1, 11.3.4-3, 11.3.4-4, 11.3.4-6, 11.3.4-7.
    """

    AUTO_ACKNOWLEDGE: Final[int] = 1
    CLIENT_ACKNOWLEDGE: Final[int] = 2
    DUPS_OK_ACKNOWLEDGE: Final[int] = 3
    SESSION_TRANSACTED: Final[int] = 0

    @abstractmethod
    def create_context(self, session_mode: int) -> JMSContext:
        """Create another context on the same connection, with a session of its own.

        The connection closes with its last context.

        Args:
            session_mode: One of the constants of JMSContext.
        Returns:
            A new context, to be closed by the caller.
        Raises:
            JMSRuntimeException: The mode is unknown, the context is closed, or a container forbids it.
        Threads: any.
        Spec: 10.2-2, 10.3-10, 11.2.1-9, 11.2.1-10, 11.2.8-2, 11.4.9-1.
        """

    @abstractmethod
    def create_producer(self) -> JMSProducer:
        """Create a producer, for any destination.

        Returns:
            A new producer; it holds options only and needs no closing.
        Raises:
            IllegalStateRuntimeException: The context is closed.
            JMSRuntimeException: The provider failed.
        Spec: 11.2.1-2, 11.2.8-1.
        """

    @property
    @abstractmethod
    def client_id(self) -> str | None:
        """Give the client id, which names the owner of durable subscriptions; None if there is none.

        Set it before anything else is done with the connection.

        Raises:
            InvalidClientIDRuntimeException: The id to be set is empty or in use.
            IllegalStateRuntimeException: The factory sets the id, the connection was used already, or it is closed.
        Spec: 4.3.2-2 to 4.3.2-4, 7.3-12, 10.2-7, 11.3.5-2.
        """

    @client_id.setter
    @abstractmethod
    def client_id(self, client_id: str | None) -> None: ...

    @property
    @abstractmethod
    def meta_data(self) -> ConnectionMetaData:
        """Describe the provider and the broker at the other end.

        Raises:
            IllegalStateRuntimeException: The context is closed.
            JMSRuntimeException: The provider failed.
        Spec: 3.5.9-2.
        """

    @property
    @abstractmethod
    def exception_listener(self) -> ExceptionListenerLike | None:
        """Give the listener for problems that no call reports, as it was set; None if there is none.

        Raises:
            IllegalStateRuntimeException: The context is closed, or injected.
        Spec: 4.3.8-1, 4.3.8-2, 10.2-7, 11.3.5-2.
        """

    @exception_listener.setter
    @abstractmethod
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Start, or resume, the delivery of messages on the connection; started already, do nothing.

        Raises:
            IllegalStateRuntimeException: The context is closed, or injected.
            JMSRuntimeException: The provider failed.
        Spec: 4.3.4-4, 11.2.7-3, 11.3.5-2.
        """

    @abstractmethod
    def stop(self) -> None:
        """Pause the delivery of messages on the connection; stopped already, do nothing.

        It returns when no listener runs and no receive call can return a message. Sending goes on, time limits run on.

        Raises:
            IllegalStateRuntimeException: The context is closed or injected, or one of its own message listeners
                calls.
            JMSRuntimeException: The provider failed.
        Spec: 4.3.4-4, 4.3.4-9, 10.2-7, 11.2.7-3, 11.3.5-2, B.5.17-3, B.5.18-4.
        """

    @property
    @abstractmethod
    def auto_start(self) -> bool:
        """Tell whether creating a consumer starts the delivery; True unless it is turned off.

        Setting it starts and stops nothing.

        Raises:
            IllegalStateRuntimeException: The context is closed, or it is injected and the value is to be set.
        Spec: 11.2.7-1, 11.2.7-4, 11.2.7-5, 11.3.5-2.
        """

    @auto_start.setter
    @abstractmethod
    def auto_start(self, auto_start: bool) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End the context with its consumers, and the connection with its last context; closed already, do nothing.

        It waits for a running listener and makes pending receive calls return. An open transaction rolls back; messages
        that are not acknowledged go back.

        Raises:
            IllegalStateRuntimeException: A message or completion listener of the context calls, or it is injected.
            JMSRuntimeException: The provider failed; the context is closed all the same.
        Threads: any.
        Spec: 4.3.5-4, 4.3.5-6, 4.3.5-14, 4.6.2.4-1, 4.6.2.4-4, 11.2.6-1 to 11.2.6-3, 11.2.8-3, 11.3.2-2, 11.3.4-2,
            11.3.4-5, 11.3.5-2, 11.3.5-3.
        """

    @property
    @abstractmethod
    def transacted(self) -> bool:
        """Tell whether the context's session is transacted.

        Raises:
            IllegalStateRuntimeException: The context is closed.
        Spec: 9.1.4-1, 11.2.2-1.
        """

    @property
    @abstractmethod
    def session_mode(self) -> int:
        """Give the session's mode, one of the four constants; fixed when the context was created.

        Raises:
            IllegalStateRuntimeException: The context is closed.
        Spec: 10.3-6, 11.2.1-5, 11.2.1-6, 11.2.2-1.
        """

    @abstractmethod
    def commit(self) -> None:
        """Send what the transaction produced, acknowledge what it consumed, and begin the next transaction.

        It first waits for asynchronous sends and their listeners.

        Raises:
            TransactionRolledBackRuntimeException: The broker rolled back instead.
            IllegalStateRuntimeException: The context is not transacted or injected, or a completion listener of it
                calls.
            JMSRuntimeException: The provider failed; if the link broke, the text says that the outcome is not
                known.
        Spec: 4.6.2.4-2, 4.6.2.4-5, 7.3-5, 7.3-30, 11.3.5-2, 11.3.5-3, 11.4.10-1.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Destroy what the transaction produced, have what it consumed delivered again, and begin the next transaction.

        It first waits for asynchronous sends and their listeners.

        Raises:
            IllegalStateRuntimeException: The context is not transacted or injected, or a completion listener of it
                calls.
            JMSRuntimeException: The provider failed.
        Spec: 4.6.2.4-2, 4.6.2.4-5, 11.2.5.1-26, 11.3.5-2.
        """

    @abstractmethod
    def recover(self) -> None:
        """Deliver all messages again that were delivered and not acknowledged.

        They carry ``jms_redelivered`` and a higher ``JMSXDeliveryCount``.

        Raises:
            IllegalStateRuntimeException: The context is transacted, injected or closed.
            JMSRuntimeException: The provider failed.
        Spec: 11.1-2, 11.2.5.1-24, 11.3.5-2.
        """

    @abstractmethod
    def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> JMSConsumer:
        """Create a consumer of a queue, or an unshared non-durable subscription of a topic with its consumer.

        Args:
            destination: Where to receive from.
            message_selector: Condition on headers and properties; None or blank selects every message.
            no_local: True leaves out what this connection sends itself; for topics only.
        Returns:
            A new consumer without a listener.
        Raises:
            InvalidDestinationRuntimeException: The destination is not valid, or a temporary one of another
                connection.
            InvalidSelectorRuntimeException: The selector is not valid.
            UnsupportedFeatureRuntimeException: The provider cannot do it, for instance filter here.
            IllegalStateRuntimeException: The context is closed.
            JMSRuntimeException: The provider failed.
        Spec: 3.8.1-1, 3.8.1.1-1, 3.8.1.1-2, 4.5-1, 6.11.1-1, 7.3-15, 7.3-17, 11.2.5.1-1 to 11.2.5.1-3, 11.2.7-1,
            B.5.7.1-1.
        """

    @abstractmethod
    def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> JMSConsumer:
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
            InvalidDestinationRuntimeException: The topic is not valid.
            InvalidSelectorRuntimeException: The selector is not valid.
            IllegalStateRuntimeException: The connection has no client id, or the context is closed.
            JMSRuntimeException: The subscription has a consumer already, a shared one has this name, or the
                provider failed.
        Spec: 3.8.1.1-53, 6.11.3-1, 6.11.3-3, 6.11.3-11, 11.2.5.1-6, 11.2.5.1-7, 11.2.7-1.
        """

    @abstractmethod
    def create_shared_durable_consumer(self, topic: Topic, name: str, message_selector: str | None = None) -> JMSConsumer:
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
            InvalidDestinationRuntimeException: The topic is not valid.
            InvalidSelectorRuntimeException: The selector is not valid.
            JMSRuntimeException: A consumer holds it with another topic or selector, or an unshared one has this
                name.
            UnsupportedFeatureRuntimeException: The broker has no such subscriptions.
            IllegalStateRuntimeException: The context is closed.
        Spec: 3.8.1.1-53, 6.11.4-1, 6.11.4-8 to 6.11.4-10, 11.2.5.1-8 to 11.2.5.1-10, 11.2.7-2, SHS-1, SHS-42.
        """

    @abstractmethod
    def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> JMSConsumer:
        """Create a consumer of a shared non-durable subscription, and the subscription if it is new.

        Args:
            topic: What to subscribe to.
            shared_subscription_name: Name that all consumers of the subscription give; letters, digits, ``_``,
                ``.``, ``-``.
            message_selector: Condition on headers and properties; None or blank selects every message.
        Returns:
            A new consumer; each message goes to one consumer of the subscription.
        Raises:
            InvalidDestinationRuntimeException: The topic is not valid.
            InvalidSelectorRuntimeException: The selector is not valid.
            JMSRuntimeException: A consumer holds the subscription with another topic or selector.
            UnsupportedFeatureRuntimeException: The broker has no such subscriptions.
            IllegalStateRuntimeException: The context is closed.
        Spec: 3.8.1.1-53, 6.11.2-1, 6.11.2-2, 6.11.2-6 to 6.11.2-8, 11.2.5.1-4, 11.2.5.1-5, 11.2.5.1-10, 11.2.7-2.
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
            InvalidDestinationRuntimeException: The queue is not valid.
            InvalidSelectorRuntimeException: The selector is not valid.
            UnsupportedFeatureRuntimeException: The provider cannot browse.
            IllegalStateRuntimeException: The context is closed.
            JMSRuntimeException: The provider failed.
        Spec: 3.8.1.1-53, 5.9-2, 7.3-17, 11.1-2.
        """

    @abstractmethod
    def unsubscribe(self, name: str) -> None:
        """Delete a durable subscription, and with it the messages it keeps.

        Args:
            name: Name of the subscription; with the client id, if set, it names it in the broker.
        Raises:
            InvalidDestinationRuntimeException: There is no such subscription.
            JMSRuntimeException: It has a consumer, or messages of it are not acknowledged yet; or the provider
                failed.
            IllegalStateRuntimeException: The context is closed.
        Spec: 6.11.3-5, 6.11.3-6, 6.11.4-5, 6.11.4-6, 11.1-2.
        """

    @abstractmethod
    def acknowledge(self) -> None:
        """Acknowledge all messages that the context has delivered.

        In other modes than CLIENT_ACKNOWLEDGE it does nothing.

        Raises:
            IllegalStateRuntimeException: The context is closed, or injected.
            JMSRuntimeException: The provider failed.
        Spec: 11.2.5.1-24, 11.3.5-2.
        """

    @abstractmethod
    def request(self, destination: Destination, body: Message | Any, *, timeout_ms: Timeout | None = None) -> Message | None:
        """Send a request and wait for the reply, on a temporary queue that lives as long as this call. Beyond JMS.

        It uses a session of its own: listeners of this context go on, and may call it. The request goes out with the defaults
        of a new producer. It gets ``jms_reply_to`` and, unless it has one, a ``jms_correlation_id``; the first message that
        comes to the temporary queue is the reply. A reply that comes too late is nowhere, as its queue is gone.

        Args:
            destination: Where whoever answers receives.
            body: A message, or the body of one; see ``JMSProducer.send``.
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 waits for ever. Not negative.
        Returns:
            The reply, acknowledged; None when time is up, or when another thread closed the context, as with
            ``QueueRequestor.request``.
        Raises:
            IllegalStateRuntimeException: The context is closed, or transacted: the request would wait for its commit.
            UnsupportedFeatureRuntimeException: The provider has no temporary queues.
            JMSRuntimeException: As ``JMSProducer.send`` and ``JMSConsumer.receive`` say.
        Threads: any.
        Spec: 5.10-2.
        """
