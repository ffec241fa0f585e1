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
from uuid import uuid4

from jmsapi.spi import Capabilities, Clock, ErrorKind, Events, ProviderError, SendResult
from jmsapi_amqp import engine
from jmsapi_amqp.brokers import Broker, choose
from jmsapi_amqp.dispatch import Dispatch
from jmsapi_amqp.ended import Ended
from jmsapi_amqp.engine import Pointer
from jmsapi_amqp.errors import Cause, from_end, from_os_error, to_error
from jmsapi_amqp.goodbye import Goodbye
from jmsapi_amqp.links import ReceiverLink, SenderLink, WireSession
from jmsapi_amqp.opening import prepare
from jmsapi_amqp.settling import Settling
from jmsapi_amqp.tasks import Promise, run
from jmsapi_amqp.wire import Wire

if TYPE_CHECKING:
    from jmsapi_amqp.options import AmqpOptions

__all__ = ["Connection"]

_LOG: Final = logging.getLogger("jmsapi.amqp")
_NUMBERS: Final = count(1)
T = TypeVar("T")


class Connection:
    """The I/O side of one AMQP connection."""

    def __init__(
        self, options: AmqpOptions, clock: Clock, events: Events, *, container: str | None = None, hostname: str | None = None
    ) -> None:
        """Make it, unopened.

        Args:
            options: Where to, as whom, how.
            clock: Wall time, for messages that say how long they live.
            events: Who is told.
            container: The container id when it is neither the client id nor a new one.
            hostname: What to call the broker when it is neither the virtual host nor the host.
        """
        self.options = options
        self.hostname = hostname
        self.clock = clock
        self.events = events
        self.name = f"jmsapi-{next(_NUMBERS)}-io"
        self.container = container if container is not None else options.client_id or f"ID:{uuid4()}"
        self.book: Broker = choose(options, {}, ())
        self.acquirer_tells = False
        self.read_ms = 0
        self.serial = 0
        self.incoming: dict[int, tuple[Pointer, ReceiverLink]] = {}
        self.sent: list[SendResult] = []
        self.filled: set[ReceiverLink] = set()
        self.large: set[SenderLink] = set()
        self.sessions: dict[Pointer, WireSession] = {}
        self.ending: set[Pointer] = set()
        """Sessions that we have ended and the broker has not yet."""
        self.idle_sessions: list[WireSession] = []
        """Open sessions without a link, to be used again."""
        self.links: dict[Pointer, SenderLink | ReceiverLink] = {}
        self.by_number: dict[int, SenderLink | ReceiverLink] = {}
        self.broken = Ended()
        self.garbage: list[tuple[Callable[[Pointer], None], Pointer]] = []
        """Links and sessions of the engine to be freed when no event is left that could name them."""
        self.opened: Promise[None] = Promise()
        self.remote: tuple[dict[str, object], tuple[str, ...]] = ({}, ())
        self.pending: set[Promise[Any]] = set()
        """Promises that belong to no link; broken when the connection ends."""
        self.link_lost: ProviderError | None = None
        self._requests: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self.settling = Settling(self)
        self._asleep = False
        self.ended = False
        self._late = threading.RLock()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._thread = threading.Thread(target=self._main, name=self.name, daemon=True)
        self.goodbye = Goodbye(self)
        self._next_tick = 0
        self._open_future: Future[Capabilities] | None = None
        self._dispatch = Dispatch(self)

    def anew(self) -> Connection:
        """Return an unopened connection like this one."""
        return Connection(self.options, self.clock, self.events, container=self.container, hostname=self.hostname)

    def at(self, host: str, port: int | None, hostname: str | None) -> Connection:
        """Return an unopened connection like this one to another place."""
        options = self.options.model_copy(update={"host": host, "port": port or self.options.port})
        return Connection(options, self.clock, self.events, container=self.container, hostname=hostname)

    # ------------------------------------------------------------------------------------------------ from any thread

    def start(self, future: Future[Capabilities]) -> None:
        """Start the thread and connect; the future tells what the broker can do."""
        self._open_future = future
        self._thread.start()

    def submit(self, call: Callable[..., None], *arguments: object) -> None:
        """Have ``call`` run on the I/O thread; when that has ended, here, where it finds nothing left to act on."""
        self._requests.append((call, arguments))
        if self.ended:
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
        if self.link_lost is not None:
            steps.close()
            if future.set_running_or_notify_cancel():
                future.set_exception(self.link_lost)
            return
        run(steps, future)

    # ------------------------------------------------------------------------------------------------ the thread

    def _main(self) -> None:
        self.transport = engine.new_transport()
        self.engine_connection = engine.new_connection()
        self.collector = engine.new_collector()
        self.wire = Wire(self.options, self.transport)
        try:
            lost = self._run()
        except ProviderError as error:
            lost = error
        except Exception as error:  # a fault of ours must not leave callers waiting
            _LOG.exception("%s: the I/O thread failed", self.name)
            lost = ProviderError(ErrorKind.PROTOCOL, f"{self.name}: the I/O thread failed ({error!r})", fatal=True)
        with self.settling.engine:
            self._finish(lost)

    def _run(self) -> ProviderError | None:
        """Connect and turn the loop; return why the link was lost, None after an orderly close."""
        options = self.options
        deadline = time.monotonic() + options.connect_timeout_ms / 1000
        prepare(self)
        sock = self.wire.connect(options.connect_timeout_ms / 1000)
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
                wanted = selectors.EVENT_READ | selectors.EVENT_WRITE if self.wire.wants_write else selectors.EVENT_READ
                if wanted != mask:
                    selector.modify(sock, wanted)
                    mask = wanted
                timeout = self._timeout(self._next_tick, deadline)
                self._asleep = True
                busy = requests or self.settling.waits or (self.large and not self.wire.wants_write)
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
        asked = len(requests)  # counted first: a request to close must not overtake what was said before it
        self.settling.begin()
        for _ in range(asked):
            call, arguments = requests.popleft()
            call(*arguments)
        self._dispatch.events()
        now = time.monotonic()
        self._next_tick = engine.transport_tick(self.transport, int(now * 1000))
        try:
            alive = self.wire.write()
            for link in tuple(self.large):
                link.pump()
        except OSError as error:
            return from_os_error(error, f"write to {self.wire.where}"), False
        if not self.wire.wants_write:
            self.settling.wrote()
        self._report()
        if self.link_lost is not None:
            return self.link_lost, False
        if (not alive and not self.goodbye.waits) or engine.transport_closed(self.transport):
            return None if self.goodbye.asked else self._end_of_stream(), False
        if self.goodbye.asked and now > self.goodbye.by:
            return None, False
        if not self.opened.done and now > deadline:
            text = f"open a connection to {self.wire.where}: no answer in {self.options.connect_timeout_ms} ms"
            return ProviderError(ErrorKind.TIMEOUT, text, fatal=True), False
        return None, True

    def _read(self) -> tuple[ProviderError | None, bool]:
        """Read what has come; return why the link is lost, and whether to go on."""
        try:
            more = self.wire.read()
        except OSError as error:
            return from_os_error(error, f"read from {self.wire.where}"), False
        if more:
            return None, True
        self._dispatch.events()
        self._report()
        if self.link_lost is not None:
            return self.link_lost, False
        return None if self.goodbye.asked else self._end_of_stream(), False

    def _timeout(self, next_tick: int, deadline: float) -> float | None:
        """Return the longest sleep in seconds; None for ever."""
        now = time.monotonic()
        waits: list[float] = []
        if next_tick:
            waits.append(next_tick / 1000 - now)
        if not self.opened.done:
            waits.append(deadline - now)
        if self.goodbye.asked:
            waits.append(self.goodbye.by - now)
        return max(0.0, min(waits) + 0.001) if waits else None

    def _end_of_stream(self) -> ProviderError:
        condition = engine.transport_condition(self.transport)
        cause = self.cause_of(condition, "amqp:connection:framing-error") if engine.condition_is_set(condition) else None
        return from_end(cause, self.wire.where, was_open=self.opened.done)

    def _report(self) -> None:
        """Hand over what the last events brought: deliveries first, then answers."""
        if self.filled:
            filled, self.filled = self.filled, set()
            for link in filled:
                self.hand_over(link)
        if self.sent:
            sent, self.sent = self.sent, []
            self.events.on_sent(sent)

    def hand_over(self, link: ReceiverLink) -> None:
        """Give the core one consumer's deliveries."""
        batch = link.batch
        if batch and link.handle is not None:
            link.batch = []
            self.events.on_deliveries(link.handle, batch)

    def _finish(self, lost: ProviderError | None) -> None:
        """Fail whoever waits, free the engine's objects, say that the link is lost unless we closed it."""
        cause = lost or ProviderError(ErrorKind.CLOSED, f"the connection to {self.wire.where} is closed", fatal=True)
        self.link_lost = cause
        self.settling.end(cause)
        was_open = self.opened.done
        for link in list(self.by_number.values()):
            link.end(cause)
            self.book.subscriptions.leave(link)
        for session in list(self.sessions.values()):
            session.opened.fail(cause)
            session.pointer = None
        for promise in list(self.pending):
            promise.fail(cause)
        self.ending.clear()
        self.idle_sessions.clear()
        self.opened.fail(cause)
        self.pending.clear()
        self.links.clear()
        self.by_number.clear()
        self.sessions.clear()
        self.incoming.clear()
        self.filled.clear()
        self.ended = True
        self.book.ended(self)
        self._refuse_requests()
        self.wire.close()
        # Events hold on to what they are about: they go first, and none are made after that.
        engine.release_collector(self.collector)
        engine.transport_unbind(self.transport)
        engine.connection_release(self.engine_connection)
        engine.decref(self.transport)
        engine.free_collector(self.collector)
        if lost is not None and was_open and not self.goodbye.asked:
            self.events.on_lost(lost)
        self._wake_in.close()
        self._wake_out.close()
        if self._open_future is not None and not self._open_future.done():
            self._open_future.set_exception(cause)
        self.goodbye.done()

    def _refuse_requests(self) -> None:
        """Run what was asked for too late: each request sees that the link is gone, and is answered so."""
        with self._late:
            while self._requests:
                call, arguments = self._requests.popleft()
                call(*arguments)
            self._report()

    # ------------------------------------------------------------------------------------------------ on the thread

    async def _opening(self) -> Capabilities:
        await self.opened
        properties, offered = self.remote
        self.book = choose(self.options, properties, offered)
        self.acquirer_tells = self.book.acquirer_tells
        return await self.book.opened(self)

    def close(self, future: Future[None]) -> None:
        """Write out what was sent, then close in order."""
        if self.ended:
            future.set_result(None)
            return
        self.goodbye.ask(future)

    def cause_of(self, condition: Pointer, otherwise: str) -> Cause:
        """Return what a condition of the engine says."""
        if not engine.condition_is_set(condition):
            return Cause(otherwise)
        name = engine.condition_name(condition) or otherwise
        description = engine.condition_description(condition) or ""
        return Cause(name, description, engine.read_data(engine.condition_info(condition)))

    def lose(self, cause: Cause, asked: str) -> None:
        """Take the connection for lost, for a reason the peer gave."""
        self.link_lost = to_error(cause, asked, fatal=True)

    def forget(self, link: SenderLink | ReceiverLink) -> None:
        """Take a link out of the books."""
        if link.pointer is not None:
            self.links.pop(link.pointer, None)
        self.by_number.pop(link.number, None)
        self.book.subscriptions.leave(link)
        link.session.links.pop(link.number, None)

    def add_promise(self, promise: Promise[T]) -> Promise[T]:
        """Break ``promise`` when the connection ends, if it was not kept by then."""
        self.pending = {waiting for waiting in self.pending if not waiting.done}
        self.pending.add(promise)
        return promise
