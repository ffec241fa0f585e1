"""The engine's events, and what each means for a connection, its sessions and its links. Runs on the I/O thread."""

from __future__ import annotations

from typing import Final

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_amqp import engine
from jmsapi_amqp.attach import leave_session
from jmsapi_amqp.causes import cause_of
from jmsapi_amqp.close_handshake import CloseHandshake
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.errors import Cause, to_error
from jmsapi_amqp.links import ReceiverLink, SenderLink

__all__ = ["Dispatch"]

_REFUSED: Final = "amqp:connection-establishment-failed"


class Dispatch:
    """Takes events off the collector and acts on them."""

    def __init__(self, context: ConnectionContext, handshake: CloseHandshake) -> None:
        self._context = context
        self._handshake = handshake
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
        context = self._context
        collector = context.collector
        links = context.links
        handlers = self._handlers
        delivery_type = engine.DELIVERY
        answered = False
        taken: ReceiverLink | None = None
        context.traffic.read_ms = context.clock.now_ms()
        while event := engine.event_peek(collector):
            kind = engine.event_type(event)
            if kind == delivery_type:
                link = links.get(engine.event_link(event))
                if link is taken:  # each delivery has an event, and the first has taken them all
                    pass
                elif isinstance(link, ReceiverLink):
                    link.take()
                    taken = link
                elif link is not None:
                    link.updated(engine.event_delivery(event))
                    answered = True
            else:
                handler = handlers.get(kind)
                if handler is not None:
                    handler(event)
            engine.event_pop(collector)
        # Only now: events that were still to come could have been about what is freed here.
        while context.garbage:
            free, pointer = context.garbage.pop(0)
            free(pointer)
        if answered and self._handshake.asked:
            self._handshake.go_on()

    def _connection_opened(self, event: Pointer) -> None:
        context = self._context
        pointer = context.engine_connection
        found = engine.read_data(engine.connection_remote_properties(pointer))
        properties: dict[str, object] = {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}
        if _REFUSED in properties:
            return  # the reason follows in a close
        offered = engine.read_data(engine.connection_offered(pointer))
        names = offered if isinstance(offered, list) else [offered] if isinstance(offered, str) else []
        context.remote = (properties, tuple(str(name) for name in names))
        context.opened.resolve(None)

    def _connection_closed(self, event: Pointer) -> None:
        context = self._context
        self._handshake.answered = True
        if self._handshake.asked:
            return
        cause = cause_of(engine.connection_condition(context.engine_connection), "amqp:connection:forced")
        engine.connection_close(context.engine_connection)
        context.link_lost = to_error(cause, f"use the connection to {context.wire.where}")

    def _session_opened(self, event: Pointer) -> None:
        context = self._context
        pointer = engine.event_session(event)
        session = context.sessions.get(pointer)
        if session is not None:
            session.opened.resolve(None)
        elif pointer not in context.ending:
            self._unasked("a session")

    def _session_closed(self, event: Pointer) -> None:
        context = self._context
        pointer = engine.event_session(event)
        if pointer in context.ending:
            context.ending.discard(pointer)
            context.garbage.append((engine.session_free, pointer))
            return
        session = context.sessions.pop(pointer, None)
        if session is None:
            return
        cause = cause_of(engine.session_condition(pointer), "amqp:session:closed")
        error = to_error(cause, "use the session")
        session.opened.fail(error)
        session.pointer = None
        for link in list(session.links.values()):
            self._ended(link, cause)
        engine.session_close(pointer)
        context.garbage.append((engine.session_free, pointer))
        for owner in session.owners:
            context.events.on_closed(owner, error)

    def _link_opened(self, event: Pointer) -> None:
        pointer = engine.event_link(event)
        link = self._context.links.get(pointer)
        if link is None:
            if engine.link_state(pointer) & engine.LOCAL_UNINIT:
                self._unasked("a link")
            return
        remote = engine.link_remote_target(pointer) if isinstance(link, SenderLink) else engine.link_remote_source(pointer)
        if engine.terminus_type(remote) == engine.TERMINUS_NONE:
            return  # a refusal; the reason follows in the detach
        link.opened.resolve(None)

    def _unasked(self, what: str) -> None:
        """Give the connection up: the engine keeps whatever a peer begins, and there is no end to it."""
        text = f"the broker at {self._context.wire.where} begins {what} that nobody asked for"
        self._context.fail(ProviderError(ErrorKind.PROTOCOL, text, fatal=True))

    def _link_closed(self, event: Pointer) -> None:
        context = self._context
        pointer = engine.event_link(event)
        link = context.links.get(pointer)
        if link is None:
            return
        cause = cause_of(engine.link_condition(pointer), "amqp:link:detach-forced")
        engine.link_close(pointer)
        context.garbage.append((engine.link_free, pointer))
        self._ended(link, cause)

    def _ended(self, link: SenderLink | ReceiverLink, cause: Cause) -> None:
        """Forget a link that the peer has ended, whether we asked for that or not."""
        context = self._context
        asked_for = link.leaving
        was_open = link.opened.done
        error = to_error(cause, link.asked, selector=link.has_selector)
        if asked_for:
            error = ProviderError(ErrorKind.CLOSED, f"{link.asked}: closed")
        handle = link.handle
        tells = handle is not None and was_open and not asked_for
        if tells:
            context.closed_links.link(link.number, error, link.unsettled if isinstance(link, ReceiverLink) else ())
        context.forget(link)
        link.end(error)
        if link.own_session and not asked_for:
            # Nobody else would end it: who releases the link finds none.
            link.own_session = False
            leave_session(context, link.session)
        if handle is not None and tells:
            context.events.on_closed(handle, error)

    def _flowed(self, event: Pointer) -> None:
        link = self._context.links.get(engine.event_link(event))
        if isinstance(link, SenderLink):
            link.pump()
        elif link is not None:
            link.flowed()
