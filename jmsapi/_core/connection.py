"""A connection: its provider connection, its sessions, its client id, start, stop, close, and the exception listener.

Spec: 4.3.
"""

from __future__ import annotations

import itertools
import logging
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jmsapi._callbacks import check_callback
from jmsapi._core import options_check as valid
from jmsapi._core.acknowledgement.ledger import AUTO, CLIENT
from jmsapi._core.connection_consumer import ConnectionConsumerImpl, check_terms
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.errors_map import jms_error
from jmsapi._core.forked import free
from jmsapi._core.interrupted_close import close_when_possible
from jmsapi._core.listener_notifier import ConnectionListener, ListenerNotifier
from jmsapi._core.metadata import MetaDataImpl
from jmsapi._core.object_codec import ObjectCodec
from jmsapi._core.options_check import check_connection_listener
from jmsapi._core.provider_connection import ProviderConnection
from jmsapi._core.session import SessionImpl
from jmsapi._core.session_parts import SessionParts, open_session_steps
from jmsapi._core.session_rules import SessionRules
from jmsapi._core.telemetry import ConnectionLoad
from jmsapi._core.waiting import ConditionWait, Deadline, StateCondition, Steps, run
from jmsapi._not_copied import NotCopied
from jmsapi.api import Connection, ExceptionListener
from jmsapi.errors import (
    IllegalArgumentException,
    IllegalStateException,
    InvalidClientIDException,
    JMSException,
)
from jmsapi.spi import Address, Clock, ProviderEntry, ProviderError

if TYPE_CHECKING:
    from jmsapi.api import (
        ConnectionConsumer,
        ConnectionMetaData,
        Destination,
        ExceptionListenerLike,
        MessageConsumer,
        ServerSessionPool,
        Session,
        Topic,
    )
    from jmsapi.spi.options import ProviderOptions

__all__ = ["ConnectionImpl"]

S = TypeVar("S", bound=SessionImpl)
_log = logging.getLogger("jmsapi")


