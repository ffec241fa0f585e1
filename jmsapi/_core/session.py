"""The session that an application uses: what it creates, commit, rollback, recover, acknowledge and close.

Everything that can be seen wrong from the arguments is refused before any traffic: closed session, invalid destination,
selector, subscription name, missing client id, feature the broker does not have. Only ``close`` may come from another thread
than the one that uses the session (4.4.1-2).

Each operation that waits stands here twice: as ``Session`` names it, which blocks, and with ``_steps`` for another driver.

Spec: 4.4-1, 4.4.5-1, 4.5-1, 4.6-1, 6.11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from jmsapi._core.acknowledgement.ledger import CLIENT, TRANSACTED, Inbox
from jmsapi._core.browser import BrowserImpl
from jmsapi._core.checked_selector import checked_selector
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.destination import QueueImpl, TemporaryQueueImpl, TemporaryTopicImpl, TopicImpl
from jmsapi._core.domain_parts import TopicSubscriberImpl
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi._core.message import MessageImpl, create
from jmsapi._core.options_check import check_listener, encodable
from jmsapi._core.producer import ProducerImpl
from jmsapi._core.server_session import LoadedMessages
from jmsapi._core.session_parts import SessionParts
from jmsapi._core.session_rules import BOTH, Domain
from jmsapi._core.waiting import Steps, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import (
    BytesMessage,
    Destination,
    MapMessage,
    Message,
    MessageConsumer,
    MessageListener,
    MessageListenerLike,
    MessageProducer,
    ObjectMessage,
    Queue,
    QueueBrowser,
    Session,
    StreamMessage,
    TemporaryQueue,
    TemporaryTopic,
    TextMessage,
    Topic,
    TopicSubscriber,
)
from jmsapi.errors import IllegalStateException, InvalidDestinationException, JMSException, TransactionRolledBackException
from jmsapi.spi import Address, ConsumerSpec, DestinationKind, Handle, MessageKind

__all__ = ["SessionImpl"]

_NAME_LIMIT: Final = 128
C = TypeVar("C", bound=ConsumerImpl)
P = TypeVar("P", bound=ProducerImpl)


class SessionImpl(NotCopied, Session):
    """A session of one connection.

    Args:
        parts: What it is made of.
    """

    domain: Domain = BOTH

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self.loaded = LoadedMessages(parts)
        """Messages that a connection consumer has loaded, and the session's own listener for them."""
        self.prefetch: int | None = None
        """For its consumers, in place of the connection's option."""
        self.prepare: Callable[[ConsumerImpl], None] | None = None
        """Called with each new consumer before it has credit."""
        self._connection = parts.connection

    # ---- state ----------------------------------------------------------------------------------------------------
    @property
    def transacted(self) -> bool:
        """Return whether the session has transactions; see Session."""
        self.parts.check_open()
        return self.parts.mode == TRANSACTED

    @property
    def acknowledge_mode(self) -> int:
        """Return the session's mode; see Session."""
        self.parts.check_open()
        return self.parts.mode

    def acknowledge_all(self) -> None:
        """Acknowledge all that the session has delivered, in CLIENT mode; nothing in the others (4.4.11-5)."""
        self.parts.run(self.parts.client.acknowledge_steps())

    def commit(self) -> None:
        """Commit the transaction and begin the next; see Session."""
        self.parts.rules.check_commit("commit")
        with self.parts.state.turn:
            try:
                self.parts.run(self.commit_steps())
                return
            except TransactionRolledBackException as error:
                rolled_back = error
        self.parts.run(self.parts.pause_steps())
        raise rolled_back

    def commit_steps(self) -> Steps[None]:
        """See ``commit``."""
        yield from self.parts.local_transaction("commit").commit_steps()

    def rollback(self) -> None:
        """Roll the transaction back and hand out again what it received; see Session."""
        self.parts.rules.check_commit("rollback")
        with self.parts.state.turn:
            self.parts.run(self.rollback_steps())
        self.parts.run(self.parts.pause_steps())

    def rollback_steps(self) -> Steps[None]:
        """See ``rollback``."""
        yield from self.parts.local_transaction("rollback").rollback_steps()

    def recover(self) -> None:
        """Hand out again what is delivered and not acknowledged; see Session."""
        self.parts.run(self.recover_steps())

    def recover_steps(self) -> Steps[None]:
        """See ``recover``."""
        self.parts.rules.check_recover()
        self.parts.check_open()
        if self.parts.mode == TRANSACTED:
            raise IllegalStateException("recover: the session is transacted; rollback recovers its messages")
        yield from self.parts.recover_steps()

    def close(self) -> None:
        """Close the session; see Session."""
        close_when_possible(lambda: run(self.close_steps()), apart=self.parts.link.closes_apart)

    def close_steps(self) -> Steps[None]:
        """See ``close``."""
        if self.parts.rules.may_close():
            yield from self.parts.close_steps()

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
        self.parts.check_open()
        self._connection.touch()
        return create(kind, self._connection.codec)

    # ---- destinations ---------------------------------------------------------------------------------------------
    def create_queue(self, queue_name: str) -> Queue:
        """Make a Queue object for a name; see Session."""
        self.domain.check("create_queue")
        self.parts.check_open()
        return QueueImpl(queue_name)

    def create_topic(self, topic_name: str) -> Topic:
        """Make a Topic object for a name; see Session."""
        self.domain.check("create_topic")
        self.parts.check_open()
        return TopicImpl(topic_name)

    def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that lives with the connection; see Session."""
        self.domain.check("create_temporary_queue")
        return TemporaryQueueImpl(run(self.temporary_steps(topic=False)).name, self._connection)

    def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that lives with the connection; see Session."""
        self.domain.check("create_temporary_topic")
        return TemporaryTopicImpl(run(self.temporary_steps(topic=True)).name, self._connection)

    def temporary_steps(self, *, topic: bool) -> Steps[Address]:
        """Create a temporary destination at the broker."""
        self.parts.check_open()
        kind, link = "topic" if topic else "queue", self.parts.link
        link.require(f"temporary_{kind}", f"a temporary {kind}")
        created = link.ask(lambda: link.provider.create_temporary(self.parts.handle, topic=topic))
        address: Address = yield link.awaiting(created, f"create a temporary {kind}")
        self._connection.temporaries.add(address)
        return address

    # ---- producers ------------------------------------------------------------------------------------------------
    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Create a producer; see Session."""
        return run(self.add_producer_steps(ProducerImpl, destination))

    def add_producer_steps(self, kind: type[P], destination: Destination | None) -> Steps[P]:
        """Create a producer of one class and record it."""
        parts, link = self.parts, self.parts.link
        parts.check_open()
        address = None if destination is None else parts.usable(destination)
        opened = link.ask(lambda: link.provider.open_producer(parts.handle, address))
        words = "create a producer" if address is None else f"create a producer for {address.name!r}"
        handle: Handle = yield link.awaiting(opened, words)
        producer = kind(parts, destination, address, handle)
        parts.producers[producer] = None
        return producer

    # ---- consumers ------------------------------------------------------------------------------------------------
    def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create a consumer; see Session."""
        return run(self.add_plain_steps(ConsumerImpl, destination, message_selector, no_local))

    def add_plain_steps(self, kind: type[C], destination: Destination, message_selector: str | None, no_local: bool) -> Steps[C]:
        """Create an unshared, non-durable consumer of one class."""
        address = self._consumable(destination)
        # no_local has no defined effect on a queue (6.11.1-4): there it is left out.
        return (yield from self._add_consumer(kind, address, message_selector, no_local=no_local and address.kind.is_topic))

    def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> MessageConsumer:
        """Create a consumer on a shared non-durable subscription; see Session."""
        return run(self.add_shared_steps(topic, shared_subscription_name, message_selector, durable=False))

    def create_shared_durable_consumer(self, topic: Topic, name: str, message_selector: str | None = None) -> MessageConsumer:
        """Create a consumer on a shared durable subscription; see Session."""
        return run(self.add_shared_steps(topic, name, message_selector, durable=True))

    def add_shared_steps(self, topic: Topic, name: str, message_selector: str | None, *, durable: bool) -> Steps[ConsumerImpl]:
        """Create a consumer on a shared subscription."""
        self.domain.check("create_shared_durable_consumer" if durable else "create_shared_consumer")
        address = self._subscribable(topic, name)
        if durable:
            _refuse_temporary(address)
            self.parts.link.require("shared_durable_subscription", "a shared durable subscription")
        else:
            self.parts.link.require("shared_subscription", "a shared non-durable subscription")
        return (yield from self._add_consumer(ConsumerImpl, address, message_selector, name=name, shared=True, durable=durable))

    def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """Create the consumer of an unshared durable subscription; see Session."""
        self.domain.check("create_durable_consumer")
        return run(self.add_durable_steps(ConsumerImpl, topic, name, message_selector, no_local))

    def create_durable_subscriber(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> TopicSubscriber:
        """Create the subscriber of an unshared durable subscription; see Session."""
        self.domain.check("create_durable_subscriber")
        return run(self.add_durable_steps(TopicSubscriberImpl, topic, name, message_selector, no_local))

    def add_durable_steps(self, kind: type[C], topic: Topic, name: str, message_selector: str | None, no_local: bool) -> Steps[C]:
        """Create a consumer of one class on an unshared durable subscription."""
        address = self._subscribable(topic, name)
        _refuse_temporary(address)
        link = self.parts.link
        link.require("durable_subscription", "a durable subscription")
        if link.options.client_id is None:
            raise IllegalStateException(
                f"the unshared durable subscription {name!r} needs a client id: set client_id on the factory or the connection"
            )
        return (yield from self._add_consumer(kind, address, message_selector, no_local=no_local, name=name, durable=True))

    def create_browser(self, queue: Queue, message_selector: str | None = None) -> QueueBrowser:
        """Create a browser; see Session."""
        self.domain.check("create_browser")
        address = self._consumable(queue)
        if address.kind.is_topic:
            raise InvalidDestinationException(f"create a browser: {address.name!r} is a topic, only queues can be browsed")
        self.parts.link.require("browser", "a queue browser")
        selector = checked_selector(message_selector)
        if selector is not None:
            self.parts.link.require("queue_selector", "a selector on a queue")
        browser = BrowserImpl(self.parts, queue, address, selector)
        self.parts.browsers[browser] = None
        return browser

    def unsubscribe(self, name: str) -> None:
        """End a durable subscription; see Session."""
        run(self.unsubscribe_steps(name))

    def unsubscribe_steps(self, name: str) -> Steps[None]:
        """See ``unsubscribe``."""
        self.domain.check("unsubscribe")
        self.parts.check_open()
        _check_name(name)
        link = self.parts.link
        link.require("unsubscribe", "ending a durable subscription")
        if self._connection.subscription_in_use(name):
            raise IllegalStateException(
                f"unsubscribe {name!r}: a consumer of it is active, or its messages are not acknowledged; close and finish first",
                "in-use",
            )
        removed = link.ask(lambda: link.provider.remove(self.parts.handle, name))
        yield link.awaiting(removed, f"unsubscribe {name!r}")

    # ---- for application servers ----------------------------------------------------------------------------------
    @property
    def message_listener(self) -> MessageListener | None:
        """Return the session's own listener, which application servers use; see Session."""
        self.parts.rules.check_session_listener("message_listener")
        self.parts.check_open()
        return self.loaded.listener  # type: ignore[return-value]

    @message_listener.setter
    def message_listener(self, message_listener: MessageListenerLike | None) -> None:
        self.parts.rules.check_session_listener("message_listener")
        self.parts.check_open()
        check_listener(message_listener)
        self.loaded.listen(message_listener)

    def run(self) -> None:
        """Run the session's own listener over the messages loaded into it; see Session."""
        self.parts.rules.check_session_listener("run")
        self.parts.check_open()
        self.loaded.run()

    # ---- rules ----------------------------------------------------------------------------------------------------
    def _consumable(self, destination: Destination) -> Address:
        self.parts.check_open()
        address = self.parts.usable(destination)
        if address.kind.is_temporary and address not in self._connection.temporaries:
            raise InvalidDestinationException(
                f"consume from {address.name!r}: only the connection that created a temporary destination may (4.4.3-3)"
            )
        return address

    def _subscribable(self, topic: Topic, name: str) -> Address:
        address = self._consumable(topic)
        if not address.kind.is_topic:
            raise InvalidDestinationException(f"subscribe: {address.name!r} is a queue, subscriptions are for topics")
        _check_name(name)
        return address

    def _add_consumer(
        self,
        kind: type[C],
        address: Address,
        message_selector: str | None,
        *,
        no_local: bool = False,
        name: str | None = None,
        shared: bool = False,
        durable: bool = False,
    ) -> Steps[C]:
        """Create a consumer of one class and record it."""
        if self.loaded.listener is not None:
            raise IllegalStateException(
                "the session has a message listener of its own, so it receives in no other way", "session-listener"
            )
        parts, link = self.parts, self.parts.link
        selector = checked_selector(message_selector)
        if selector is not None:
            words = "topic" if address.kind.is_topic else "queue"
            link.require(f"{words}_selector", f"a selector on a {words}")
        if no_local:
            link.require("no_local", "no_local")
        options = link.options
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
            deferred_acks=parts.mode in (TRANSACTED, CLIENT),
            origin=link.origin,
        )
        left_over = self._left_over(spec)
        if left_over is None:
            opened = link.ask(lambda: link.provider.open_consumer(parts.handle, spec))
            handle: Handle = yield link.awaiting(opened, f"create a consumer on {address.name!r}")
            consumer = kind(parts, spec, handle)
        else:
            consumer = kind(parts, spec, *left_over)
        with parts.state.lock:
            parts.state.consumers[consumer.inbox] = consumer
        if self.prepare is not None:
            self.prepare(consumer)
        consumer.open()
        return consumer

    def _left_over(self, spec: ConsumerSpec) -> tuple[Handle, Inbox] | None:
        """Return what a closed consumer of an unshared durable subscription of this spec has, if not all of it is settled.

        The provider knows that consumer until it is (contract, rule 4), so it would refuse a second one. Its inbox is open again.
        """
        state = self.parts.state
        with state.lock:
            for inbox, consumer in state.consumers.items():
                if inbox.closed and consumer.exclusive and consumer.spec == spec and consumer.cause is None:
                    state.ledger.reopen(inbox)
                    return consumer.handle, inbox
        return None


def _refuse_temporary(address: Address) -> None:
    if address.kind is DestinationKind.TEMPORARY_TOPIC:
        raise InvalidDestinationException(f"a durable subscription on the temporary topic {address.name!r} cannot outlive it")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or not encodable(name):
        raise JMSException(f"a subscription name is text that can be written, and not empty; not {name!r}", "subscription-name")
    if len(name) > _NAME_LIMIT:
        raise JMSException(f"a subscription name has at most {_NAME_LIMIT} characters, this one {len(name)}", "subscription-name")
