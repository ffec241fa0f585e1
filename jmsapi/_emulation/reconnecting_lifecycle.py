"""From the first link to the last: connecting, noticing a loss, making everything again, giving up, closing.

States: CONNECTING (no link yet), UP, DOWN (a link was lost, another one is being made), ENDED (given up), CLOSED. One coroutine
makes links, so there is never more than one attempt under way.

Locks: ``guard`` protects state and is held for moments, never while calling a provider or the core. ``_telling`` keeps the
news of loss and resumption in order; while it is held the core may be called, which only files things away.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._emulation.asking import asked, tell
from jmsapi._emulation.reconnecting_backoff import BackOff
from jmsapi._emulation.reconnecting_epoch import SUSPECT_S, Epoch
from jmsapi._emulation.reconnecting_handles import SessionRecord, resolve
from jmsapi._emulation.reconnecting_requests import Requests
from jmsapi._emulation.reconnecting_restoring import Restoring
from jmsapi._emulation.reconnecting_sends import Sends
from jmsapi._emulation.reconnecting_steps import Steps
from jmsapi.spi import Capabilities, Clock, Envelope, ErrorKind, Events, Provider, ProviderError, failed

if TYPE_CHECKING:
    from jmsapi.spi.options import FailoverOptions, ProviderOptions

__all__ = ["Lifecycle", "Watch"]

_LEAVE_S: Final = 2.0
"""How long the end of an old link is waited for before the next one is made."""
_FINAL: Final = frozenset({ErrorKind.SECURITY, ErrorKind.UNSUPPORTED})
"""What another attempt would not change."""
_log = logging.getLogger("jmsapi.reconnect")


class Watch(Protocol):
    """Who is told of attempts."""

    def on_attempt(self, url: str, attempt: int, cause: Exception | None) -> None:
        """An attempt at one server has failed, or made a link (None). Returns at once."""


class State(Enum):
    """Where the connection is."""

    CONNECTING = 1
    UP = 2
    DOWN = 3
    ENDED = 4
    CLOSED = 5


class Lifecycle:
    """The links of one connection; the seam's other calls stand on it.

    Args:
        make: Makes an unopened provider for a server, with the decorators that belong to a link.
        options: Those of the connection; ``failover`` is set.
        clock: Time.
        watch: Told of attempts.
        chance: For jitter and the order of servers.
    """

    def __init__(
        self,
        make: Callable[[ProviderOptions], Provider],
        options: ProviderOptions,
        failover: FailoverOptions,
        clock: Clock,
        watch: Watch,
        chance: random.Random | None = None,
    ) -> None:
        self.guard = threading.Lock()
        self.clock = clock
        self.options = options
        self.failover = failover
        self.epoch: Epoch | None = None
        """The link of the moment; None while there is none."""
        self.sessions: dict[SessionRecord, None] = {}
        self._make = make
        self._watch = watch
        self._telling = threading.RLock()
        self._state = State.CONNECTING
        self._events: Events | None = None
        self._opened: Future[Capabilities] = Future()
        self._began_with: Capabilities | None = None
        self._closed: Future[None] | None = None
        self._end_cause: Exception | None = None
        self._trial: Epoch | None = None
        """The link that is being made."""
        self._leaving: list[Future[None]] = []
        self._back_off = BackOff(failover, chance)
        self._steps = Steps(clock, self._fault)
        self._lost_at = 0.0
        self._give_up_at = 0.0
        self.requests = Requests(self, options.request_timeout_ms / 1000)
        self.sends = Sends(self, resend=failover.resend_unconfirmed, timeout=options.send_timeout_ms / 1000)
        self.restoring = Restoring(self)

    # ---- state ----------------------------------------------------------------------------------------------------
    @property
    def above(self) -> Events:
        """Where events go; known from ``open`` on."""
        if self._events is None:
            raise ProviderError(ErrorKind.PROTOCOL, "an event before open was called")
        return self._events

    @property
    def usable(self) -> bool:
        """Whether there is a link, or may be one again."""
        return self._state in (State.UP, State.DOWN)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._state is State.CLOSED

    def why_not(self) -> ProviderError:
        """Return why it is not usable."""
        if self._state is State.CLOSED:
            return ProviderError(ErrorKind.CLOSED, "the connection is closed", fatal=True)
        if isinstance(self._end_cause, ProviderError):
            return self._end_cause
        return ProviderError(ErrorKind.CLOSED, "the connection is not open", fatal=True)

    def check_usable(self) -> None:
        """Raise ProviderError when there will be no link any more."""
        if not self.usable:
            raise self.why_not()

    @property
    def grace_s(self) -> float:
        """How long the broker may take to notice that our last link is dead, in seconds."""
        grace = self.failover.client_id_grace_ms
        return (2 * self.options.silence_ms if grace is None else grace) / 1000

    @property
    def in_grace(self) -> bool:
        """Whether the broker may still think that our last link lives."""
        return self._state is State.DOWN and self.clock.monotonic() - self._lost_at <= self.grace_s

    def url_of(self, place: int) -> str:
        """Return a server's URL without user, password and options."""
        server = self.failover.servers[place]
        port = "" if server.port is None else f":{server.port}"
        return f"{server.scheme}://{server.host}{port}"

    def renamed(self, envelope: Envelope) -> Envelope:
        """Return a message with the names that temporary destinations have on the link of the moment."""
        return self.restoring.renamed(envelope)

    # ---- opening --------------------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        """Make the first link, trying as often as the options say."""
        if self._events is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._events = events
        self._give_up_at = self.clock.monotonic() + self.failover.startup_timeout_ms / 1000
        self._steps.run(self._connect(None, ProviderError(ErrorKind.CONNECTION, "no attempt was made")))
        return self._opened

    async def _connect(self, old: Epoch | None, last: Exception) -> None:
        """Try until there is a link, it makes no sense any more, or it is closed."""
        startup = old is None
        back_off = self._back_off
        if old is not None:
            # Not inside of the event that told of the loss: from there a provider is not called.
            await self._steps.hop()
            await self._leave(old)
        while not self._is_over():
            if back_off.exhausted(startup=startup):
                self._give_up(_gave_up(last, back_off.attempts))
                return
            await self._steps.pause(self._limited(back_off.wait_s(startup=startup), startup))
            for place in [] if self._is_over() else back_off.next_attempt():
                error, final = await self._try(place, startup)
                if error is None or self._is_over():
                    return
                last = error
                _log.info("attempt %d: %s: %s", back_off.attempts, self.url_of(place), error)
                tell(self._watch.on_attempt, self.url_of(place), back_off.attempts, error)
                if startup and self.clock.monotonic() >= self._give_up_at and not final:
                    error, final = _gave_up(error, back_off.attempts), True
                if final:
                    self._give_up(error)
                    return
            self.sends.expire()

    def _limited(self, seconds: float, startup: bool) -> float:
        """Return a wait that ends when ``open`` must."""
        return min(seconds, max(0.0, self._give_up_at - self.clock.monotonic())) if startup else seconds

    def _is_over(self) -> bool:
        return self._state in (State.CLOSED, State.ENDED)

    async def _try(self, place: int, startup: bool) -> tuple[Exception | None, bool]:
        """Make one link and everything on it; return what went wrong, and whether it always would."""
        server = self.failover.servers[place]
        try:
            provider = self._make(server)
        except ProviderError as error:
            return error, error.kind in _FINAL
        except Exception as error:  # a wire library that is not installed
            return error, True
        epoch = Epoch(self, provider, place)
        with self.guard:
            if self._is_over():
                return self.why_not(), True
            self._trial = epoch
        failure, final = await self._made(epoch, server.connect_timeout_ms / 1000, startup)
        if failure is not None:
            await self._leave(epoch)
        return failure, final

    async def _made(self, epoch: Epoch, timeout: float, startup: bool) -> tuple[Exception | None, bool]:
        opened = epoch.provider.open(epoch)
        if not await self._steps.done(opened, self._limited(timeout, startup)):
            text = f"connect to {self.url_of(epoch.place)}: no answer within {timeout:.1f} s"
            return ProviderError(ErrorKind.TIMEOUT, text, fatal=True), False
        failure = opened.exception()
        if failure is not None:
            refused_id = isinstance(failure, ProviderError) and failure.kind is ErrorKind.CLIENT_ID
            final = not isinstance(failure, ProviderError) or failure.kind in _FINAL or (refused_id and not self.in_grace)
            return failure if isinstance(failure, Exception) else ProviderError(ErrorKind.CONNECTION, str(failure)), final
        missing = [] if self._began_with is None else self._began_with.missing_at(opened.result())
        if missing:
            return _another_broker(self.url_of(epoch.place), self._began_with, opened.result(), missing), False
        try:
            await self.restoring.restore(epoch, self._steps)
        except ProviderError as refused:
            return epoch.cause or refused, False
        if not self._go_up(epoch, opened.result()):
            return epoch.cause or self.why_not(), False
        return None, False

    def _go_up(self, epoch: Epoch, capabilities: Capabilities) -> bool:
        """Let the link be the one; False when it is lost already, or the connection closed."""
        now = self.clock.monotonic()
        startup = self._state is State.CONNECTING
        with self._telling:
            with self.guard:
                if epoch.over or self._is_over():
                    return False
                self._trial = None
                self.epoch = epoch
                self._state = State.UP
                grants = self.restoring.grants(epoch)
            self.sends.duplicate_property = capabilities.duplicate_property
            attempts = self._back_off.attempts
            self._back_off.succeeded(epoch.place, now, startup=startup)
            tell(self._watch.on_attempt, self.url_of(epoch.place), attempts, None)
            if startup:
                self._began_with = capabilities
                resolve(self._opened, capabilities)
            else:
                _log.info("resumed at %s, attempt %d", self.url_of(epoch.place), attempts)
                tell(self.above.on_resumed)
        for inner, credit in grants:
            self.restoring.grant(epoch, inner, credit)
        self.restoring.tell(epoch)
        self.requests.replay()
        self.sends.flush()
        return True

    # ---- losing ---------------------------------------------------------------------------------------------------
    def suspect(self, epoch: Epoch, cause: ProviderError) -> None:
        """Take a link for lost a moment later, if it does not say so itself before."""
        with self.guard:
            if epoch.suspected or epoch.over or self._state is not State.UP:
                return
            epoch.suspected = True
        self.clock.call_later(SUSPECT_S, lambda: self.broke(epoch, cause))

    def broke(self, epoch: Epoch, cause: ProviderError) -> None:
        """The link is gone: settle what is unknown, tell the core, make another one."""
        if not epoch.end(cause):
            return
        with self._telling:
            with self.guard:
                if self.epoch is not epoch:
                    return  # it never was the one: whoever makes it sees that it is over
                self.epoch = None
                self._lost_at = self.clock.monotonic()
                closed = self._state is not State.UP
                if not closed:
                    self._state = State.DOWN
            browsers = self.restoring.forget_browsers(cause)
            self.sends.lost(epoch, cause)
            if closed:
                return
            _log.info("interrupted: %s", cause)
            tell(self.above.on_lost, ProviderError(cause.kind, cause.message))
            for browser, why in browsers:
                tell(self.above.on_closed, browser, why)
        self._back_off.begin(self._lost_at)
        self._steps.run(self._connect(epoch, cause))

    async def _leave(self, epoch: Epoch) -> None:
        """End what is left of a link, and wait for that a moment."""
        epoch.end(epoch.cause)
        closed = self._end_provider(epoch)
        await self._steps.done(closed, _LEAVE_S)

    def _end_provider(self, epoch: Epoch) -> Future[None]:
        closed = asked(epoch.provider.close)
        with self.guard:
            self._leaving = [*(future for future in self._leaving if not future.done()), closed]
        return closed

    def _fault(self, error: Exception) -> None:
        self._give_up(ProviderError(ErrorKind.PROTOCOL, f"a fault while reconnecting: {error!r}", fatal=True))

    def _give_up(self, cause: Exception) -> None:
        """There will be no link any more: everything pending fails once, and the core is told once."""
        if isinstance(cause, ProviderError):
            cause = ProviderError(cause.kind, cause.message, fatal=True)
        with self._telling:
            with self.guard:
                if self._is_over():
                    return
                startup = self._state is State.CONNECTING
                self._state = State.ENDED
                self._end_cause = cause
            self.requests.fail()
            self.sends.fail(self.why_not())
            if startup:
                resolve(self._opened, error=cause)
            else:
                _log.info("given up: %s", cause)
                tell(self.above.on_lost, self.why_not())

    # ---- closing --------------------------------------------------------------------------------------------------
    def close(self) -> Future[None]:
        """End in order: a link that lives is closed, an attempt is broken off."""
        with self.guard:
            if self._closed is not None:
                return self._closed
            closed: Future[None] = Future()
            self._closed = closed
            self._state = State.CLOSED
            epoch, trial = self.epoch, self._trial
        self.requests.fail()
        if self._events is not None:
            self.sends.fail(self.why_not())
        self._steps.interrupt()
        for link in (epoch, trial):
            if link is not None:
                self._end_provider(link)
        resolve(self._opened, error=self.why_not())
        self._when_left(epoch, closed)
        return closed

    def _when_left(self, epoch: Epoch | None, closed: Future[None]) -> None:
        """Say that it is closed when every link has ended."""
        with self.guard:
            waiting = next((future for future in self._leaving if not future.done()), None)
        if waiting is not None:
            waiting.add_done_callback(lambda _: self._when_left(epoch, closed))
            return
        if epoch is not None:
            cause = ProviderError(ErrorKind.CLOSED, "the connection was closed", fatal=True)
            epoch.end(cause)
            self.sends.lost(epoch, cause)
        resolve(closed)


def _another_broker(url: str, began: Capabilities | None, here: Capabilities, missing: list[str]) -> ProviderError:
    was = f"{began.broker} {began.version}" if began is not None else "another broker"
    text = (
        f"at {url} is {here.broker} {here.version}, where a connection that began on {was} cannot go on: {', '.join(missing)} "
        "is not the same there; list servers of one kind"
    )
    return ProviderError(ErrorKind.UNSUPPORTED, text, fatal=True)


def _gave_up(last: Exception, attempts: int) -> ProviderError:
    kind = last.kind if isinstance(last, ProviderError) else ErrorKind.CONNECTION
    text = last.message if isinstance(last, ProviderError) else str(last)
    times = "once" if attempts == 1 else f"{attempts} times"
    return ProviderError(kind, f"tried {times} without success; the last: {text}", fatal=True)
