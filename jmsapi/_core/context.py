"""The simplified API's context: one session, and a connection that the contexts made from it share.

Failures of the common API come out as their runtime twins (11.2.9-2).

Spec: 11.2.1 to 11.2.9.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jmsapi._core import options_check as valid
from jmsapi._core.acknowledgement.ledger import AUTO, TRANSACTED
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.context_consumer import JMSConsumerImpl
from jmsapi._core.context_producer import JMSProducerImpl
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi._core.request_reply import check_may_request, exchange
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.session import SessionImpl
from jmsapi._core.timeouts import longest_wait
from jmsapi._not_copied import NotCopied
from jmsapi.api import JMSContext
from jmsapi.errors import IllegalStateRuntimeException, JMSException

if TYPE_CHECKING:
    from jmsapi.api import (
        BytesMessage,
        ConnectionMetaData,
        Destination,
        ExceptionListenerLike,
        JMSConsumer,
        JMSProducer,
        MapMessage,
        Message,
        MessageConsumer,
        ObjectMessage,
        Queue,
        QueueBrowser,
        StreamMessage,
        TemporaryQueue,
        TemporaryTopic,
        TextMessage,
        Topic,
    )
    from jmsapi.values import Timeout

__all__ = ["JMSContextImpl", "SharedConnection", "new_context"]


class SharedConnection:
    """A connection and how many contexts are open on it; the last one to close closes it (11.2.6-2)."""

    def __init__(self, connection: ConnectionImpl) -> None:
        self.connection = connection
        self._open = 0
        self._guard = threading.Lock()

    def enter(self) -> None:
        with self._guard:
            self._open += 1

    def leave(self) -> None:
        with self._guard:
            self._open -= 1
            last = not self._open
        if last:
            self.connection.close()


@runtime
def new_context(
    connect: Callable[[], ConnectionImpl], session_mode: int | None, kind: type[JMSContextImpl] | None = None
) -> JMSContext:
    """Connect and return the first context.

    Args:
        connect: Makes the connection.
        session_mode: One of the four modes; AUTO_ACKNOWLEDGE when None.
        kind: Its class, if it is a special one.
    """
    mode = AUTO if session_mode is None else valid.session_mode(session_mode)
    connection = connect()
    try:
        if mode == TRANSACTED:
            connection.link.require("transactions", "a transacted context")
    except JMSException:
        connection.close()
        raise
    return (kind or JMSContextImpl)(SharedConnection(connection), mode)


class JMSContextImpl(NotCopied, JMSContext):
    """A context; its session is made when first needed, so that a client id can still be set before."""

    session_kind: type[SessionImpl] = SessionImpl

    def __init__(self, shared: SharedConnection, mode: int) -> None:
        self._shared = shared
        self._mode = mode
        self._session: SessionImpl | None = None
        self._guard = threading.Lock()
        self._auto_start = True
        self._closed = False
        self._requesting: set[JMSContextImpl] = set()
        """Contexts that wait for a reply, which ``close`` ends. Guarded by ``_guard``."""
        shared.enter()

    @property
    def connection(self) -> ConnectionImpl:
        """Return the connection, for the parts of the context; not for applications (11.2.1-1)."""
        if self._closed:
            raise IllegalStateRuntimeException("the context is closed", "closed")
        return self._shared.connection

    @property
    def session(self) -> SessionImpl:
        """Return the session, for the parts of the context; not for applications (11.2.1-1)."""
        connection = self.connection
        session = self._session
        if session is not None:
            return session
        made = connection.add_session(self.session_kind, self._mode, None, None)
        with self._guard:
            if not self._closed:
                self._session = session = self._session or made
        if session is not made:
            # Another thread closed the context meanwhile, or was faster.
            made.close()
        if session is None:
            raise IllegalStateRuntimeException("the context is closed", "closed")
        return session

    # ---- contexts, connection -------------------------------------------------------------------------------------
    @runtime
    def create_context(self, session_mode: int) -> JMSContext:
        """Create a context on the same connection; see JMSContext."""
        mode = valid.session_mode(session_mode)
        self.connection.check_open()
        self.connection.touch()
        if mode == TRANSACTED:
            self.connection.link.require("transactions", "a transacted context")
        return JMSContextImpl(self._shared, mode)

    @property
    @runtime
    def client_id(self) -> str | None:
        """Return the client id, or None; see JMSContext."""
        return self.connection.client_id

    @client_id.setter
    @runtime
    def client_id(self, client_id: str | None) -> None:
        self.connection.client_id = client_id

    @property
    @runtime
    def meta_data(self) -> ConnectionMetaData:
        """Return what is known of the provider; see JMSContext."""
        return self.connection.meta_data

    @property
    @runtime
    def exception_listener(self) -> ExceptionListenerLike | None:
        """Return the exception listener, or None; see JMSContext."""
        return self.connection.exception_listener

    @exception_listener.setter
    @runtime
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None:
        self.connection.exception_listener = exception_listener

    @runtime
    def start(self) -> None:
        """Let messages be delivered; see JMSContext."""
        self.connection.start()

    @runtime
    def stop(self) -> None:
        """Pause delivery; see JMSContext."""
        self.connection.stop()

    @property
    def auto_start(self) -> bool:
        """Return whether creating a consumer starts delivery; see JMSContext."""
        self.connection  # noqa: B018  closed contexts raise
        return self._auto_start

    @auto_start.setter
    def auto_start(self, auto_start: bool) -> None:
        self.connection  # noqa: B018
        self._auto_start = bool(auto_start)

    @runtime
    def close(self) -> None:
        """Close the context, and with the last one the connection; see JMSContext."""
        close_when_possible(self._close, apart=self._shared.connection.link.closes_apart)

    def _close(self) -> None:
        session = self._session
        if session is not None and not self._closed:
            session.close()
        with self._guard:
            first, self._closed = not self._closed, True
            requesting = list(self._requesting)
        for one in requesting:
            one.close()
        if first:
            self._shared.leave()

    # ---- session --------------------------------------------------------------------------------------------------
    @property
    def transacted(self) -> bool:
        """Return whether the session is transacted; see JMSContext."""
        self.connection  # noqa: B018
        return self._mode == TRANSACTED

    @property
    def session_mode(self) -> int:
        """Return the session's mode; see JMSContext."""
        self.connection  # noqa: B018
        return self._mode

    @runtime
    def commit(self) -> None:
        """Commit; see JMSContext."""
        self.session.commit()

    @runtime
    def rollback(self) -> None:
        """Roll back; see JMSContext."""
        self.session.rollback()

    @runtime
    def recover(self) -> None:
        """Hand out again what is not acknowledged; see JMSContext."""
        self.session.recover()

    @runtime
    def acknowledge(self) -> None:
        """Acknowledge all that the session has delivered; see JMSContext."""
        self.session.acknowledge_all()

    # ---- messages, destinations -----------------------------------------------------------------------------------
    @runtime
    def create_message(self) -> Message:
        """Create a message without a body; see JMSContext."""
        return self.session.create_message()

    @runtime
    def create_bytes_message(self) -> BytesMessage:
        """Create a BytesMessage; see JMSContext."""
        return self.session.create_bytes_message()

    @runtime
    def create_map_message(self) -> MapMessage:
        """Create a MapMessage; see JMSContext."""
        return self.session.create_map_message()

    @runtime
    def create_stream_message(self) -> StreamMessage:
        """Create a StreamMessage; see JMSContext."""
        return self.session.create_stream_message()

    @runtime
    def create_object_message(self, object: Any = None) -> ObjectMessage:
        """Create an ObjectMessage; see JMSContext."""
        return self.session.create_object_message(object)

    @runtime
    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Create a TextMessage; see JMSContext."""
        return self.session.create_text_message(text)

    @runtime
    def create_queue(self, queue_name: str) -> Queue:
        """Make a Queue object for a name; see JMSContext."""
        return self.session.create_queue(queue_name)

    @runtime
    def create_topic(self, topic_name: str) -> Topic:
        """Make a Topic object for a name; see JMSContext."""
        return self.session.create_topic(topic_name)

    @runtime
    def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that lives with the connection; see JMSContext."""
        return self.session.create_temporary_queue()

    @runtime
    def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that lives with the connection; see JMSContext."""
        return self.session.create_temporary_topic()

    # ---- requests ---------------------------------------------------------------------------------------------------
    @runtime
    def request(self, destination: Destination, body: Message | Any, *, timeout_ms: Timeout | None = None) -> Message | None:
        """Send a request and wait for the reply; see JMSContext."""
        longest = longest_wait(timeout_ms, "request")
        check_may_request(self)
        return self._exchange(destination, body, longest)

    def _exchange(self, destination: Destination, body: object, timeout_ms: float | None) -> Message | None:
        own = JMSContextImpl(self._shared, AUTO)
        own.auto_start = self._auto_start
        with self._guard:
            self._requesting.add(own)
        try:
            # Closed before it was added, nobody would end it.
            self.connection  # noqa: B018
            return exchange(own, destination, body, timeout_ms)
        finally:
            with self._guard:
                self._requesting.discard(own)
            own.close()

    # ---- producers, consumers -------------------------------------------------------------------------------------
    @runtime
    def create_producer(self) -> JMSProducer:
        """Create a producer; see JMSContext."""
        self.connection.check_open()
        self.connection.touch()
        return JMSProducerImpl(self)

    @runtime
    def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> JMSConsumer:
        """Create a consumer; see JMSContext."""
        return self._started(self.session.create_consumer(destination, message_selector, no_local))

    @runtime
    def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> JMSConsumer:
        """Create the consumer of an unshared durable subscription; see JMSContext."""
        return self._started(self.session.create_durable_consumer(topic, name, message_selector, no_local))

    @runtime
    def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> JMSConsumer:
        """Create a consumer on a shared non-durable subscription; see JMSContext."""
        return self._started(self.session.create_shared_consumer(topic, shared_subscription_name, message_selector))

    @runtime
    def create_shared_durable_consumer(self, topic: Topic, name: str, message_selector: str | None = None) -> JMSConsumer:
        """Create a consumer on a shared durable subscription; see JMSContext."""
        return self._started(self.session.create_shared_durable_consumer(topic, name, message_selector))

    @runtime
    def create_browser(self, queue: Queue, message_selector: str | None = None) -> QueueBrowser:
        """Create a browser; see JMSContext."""
        browser = self.session.create_browser(queue, message_selector)
        if self._auto_start:
            self.connection.start()
        return browser

    @runtime
    def unsubscribe(self, name: str) -> None:
        """End a durable subscription; see JMSContext."""
        self.session.unsubscribe(name)

    def _started(self, consumer: MessageConsumer) -> JMSConsumerImpl:
        assert isinstance(consumer, ConsumerImpl)
        if self._auto_start:
            self.connection.start()
        return JMSConsumerImpl(consumer)
