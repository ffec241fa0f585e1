"""Opening and closing a connection, and what its links tell."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any, Final

from jmsapi.spi import (
    Capabilities,
    Clock,
    ErrorKind,
    Events,
    ProviderError,
    SendResult,
    failed,
)
from jmsapi_stomp.consumers import Consumers
from jmsapi_stomp.control import Done
from jmsapi_stomp.errors import lost
from jmsapi_stomp.frames import Frame
from jmsapi_stomp.link import Link
from jmsapi_stomp.links import Links
from jmsapi_stomp.loop import IoLoop
from jmsapi_stomp.opening import ClientIdClaim, choose_dialect, link_settings
from jmsapi_stomp.options import StompOptions
from jmsapi_stomp.rabbitmq import RabbitMQ
from jmsapi_stomp.registry import GIVEN_BACK
from jmsapi_stomp.sending import Sending
from jmsapi_stomp.settings import LinkSettings
from jmsapi_stomp.steps import run
from jmsapi_stomp.subscribing import Subscribing
from jmsapi_stomp.transactions import Transactions
from jmsapi_stomp.wiring import (
    Wiring,
    fail,
    resolve,
)

__all__ = ["Lifecycle", "closed_error"]

_ASK_AGAIN_S: Final = 0.05


class Lifecycle:
    """From unopened to closed; the seam's other calls stand on it.

    Args:
        options: Its options.
        clock: Where it gets time from.
    """

    def __init__(self, options: StompOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._word = str(uuid.uuid4())
        self._loop = IoLoop(clock, self._on_crash)
        self._serials = count(1)
        self._events: Events | None = None
        self._opened: Future[Capabilities] = Future()
        self._closed: Future[None] | None = None
        self._lost: ProviderError | None = None
        self._wiring: Wiring | None = None
        self._main: Link | None = None
        self._settings: LinkSettings | None = None
        self._claim = ClientIdClaim()
        self._asked_again = False

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate; the dialect is chosen from the broker's answer."""
        if self._events is not None or self._closed is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._events = events
        try:
            self._settings = settings = link_settings(self._options)
        except ProviderError as cause:
            self._lost = cause
            return failed(cause)
        self._loop.start()
        self._loop.post(self._connect, settings)
        return self._opened

    def _connect(self, settings: LinkSettings) -> None:
        if self._closed is not None:
            return  # closed while it was being opened, by another thread: that is told by _close
        self._main = link = Link(self._loop, self._clock, settings, self)
        link.connect(self._on_connected)

    def _on_connected(self, cause: ProviderError | None) -> None:
        link, events, settings = self._main, self._events, self._settings
        if link is None or events is None or settings is None:
            return
        if cause is None:
            try:
                dialect = choose_dialect(self._options, link.connected_headers.get("server", ""))
            except ProviderError as unknown:
                cause = unknown
            else:
                link.adapt(dialect)
                place = (f"{settings.address[0]}:{settings.address[1]}", settings.vhost)
                wiring = Wiring(
                    self._loop, self._clock, self._options, events, link, dialect, self._options.client_id, self._word, place
                )
                self._links = Links(self._loop, self._clock, settings, self, dialect)
                self._consumers = Consumers(wiring)
                self._subscribing = Subscribing(wiring, self._consumers, self._links)
                self._transactions = Transactions(wiring, self._consumers)
                self._sending = Sending(wiring, self._consumers, self._transactions)
                run(self._claim.take(wiring), lambda refused: self._opened_as(wiring, refused))
                return
        self._not_opened(cause)

    def _opened_as(self, wiring: Wiring, refused: ProviderError | None) -> None:
        if refused is None:
            self._wiring = wiring
            GIVEN_BACK.taken(self._id)
            resolve(self._opened, wiring.dialect.capabilities())
        else:
            self._not_opened(refused)

    def _not_opened(self, cause: ProviderError) -> None:
        self._claim.drop()
        if self._main is not None:
            self._main.end(cause)
        settings = self._settings
        if settings is not None and self._closed is None and self._worth_asking_again(cause):
            self._loop.later(_ASK_AGAIN_S, lambda: self._connect(settings))
            return
        self._lost = cause
        self._loop.stop(lambda: fail(self._opened, cause))

    @property
    def _id(self) -> tuple[object, ...]:
        return (self._options.host, self._options.port, self._options.client_id)

    def _worth_asking_again(self, cause: ProviderError) -> bool:
        if cause.kind is ErrorKind.CLIENT_ID:
            # Our own last connection with this id is closed, and the broker may not have got round to freeing it.
            return GIVEN_BACK.lately(self._id)
        # Classic with much to do closes some connections that it refuses without saying why: a second time it says it.
        # Without credentials, silence says no more than that nobody is there.
        refusable = self._options.user is not None and self._main is not None and self._main.unanswered
        unanswered = refusable and not self._asked_again
        self._asked_again = self._asked_again or unanswered
        return unanswered

    def close(self) -> Future[None]:
        """End in order: what was sent is written, then the broker is told, then everything pending fails."""
        if self._closed is None:
            self._closed = Future()
            if self._options.client_id is not None and self._wiring is not None:
                self._closed.add_done_callback(lambda _: GIVEN_BACK.note(self._id))
            if self._events is None or (self._lost is not None and self._wiring is None):
                resolve(self._closed, None)
            else:
                self._loop.post(self._close, self._closed)
        return self._closed

    def _close(self, closed: Future[None]) -> None:
        def left(_: ProviderError | None) -> None:
            self._links_gone()
            fail(self._opened, ProviderError(ErrorKind.CLOSED, "the connection was closed while it was opened"))
            self._loop.stop(lambda: resolve(closed, None))

        link = self._main
        if link is None or self._wiring is None:
            if link is not None:
                link.end(closed_error())
            left(None)
            return
        self._loop.later(self._options.close_timeout_ms / 1000, lambda: self._give_up(link, left))
        self._subscribing.leave_temporaries(lambda _: link.disconnect(lambda _: self._links.leave(left)))

    def _links_gone(self) -> None:
        """Let go of everything but the thread."""
        self._claim.drop()
        if self._wiring is not None:
            for consumer in self._consumers.all_lost(None, closed_error()):
                self._subscribing.left(consumer)
            self._links.end()

    def _give_up(self, link: Link, left: Done) -> None:
        link.end(closed_error())
        left(None)

    def _on_crash(self, fault: Exception) -> None:
        cause = ProviderError(ErrorKind.PROTOCOL, f"a fault in the provider ended the connection: {fault!r}", fatal=True)
        fail(self._opened, cause)
        if self._main is not None:
            self._main.end(cause)
        self._lost = self._lost or cause
        if self._closed is not None:
            resolve(self._closed, None)

    # what links tell

    def _refused(self) -> Future[Any] | None:
        """Return a failed future when the connection is of no more use."""
        if self._wiring is None or self._lost is not None or self._closed is not None:
            return failed(self._why_not())
        return None

    def _why_not(self) -> ProviderError:
        if self._closed is not None:
            return closed_error()
        return self._lost or ProviderError(ErrorKind.CLOSED, "the connection is not open")

    def _wired(self) -> Wiring:
        if self._wiring is None:
            raise self._why_not()
        return self._wiring

    def on_messages(self, link: Link, frames: list[Frame]) -> None:
        """Pass messages to their consumers."""
        self._consumers.on_messages(frames)

    def on_receipts(self, results: list[SendResult]) -> None:
        """Pass answers to the core."""
        if self._events is not None:
            self._events.on_sent(self._transactions.answers(results))

    def on_stray_error(self, link: Link, headers: Mapping[str, str], text: str) -> bool:
        """Live on after an ERROR of RabbitMQ that concerns one consumer, or none any more; it is never an answer."""
        if self._wiring is None or not isinstance(self._wiring.dialect, RabbitMQ):
            return False
        if "Server cancelled subscription" in text:
            self._consumers.cancelled(headers.get("subscription", ""), text)
            return True
        return "Subscription not found" in text

    def on_link_lost(self, link: Link, cause: ProviderError) -> None:
        """Tell the core once that the link is gone; a further connection takes only its consumers along."""
        if self._wiring is None:
            return
        gone = self._consumers.all_lost(link, cause)
        for consumer in gone:
            self._subscribing.left(consumer)
        if link is not self._main:
            for consumer in gone:
                self._wiring.events.on_closed(consumer.handle, cause)
            return
        if self._lost is None:
            self._lost = lost(cause)
            self._claim.drop()
            if self._closed is None:
                self._wiring.events.on_lost(cause)


def closed_error() -> ProviderError:
    """Return what is said of a connection that is closed."""
    return ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
