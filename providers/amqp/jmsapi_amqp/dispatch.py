"""The engine's events, and what each means for a connection, its sessions and its links. Runs on the I/O thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.attach import end_session
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.errors import Cause, to_error
from jmsapi_amqp.links import ReceiverLink, SenderLink

if TYPE_CHECKING:
    from jmsapi_amqp.connection import Connection

__all__ = ["Dispatch"]

_REFUSED: Final = "amqp:connection-establishment-failed"


class Dispatch:
    """Takes events off the collector and acts on them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._handlers = {
            engine.CONNECTION_REMOTE_OPEN: self._connection_opened,
            engine.CONNECTION_REMOTE_CLOSE: self._connection_closed,
            engine.SESSION_REMOTE_OPEN: self._session_opened,
            engine.SESSION_REMOTE_CLOSE: self._session_closed,
            engine.LINK_REMOTE_OPEN: self._link_opened,
            engine.LINK_REMOTE_CLOSE: self._link_closed,
            engine.LINK_REMOTE_DETACH: self._link_closed,
            engine.LINK_FLOW: self._flowed,
        }

    def events(self) -> None:
        """Act on every event there is."""
        connection = self._connection
        collector = connection.collector
        links = connection.links
        handlers = self._handlers
        delivery_type = engine.DELIVERY
        answered = False
        connection.read_ms = connection.clock.now_ms()
        while not engine.is_null(event := engine.event_peek(collector)):
            kind = engine.event_type(event)
            if kind == delivery_type:
                delivery = engine.event_delivery(event)
                link = links.get(engine.delivery_link(delivery))
                if link is None:
                    pass
                elif isinstance(link, ReceiverLink):
                    link.take()
                else:
                    link.updated(delivery)
                    answered = True
            else:
                handler = handlers.get(kind)
                if handler is not None:
                    handler(event)
            engine.event_pop(collector)
        # Only now: events that were still to come could have been about what is freed here.
        while connection.garbage:
            free, pointer = connection.garbage.pop(0)
            free(pointer)
        if answered and connection.goodbye.asked:
            connection.goodbye.go_on()

    def _connection_opened(self, event: Pointer) -> None:
        connection = self._connection
        pointer = connection.engine_connection
        found = engine.read_data(engine.connection_remote_properties(pointer))
        properties: dict[str, object] = {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}
        if _REFUSED in properties:
            return  # the reason follows in a close
        offered = engine.read_data(engine.connection_offered(pointer))
        names = offered if isinstance(offered, list) else [offered] if isinstance(offered, str) else []
        connection.remote = (properties, tuple(str(name) for name in names))
        connection.opened.keep(None)

    def _connection_closed(self, event: Pointer) -> None:
        connection = self._connection
        connection.goodbye.answered = True
        if connection.goodbye.asked:
            return
        cause = connection.cause_of(engine.connection_condition(connection.engine_connection), "amqp:connection:forced")
        engine.connection_close(connection.engine_connection)
        connection.lose(cause, f"use the connection to {connection.wire.where}")

    def _session_opened(self, event: Pointer) -> None:
        session = self._connection.sessions.get(engine.event_session(event))
        if session is not None:
            session.opened.keep(None)

    def _session_closed(self, event: Pointer) -> None:
        connection = self._connection
        pointer = engine.event_session(event)
        if pointer in connection.ending:
            connection.ending.discard(pointer)
            connection.garbage.append((engine.session_free, pointer))
            return
        session = connection.sessions.pop(pointer, None)
        if session is None:
            return
        cause = connection.cause_of(engine.session_condition(pointer), "amqp:session:closed")
        error = to_error(cause, "use the session")
        session.opened.fail(error)
        session.pointer = None
        for link in list(session.links.values()):
            self._ended(link, cause)
        engine.session_close(pointer)
        connection.garbage.append((engine.session_free, pointer))
        for owner in session.owners:
            connection.events.on_closed(owner, error)

    def _link_opened(self, event: Pointer) -> None:
        pointer = engine.event_link(event)
        link = self._connection.links.get(pointer)
        if link is None:
            return
        remote = engine.link_remote_target(pointer) if isinstance(link, SenderLink) else engine.link_remote_source(pointer)
        if engine.terminus_type(remote) == engine.TERMINUS_NONE:
            return  # a refusal; the reason follows in the detach
        link.opened.keep(None)

    def _link_closed(self, event: Pointer) -> None:
        connection = self._connection
        pointer = engine.event_link(event)
        link = connection.links.get(pointer)
        if link is None:
            return
        cause = connection.cause_of(engine.link_condition(pointer), "amqp:link:detach-forced")
        engine.link_close(pointer)
        connection.garbage.append((engine.link_free, pointer))
        self._ended(link, cause)

    def _ended(self, link: SenderLink | ReceiverLink, cause: Cause) -> None:
        """Close the book on a link that the peer has ended, whether we asked for that or not."""
        connection = self._connection
        asked_for = link.leaving
        was_open = link.opened.done
        error = to_error(cause, link.asked, selector=link.has_selector)
        if asked_for:
            error = ProviderError(ErrorKind.CLOSED, f"{link.asked}: closed")
        handle = link.handle
        tells = handle is not None and was_open and not asked_for
        if tells:
            connection.broken.link(link.number, error, link.unsettled if isinstance(link, ReceiverLink) else ())
        connection.forget(link)
        link.end(error)
        if link.own_session and not asked_for:
            # Nobody else would end it: who releases the link finds none.
            link.own_session = False
            end_session(connection, link.session)
        if handle is not None and tells:
            connection.events.on_closed(handle, error)

    def _flowed(self, event: Pointer) -> None:
        link = self._connection.links.get(engine.event_link(event))
        if isinstance(link, SenderLink):
            link.pump()
        elif link is not None:
            link.flowed()
