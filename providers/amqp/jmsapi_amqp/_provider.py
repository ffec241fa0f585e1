"""The calls of the provider interface for AMQP: what any thread may call, passed to the I/O thread in order.

Threads: every method may be called from any thread and returns at once. Handles hold numbers; what they name lives on the
I/O thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, cast

from jmsapi.spi import (
    DONE,
    Address,
    Capabilities,
    Clock,
    ConsumerSpec,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    ProviderError,
    Tag,
    completed,
    failed,
)
from jmsapi.wire import ASK_AGAIN_S, Promise, RecentlyClosedClientIds
from jmsapi_amqp.attach import end_session, open_wire_session
from jmsapi_amqp.codec import encode_message
from jmsapi_amqp.connection import AmqpConnection
from jmsapi_amqp.draining import drained, stopped
from jmsapi_amqp.errors import Redirected
from jmsapi_amqp.links import AmqpTag, ReceiverLink, SenderLink, WireSession
from jmsapi_amqp.opening import check_identity
from jmsapi_amqp.transaction_handle import TxHandle
from jmsapi_amqp.transactions import TransactionCoordinator
from jmsapi_brokers.names import check_text

if TYPE_CHECKING:
    from jmsapi_amqp.context import ConnectionContext
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["CLOSED_CLIENT_IDS", "AmqpProvider"]

T = TypeVar("T")
_LOG: Final = logging.getLogger("jmsapi.amqp")
_REDIRECTS: Final = 3
"""How often in a row a broker may name another one."""
CLOSED_CLIENT_IDS: Final = RecentlyClosedClientIds()


class SessionHandle(Handle):
    """A session, by number."""

    __slots__ = ("number", "transacted")

    def __init__(self, number: int, *, transacted: bool) -> None:
        self.number = number
        self.transacted = transacted


class LinkHandle(Handle):
    """A consumer or producer, by number."""

    __slots__ = ("anonymous", "number")

    def __init__(self, number: int, *, anonymous: bool) -> None:
        self.number = number
        self.anonymous = anonymous
        """Each message says where it goes."""


class _ProviderSession:
    """What a session of the application has on the wire."""

    __slots__ = ("coordinator", "ended", "links", "opening", "wire")

    def __init__(self, wire: WireSession, coordinator: TransactionCoordinator | None) -> None:
        self.wire = wire
        self.coordinator = coordinator
        self.links: set[int] = set()
        self.opening: list[Promise[None]] = []
        """Of consumers and producers that are being opened; kept when that is over."""
        self.ended = False

    def named(self, link: SenderLink | ReceiverLink) -> Handle:
        """Give a link its handle; from now on the core hears of it."""
        handle = LinkHandle(link.number, anonymous=isinstance(link, SenderLink) and link.anonymous)
        link.handle = handle
        self.links.add(link.number)
        return handle


class AmqpProvider:
    """One connection to one AMQP 1.0 broker."""

    def __init__(self, options: AmqpOptions, clock: Clock) -> None:
        """Make it, unopened.

        Args:
            options: Where to, as whom, how.
            clock: Time.
        """
        self._options = options
        self._clock = clock
        self._connection: AmqpConnection | None = None
        self._sessions: dict[int, _ProviderSession] = {}
        self._beginning: list[WireSession] = []
        """AMQP sessions that are being opened for one of these, once for each."""
        self._closed: Future[None] | None = None
        self._was_open = False
        """Whether the connection has been opened, so that its client id was accepted."""

    def __repr__(self) -> str:
        return f"AmqpProvider({self._options.scheme}://{self._options.host})"

    def _io(self) -> AmqpConnection:
        if self._connection is None:
            raise ProviderError(ErrorKind.CLOSED, "the AMQP provider is not open")
        return self._connection

    def _steps(self, steps: Coroutine[Any, None, T]) -> Future[T]:
        connection = self._connection
        if connection is None:
            steps.close()
            return failed(ProviderError(ErrorKind.CLOSED, "the AMQP provider is not open"))
        future: Future[T] = Future()
        connection.submit_steps(steps, future)
        return future

    # ------------------------------------------------------------------------------------------------ connection

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate."""
        future: Future[Capabilities] = Future()
        if self._connection is not None or self._closed is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "the AMQP provider was opened before"))
        try:
            check_identity(self._options)
        except ProviderError as error:
            return failed(error)
        self._connect(AmqpConnection(self._options, self._clock, events), future, _REDIRECTS)
        return future

    def _connect(self, connection: AmqpConnection, future: Future[Capabilities], left: int) -> None:
        """Open a connection, and another one if the broker says where, as long as that may be."""
        self._connection = connection
        opened: Future[Capabilities] = Future()

        def done(_: Future[Capabilities]) -> None:
            error = opened.exception()
            if error is None:
                self._was_open = True
                CLOSED_CLIENT_IDS.note_opened(self._id)
                future.set_result(opened.result())
                return
            # What was refused may be connected all the same, as where the client id is a lock that another one holds.
            left_behind: Future[None] = Future()
            left_behind.add_done_callback(lambda _: self._not_opened(connection, future, error, left))
            connection.submit_close(left_behind)

        opened.add_done_callback(done)
        connection.start(opened)

    def _not_opened(self, connection: AmqpConnection, future: Future[Capabilities], error: BaseException, left: int) -> None:
        """Go where the broker says, ask again, or report the error. The connection has ended."""
        if isinstance(error, Redirected) and left and self._closed is None:
            _LOG.info("%s: sent on to %s:%s", connection.name, error.host, error.port or "-")
            self._connect(connection.at(error.host, error.port, error.hostname), future, left - 1)
        elif self._held_by_us(error):
            # Our own last connection with this id is closed, and the broker has not got round to freeing it.
            self._clock.call_later(ASK_AGAIN_S, lambda: self._again(connection, future, error, left))
        else:
            future.set_exception(error)

    def _held_by_us(self, error: BaseException | None) -> TypeGuard[ProviderError]:
        if not isinstance(error, ProviderError) or self._closed is not None:
            return False
        return CLOSED_CLIENT_IDS.worth_asking_again(self._id, error.kind)

    def _again(self, connection: AmqpConnection, future: Future[Capabilities], refused: ProviderError, left: int) -> None:
        if self._closed is not None:
            future.set_exception(refused)
        else:
            self._connect(connection.anew(), future, left)

    @property
    def _id(self) -> tuple[object, ...]:
        options = self._options
        return (options.host, options.port, options.vhost, options.client_id)

    def close(self) -> Future[None]:
        """Write out what was sent, close in order, end the I/O thread."""
        if self._closed is not None:
            return self._closed
        if self._connection is None:
            self._closed = completed(None)
            return self._closed
        future: Future[None] = Future()
        self._closed = future
        if self._options.client_id is not None and self._was_open:
            future.add_done_callback(lambda _: CLOSED_CLIENT_IDS.note_closed(self._id))
        self._connection.submit_close(future)
        return future

    # ------------------------------------------------------------------------------------------------ sessions

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Begin an AMQP session, and for transactions the link to the coordinator."""
        return self._steps(self._open_session(transacted=transacted))

    async def _open_session(self, *, transacted: bool) -> Handle:
        connection = self._io()
        context = connection.context
        # Those that are only being opened count, too: who gives up waiting may have asked for any number of them.
        shared = [*(session.wire for session in self._sessions.values()), *self._beginning]
        if context.behaviour.max_sessions is not None and context.free_sessions <= 0 and not context.idle_sessions and shared:
            wire = min(shared, key=lambda wire: wire.users)
            wire.users += 1
        else:
            wire = open_wire_session(context)
            wire.transacted = transacted
        self._beginning.append(wire)
        try:
            await wire.opened
        finally:
            self._beginning.remove(wire)
        context.traffic.serial += 1
        handle = SessionHandle(context.traffic.serial, transacted=transacted)
        attach = partial(connection.broker.open_coordinator, context, wire)
        coordinator = TransactionCoordinator(context, handle.number, attach) if transacted else None
        self._sessions[handle.number] = _ProviderSession(wire, coordinator)
        wire.owners.append(handle)
        return handle

    def _session(self, handle: Handle) -> _ProviderSession:
        found = self._sessions.get(handle.number) if isinstance(handle, SessionHandle) else None
        if found is None:
            raise ProviderError(ErrorKind.CLOSED, "the session is closed")
        return found

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer."""
        return self._steps(self._release(handle))

    async def _release(self, handle: Handle) -> None:
        connection = self._io()
        if isinstance(handle, SessionHandle):
            session = self._sessions.pop(handle.number, None)
            if session is None:
                return
            session.ended = True
            wire = session.wire
            if handle in wire.owners:
                wire.owners.remove(handle)
            for over in list(session.opening):
                await over
            links = [connection.context.by_number[number] for number in session.links if number in connection.context.by_number]
            for number in session.links:
                connection.context.closed_links.forget(number)
            # What failed counts at some brokers only when the session ends with the link still there.
            failed = any(isinstance(link, ReceiverLink) and link.failed and link.session is wire for link in links)
            for each in links:
                if each.session is not wire or wire.users > 1 or not failed:
                    await connection.broker.release(connection.context, each)
            wire.users -= 1
            if wire.users == 0:
                end_session(connection.context, wire)
        elif isinstance(handle, LinkHandle):
            connection.context.closed_links.forget(handle.number)
            link = connection.context.by_number.get(handle.number)
            if link is not None:
                await connection.broker.release(connection.context, link)
            for session in self._sessions.values():
                session.links.discard(handle.number)

    # ------------------------------------------------------------------------------------------------ consumers

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Attach a consumer, subscription or browser, without credit."""
        return self._steps(self._open_consumer(session, spec))

    async def _open_consumer(self, session: Handle, spec: ConsumerSpec) -> Handle:
        connection = self._io()
        opened = self._session(session)
        return await self._named(opened, connection.broker.open_consumer(connection.context, opened.wire, spec))

    async def _named(self, session: _ProviderSession, opening: Awaitable[SenderLink | ReceiverLink]) -> Handle:
        """Open a consumer or producer; end it at once if its session has been ended meanwhile, which waits for that."""
        over: Promise[None] = Promise()
        session.opening.append(over)
        try:
            link = await opening
            if not session.ended:
                return session.named(link)
            connection = self._io()
            await connection.broker.release(connection.context, link)
        finally:
            session.opening.remove(over)
            over.resolve(None)
        raise ProviderError(ErrorKind.CLOSED, f"{link.asked}: the session is closed")

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow ``n`` more deliveries."""
        connection = self._connection
        if connection is None or not isinstance(consumer, LinkHandle):
            return failed(ProviderError(ErrorKind.CLOSED, "the consumer is not open"))
        connection.submit(self._grant, connection, consumer.number, n)
        return DONE

    @staticmethod
    def _grant(connection: AmqpConnection, number: int, n: int) -> None:
        link = connection.context.by_number.get(number)
        if isinstance(link, ReceiverLink):
            link.grant(n)

    def drain(self, consumer: Handle) -> Future[None]:
        """Take all credit back."""
        return self._steps(self._take_credit_back(consumer, drained))

    def stop(self, consumer: Handle) -> Future[None]:
        """Take all credit back, without proof that the queue is empty."""
        return self._steps(self._take_credit_back(consumer, stopped))

    async def _take_credit_back(
        self, consumer: Handle, call: Callable[[ConnectionContext, ReceiverLink], Awaitable[None]]
    ) -> None:
        connection = self._io()
        link = connection.context.by_number.get(consumer.number) if isinstance(consumer, LinkHandle) else None
        if isinstance(link, ReceiverLink):
            await call(connection.context, link)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Say what became of deliveries. AMQP has no answer to a settled outcome, so it is done when it is written.

        It fails, at least in part, for what came by a consumer that the broker has ended.
        """
        connection = self._connection
        if connection is None:
            return failed(ProviderError(ErrorKind.CLOSED, "the AMQP provider is not open"))
        if connection.context.link_lost is not None:
            return failed(connection.context.link_lost)
        numbers = [tag.number for tag in tags if isinstance(tag, AmqpTag)]
        return connection.settling.settle(numbers, outcome, tx if isinstance(tx, TxHandle) else None)

    # ------------------------------------------------------------------------------------------------ producers

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Attach a producer."""
        return self._steps(self._open_producer(session, destination))

    async def _open_producer(self, session: Handle, destination: Address | None) -> Handle:
        connection = self._io()
        opened = self._session(session)
        return await self._named(opened, connection.broker.open_producer(connection.context, opened.wire, destination))

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Send one message.

        Raises:
            ProviderError: FORMAT; AMQP cannot carry it, or it is larger than the broker takes. DESTINATION; its name is none.
        """
        connection = self._io()
        broker = connection.broker
        number = producer.number if isinstance(producer, LinkHandle) else 0
        if isinstance(producer, LinkHandle) and producer.anonymous:
            broker.check_sent_to(envelope.destination)
        now_ms = self._clock.now_ms()
        raw = encode_message(envelope, broker, now_ms, texts_as_data=broker.texts_as_data, marks=broker.marks(envelope))
        broker.check_size(len(raw))
        state = tx.send_state if isinstance(tx, TxHandle) else None
        connection.submit(self._send, connection, number, envelope, raw, state, token)

    @staticmethod
    def _send(
        connection: AmqpConnection, number: int, envelope: Envelope, raw: bytes, state: bytes | None, token: object
    ) -> None:
        link = connection.context.by_number.get(number)
        if isinstance(link, SenderLink):
            connection.broker.send(connection.context, link, envelope, raw, state, token)
        else:
            ended = connection.context.link_lost or connection.context.closed_links.links.get(number)
            error = ended or ProviderError(ErrorKind.CLOSED, "send: the producer is closed")
            connection.context.traffic.sent.append((token, error))

    def take_back(self, token: object) -> None:
        """Answer a send that waits for credit: it is not sent any more."""
        connection = self._connection
        if connection is not None:
            connection.submit(self._take_back, connection, token)

    @staticmethod
    def _take_back(connection: AmqpConnection, token: object) -> None:
        for link in connection.context.links.values():
            if isinstance(link, SenderLink) and link.take_back(token):
                return

    # ------------------------------------------------------------------------------------------------ transactions

    def begin(self, session: Handle) -> Future[Handle]:
        """Begin a local transaction."""
        return self._steps(self._begin(session))

    async def _begin(self, session: Handle) -> Handle:
        coordinator = self._session(session).coordinator
        if coordinator is None:
            raise ProviderError(ErrorKind.UNSUPPORTED, "begin: the session is not transacted")
        return await coordinator.begin()

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back."""
        return self._steps(self._end(tx, commit=commit))

    async def _end(self, tx: Handle, *, commit: bool) -> None:
        found = self._sessions.get(tx.session) if isinstance(tx, TxHandle) else None
        if found is None or found.coordinator is None:
            if isinstance(tx, TxHandle):
                self._io().context.closed_links.over(tx)
            raise ProviderError(ErrorKind.ROLLED_BACK, "the transaction's session is closed, so it was rolled back")
        await found.coordinator.end(cast("TxHandle", tx), commit=commit)

    # ------------------------------------------------------------------------------------------------ destinations

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Create a destination that lives with this connection."""
        return self._steps(self._create_temporary(session, topic=topic))

    async def _create_temporary(self, session: Handle, *, topic: bool) -> Address:
        connection = self._io()
        wire = self._session(session).wire
        return await connection.broker.create_temporary(connection.context, wire, topic=topic)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination, or end a durable subscription."""
        return self._steps(self._remove(session, what))

    async def _remove(self, session: Handle, what: Address | str) -> None:
        connection = self._io()
        wire = self._session(session).wire
        if isinstance(what, str):
            check_text(what, "unsubscribe: the name", ErrorKind.SUBSCRIPTION)
            await connection.broker.unsubscribe(connection.context, wire, what)
            connection.broker.subscriptions.ended(what)
        else:
            await connection.broker.remove_temporary(connection.context, wire, what)
