"""The context of the simplified API for asyncio: one session, and a connection that the contexts made from it share.

Spec: 11.2.1 to 11.2.9.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from jmsapi._core import options_check as valid
from jmsapi._core.acknowledgement.ledger import AUTO, TRANSACTED
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.destination import QueueImpl, TemporaryQueueImpl, TemporaryTopicImpl, TopicImpl, address_of
from jmsapi._core.message import MessageImpl, create
from jmsapi._core.request_reply import check_may_request
from jmsapi._core.runtime_exceptions import runtime
from jmsapi._core.session import SessionImpl
from jmsapi._core.timeouts import longest_wait
from jmsapi._core.waiting import Steps
from jmsapi._not_copied import NotCopied
from jmsapi.aio.browser import AsyncQueueBrowser
from jmsapi.aio.cancellation import CancelledInDoubt, NotingCancellation
from jmsapi.aio.consumer import AsyncJMSConsumer
from jmsapi.aio.loop_driver import LoopDriver
from jmsapi.aio.producer import AsyncJMSProducer
from jmsapi.api import Message
from jmsapi.errors import (
    IllegalStateRuntimeException,
    JMSException,
    JMSRuntimeException,
    TransactionRolledBackException,
    to_runtime,
)
from jmsapi.spi import MessageKind

if TYPE_CHECKING:
    from jmsapi._core.browser import BrowserImpl
    from jmsapi.api import (
        BytesMessage,
        ConnectionMetaData,
        Destination,
        ExceptionListenerLike,
        MapMessage,
        ObjectMessage,
        Queue,
        StreamMessage,
        TemporaryQueue,
        TemporaryTopic,
        TextMessage,
        Topic,
    )
    from jmsapi.spi import Address
    from jmsapi.values import Timeout

__all__ = ["AsyncJMSContext", "AsyncSharedConnection"]

_log: Final = logging.getLogger("jmsapi")
R = TypeVar("R")


class AsyncSharedConnection:
    """A connection, the loop that it was opened in, and how many contexts are open on it; the last one closes it (11.2.6-2)."""

    def __init__(self, connection: ConnectionImpl, driver: LoopDriver) -> None:
        self.connection = connection
        self.driver = driver
        self.contexts = 0


class AsyncJMSContext(NotCopied):
    """A connection and a session in one object, as ``JMSContext``; ``async with`` opens and closes it, ``await`` opens it.

    What goes to the broker is awaited; the rest is called as in the simplified API. It belongs to the event loop that it was
    opened in. Several tasks may send with one context at once. A session is one line of work, so one task receives from it and
    ends its transactions; a task that needs its own makes a context with ``create_context``.

    Args:
        origin: Makes the connection, or an open one to share.
        session_mode: One of the four modes.
    """

    AUTO_ACKNOWLEDGE: Final[int] = 1
    CLIENT_ACKNOWLEDGE: Final[int] = 2
    DUPS_OK_ACKNOWLEDGE: Final[int] = 3
    SESSION_TRANSACTED: Final[int] = 0

    def __init__(self, origin: Callable[[], Steps[ConnectionImpl]] | AsyncSharedConnection, session_mode: int | None) -> None:
        self._origin = origin
        self._asked_mode = AUTO if session_mode is None else session_mode
        self._mode = AUTO
        self._shared: AsyncSharedConnection | None = None
        self._session: SessionImpl | None = None
        self._auto_start = True
        self._closed = False
        self._opening = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._in_transaction = False
        """A block of ``transaction`` is open."""

    # ---- opening, closing -----------------------------------------------------------------------------------------
    def __await__(self) -> Generator[Any, None, Self]:
        """Connect, and give the context itself."""
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        """Connect, unless that has been done, and give the context itself."""
        return await self._open()

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """Close the context, whether the block ended or raised."""
        await self.close()

    async def _open(self) -> Self:
        with NotingCancellation("open a context"):
            if isinstance(self._origin, AsyncSharedConnection):
                self._origin.driver.check_loop()
            elif self._shared is not None:
                self._shared.driver.check_loop()
            async with self._opening:
                if self._closed:
                    raise IllegalStateRuntimeException("the context is closed", "closed")
                if self._shared is None:
                    self._mode = valid.session_mode(self._asked_mode)
                    self._shared = await self._connected()
                    self._shared.contexts += 1
        return self

    async def _connected(self) -> AsyncSharedConnection:
        origin = self._origin
        if isinstance(origin, AsyncSharedConnection):
            origin.connection.check_open()
            origin.connection.touch()
            if self._mode == TRANSACTED:
                origin.connection.link.require("transactions", "a transacted context")
            return origin
        driver = LoopDriver(asyncio.get_running_loop())
        return AsyncSharedConnection(await driver.open(self._connect_steps(origin), _close_steps), driver)

    def _connect_steps(self, connect: Callable[[], Steps[ConnectionImpl]]) -> Steps[ConnectionImpl]:
        connection = yield from connect()
        try:
            if self._mode == TRANSACTED:
                connection.link.require("transactions", "a transacted context")
        except JMSException:
            yield from _close_steps(connection)
            raise
        return connection

    @property
    def connection(self) -> ConnectionImpl:
        """Return the connection, for the parts of the context; not for applications (11.2.1-1)."""
        return self._open_shared.connection

    @property
    def driver(self) -> LoopDriver:
        """Return what runs operations, for the parts of the context; not for applications."""
        return self._open_shared.driver

    @property
    def _open_shared(self) -> AsyncSharedConnection:
        if self._closed:
            raise IllegalStateRuntimeException("the context is closed", "closed")
        if self._shared is None:
            raise IllegalStateRuntimeException(
                "the context is not open: write `async with factory.create_context() as context`,"
                " or `context = await factory.create_context()`",
                "not-open",
            )
        return self._shared

    def at_hand(self) -> tuple[LoopDriver, SessionImpl | None]:
        """Return the driver, and the session if it is open, for the parts of the context; not for applications (11.2.1-1)."""
        shared = self._shared
        driver = self._open_shared.driver if shared is None or self._closed else shared.driver
        driver.check_loop()
        return driver, self._session

    async def open_session(self) -> SessionImpl:
        """Return the session, opened when first needed, for the parts of the context; not for applications (11.2.1-1)."""
        shared = self._open_shared
        self._check_loop(shared)
        if self._session is None:
            async with self._opening:
                if self._session is None:
                    self._session = await self._opened_session(shared)
        if self._closed:
            raise IllegalStateRuntimeException("the context is closed", "closed")
        return self._session

    async def _opened_session(self, shared: AsyncSharedConnection) -> SessionImpl:
        try:
            steps = shared.connection.add_session_steps(SessionImpl, self._mode)
            session = await shared.driver.open(steps, SessionImpl.close_steps)
            if self._closed:
                # Closed meanwhile by another task, which found no session to close.
                await shared.driver.finish(session.close_steps())
            return session
        except JMSException as error:
            raise to_runtime(error) from error

    def _check_loop(self, shared: AsyncSharedConnection) -> None:
        try:
            shared.driver.check_loop()
        except JMSException as error:
            raise to_runtime(error) from error

    async def close(self) -> None:
        """Close the context, and with the last one the connection; see JMSContext.

        A task that is cancelled meanwhile goes on when it is closed, at the latest after the option ``close_timeout_ms``.
        A context whose own loop is closed already can be closed in another one.
        """
        shared = self._shared
        if shared is None or self._closed:
            self._closed = True
            return
        try:
            driver = shared.driver.to_close_with()
            self._closed = True
            shared.contexts -= 1
            last = not shared.contexts
            try:
                await driver.finish(self._closing_steps(shared.connection, last))
            finally:
                if last:
                    await driver.settle()
        except JMSException as error:
            raise to_runtime(error) from error

    def _closing_steps(self, connection: ConnectionImpl, last: bool) -> Steps[None]:
        if last:
            yield from _close_steps(connection)
        elif self._session is not None:
            yield from self._session.close_steps()

    # ---- contexts, connection -------------------------------------------------------------------------------------
    def create_context(self, session_mode: int) -> AsyncJMSContext:
        """Create a context on the same connection, for ``async with`` or ``await``; see JMSContext."""
        shared = self._open_shared
        return AsyncJMSContext(shared, session_mode)

    @property
    @runtime
    def client_id(self) -> str | None:
        """Return the client id, or None; see JMSContext. It is set in the factory's URL or with ``set_client_id``."""
        return self.connection.client_id

    async def set_client_id(self, client_id: str) -> None:
        """Set the client id, before anything else is done with the context; see ``JMSContext.client_id``."""
        await self._run(self.connection.client_id_steps(client_id))

    @property
    @runtime
    def meta_data(self) -> ConnectionMetaData:
        """Return what is known of the provider; see JMSContext."""
        return self.connection.meta_data

    @property
    @runtime
    def exception_listener(self) -> ExceptionListenerLike | None:
        """Return the exception listener, a plain function that is called in a thread of its own, or None; see JMSContext."""
        return self.connection.exception_listener

    @exception_listener.setter
    @runtime
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None:
        self.connection.exception_listener = exception_listener

    async def start(self) -> None:
        """Let messages be delivered; see JMSContext."""
        self._check_loop(self._open_shared)
        self._start()

    @runtime
    def _start(self) -> None:
        self.connection.start()

    async def stop(self) -> None:
        """Pause delivery; see JMSContext."""
        await self._run(self.connection.stop_steps())

    @property
    def auto_start(self) -> bool:
        """Return whether creating a consumer starts delivery; see JMSContext."""
        self.connection  # noqa: B018  closed contexts raise
        return self._auto_start

    @auto_start.setter
    def auto_start(self, auto_start: bool) -> None:
        self.connection  # noqa: B018
        self._auto_start = bool(auto_start)

    # ---- session --------------------------------------------------------------------------------------------------
    @property
    def transacted(self) -> bool:
        """Return whether the session is transacted; see JMSContext."""
        return self.session_mode == TRANSACTED

    @property
    def session_mode(self) -> int:
        """Return the session's mode; see JMSContext."""
        self.connection  # noqa: B018
        return self._mode

    async def commit(self) -> None:
        """Commit the transaction and begin the next; see JMSContext.

        Raises:
            TransactionRolledBackRuntimeException: It was rolled back.
            JMSRuntimeException: Code ``in-doubt``: whether it is committed is not known.
            CancelledError: Its cause is ``CancelledBeforehand`` when the transaction is as it was, ``CancelledInDoubt`` when it
                may or may not be committed, ``CancelledTooLate`` when it is.
        """
        with NotingCancellation("commit"):
            session = await self.open_session()
            try:
                async with self._ending:
                    await self.driver.run(session.commit_steps())
            except TransactionRolledBackException:
                await self.driver.run(session.parts.pause_steps())
                raise

    async def rollback(self) -> None:
        """Roll the transaction back and hand out again what it received; see JMSContext.

        A task that is cancelled meanwhile goes on when it is rolled back, at the latest after the option ``close_timeout_ms``.
        """
        with NotingCancellation("rollback", CancelledInDoubt):
            session = await self.open_session()
            async with self._ending:
                longest_s = self.connection.link.options.close_timeout_ms / 1000
                await self.driver.finish(session.rollback_steps(), longest_s)
        await self.driver.run(session.parts.pause_steps())

    async def recover(self) -> None:
        """Hand out again what is not acknowledged; see JMSContext."""
        await self._run((await self.open_session()).recover_steps())

    async def acknowledge(self) -> None:
        """Acknowledge all that the session has delivered; see JMSContext.

        Raises:
            CancelledError: Its cause is ``CancelledInDoubt``: the broker has been told, and has not confirmed it.
        """
        with NotingCancellation("acknowledge", CancelledInDoubt):
            session = await self.open_session()
            await self.driver.run(session.parts.client.acknowledge_steps())

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Self]:
        """Return a block that is committed at its end, and rolled back when it raises or is cancelled.

        Raises:
            IllegalStateRuntimeException: The context is not transacted, or such a block is open on it: a task that needs a
                transaction of its own makes a context with ``create_context``.
        """
        await self._check_transacted()
        if self._in_transaction:
            text = "transaction: a block of this context is open and would end with this one; make another with create_context"
            raise IllegalStateRuntimeException(text)
        self._in_transaction = True
        try:
            yield self
            await self.commit()
        except BaseException as error:
            try:
                await self.rollback()
            except JMSRuntimeException as second:
                error.add_note(f"The transaction could not be rolled back: {second}")
            raise
        finally:
            self._in_transaction = False

    async def _check_transacted(self) -> None:
        try:
            (await self.open_session()).parts.local_transaction("transaction")
        except JMSException as error:
            raise to_runtime(error) from error

    # ---- messages, destinations -----------------------------------------------------------------------------------
    def create_message(self) -> Message:
        """Create a message without a body; see JMSContext."""
        return cast("Message", self._message(MessageKind.MESSAGE))

    def create_bytes_message(self) -> BytesMessage:
        """Create a BytesMessage; see JMSContext."""
        return cast("BytesMessage", self._message(MessageKind.BYTES))

    def create_map_message(self) -> MapMessage:
        """Create a MapMessage; see JMSContext."""
        return cast("MapMessage", self._message(MessageKind.MAP))

    def create_stream_message(self) -> StreamMessage:
        """Create a StreamMessage; see JMSContext."""
        return cast("StreamMessage", self._message(MessageKind.STREAM))

    @runtime
    def create_object_message(self, object: Any = None) -> ObjectMessage:
        """Create an ObjectMessage; see JMSContext."""
        message = cast("ObjectMessage", self._message(MessageKind.OBJECT))
        if object is not None:
            message.object = object
        return message

    @runtime
    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Create a TextMessage; see JMSContext."""
        message = cast("TextMessage", self._message(MessageKind.TEXT))
        if text is not None:
            message.text = text
        return message

    @runtime
    def _message(self, kind: MessageKind) -> MessageImpl:
        self.connection.check_open()
        self.connection.touch()
        return create(kind, self.connection.codec)

    @runtime
    def create_queue(self, queue_name: str) -> Queue:
        """Make a Queue object for a name; see JMSContext."""
        self.connection.check_open()
        return QueueImpl(queue_name)

    @runtime
    def create_topic(self, topic_name: str) -> Topic:
        """Make a Topic object for a name; see JMSContext."""
        self.connection.check_open()
        return TopicImpl(topic_name)

    async def create_temporary_queue(self) -> TemporaryQueue:
        """Create a queue that lives with the connection; see JMSContext."""
        return TemporaryQueueImpl((await self._temporary(topic=False)).name, self.connection)

    async def create_temporary_topic(self) -> TemporaryTopic:
        """Create a topic that lives with the connection; see JMSContext."""
        return TemporaryTopicImpl((await self._temporary(topic=True)).name, self.connection)

    async def _temporary(self, *, topic: bool) -> Address:
        steps = (await self.open_session()).temporary_steps(topic=topic)
        try:
            return await self.driver.open(steps, self.connection.delete_temporary_steps)
        except JMSException as error:
            raise to_runtime(error) from error

    async def delete_temporary(self, destination: TemporaryQueue | TemporaryTopic) -> None:
        """Delete a temporary destination of this connection, which ``destination.delete()`` would block the event loop for.

        Raises:
            InvalidDestinationRuntimeException: It is no destination.
            IllegalStateRuntimeException: A consumer uses it.
            JMSRuntimeException: Another connection has created it, or the broker refuses.
        """
        await self._run(self._delete_steps(destination))

    def _delete_steps(self, destination: object) -> Steps[None]:
        yield from self.connection.delete_temporary_steps(address_of(destination))

    # ---- producers, consumers, browsers ---------------------------------------------------------------------------
    @runtime
    def create_producer(self) -> AsyncJMSProducer:
        """Create a producer; see JMSContext."""
        self.connection.check_open()
        self.connection.touch()
        return AsyncJMSProducer(self)

    async def create_consumer(
        self, destination: Destination, message_selector: str | None = None, no_local: bool = False
    ) -> AsyncJMSConsumer:
        """Create a consumer; see JMSContext."""
        session = await self.open_session()
        return await self._started(session.add_plain_steps(ConsumerImpl, destination, message_selector, no_local))

    async def create_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None, no_local: bool = False
    ) -> AsyncJMSConsumer:
        """Create the consumer of an unshared durable subscription; see JMSContext."""
        session = await self.open_session()
        return await self._started(session.add_durable_steps(ConsumerImpl, topic, name, message_selector, no_local))

    async def create_shared_consumer(
        self, topic: Topic, shared_subscription_name: str, message_selector: str | None = None
    ) -> AsyncJMSConsumer:
        """Create a consumer on a shared non-durable subscription; see JMSContext."""
        session = await self.open_session()
        return await self._started(session.add_shared_steps(topic, shared_subscription_name, message_selector, durable=False))

    async def create_shared_durable_consumer(
        self, topic: Topic, name: str, message_selector: str | None = None
    ) -> AsyncJMSConsumer:
        """Create a consumer on a shared durable subscription; see JMSContext."""
        session = await self.open_session()
        return await self._started(session.add_shared_steps(topic, name, message_selector, durable=True))

    async def create_browser(self, queue: Queue, message_selector: str | None = None) -> AsyncQueueBrowser:
        """Create a browser; see JMSContext."""
        return AsyncQueueBrowser(self._browser(await self.open_session(), queue, message_selector), self.driver)

    @runtime
    def _browser(self, session: SessionImpl, queue: Queue, message_selector: str | None) -> BrowserImpl:
        browser = session.create_browser(queue, message_selector)
        if self._auto_start:
            self.connection.start()
        return cast("BrowserImpl", browser)

    async def unsubscribe(self, name: str) -> None:
        """End a durable subscription; see JMSContext."""
        await self._run((await self.open_session()).unsubscribe_steps(name))

    # ---- requests -------------------------------------------------------------------------------------------------
    async def request(
        self, destination: Destination, body: Message | Any, *, timeout_ms: Timeout | None = None
    ) -> Message | None:
        """Send a request and wait for the reply, with a session and a temporary queue of its own; see JMSContext.

        Args:
            destination: Where whoever answers receives.
            body: A message, or the body of one; see ``JMSProducer.send``.
            timeout_ms: Longest wait, in milliseconds or as a timedelta; None or 0 waits for ever.
        Returns:
            The reply, acknowledged; None when time is up.
        Raises:
            IllegalStateRuntimeException: The context is closed, or transacted.
            JMSRuntimeException: As ``JMSContext.request`` says.
        """
        longest_ms = longest_wait(timeout_ms, "request")
        try:
            check_may_request(self)
        except JMSException as error:
            raise to_runtime(error) from error
        async with self.create_context(AUTO) as own:
            own.auto_start = self._auto_start
            replies = await own.create_temporary_queue()
            try:
                async with await own.create_consumer(replies) as consumer:
                    producer = own.create_producer().set_jms_reply_to(replies)
                    if not (isinstance(body, Message) and body.jms_correlation_id):
                        producer.set_jms_correlation_id(uuid.uuid4().hex)
                    await producer.send(destination, body)
                    return await consumer.receive(timeout_ms=longest_ms)
            finally:
                # It ends with its connection at the latest, so the reply, or what went wrong before, is the better answer.
                await _deleted(own, replies)

    async def _started(self, steps: Steps[ConsumerImpl]) -> AsyncJMSConsumer:
        try:
            consumer = await self.driver.open(steps, ConsumerImpl.close_steps)
        except JMSException as error:
            raise to_runtime(error) from error
        if self._auto_start:
            self._start()
        return AsyncJMSConsumer(consumer, self.driver)

    async def _run(self, steps: Steps[R]) -> R:
        try:
            return await self.driver.run(steps)
        except JMSException as error:
            raise to_runtime(error) from error


async def _deleted(context: AsyncJMSContext, replies: TemporaryQueue) -> None:
    connection, driver = context.connection, context.driver
    longest_s = connection.link.options.close_timeout_ms / 1000
    address = address_of(replies)
    try:
        # A request that is cancelled now has its queue deleted all the same.
        try:
            await driver.finish(connection.delete_temporary_steps(address), longest_s)
        except JMSException as error:
            if error.error_code == "closed":
                return
            # A request that is cancelled while its consumer opens is here before that is closed again.
            with suppress(TimeoutError):
                async with asyncio.timeout(longest_s):
                    await driver.settle()
            await driver.finish(connection.delete_temporary_steps(address), longest_s)
    except JMSException as error:
        if error.error_code != "closed":
            _log.warning("request: the temporary queue of the reply could not be deleted: %s", error)


def _close_steps(connection: ConnectionImpl) -> Steps[None]:
    yield from connection.close_steps(connection.link.options.close_timeout_ms)
