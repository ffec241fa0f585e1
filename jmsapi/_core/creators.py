"""What a session creates: messages, destinations, producers, consumers, subscriptions, browsers; and the rules checked there.

Everything that can be seen wrong from the arguments is refused before any traffic: closed session, invalid destination,
selector, subscription name, missing client id, feature the broker does not have.

Spec: 4.4-1, 4.4.5-1, 4.5-1, 4.6-1, 6.11.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jmsapi._core.browser import BrowserImpl
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.destination import (
    QueueImpl,
    TemporaryQueueImpl,
    TemporaryTopicImpl,
    TopicImpl,
    address_of,
)
from jmsapi._core.domain_parts import TopicSubscriberImpl
from jmsapi._core.ledger import CLIENT, TRANSACTED
from jmsapi._core.loading import run, set_listener
from jmsapi._core.message import create
from jmsapi._core.options_check import encodable
from jmsapi._core.producer import ProducerImpl
from jmsapi._core.selecting import checked_selector
from jmsapi.api import MessageListener, Session
from jmsapi.errors import (
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
)
from jmsapi.spi import Address, ConsumerSpec, DestinationKind, MessageKind

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from jmsapi._core.connection import ConnectionImpl
    from jmsapi._core.ledger import Inbox, Ledger
    from jmsapi._core.link import Link
    from jmsapi._core.message import MessageImpl
    from jmsapi._core.session import SessionImpl
    from jmsapi.api import (
        BytesMessage,
        Destination,
        MapMessage,
        Message,
        MessageConsumer,
        MessageListenerLike,
        MessageProducer,
        ObjectMessage,
        Queue,
        QueueBrowser,
        StreamMessage,
        TemporaryQueue,
        TemporaryTopic,
        TextMessage,
        Topic,
        TopicSubscriber,
    )
    from jmsapi.spi import Handle

__all__ = ["Creators"]

_NAME_LIMIT = 128
C = TypeVar("C", bound=ConsumerImpl)
P = TypeVar("P", bound=ProducerImpl)


class Creators(Session):
    """The creating half of a session."""

    connection: ConnectionImpl
    link: Link
    handle: Handle
    mode: int
    lock: threading.Lock
    ledger: Ledger
    consumers: dict[Inbox, ConsumerImpl]
    producers: dict[ProducerImpl, None]
    browsers: dict[BrowserImpl, None]
    prefetch: int | None = None
    """For its consumers, in place of the connection's."""
    check_place: Callable[[], None] = staticmethod(lambda: None)
    """Raises where a container does not let the session be used."""

    @abstractmethod
    def check_open(self) -> None:
        """Raise when the session cannot be used."""

    # ---- messages -------------------------------------------------------------------------------------------------
    def create_message(self) -> Message:
        """Create a message without a body; see Session."""
        return cast("Message", self._message(MessageKind.MESSAGE))

    def create_bytes_message(self) -> BytesMessage:
        """Create a BytesMessage; see Session."""
        return cast("BytesMessage", self._message(MessageKind.BYTES))

    def create_map_message(self) -> MapMessage:
        """Create a MapMessage; see Session."""
        return cast("MapMessage", self._message(MessageKind.MAP))

    def create_stream_message(self) -> StreamMessage:
        """Create a StreamMessage; see Session."""
        return cast("StreamMessage", self._message(MessageKind.STREAM))

    def create_object_message(self, object: Any = None) -> ObjectMessage:
        """Create an ObjectMessage; see Session."""
        message = cast("ObjectMessage", self._message(MessageKind.OBJECT))
        if object is not None:
            message.object = object
        return message

    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Create a TextMessage; see Session."""
        message = cast("TextMessage", self._message(MessageKind.TEXT))
        if text is not None:
            message.text = text
        return message

    def _message(self, kind: MessageKind) -> MessageImpl:
        self.check_open()
        self.connection.touch()
        return create(kind, self.connection.codec)

    # ---- destinations ---------------------------------------------------------------------------------------------
    def create_queue(self, queue_name: str) -> Queue:
        """Make a Queue object for a name; see Session."""
        self.check_open()
        return QueueImpl(queue_name)

    def create_topic(self, topic_name: str) -> Topic:
        """Make a Topic object for a name; see Session."""
        self.check_open()
        return TopicImpl(topic_name)

    def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that lives with the connection; see Session."""
        return TemporaryQueueImpl(self._temporary(topic=False).name, self.connection)

    def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that lives with the connection; see Session."""
        return TemporaryTopicImpl(self._temporary(topic=True).name, self.connection)

    def _temporary(self, *, topic: bool) -> Address:
        self.check_open()
        kind = "topic" if topic else "queue"
        self.link.require(f"temporary_{kind}", f"a temporary {kind}")
        address = self.link.call(
            lambda: self.link.provider.create_temporary(self.handle, topic=topic), f"create a temporary {kind}"
        )
        self.connection.temporaries.add(address)
        return address

    # ---- producers ------------------------------------------------------------------------------------------------
    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Create a producer; see Session."""
        return self.add_producer(ProducerImpl, destination)

    def add_producer(self, kind: type[P], destination: Destination | None) -> P:
        """Create a producer of one class and remember it."""
        self.check_open()
        address = None if destination is None else self.usable(destination)
        producer = kind(self._whole, destination, address)
        self.producers[producer] = None
        return producer

    # ---- consumers ------------------------------------------------------------------------------------------------
    def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create a consumer; see Session."""
        return self.add_plain(ConsumerImpl, destination, message_selector, no_local)

    def add_plain(self, kind: type[C], destination: Destination, message_selector: str | None, no_local: bool) -> C:
        """Create an unshared, non-durable consumer of one class."""
        address = self._consumable(destination)
        # no_local has no defined effect on a queue (6.11.1-4): there it is left out.
        return self.add_consumer(kind, address, message_selector, no_local=no_local and address.kind.is_topic)

    def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> MessageConsumer:
        """Create a consumer on a shared non-durable subscription; see Session."""
        address = self._subscribable(topic, shared_subscription_name)
        self.link.require("shared_subscription", "a shared non-durable subscription")
        return self.add_consumer(ConsumerImpl, address, message_selector, name=shared_subscription_name, shared=True)

    def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create the consumer of an unshared durable subscription; see Session."""
        return self._add_durable(ConsumerImpl, topic, name, message_selector, no_local)

    def create_durable_subscriber(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> TopicSubscriber:
        """Create the subscriber of an unshared durable subscription; see Session."""
        return self._add_durable(TopicSubscriberImpl, topic, name, message_selector, no_local)

    def create_shared_durable_consumer(self, topic: Topic, name: str, message_selector: str | None = None) -> MessageConsumer:
        """Create a consumer on a shared durable subscription; see Session."""
        address = self._subscribable(topic, name)
        self._refuse_temporary(address)
        self.link.require("shared_durable_subscription", "a shared durable subscription")
        return self.add_consumer(ConsumerImpl, address, message_selector, name=name, shared=True, durable=True)

    def create_browser(self, queue: Queue, message_selector: str | None = None) -> QueueBrowser:
        """Create a browser; see Session."""
        address = self._consumable(queue)
        if address.kind.is_topic:
            raise InvalidDestinationException(f"create a browser: {address.name!r} is a topic, only queues can be browsed")
        self.link.require("browser", "a queue browser")
        selector = checked_selector(message_selector)
        if selector is not None:
            self.link.require("queue_selector", "a selector on a queue")
        browser = BrowserImpl(self._whole, queue, address, selector)
        self.browsers[browser] = None
        return browser

    def unsubscribe(self, name: str) -> None:
        """End a durable subscription; see Session."""
        self.check_open()
        self._check_name(name)
        self.link.require("unsubscribe", "ending a durable subscription")
        if self.connection.subscription_in_use(name):
            raise IllegalStateException(
                f"unsubscribe {name!r}: a consumer of it is active, or its messages are not acknowledged; close and finish first",
                "in-use",
            )
        self.link.call(lambda: self.link.provider.remove(self.handle, name), f"unsubscribe {name!r}")

    # ---- application server facilities ----------------------------------------------------------------------------
    @property
    def message_listener(self) -> MessageListener | None:
        """Return the session's own listener, which application servers use; see Session."""
        self.check_open()
        return self._whole.own_listener  # type: ignore[return-value]

    @message_listener.setter
    def message_listener(self, message_listener: MessageListenerLike | None) -> None:
        set_listener(self._whole, message_listener)

    def run(self) -> None:
        """Run the session's own listener over the messages loaded into it; see Session."""
        run(self._whole)

    @property
    def _whole(self) -> SessionImpl:
        return cast("SessionImpl", self)

    # ---- rules ----------------------------------------------------------------------------------------------------
    def usable(self, destination: Destination) -> Address:
        """Return the address of a destination to send to.

        Raises:
            InvalidDestinationException: None, foreign, or a temporary destination that is deleted.
        """
        address = address_of(destination)
        if address in self.connection.deleted:
            raise InvalidDestinationException(f"the temporary destination {address.name!r} is deleted")
        return address

    def _consumable(self, destination: Destination) -> Address:
        self.check_open()
        address = self.usable(destination)
        if address.kind.is_temporary and address not in self.connection.temporaries:
            raise InvalidDestinationException(
                f"consume from {address.name!r}: only the connection that created a temporary destination may (4.4.3-3)"
            )
        return address

    def _subscribable(self, topic: Topic, name: str) -> Address:
        address = self._consumable(topic)
        if not address.kind.is_topic:
            raise InvalidDestinationException(f"subscribe: {address.name!r} is a queue, subscriptions are for topics")
        self._check_name(name)
        return address

    def _refuse_temporary(self, address: Address) -> None:
        if address.kind is DestinationKind.TEMPORARY_TOPIC:
            raise InvalidDestinationException(f"a durable subscription on the temporary topic {address.name!r} cannot outlive it")

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str) or not name or not encodable(name):
            raise JMSException(
                f"a subscription name is text that can be written, and not empty; not {name!r}", "subscription-name"
            )
        if len(name) > _NAME_LIMIT:
            raise JMSException(
                f"a subscription name has at most {_NAME_LIMIT} characters, this one {len(name)}", "subscription-name"
            )

    def _add_durable(self, kind: type[C], topic: Topic, name: str, selector: str | None, no_local: bool) -> C:
        address = self._subscribable(topic, name)
        self._refuse_temporary(address)
        self.link.require("durable_subscription", "a durable subscription")
        if self.link.options.client_id is None:
            raise IllegalStateException(
                f"the unshared durable subscription {name!r} needs a client id: set client_id on the factory or the connection"
            )
        return self.add_consumer(kind, address, selector, no_local=no_local, name=name, durable=True)

    def add_consumer(
        self,
        kind: type[C],
        address: Address,
        message_selector: str | None,
        *,
        no_local: bool = False,
        name: str | None = None,
        shared: bool = False,
        durable: bool = False,
    ) -> C:
        """Create a consumer of one class and remember it."""
        if self._whole.own_listener is not None:
            raise IllegalStateException(
                "the session has a message listener of its own, so it receives in no other way", "session-listener"
            )
        selector = checked_selector(message_selector)
        if selector is not None:
            words = "topic" if address.kind.is_topic else "queue"
            self.link.require(f"{words}_selector", f"a selector on a {words}")
        if no_local:
            self.link.require("no_local", "no_local")
        options = self.link.options
        prefetch = options.prefetch if self.prefetch is None else self.prefetch
        spec = ConsumerSpec(
            address,
            selector,
            no_local=no_local,
            subscription=name,
            durable=durable,
            shared=shared,
            # A wire that has a window of its own must not have the broker send more than the application may hold.
            prefetch=min(prefetch, options.max_unacknowledged or prefetch),
            deferred_acks=self.mode in (TRANSACTED, CLIENT),
            origin=self.link.origin,
        )
        consumer = kind(self._whole, spec, self._left_over(spec))
        with self.lock:
            self.consumers[consumer.inbox] = consumer
        consumer.open()
        return consumer

    def _left_over(self, spec: ConsumerSpec) -> ConsumerImpl | None:
        """Return a closed consumer with an unshared durable subscription of this spec whose messages are not all settled.

        The provider knows it until they are (contract, rule 4), so it would refuse a second one. Its inbox is open again.
        """
        with self.lock:
            for inbox, consumer in self.consumers.items():
                if inbox.closed and consumer.exclusive and consumer.spec == spec and consumer.cause is None:
                    self.ledger.reopen(inbox)
                    return consumer
        return None
