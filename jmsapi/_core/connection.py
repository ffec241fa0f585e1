"""A connection: its link, its sessions, its client id, start, stop, close, and the exception listener.

Spec: 4.3.
"""

from __future__ import annotations

import itertools
import logging
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from jmsapi._core import options_check as valid
from jmsapi._core.closing import quiesce, shut
from jmsapi._core.errors_map import jms_error
from jmsapi._core.facilities import ConnectionConsumerImpl
from jmsapi._core.forked import free
from jmsapi._core.ledger import AUTO
from jmsapi._core.link import Link
from jmsapi._core.metadata import MetaDataImpl
from jmsapi._core.object_codec import ObjectCodec
from jmsapi._core.session import SessionImpl
from jmsapi._core.telling import ConnectionListener, Telling
from jmsapi._core.waiting import Deadline
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
NewSession = Callable[["ConnectionImpl", int, int], S]
_log = logging.getLogger("jmsapi")


class ConnectionImpl(Connection):
    """A connection to one broker, open when made.

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
        self._sessions: dict[SessionImpl, None] = {}
        self._numbers = itertools.count(1)
        self._started = False
        self._touched = False
        self._closing = False
        self._closed = threading.Event()
        self._telling = Telling()
        self.link = Link(entry, options, clock, self)

    # ---- client id ------------------------------------------------------------------------------------------------
    @property
    def client_id(self) -> str | None:
        """Return the client id, or None; see Connection."""
        self.check_open()
        return self.link.options.client_id

    @client_id.setter
    def client_id(self, client_id: str | None) -> None:
        self.check_open()
        if self.link.options.client_id is not None:
            raise IllegalStateException("the connection has a client id already; it is set once, or by the factory")
        if self._touched:
            raise IllegalStateException("a client id is the first thing to set on a connection; this one is in use already")
        if not isinstance(client_id, str) or not client_id or not valid.encodable(client_id):
            raise InvalidClientIDException(f"a client id is text that can be written, and not empty; not {client_id!r}")
        options = self.link.options.having(client_id=client_id)
        # Both wires name the client when they open, so the unused link is opened again. The old one goes last:
        # if the id is refused the connection stays as it was.
        old, self.link = self.link, Link(self._entry, options, self._clock, self)
        old.close(options.close_timeout_ms / 1000)
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
        self, kind: NewSession[S], mode: int | bool | None, acknowledge_mode: int | None, transacted: bool | None
    ) -> S:
        """Create a session of one class and remember it."""
        self.check_open()
        self.touch()
        session = kind(self, valid.asked_mode(mode, acknowledge_mode, transacted), next(self._numbers))
        with self._guard:
            self._sessions[session] = None
            session.set_flowing(self._started)
        if self._closing and not self.in_listener:
            session.close()
            self.check_open()
        return session

    def forget(self, session: SessionImpl) -> None:
        """Drop a closed session."""
        with self._guard:
            self._sessions.pop(session, None)

    def sessions(self) -> list[SessionImpl]:
        """Return the open sessions."""
        with self._guard:
            return list(self._sessions)

    def subscription_in_use(self, name: str) -> bool:
        """Return whether a consumer of this connection uses a durable subscription, or has something unsettled from it."""
        return any(
            consumer.spec.durable and consumer.spec.subscription == name
            for session in self.sessions()
            for consumer in list(session.consumers.values())
        )

    # ---- temporary destinations -----------------------------------------------------------------------------------
    def delete_temporary(self, address: Address) -> None:
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
        users = (consumer for session in self.sessions() for consumer in list(session.consumers.values()))
        if any(consumer.spec.address == address for consumer in users):
            raise IllegalStateException(f"delete {address.name!r}: it still has a consumer; close that first", "in-use")
        living = [session for session in self.sessions() if not session.closing]
        session = living[0] if living else self.add_session(SessionImpl, AUTO, None, None)
        try:
            self.link.call(lambda: self.link.provider.remove(session.handle, address), f"delete {address.name!r}")
        except IllegalStateException as error:
            if error.error_code != "closed" or not session.closing:
                raise
            self.delete_temporary(address)  # another thread has closed that session meanwhile
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
        self.check_open()
        self.touch()
        sessions = self.sessions()
        for session in sessions:
            if session.dispatcher.is_own_thread:
                raise IllegalStateException("stop: a message listener may not stop its own connection")
        with self._guard:
            self._started = False
            for session in self._sessions:
                session.set_flowing(False)
        deadline = Deadline(self.link.options.close_timeout_ms)
        for session in sessions:
            if not session.wait_paused(deadline):
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
        return self._telling.listener  # type: ignore[return-value]

    @exception_listener.setter
    def exception_listener(self, exception_listener: ExceptionListenerLike | None) -> None:
        self.check_open()
        if exception_listener is not None and not callable(getattr(exception_listener, "on_exception", exception_listener)):
            raise IllegalArgumentException(f"an exception listener has on_exception or is callable, not {exception_listener!r}")
        self._telling.listener = exception_listener

    def report(self, error: JMSException) -> None:
        """Give an error that no caller hears of to the exception listener, else to the log."""
        self._telling.problem(error, self._thread_name)

    @property
    def _thread_name(self) -> str:
        return f"jmsapi-{self.link.number}-connection"

    # ---- what its link tells --------------------------------------------------------------------------------------
    @property
    def connection_listener(self) -> ConnectionListener | None:
        """Who is told of interruptions; see ``jmsapi.set_connection_listener``."""
        self.check_open()
        return self._telling.watcher

    @connection_listener.setter
    def connection_listener(self, connection_listener: ConnectionListener | None) -> None:
        self.check_open()
        self._telling.watcher = connection_listener

    def lost(self, cause: ProviderError) -> None:
        """The link is lost for good."""
        for session in self.sessions():
            with session.lock:
                session.changed.notify_all()
        self.report(jms_error(cause, "the connection is lost"))

    def left_behind(self) -> None:
        """This is a forked child, and the link its parent's: so is what waits in the sessions."""
        free(self._guard)
        for session in list(self._sessions):
            free(session.lock)
            for inbox in list(session.consumers):
                inbox.buffer.clear()

    def interrupted(self, cause: ProviderError) -> None:
        """The link is lost and another one is being made: what came by it is void."""
        failover = self.link.options.failover
        if failover is not None and not failover.recreate_temporary:
            with self._guard:
                self.deleted |= self.temporaries
                self.temporaries.clear()
        for session in self.sessions():
            session.interrupted(cause)
        self._telling.interrupted(jms_error(cause, "the link is lost"), self._thread_name)

    def resumed(self, url: str) -> None:
        """There is a link again: let messages come."""
        for session in self.sessions():
            session.resumed()
        self._telling.resumed(url, self._thread_name)

    def attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        """An attempt to make a link has failed."""
        # Of the attempts that make the connection itself nobody can be told: there is no connection yet.
        if self._telling.watcher is not None:
            self._telling.attempt_failed(url, attempt, cause, self._thread_name)

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
        return ConnectionConsumerImpl(self, consume, pool, max_messages)

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
            session.dispatcher.is_own_thread or session.outbox.in_listener for session in self.sessions()
        )

    def close(self) -> None:
        """Close the connection and all that was made from it; see Connection."""
        self.close_within(self.link.options.close_timeout_ms)

    def close_within(self, timeout_ms: float) -> None:
        """Close in at most this time, in milliseconds."""
        deadline = Deadline(timeout_ms)
        if not self._closed.is_set():
            for session in self.sessions():
                session.check_may_close("connection")
        with self._guard:
            first, self._closing = not self._closing, True
        if not first:
            self._closed.wait(deadline.remaining())
            return
        try:
            begun = [session for session in self.sessions() if session.begin_close()]
            # What a connection consumer has lent is settled before its own session goes.
            begun.sort(key=lambda session: session.closes_last)
            for session in begun:
                quiesce(session, deadline)
            for session in begun:
                shut(session, deadline)
            for session in self.sessions():
                session.close()
        finally:
            try:
                # Also when somebody interrupts it: nobody can close it any more, so it must hold nothing back from others.
                self.link.close(max(1.0, deadline.remaining() or 0.0))
            finally:
                self._telling.close()
                self._closed.set()
