"""From the first link to the last: connecting, noticing a loss, making everything again, giving up, closing.

One coroutine makes links, so there is never more than one attempt under way. ``_reporting`` keeps the events of loss and
resumption in order; while it is held the core may be called, which only files things away.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsapi._emulation.guarded_calls import call_below, notify
from jmsapi._emulation.reconnecting.back_off import BackOff
from jmsapi._emulation.reconnecting.epoch import Epoch
from jmsapi._emulation.reconnecting.pending_sends import UnansweredSends
from jmsapi._emulation.reconnecting.requests import Requests
from jmsapi._emulation.reconnecting.restoring import Restoring
from jmsapi._emulation.reconnecting.state import ConnectionState, Phase
from jmsapi.spi import Capabilities, ErrorKind, Events, Provider, ProviderError, fail, failed, resolve
from jmsapi.wire import Waits, run

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["AttemptObserver", "Lifecycle"]

_LEAVE_S: Final = 2.0
"""How long the end of an old link is waited for before the next one is made."""
_log = logging.getLogger("jmsapi.reconnect")


class AttemptObserver(Protocol):
    """Who is notified of attempts."""

    def on_attempt(self, url: str, attempt: int, cause: Exception | None) -> None:
        """An attempt at one server has failed, or made a link (None). Returns at once."""


class Lifecycle:
    """The links of one connection.

    Args:
        state: The connection's.
        make: Makes an unopened provider for a server, with the decorators that belong to a link.
        requests: What is answered again when there is another link.
        sends: What is answered when a link is lost, or sent by the next one.
        restoring: Makes everything again on a new link.
        watch: Is given each attempt.
        chance: For jitter and the order of servers.
    """

    def __init__(
        self,
        state: ConnectionState,
        make: Callable[[ProviderOptions], Provider],
        requests: Requests,
        sends: UnansweredSends,
        restoring: Restoring,
        watch: AttemptObserver,
        chance: random.Random | None = None,
    ) -> None:
        self._state = state
        self._make = make
        self._requests = requests
        self._sends = sends
        self._restoring = restoring
        self._watch = watch
        self._reporting = threading.RLock()
        self._opened: Future[Capabilities] = Future()
        self._began_with: Capabilities | None = None
        self._closed: Future[None] | None = None
        self._trial: Epoch | None = None
        """The link that is being made."""
        self._leaving: list[Future[None]] = []
        self._back_off = BackOff(state.failover, chance)
        self._waits = Waits(state.clock)
        self._give_up_at = 0.0

    def _url_of(self, place: int) -> str:
        """Return a server's URL without user, password and options."""
        server = self._state.failover.servers[place]
        port = "" if server.port is None else f":{server.port}"
        return f"{server.scheme}://{server.host}{port}"

    def _run(self, steps: Coroutine[Any, None, None]) -> None:
        """Run a coroutine; its failure is a fault of ours, by which the connection is given up."""
        done: Future[None] = Future()

        def ended(_: Future[None]) -> None:
            fault = done.exception()
            if fault is not None:
                _log.error("a fault while reconnecting", exc_info=fault)
                self._give_up(ProviderError(ErrorKind.PROTOCOL, f"a fault while reconnecting: {fault!r}", fatal=True))

        done.add_done_callback(ended)
        run(steps, done)

    # ---- opening --------------------------------------------------------------------------------------------------
    def open(self, events: Events) -> Future[Capabilities]:
        """Make the first link, trying as often as the options say."""
        if self._state.events is not None:
            return failed(ProviderError(ErrorKind.CLOSED, "a provider is opened once"))
        self._state.events = events
        self._give_up_at = self._state.clock.monotonic() + self._state.failover.startup_timeout_ms / 1000
        self._run(self._connect(None, ProviderError(ErrorKind.CONNECTION, "no attempt was made")))
        return self._opened

    async def _connect(self, old: Epoch | None, last: Exception) -> None:
        """Try until there is a link, it makes no sense any more, or it is closed."""
        startup = old is None
        back_off = self._back_off
        if old is not None:
            # Not inside of the event of the loss: from there a provider is not called.
            await self._waits.hop()
            await self._leave(old)
        while not self._state.is_over:
            if back_off.exhausted(startup=startup):
                self._give_up(_gave_up(last, back_off.attempts))
                return
            await self._waits.pause(self._limited(back_off.wait_s(startup=startup), startup))
            for place in [] if self._state.is_over else back_off.next_attempt():
                error, final = await self._try(place, startup)
                if error is None or self._state.is_over:
                    return
                last = error
                _log.info("attempt %d: %s: %s", back_off.attempts, self._url_of(place), error)
                notify(self._watch.on_attempt, self._url_of(place), back_off.attempts, error)
                if startup and self._state.clock.monotonic() >= self._give_up_at and not final:
                    error, final = _gave_up(error, back_off.attempts), True
                if final:
                    self._give_up(error)
                    return
            self._sends.expire()

    def _limited(self, seconds: float, startup: bool) -> float:
        """Return a wait that ends when ``open`` must."""
        return min(seconds, max(0.0, self._give_up_at - self._state.clock.monotonic())) if startup else seconds

    async def _try(self, place: int, startup: bool) -> tuple[Exception | None, bool]:
        """Make one link and everything on it; return what went wrong, and whether it always would."""
        server = self._state.failover.servers[place]
        try:
            provider = self._make(server)
        except ProviderError as error:
            return error, error.kind.is_final
        except Exception as error:  # a wire library that is not installed
            return error, True
        epoch = Epoch(self._state, provider, place, self.broke)
        with self._state.guard:
            if self._state.is_over:
                return self._state.why_not(), True
            self._trial = epoch
        failure, final = await self._made(epoch, server.connect_timeout_ms / 1000, startup)
        if failure is not None:
            await self._leave(epoch)
        return failure, final

    async def _made(self, epoch: Epoch, timeout: float, startup: bool) -> tuple[Exception | None, bool]:
        opened = epoch.provider.open(epoch)
        if not await self._waits.done(opened, self._limited(timeout, startup)):
            text = f"connect to {self._url_of(epoch.place)}: no answer within {timeout:.1f} s"
            return ProviderError(ErrorKind.TIMEOUT, text, fatal=True), False
        failure = opened.exception()
        if failure is not None:
            refused_id = isinstance(failure, ProviderError) and failure.kind is ErrorKind.CLIENT_ID
            final = not isinstance(failure, ProviderError) or failure.kind.is_final or (refused_id and not self._state.in_grace)
            return failure if isinstance(failure, Exception) else ProviderError(ErrorKind.CONNECTION, str(failure)), final
        missing = [] if self._began_with is None else self._began_with.missing_at(opened.result())
        if missing:
            return _another_broker(self._url_of(epoch.place), self._began_with, opened.result(), missing), False
        try:
            await self._restoring.restore(epoch, self._waits)
        except ProviderError as refused:
            return epoch.cause or refused, False
        if not self._go_up(epoch, opened.result()):
            return epoch.cause or self._state.why_not(), False
        return None, False

    def _go_up(self, epoch: Epoch, capabilities: Capabilities) -> bool:
        """Let the link be the one; False when it is lost already, or the connection closed."""
        now = self._state.clock.monotonic()
        startup = self._state.phase is Phase.CONNECTING
        with self._reporting:
            with self._state.guard:
                if epoch.over or self._state.is_over:
                    return False
                self._trial = None
                self._state.epoch = epoch
                self._state.phase = Phase.UP
                grants = self._restoring.grants(epoch)
            self._sends.duplicate_property = capabilities.duplicate_property
            attempts = self._back_off.attempts
            self._back_off.succeeded(epoch.place, now, startup=startup)
            notify(self._watch.on_attempt, self._url_of(epoch.place), attempts, None)
            if startup:
                self._began_with = capabilities
                resolve(self._opened, capabilities)
            else:
                _log.info("resumed at %s, attempt %d", self._url_of(epoch.place), attempts)
                notify(self._state.above.on_resumed)
        for inner, credit in grants:
            self._restoring.grant(epoch, inner, credit)
        self._restoring.report(epoch)
        self._requests.replay()
        self._sends.flush()
        return True

    # ---- losing ---------------------------------------------------------------------------------------------------
    def broke(self, epoch: Epoch, cause: ProviderError) -> None:
        """The link is gone: settle what is unknown, notify the core, make another one."""
        if not epoch.end(cause):
            return
        with self._reporting:
            with self._state.guard:
                if self._state.epoch is not epoch:
                    return  # it never was the one: whoever makes it sees that it is over
                self._state.epoch = None
                self._state.lost_at = self._state.clock.monotonic()
                closed = self._state.phase is not Phase.UP
                if not closed:
                    self._state.phase = Phase.DOWN
            browsers = self._restoring.forget_browsers(cause)
            self._sends.lost(epoch, cause)
            if closed:
                return
            _log.info("interrupted: %s", cause)
            notify(self._state.above.on_lost, ProviderError(cause.kind, cause.message))
            for browser, why in browsers:
                notify(self._state.above.on_closed, browser, why)
        self._back_off.begin(self._state.lost_at)
        self._run(self._connect(epoch, cause))

    async def _leave(self, epoch: Epoch) -> None:
        """End what is left of a link, and wait for that a moment."""
        epoch.end(epoch.cause)
        closed = self._end_provider(epoch)
        await self._waits.done(closed, _LEAVE_S)

    def _end_provider(self, epoch: Epoch) -> Future[None]:
        closed = call_below(epoch.provider.close)
        with self._state.guard:
            self._leaving = [*(future for future in self._leaving if not future.done()), closed]
        return closed

    def _give_up(self, cause: Exception) -> None:
        """There will be no link any more: everything pending fails once, and the core is notified once."""
        if isinstance(cause, ProviderError):
            cause = ProviderError(cause.kind, cause.message, fatal=True)
        with self._reporting:
            with self._state.guard:
                if self._state.is_over:
                    return
                startup = self._state.phase is Phase.CONNECTING
                self._state.phase = Phase.ENDED
                self._state.end_cause = cause
            self._requests.fail()
            self._sends.fail(self._state.why_not())
            if startup:
                fail(self._opened, cause)
            else:
                _log.info("given up: %s", cause)
                notify(self._state.above.on_lost, self._state.why_not())

    # ---- closing --------------------------------------------------------------------------------------------------
    def close(self) -> Future[None]:
        """End in order: a link that lives is closed, an attempt is broken off."""
        with self._state.guard:
            if self._closed is not None:
                return self._closed
            closed: Future[None] = Future()
            self._closed = closed
            self._state.phase = Phase.CLOSED
            epoch, trial = self._state.epoch, self._trial
        self._requests.fail()
        if self._state.events is not None:
            self._sends.fail(self._state.why_not())
        self._waits.interrupt()
        for link in (epoch, trial):
            if link is not None:
                self._end_provider(link)
        fail(self._opened, self._state.why_not())
        self._when_left(epoch, closed)
        return closed

    def _when_left(self, epoch: Epoch | None, closed: Future[None]) -> None:
        """Say that it is closed when every link has ended."""
        with self._state.guard:
            waiting = next((future for future in self._leaving if not future.done()), None)
        if waiting is not None:
            waiting.add_done_callback(lambda _: self._when_left(epoch, closed))
            return
        if epoch is not None:
            cause = ProviderError(ErrorKind.CLOSED, "the connection was closed", fatal=True)
            epoch.end(cause)
            self._sends.lost(epoch, cause)
        resolve(closed, None)


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
