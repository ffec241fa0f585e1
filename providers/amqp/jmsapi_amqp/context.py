"""What the parts of one connection share: the engine's objects, sessions and links, and ways to get things done on its thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import uuid4

from jmsapi.spi import Capabilities, Clock, Events, ProviderError
from jmsapi.wire import Promise, spawn
from jmsapi_amqp import engine
from jmsapi_amqp.behaviour import Behaviour
from jmsapi_amqp.closed_links import ClosedLinks
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.io_timers import IoTimers
from jmsapi_amqp.links import ReceiverLink, SenderLink, Traffic, WireSession
from jmsapi_amqp.wire import AmqpWire

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["Auxiliary", "ConnectionContext"]

_LOG: Final = logging.getLogger("jmsapi.amqp")
T = TypeVar("T")


class Auxiliary(Protocol):
    """A second connection to the same broker, for work that cannot be done on the first."""

    context: ConnectionContext

    def start(self, future: Future[Capabilities]) -> None:
        """Open it; the future tells what the broker can do."""
        ...

    def submit_steps(self, steps: Coroutine[Any, None, T], future: Future[T]) -> None:
        """Have steps run on its thread; the future gets their result."""
        ...

    def submit_close(self, future: Future[None]) -> None:
        """Have it closed; the future is done at the end of its thread."""
        ...


class ConnectionContext:
    """The shared state of one connection. Used on its I/O thread, except for what is set once and ``submit``.

    Args:
        options: Where to, as whom, how.
        clock: Wall time, for messages that say how long they live, and timers.
        events: The core's callbacks.
        name: The connection's, in logs and of its thread.
        container: The container id when it is neither the client id nor a new one.
        hostname: What to call the broker when it is neither the virtual host nor the host.
        submit: Has a call run on the I/O thread; any thread.
        wake: Has the I/O thread take a turn, if it sleeps; any thread.
        open_auxiliary: Makes a second connection with events and a container id of its own.
    """

    def __init__(
        self,
        options: AmqpOptions,
        clock: Clock,
        events: Events,
        name: str,
        *,
        container: str | None,
        hostname: str | None,
        submit: Callable[..., None],
        wake: Callable[[], None],
        open_auxiliary: Callable[[Events, str], Auxiliary],
    ) -> None:
        self.options = options
        self.clock = clock
        self.events = events
        self.name = name
        self.container = container if container is not None else options.client_id or f"ID:{uuid4()}"
        self.hostname = hostname
        self.submit = submit
        self.wake = wake
        self.open_auxiliary = open_auxiliary
        self.behaviour = Behaviour()
        self.timers = IoTimers()
        """Calls that the I/O thread makes later."""
        self.traffic = Traffic(events, options.max_message, self.fail)
        self.wire: AmqpWire
        self.engine_connection: Pointer
        self.collector: Pointer
        self.sessions: dict[Pointer, WireSession] = {}
        self.ending: set[Pointer] = set()
        """Sessions that we have ended and the broker has not yet."""
        self.idle_sessions: list[WireSession] = []
        """Open sessions without a link, to be used again."""
        self.further_sessions: list[WireSession] = []
        """Sessions of links for which there was no room elsewhere."""
        self.links: dict[Pointer, SenderLink | ReceiverLink] = {}
        self.by_number: dict[int, SenderLink | ReceiverLink] = {}
        self.closed_links = ClosedLinks()
        self.garbage: list[tuple[Callable[[Pointer], None], Pointer]] = []
        """Links and sessions of the engine to be freed when no event is left that could name them."""
        self.opened: Promise[None] = Promise()
        self.remote: tuple[dict[str, object], tuple[str, ...]] = ({}, ())
        """What the broker says of itself, and the capabilities that it offers."""
        self.pending: set[Promise[Any]] = set()
        """Promises that belong to no link; broken when the connection ends."""
        self.link_lost: ProviderError | None = None
        self.ended = False

    @property
    def free_sessions(self) -> int:
        """How many sessions can be begun; one that is ending keeps its channel until the broker has answered."""
        most = engine.transport_channel_max(self.traffic.transport) + 1
        if self.behaviour.max_sessions is not None:
            most = min(most, self.behaviour.max_sessions)
        return most - len(self.sessions) - len(self.ending)

    def fail(self, error: ProviderError) -> None:
        """Take the connection for lost; its loop ends with the next turn."""
        if self.link_lost is None:
            self.link_lost = error

    def forget(self, link: SenderLink | ReceiverLink) -> None:
        """Take a link off the lists, and off the count of whoever counted it."""
        if link.pointer is not None:
            self.links.pop(link.pointer, None)
        self.by_number.pop(link.number, None)
        link.session.links.pop(link.number, None)
        link.gone()

    def add_promise(self, promise: Promise[T]) -> Promise[T]:
        """Break ``promise`` when the connection ends, if it was not resolved by then."""
        self.pending = {waiting for waiting in self.pending if not waiting.done}
        self.pending.add(promise)
        return promise

    def spawn(self, steps: Coroutine[Any, None, None]) -> None:
        """Run steps that nobody waits for; a failure is logged."""
        spawn(steps, _LOG)
