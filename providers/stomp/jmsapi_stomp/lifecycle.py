"""Opening and closing the connections of a provider, and what comes over them meanwhile."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final

from jmsapi.spi import Capabilities, Clock, ErrorKind, Events, ProviderError, SendResult, fail, failed, resolve
from jmsapi.wire import ASK_AGAIN_S, IoLoop, RecentlyClosedClientIds
from jmsapi_brokers.subscriptions import BROKERS
from jmsapi_brokers.users import with_user
from jmsapi_stomp.answers import Done, in_words, perform
from jmsapi_stomp.auxiliary_connections import AuxiliaryConnections
from jmsapi_stomp.behaviour import StompBehaviour, StrayError
from jmsapi_stomp.behaviours import choose_behaviour
from jmsapi_stomp.client_id_claim import ClientIdClaim
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.connection_settings import ConnectionSettings, connection_settings
from jmsapi_stomp.context import StompContext
from jmsapi_stomp.errors import lost
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.open_connection import OpenConnection
from jmsapi_stomp.options import StompOptions

__all__ = ["RECENTLY_CLOSED", "ConnectionLifecycle"]

_LOG: Final = logging.getLogger("jmsapi.stomp")
RECENTLY_CLOSED: Final = RecentlyClosedClientIds()
"""Client ids of closed connections of this process: Classic frees one only a moment after it has confirmed the close."""


class ConnectionLifecycle:
    """From unopened to closed.

    Args:
        options: The connection's options.
        clock: The time.
    """

    def __init__(self, options: StompOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self.identity = str(uuid.uuid4())
        """A word of the connection's own, by which its messages are known."""
        self.loop = IoLoop(clock, self._on_crash, _LOG)
        self._events: Events | None = None
        self._opened: Future[Capabilities] = Future()
        self._closed: Future[None] | None = None
        self._lost: ProviderError | None = None
        self._parts: OpenConnection | None = None
        self.parts: OpenConnection | None = None
        """The parts of the open connection; None when it is not open, or of no more use. Read by any thread."""
        self._main: StompConnection | None = None
        self._settings: ConnectionSettings | None = None
        self._claim = ClientIdClaim()
        self._tried_again = False

    # opening

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate; the broker's answer tells which broker it is."""
        if self._events is not None or self._closed is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._events = events
        try:
            self._settings = settings = connection_settings(self._options)
        except ProviderError as cause:
            self._lost = cause
            return failed(cause)
        self.loop.start()
        self.loop.post(self._connect, settings)
        return self._opened

    def _connect(self, settings: ConnectionSettings) -> None:
        if self._closed is not None:
            return  # closed by another thread while it was being opened: _close fails the opening
        self._main = StompConnection(self.loop, self._clock, settings, self)
        self._main.connect(self._on_connected)

    def _on_connected(self, cause: ProviderError | None) -> None:
        connection, events, settings = self._main, self._events, self._settings
        if connection is None or events is None or settings is None:
            return
        if cause is None:
            try:
                behaviour = choose_behaviour(self._options, connection.connected_headers.get("server", ""))
            except ProviderError as unknown:
                cause = unknown
            else:
                parts = self._assemble(connection, events, settings, behaviour)
                perform(self._claim.take(parts.context), lambda refused: self._opened_as(parts, refused))
                return
        self._not_opened(cause)

    def _assemble(
        self, connection: StompConnection, events: Events, settings: ConnectionSettings, behaviour: StompBehaviour
    ) -> OpenConnection:
        connection.adapt(behaviour)
        host, port = settings.address
        context = StompContext(
            self.loop,
            self._clock,
            self._options,
            events,
            connection,
            behaviour,
            self._options.client_id,
            self.identity,
            BROKERS.number(behaviour.name, host, self._options.vhost or "", "stomp", port),
        )
        return OpenConnection(context, AuxiliaryConnections(self.loop, self._clock, settings, self, behaviour))

    def _opened_as(self, parts: OpenConnection, refused: ProviderError | None) -> None:
        if refused is None:
            self._parts = parts
            self.parts = parts
            if self.over:  # closed meanwhile, by another thread
                self.parts = None
            RECENTLY_CLOSED.note_opened(self._client_key)
            behaviour = parts.context.behaviour
            has = behaviour.capabilities()
            resolve(self._opened, with_user(has, behaviour.options) if behaviour.says_users else has)
        else:
            self._not_opened(refused)

    def _not_opened(self, cause: ProviderError) -> None:
        self._claim.drop()
        if self._main is not None:
            self._main.end(cause)
        settings = self._settings
        if settings is not None and self._closed is None and self._worth_another_try(cause):
            self.loop.later(ASK_AGAIN_S, lambda: self._connect(settings))
            return
        self._lost = cause
        self.loop.stop(lambda: fail(self._opened, cause))

    @property
    def _client_key(self) -> tuple[object, ...]:
        options = self._options
        return (options.host, options.port, options.vhost, options.client_id)

    def _worth_another_try(self, cause: ProviderError) -> bool:
        if RECENTLY_CLOSED.worth_asking_again(self._client_key, cause.kind):
            return True
        # Classic under load closes some connections that it refuses without a word; the second time it gives its reason.
        # Without credentials, silence means no more than that nobody is there.
        refusable = self._options.user is not None and self._main is not None and self._main.unanswered
        again = refusable and not self._tried_again
        self._tried_again = self._tried_again or again
        return again

    # closing

    def close(self) -> Future[None]:
        """End in order: what was sent is written, then the broker is told, then everything pending fails."""
        if self._closed is None:
            self._closed = Future()
            self.parts = None
            if self._options.client_id is not None and self._parts is not None:
                self._closed.add_done_callback(lambda _: RECENTLY_CLOSED.note_closed(self._client_key))
            if self._events is None or (self._lost is not None and self._parts is None):
                resolve(self._closed, None)
            else:
                self.loop.post(self._close, self._closed)
        return self._closed

    def _close(self, closed: Future[None]) -> None:
        def left(_: ProviderError | None) -> None:
            self._drop_all()
            fail(self._opened, ProviderError(ErrorKind.CLOSED, "the connection was closed while it was opened"))
            self.loop.stop(lambda: resolve(closed, None))

        connection, parts = self._main, self._parts
        if connection is None or parts is None:
            if connection is not None:
                connection.end(_closed_error())
            left(None)
            return
        self.loop.later(self._options.close_timeout_ms / 1000, lambda: self._give_up(connection, left))
        parts.subscriber.leave_temporaries(
            lambda _: connection.disconnect(lambda _: parts.connections.leave_all(left)),
        )

    def _drop_all(self) -> None:
        """Let go of everything but the thread."""
        self._claim.drop()
        if self._parts is not None:
            for consumer in self._parts.release.all_lost(None, _closed_error()):
                self._parts.subscriber.left(consumer)
            self._parts.connections.drop_all()

    def _give_up(self, connection: StompConnection, left: Done) -> None:
        connection.end(_closed_error())
        left(None)

    def _on_crash(self, fault: Exception) -> None:
        cause = ProviderError(ErrorKind.PROTOCOL, f"a fault in the provider ended the connection: {in_words(fault)}", fatal=True)
        fail(self._opened, cause)
        if self._main is not None:
            self._main.end(cause)
        self._lost = self._lost or cause
        self.parts = None
        if self._closed is not None:
            resolve(self._closed, None)

    # state, for any thread

    @property
    def over(self) -> bool:
        """Whether the connection is lost or closed."""
        return self._lost is not None or self._closed is not None

    def why_not(self) -> ProviderError:
        """Return why the connection is of no use."""
        if self._closed is not None:
            return _closed_error()
        return self._lost or ProviderError(ErrorKind.CLOSED, "the connection is not open")

    def answer(self, token: object, cause: ProviderError) -> None:
        """Fail a send. I/O thread only."""
        if self._events is not None:
            self._events.on_sent([(token, cause)])

    # what connections report

    def on_messages(self, connection: StompConnection, frames: list[Frame]) -> None:
        """Pass messages to their consumers."""
        if self._parts is not None:
            self._parts.flow.on_messages(frames)

    def on_receipts(self, results: list[SendResult]) -> None:
        """Pass answers to the core."""
        if self._events is not None and self._parts is not None:
            self._events.on_sent(self._parts.transactions.answers(results))

    def on_stray_error(self, connection: StompConnection, headers: Mapping[str, str], text: str, error: ProviderError) -> bool:
        """Go on after an ERROR that concerns one consumer, or none any more, or sends in transactions."""
        parts = self._parts
        stray = None if parts is None else parts.context.behaviour.stray_error(text)
        if stray is StrayError.CANCELLED and parts is not None:
            parts.release.cancelled(headers.get("subscription", ""), text)
        if stray is None and parts is not None and connection is self._main:
            return parts.transactions.refused(text, error)
        return stray is not None

    def on_connection_lost(self, connection: StompConnection, cause: ProviderError) -> None:
        """Report the loss to the core once; a further connection takes only its consumers along."""
        parts = self._parts
        if parts is None:
            return
        gone = parts.release.all_lost(connection, cause)
        for consumer in gone:
            parts.subscriber.left(consumer)
        if connection is not self._main:
            for consumer in [one for one in gone if not one.auxiliary]:
                parts.context.events.on_closed(consumer.handle, cause)
            return
        if self._lost is None:
            self._lost = lost(cause)
            self.parts = None
            self._claim.drop()
            if self._closed is None:
                parts.context.events.on_lost(cause)


def _closed_error() -> ProviderError:
    """Return the error of a connection that is closed."""
    return ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
