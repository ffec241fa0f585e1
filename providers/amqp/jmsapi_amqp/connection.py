"""One connection: its I/O thread, its loop, and what the engine's events mean.

Rules:
- Everything here runs on the I/O thread but ``submit``, ``start`` and ``wait_ended``.
- One turn of the loop: requests, events, output, callbacks, sleep. Whatever one read brought is handed over in one call a
  consumer, and whatever requests had gathered goes out in one write.
- The engine's objects are made and freed on this thread, the last of them at the end of ``_run``.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jmsapi.spi import Capabilities, Clock, ErrorKind, Events, ProviderError
from jmsapi.wire import connection_fault, run
from jmsapi_amqp import engine
from jmsapi_amqp.brokers import AmqpBroker, choose
from jmsapi_amqp.causes import cause_of
from jmsapi_amqp.close_handshake import CloseHandshake
from jmsapi_amqp.context import ConnectionContext
from jmsapi_amqp.dispatch import Dispatch
from jmsapi_amqp.errors import from_end
from jmsapi_amqp.opening import prepare
from jmsapi_amqp.settling import Settling
from jmsapi_amqp.wire import AmqpWire
from jmsapi_brokers.users import with_user

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["AmqpConnection"]

_LOG: Final = logging.getLogger("jmsapi.amqp")
_NUMBERS: Final = count(1)
_MOST_UNOPENED: Final = 1 << 20
"""Bytes that a peer may send before the connection is open; the engine keeps them all."""
_MOST_LEFT: Final = 1 << 24
"""Bytes that are read of a broken connection: more than sockets hold."""
T = TypeVar("T")


class AmqpConnection:
    """The I/O side of one AMQP connection."""

    def __init__(
        self, options: AmqpOptions, clock: Clock, events: Events, *, container: str | None = None, hostname: str | None = None
    ) -> None:
        """Make it, unopened.

        Args:
            options: Where to, as whom, how.
            clock: Wall time, for messages that say how long they live.
            events: The core's callbacks.
            container: The container id when it is neither the client id nor a new one.
            hostname: What to call the broker when it is neither the virtual host nor the host.
        """
        self.name = f"jmsapi-{next(_NUMBERS)}-io"
        self.context = ConnectionContext(
            options,
            clock,
            events,
            self.name,
            container=container,
            hostname=hostname,
            submit=self.submit,
            wake=self.wake,
            open_auxiliary=self._auxiliary,
        )
        self.settling = Settling(self.context)
        self.handshake = CloseHandshake(self.context, self._clear_away)
        self._use(choose(options, {}, ()))
        self._dispatch = Dispatch(self.context, self.handshake)
        self._requests: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._asleep = False
        self._late = threading.RLock()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._thread = threading.Thread(target=self._main, name=self.name, daemon=True)
        self._next_tick = 0
        self._open_future: Future[Capabilities] | None = None

    def anew(self) -> AmqpConnection:
        """Return an unopened connection like this one."""
        return self._like(self.context.options, self.context.events, self.context.container, self.context.hostname)

    def at(self, host: str, port: int | None, hostname: str | None) -> AmqpConnection:
        """Return an unopened connection like this one to another place."""
        options = self.context.options
        options = options.model_copy(update={"host": host, "port": port or options.port})
        return self._like(options, self.context.events, self.context.container, hostname)

    def _auxiliary(self, events: Events, container: str) -> AmqpConnection:
        return self._like(self.context.options, events, container, self.context.hostname)

    def _like(self, options: AmqpOptions, events: Events, container: str, hostname: str | None) -> AmqpConnection:
        return AmqpConnection(options, self.context.clock, events, container=container, hostname=hostname)

    def _use(self, broker: AmqpBroker) -> None:
        self.broker = broker
        self.context.behaviour = broker.behaviour
        self.context.traffic.addresses = broker
        self.context.traffic.acquirer_tells = broker.behaviour.acquirer_tells

    async def _clear_away(self) -> None:
        await self.broker.closing(self.context)

    # ------------------------------------------------------------------------------------------------ from any thread

    def start(self, future: Future[Capabilities]) -> None:
        """Start the thread and connect; the future tells what the broker can do."""
        self._open_future = future
        self._thread.start()

    def submit(self, call: Callable[..., None], *arguments: object) -> None:
        """Have ``call`` run on the I/O thread; when that has ended, here, where it finds nothing left to act on."""
        self._requests.append((call, arguments))
        if self.context.ended:
            self._refuse_requests()
        else:
            self.wake()

    def wake(self) -> None:
        """Have the I/O thread take a turn, if it sleeps."""
        if self._asleep:
            self._asleep = False
            with suppress(OSError):
                self._wake_out.send(b"x")

    def submit_steps(self, steps: Coroutine[Any, None, T], future: Future[T]) -> None:
        """Have steps run on the I/O thread; the future gets their result."""
        self.submit(self._start_steps, steps, future)

    def wait_ended(self, timeout: float) -> bool:
        """Wait for the thread to end; at once from that thread itself."""
        if threading.current_thread() is self._thread or self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _start_steps(self, steps: Coroutine[Any, None, T], future: Future[T]) -> None:
        if self.context.link_lost is not None:
            steps.close()
            if future.set_running_or_notify_cancel():
                future.set_exception(self.context.link_lost)
            return
        run(steps, future)

    # ------------------------------------------------------------------------------------------------ the thread

    def _main(self) -> None:
        context = self.context
        context.traffic.transport = engine.new_transport()
        context.engine_connection = engine.new_connection()
        context.collector = engine.new_collector()
        context.wire = AmqpWire(context.options, context.traffic.transport)
        try:
            lost = self._run()
        except ProviderError as error:
            lost = error
            if error.kind is ErrorKind.FORMAT:
                text = f"the peer sent a frame that cannot be read: {error.message}"
                lost = ProviderError(ErrorKind.PROTOCOL, text, fatal=True)
        except Exception as error:  # a fault of ours must not leave callers waiting
            _LOG.exception("%s: the I/O thread failed", self.name)
            lost = ProviderError(ErrorKind.PROTOCOL, f"{self.name}: the I/O thread failed ({error!r})", fatal=True)
        with self.settling.engine:
            self._finish(lost)

    def _run(self) -> ProviderError | None:
        """Connect and turn the loop; return why the link was lost, None after an orderly close."""
        options = self.context.options
        deadline = time.monotonic() + options.connect_timeout_ms / 1000
        prepare(self.context)
        sock = self.context.wire.connect(options.connect_timeout_ms / 1000)
        if self._open_future is not None:
            run(self._opening(), self._open_future)
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_in, selectors.EVENT_READ)
            selector.register(sock, selectors.EVENT_READ)
            return self._turn(selector, sock, deadline)

    def _turn(self, selector: selectors.BaseSelector, sock: socket.socket, deadline: float) -> ProviderError | None:
        """Turn the loop until the link is lost or closed."""
        wake = self._wake_in
        mask = selectors.EVENT_READ
        requests = self._requests
        while True:
            with self.settling.engine:
                lost, going = self._work(deadline)
                if not going:
                    return lost
                wanted = selectors.EVENT_READ | selectors.EVENT_WRITE if self.context.wire.wants_write else selectors.EVENT_READ
                if wanted != mask:
                    selector.modify(sock, wanted)
                    mask = wanted
                timeout = self._timeout(self._next_tick, deadline, self.context.timers.remaining())
                self._asleep = True
                busy = requests or self.settling.waits or (self.context.traffic.large and not self.context.wire.wants_write)
            ready = selector.select(0 if busy else timeout)
            self._asleep = False
            for key, _ in ready:
                if key.fileobj is wake:
                    with suppress(BlockingIOError):
                        self._wake_in.recv(4096)
                    continue
                with self.settling.engine:
                    lost, going = self._read()
                    if not going:
                        return lost

    def _work(self, deadline: float) -> tuple[ProviderError | None, bool]:
        """Do what was asked for and write; return why the link is lost, and whether to go on."""
        requests = self._requests
        asked = len(requests)  # counted first: a request to close must not overtake what was asked before it
        self.settling.begin()
        for _ in range(asked):
            call, arguments = requests.popleft()
            call(*arguments)
        self.context.timers.run()
        self._dispatch.events()
        now = time.monotonic()
        self._next_tick = engine.transport_tick(self.context.traffic.transport, int(now * 1000))
        try:
            alive = self.context.wire.write()
            for link in tuple(self.context.traffic.large):
                link.pump()
        except OSError as error:
            return self._broken(error), False
        if not self.context.wire.wants_write:
            self.settling.wrote()
        self.context.traffic.report()
        if self.context.link_lost is not None:
            return self.context.link_lost, False
        if (not alive and not self.handshake.waits) or engine.transport_closed(self.context.traffic.transport):
            return None if self.handshake.asked else self._end_of_stream(), False
        if self.handshake.asked and now > self.handshake.by:
            return None, False
        if not self.context.opened.done and now > deadline:
            text = f"open a connection to {self.context.wire.where}: no answer in {self.context.options.connect_timeout_ms} ms"
            return ProviderError(ErrorKind.TIMEOUT, text, fatal=True), False
        return None, True

    def _broken(self, error: OSError) -> ProviderError:
        """Read all that the peer sent before it closed, and return why the link is lost."""
        wire = self.context.wire
        known, more, end = -1, True, wire.received + _MOST_LEFT
        try:
            while more and self.context.link_lost is None and known < wire.received < end:
                known = wire.received
                more = wire.read()
                self._dispatch.events()
        except OSError as reported:
            return self._why_lost(reported, "read from")
        return self._why_lost(error, "write to")

    def _why_lost(self, error: OSError, asked: str) -> ProviderError:
        """Return why the link is lost: the peer's close, if one has come, is a better reason than the end of the socket."""
        self._dispatch.events()
        self.context.traffic.report()
        return self.context.link_lost or connection_fault(error, f"{asked} {self.context.wire.where}")

    def _read(self) -> tuple[ProviderError | None, bool]:
        """Read what has come; return why the link is lost, and whether to go on."""
        try:
            more = self.context.wire.read()
        except OSError as error:
            return self._why_lost(error, "read from"), False
        if not self.context.opened.done and self.context.wire.received > _MOST_UNOPENED:
            text = f"{self.context.wire.where} has sent more than {_MOST_UNOPENED} bytes and not opened the connection"
            return ProviderError(ErrorKind.PROTOCOL, text, fatal=True), False
        if more:
            return None, True
        self._dispatch.events()
        self.context.traffic.report()
        if self.context.link_lost is not None:
            return self.context.link_lost, False
        return None if self.handshake.asked else self._end_of_stream(), False

    def _timeout(self, next_tick: int, deadline: float, next_call: float | None) -> float | None:
        """Return the longest sleep in seconds; None for ever."""
        now = time.monotonic()
        waits = [] if next_call is None else [next_call]
        if next_tick:
            waits.append(next_tick / 1000 - now)
        if not self.context.opened.done:
            waits.append(deadline - now)
        if self.handshake.asked:
            waits.append(self.handshake.by - now)
        return max(0.0, min(waits) + 0.001) if waits else None

    def _end_of_stream(self) -> ProviderError:
        transport = self.context.traffic.transport
        condition = engine.transport_condition(transport)
        cause = cause_of(condition, "amqp:connection:framing-error") if engine.condition_is_set(condition) else None
        later = engine.sasl_outcome(engine.sasl(transport)) in engine.SASL_FAULTS
        return from_end(
            cause,
            self.context.wire.where,
            was_open=self.context.opened.done,
            vhost=self.context.options.vhost,
            login_may_work_later=later,
        )

    def _finish(self, lost: ProviderError | None) -> None:
        """Fail whoever waits, free the engine's objects, say that the link is lost unless we closed it."""
        context = self.context
        cause = lost or ProviderError(ErrorKind.CLOSED, f"the connection to {context.wire.where} is closed", fatal=True)
        context.link_lost = cause
        self.settling.end(cause)
        was_open = context.opened.done
        for link in list(context.by_number.values()):
            link.end(cause)
            link.gone()
        for session in list(context.sessions.values()):
            session.opened.fail(cause)
            session.pointer = None
        for promise in list(context.pending):
            promise.fail(cause)
        context.opened.fail(cause)
        for everything in (context.ending, context.idle_sessions, context.further_sessions, context.pending):
            everything.clear()
        context.links.clear()
        context.by_number.clear()
        context.sessions.clear()
        context.traffic.incoming.clear()
        context.traffic.filled.clear()
        context.ended = True
        self.broker.ended(context)
        self._refuse_requests()
        context.wire.close()
        # Events hold on to what they are about: they go first, and none are made after that.
        engine.release_collector(context.collector)
        engine.transport_unbind(context.traffic.transport)
        engine.connection_release(context.engine_connection)
        engine.decref(context.engine_connection)  # a release gives the links and sessions up, and keeps the memory
        engine.decref(context.traffic.transport)
        engine.free_collector(context.collector)
        if lost is not None and was_open and not self.handshake.asked:
            context.events.on_lost(lost)
        self._wake_in.close()
        self._wake_out.close()
        if self._open_future is not None and not self._open_future.done():
            self._open_future.set_exception(cause)
        self.handshake.done()

    def _refuse_requests(self) -> None:
        """Run what was asked for too late: each request sees that the link is gone, and is answered so."""
        with self._late:
            while self._requests:
                call, arguments = self._requests.popleft()
                call(*arguments)
            self.context.traffic.report()

    # ------------------------------------------------------------------------------------------------ on the thread

    async def _opening(self) -> Capabilities:
        await self.context.opened
        properties, offered = self.context.remote
        self._use(choose(self.context.options, properties, offered))
        has = await self.broker.opened(self.context)
        return with_user(has, self.context.options) if self.broker.says_users else has

    def submit_close(self, future: Future[None]) -> None:
        """Have the connection closed in order, after what was asked for before; the future is done at the thread's end."""
        self.submit(self._close, future)

    def _close(self, future: Future[None]) -> None:
        if self.context.ended:
            future.set_result(None)
            return
        self.handshake.ask(future)