class ConnectionImpl(NotCopied, Connection):
    """A connection to one broker, to be opened with ``open_steps``.

    Args:
        entry: Where its provider comes from.
        options: Its settings.
        clock: Time.
    """

    def __init__(self, entry: ProviderEntry, options: ProviderOptions, clock: Clock) -> None:
        self._entry = entry
        self._clock = clock
        self._guard = threading.RLock()
        """Guards what is made and closed here; never held while a session is closed or a provider is called."""
        self.identity = uuid.uuid4().hex
        self.codec = ObjectCodec(options.object_allow)
        self.temporaries: set[Address] = set()
        self.deleted: set[Address] = set()
        """Temporary destinations of this connection: those that live, and those that were deleted."""
        self._sessions: dict[SessionParts, SessionImpl] = {}
        self._numbers = itertools.count(1)
        self._started = False
        self._touched = False
        self._closing = False
        self._closed = False
        self._end = StateCondition(threading.Lock())
        """Tells those who wait until it is closed."""
        self._notifier = ListenerNotifier()
        self.link = ProviderConnection(entry, options, clock, self)

    def open_steps(self) -> Steps[None]:
        """Connect to the broker. Called once, before anything else.

        Raises:
            JMSException: It is not reached, or refuses. Nothing is left open.
        """
        yield from self.link.open_steps()
        self.link.begin()

    # ---- client id ------------------------------------------------------------------------------------------------
    @property
    def client_id(self) -> str | None:
        """Return the client id, or None; see Connection."""
        self.check_open()
        return self.link.options.client_id

    @client_id.setter
    def client_id(self, client_id: str | None) -> None:
        run(self.client_id_steps(client_id))

    def client_id_steps(self, client_id: str | None) -> Steps[None]:
        """Set the client id; see Connection."""
        self.check_open()
        if self.link.options.client_id is not None:
            raise IllegalStateException("the connection has a client id already; it is set once, or by the factory")
        if self._touched:
            raise IllegalStateException("a client id is the first thing to set on a connection; this one is in use already")
        if not isinstance(client_id, str) or not client_id or not valid.encodable(client_id):
            raise InvalidClientIDException(f"a client id is text that can be written, and not empty; not {client_id!r}")
        options = self.link.options.having(client_id=client_id)
        # Both wires name the client when they open, so the unused provider connection is opened again. The old one is closed
        # last: if the id is refused the connection stays as it was.
        link = ProviderConnection(self._entry, options, self._clock, self)
        yield from link.open_steps()
        old, self.link = self.link, link
        try:
            yield from old.close_steps(options.close_timeout_ms / 1000)
        finally:
            # Also when the wait is given up: it is the new one that the connection has to hear of from now on.
            self.link.begin()
            self.touch()

    def touch(self) -> None:
        """Take note that the connection is in use, so that its client id is settled (4.3.2-4)."""
        self._touched = True

    # ---- sessions -------------------------------------------------------------------------------------------------
    def create_session(
        self, session_mode: int | bool | None = None, acknowledge_mode: int | None = None, *, transacted: bool | None = None
    ) -> Session:
        """Create a session; see Connection."""
        return self.add_session(SessionImpl, session_mode, acknowledge_mode, transacted)

    def add_session(
        self,
        kind: Callable[[SessionParts], S],
        mode: int | bool | None,
        acknowledge_mode: int | None,
        transacted: bool | None,
        *,
        rules: SessionRules | None = None,
        lock: threading.Lock | None = None,
    ) -> S:
        """Create a session of one class and record it; see ``open_session_steps``."""
        asked = valid.asked_mode(mode, acknowledge_mode, transacted)
        return run(self.add_session_steps(kind, asked, rules=rules, lock=lock))

    def add_session_steps(
        self,
        kind: Callable[[SessionParts], S],
        mode: int,
        *,
        rules: SessionRules | None = None,
        lock: threading.Lock | None = None,
    ) -> Steps[S]:
        """See ``add_session``."""
        self.check_open()
        self.touch()
        parts = yield from open_session_steps(self, mode, next(self._numbers), rules=rules, lock=lock)
        session = kind(parts)
        with self._guard:
            self._sessions[parts] = session
            parts.set_flowing(self._started)
        if self._closing and not self.in_listener:
            yield from session.close_steps()
            self.check_open()
        return session

    def forget(self, parts: SessionParts) -> None:
        """Drop a closed session."""
        with self._guard:
            self._sessions.pop(parts, None)

    def sessions(self) -> list[SessionImpl]:
        """Return the open sessions."""
        with self._guard:
            return list(self._sessions.values())

    def session_parts(self) -> list[SessionParts]:
        """Return the parts of the open sessions."""
        with self._guard:
            return list(self._sessions)

    def subscription_in_use(self, name: str) -> bool:
        """Return whether a consumer of this connection uses a durable subscription, or has something unsettled from it."""
        return any(
            consumer.spec.durable and consumer.spec.subscription == name
            for session in self.session_parts()
            for consumer in list(session.state.consumers.values())
        )

    def load(self) -> ConnectionLoad:
        """Return what the connection holds at the moment, without a lock: what changes meanwhile may be counted or not."""
        in_flight = credit = awaiting_redelivery = 0
        for parts in self.session_parts():
            for inbox, consumer in list(parts.state.consumers.items()):
                # What is loaded into a server session is counted where it was received.
                if isinstance(consumer, ConsumerImpl):
                    in_flight += len(inbox.buffer) + inbox.unsettled
                    credit += consumer.credit.granted
            awaiting_redelivery += 0 if parts.lender is None else parts.lender.awaiting_redelivery
        return ConnectionLoad(in_flight, self.link.window.taken, credit, awaiting_redelivery)

    # ---- temporary destinations -----------------------------------------------------------------------------------
    def delete_temporary(self, address: Address) -> None:
        """Delete a temporary destination of this connection; see ``delete_temporary_steps``."""
        run(self.delete_temporary_steps(address))

    def delete_temporary_steps(self, address: Address) -> Steps[None]:
        """Delete a temporary destination of this connection (4.4.3-6, B.3.2-1).

        Raises:
            InvalidDestinationException: Not one of ours, or deleted already.
            IllegalStateException: A consumer uses it.
        """
        self.check_open()
        if address in self.deleted:
            return
        if address not in self.temporaries:
            raise JMSException(f"delete {address.name!r}: only the connection that created it may", "not-owner")
        users = (consumer for session in self.session_parts() for consumer in list(session.state.consumers.values()))
        if any(consumer.spec.address == address for consumer in users):
            raise IllegalStateException(f"delete {address.name!r}: it still has a consumer; close that first", "in-use")
        living = [session for session in self.session_parts() if not session.state.closing]
        session = living[0] if living else (yield from self.add_session_steps(SessionImpl, AUTO)).parts
        removed = self.link.ask(lambda: self.link.provider.remove(session.handle, address))
        try:
            yield self.link.awaiting(removed, f"delete {address.name!r}")
        except IllegalStateException as error:
            if error.error_code != "closed" or not session.state.closing:
                raise
            yield from self.delete_temporary_steps(address)  # another thread has closed that session meanwhile
        self.temporaries.discard(address)
        self.deleted.add(address)

    # ---- delivery -------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Let messages be delivered; see Connection."""
        self.check_open()
        self.touch()
        with self._guard:
            self._started = True
            for session in self._sessions:
                session.set_flowing(True)

    def stop(self) -> None:
        """Pause delivery, waiting for running listeners; see Connection."""
        run(self.stop_steps())

    def stop_steps(self) -> Steps[None]:
        """See ``stop``."""
        self.check_open()
        self.touch()
        sessions = self.session_parts()
        for session in sessions:
            if session.dispatcher.is_own_thread:
                raise IllegalStateException("stop: a message listener may not stop its own connection")
        with self._guard:
            self._started = False
            for session in self._sessions:
                session.set_flowing(False)
        deadline = Deadline(self.link.options.close_timeout_ms)
        for session in sessions:
            paused = yield from session.paused_steps(deadline)
            if not paused:
                raise JMSException(
                    f"stop: a message listener is still running after {self.link.options.close_timeout_ms} ms; "
                    "no other will be called",
                    "timeout",
                )

    # ---- telling --------------------------------------------------------------------------------------------------
    @property
    def meta_data(self) -> ConnectionMetaData:
        """Return what is known of the provider; see Connection."""
        self.check_open()
        return MetaDataImpl(self.link.capabilities)

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Return the exception listener, or None; see Connection."""
        self.check_open()
        return self._notifier.listener  # type: ignore[return-value]

    @exception_listener.setter
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None:
        self.check_open()
        if exception_listener is not None and not callable(getattr(exception_listener, "on_exception", exception_listener)):
            raise IllegalArgumentException(f"an exception listener has on_exception or is callable, not {exception_listener!r}")
        check_callback(getattr(exception_listener, "on_exception", exception_listener), "the exception listener")
        self._notifier.listener = exception_listener

    def report(self, error: JMSException) -> None:
        """Give an error that no caller hears of to the exception listener, else to the log."""
        self._notifier.problem(error, self._thread_name)

    @property
    def _thread_name(self) -> str:
        return f"jmsapi-{self.link.number}-connection"

    # ---- what its link tells --------------------------------------------------------------------------------------
    @property
    def connection_listener(self) -> ConnectionListener | None:
        """Who is told of interruptions; see ``jmsapi.set_connection_listener``."""
        self.check_open()
        return self._notifier.connection_listener

    @connection_listener.setter
    def connection_listener(self, connection_listener: ConnectionListener | None) -> None:
        self.check_open()
        check_connection_listener(connection_listener)
        self._notifier.connection_listener = connection_listener

    def lost(self, cause: ProviderError) -> None:
        """The link is lost for good."""
        for session in self.session_parts():
            session.lost()
        self.report(jms_error(cause, "the connection is lost"))

    def left_behind(self) -> None:
        """Take note that this is a forked child, and the connection its parent's: so is what waits in the sessions."""
        free(self._guard)
        self._notifier.left_behind()
        for session in list(self._sessions):
            session.left_behind()

    def interrupted(self, cause: ProviderError) -> None:
        """The link is lost and another one is being made: what came by it is void."""
        failover = self.link.options.failover
        if failover is not None and not failover.recreate_temporary:
            with self._guard:
                self.deleted |= self.temporaries
                self.temporaries.clear()
        for session in self.session_parts():
            session.interrupted(cause)
        self._notifier.interrupted(jms_error(cause, "the link is lost"), self._thread_name)

    def resumed(self, url: str) -> None:
        """Grant credit again: the connection has a new link."""
        for session in self.session_parts():
            session.resumed()
        self._notifier.resumed(url, self._thread_name)

    def attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        """An attempt to make a link has failed."""
        # Of the attempts that make the connection itself nobody can be told: there is no connection yet.
        if self._notifier.connection_listener is not None:
            self._notifier.attempt_failed(url, attempt, cause, self._thread_name)

    # ---- application server facilities ----------------------------------------------------------------------------
    def create_connection_consumer(
        self, destination: Destination, message_selector: str | None, session_pool: ServerSessionPool, max_messages: int
    ) -> ConnectionConsumer:
        """Have a destination's messages run in a pool; see Connection."""
        return self._lending(lambda session: session.create_consumer(destination, message_selector), session_pool, max_messages)

    def create_shared_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have a shared non-durable subscription's messages run in a pool; see Connection."""
        return self._lending(
            lambda session: session.create_shared_consumer(topic, subscription_name, message_selector), session_pool, max_messages
        )

    def create_durable_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have an unshared durable subscription's messages run in a pool; see Connection."""
        return self._lending(
            lambda session: session.create_durable_consumer(topic, subscription_name, message_selector),
            session_pool,
            max_messages,
        )

    def create_shared_durable_connection_consumer(
        self,
        topic: Topic,
        subscription_name: str,
        message_selector: str | None,
        session_pool: ServerSessionPool,
        max_messages: int,
    ) -> ConnectionConsumer:
        """Have a shared durable subscription's messages run in a pool; see Connection."""
        return self._lending(
            lambda session: session.create_shared_durable_consumer(topic, subscription_name, message_selector),
            session_pool,
            max_messages,
        )

    def _lending(
        self, consume: Callable[[Session], MessageConsumer], pool: ServerSessionPool, max_messages: int
    ) -> ConnectionConsumer:
        self.check_open()
        check_terms(pool, max_messages)
        return ConnectionConsumerImpl(self.add_session(SessionImpl, CLIENT, None, None), consume, pool, max_messages)

    # ---- closing --------------------------------------------------------------------------------------------------
    def check_open(self) -> None:
        """Raise IllegalStateException when the connection is closed, JMSException when its link is lost."""
        if self._closing and not self.in_listener:
            raise IllegalStateException("the connection is closed", "closed")
        if self.link.lost is not None:
            raise jms_error(self.link.lost, "the connection is lost") from self.link.lost

    @property
    def in_listener(self) -> bool:
        """Whether the connection is closing and the calling thread runs one of its listeners, which keeps all services."""
        return self._closing and any(
            session.dispatcher.is_own_thread or session.sends.in_listener for session in self.session_parts()
        )

    def close(self) -> None:
        """Close the connection and all that was made from it; see Connection."""
        close_when_possible(lambda: self.close_within(self.link.options.close_timeout_ms), apart=self.link.closes_apart)

    def close_within(self, timeout_ms: float) -> None:
        """Close in at most this time, in milliseconds."""
        run(self.close_steps(timeout_ms))

    def close_steps(self, timeout_ms: float) -> Steps[None]:
        """See ``close_within``."""
        deadline = Deadline(timeout_ms)
        if not self._closed:
            for session in self.session_parts():
                session.check_may_close("connection")
        with self._guard:
            first, self._closing = not self._closing, True
        if not first:
            yield ConditionWait(self._end, lambda: self._closed, deadline.remaining())
            return
        try:
            begun = [session for session in self.session_parts() if session.begin_close()]
            # What a session has lent is settled before it goes itself.
            begun.sort(key=lambda session: session.lender is not None)
            # A listener that still runs may use every session of its connection until it returns (4.3.5-2).
            for session in begun:
                yield from session.quiesce_steps(deadline)
            for session in begun:
                yield from session.shut_steps(deadline)
            for session in self.session_parts():
                yield from session.close_steps()
        finally:
            try:
                # Also when somebody interrupts it: nobody can close it any more, so it must hold nothing back from others.
                yield from self.link.close_steps(max(1.0, deadline.remaining() or 0.0))
            finally:
                self._notifier.close()
                with self._end:
                    self._closed = True
                    self._end.notify_all()
