"""Calls with an answer, of a connection that may be made again: each is answered once, on the link that can."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsapi._emulation.reconnecting.records import NotYet, Refused, is_loss
from jmsapi.spi import ErrorKind, ProviderError, fail, failed, resolve

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting.epoch import Epoch
    from jmsapi._emulation.reconnecting.state import ConnectionState

__all__ = ["Requests"]


class Request:
    """A call that is made again on the next link when its answer was lost.

    Args:
        start: Makes the call on a link.
        keep: Takes note of the answer, and returns what the core gets. With the guard held.
        since: When it was asked for, in the clock's seconds.
        done_by_refusal: A refusal of this kind, of a call that was made before, means that the first one was obeyed.
    """

    __slots__ = ("again", "done_by_refusal", "future", "keep", "since", "start")

    def __init__(
        self,
        start: Callable[[Epoch], Future[Any]],
        keep: Callable[[Epoch, Any], Any],
        since: float,
        done_by_refusal: ErrorKind | None = None,
    ) -> None:
        self.start = start
        self.keep = keep
        self.since = since
        self.done_by_refusal = done_by_refusal
        self.again = False
        self.future: Future[Any] = Future()


class Requests:
    """The calls that are not answered.

    Args:
        state: The connection's.
    """

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._timeout = state.options.request_timeout_ms / 1000
        self._waiting: list[Request] = []
        """What waits for a link, or for a handle that is still to be made again; guarded by the connection's guard."""

    def ask(
        self,
        start: Callable[[Epoch], Future[Any]],
        keep: Callable[[Epoch, Any], Any],
        done_by_refusal: ErrorKind | None = None,
    ) -> Future[Any]:
        """Make a call on the link of the moment, and again on the next one if its answer was lost. See ``Request``."""
        request = Request(start, keep, self._state.clock.monotonic(), done_by_refusal)
        self.issue(request)
        return request.future

    def issue(self, request: Request) -> None:
        """Make a request's call, or let it wait for a link."""
        with self._state.guard:
            epoch = self._state.epoch
            usable = self._state.usable
            if usable and epoch is None:
                self._waiting.append(request)
        if not usable:
            fail(request.future, self._state.why_not())
            return
        if epoch is None:
            return
        if self._state.clock.monotonic() - request.since > self._timeout:
            fail(request.future, ProviderError(ErrorKind.TIMEOUT, "the link was not back in time"))
            return
        try:
            future = request.start(epoch)
        except NotYet:
            self._wait(request, epoch)
            return
        except Refused as refused:
            fail(request.future, refused.cause)
            return
        except Exception as error:  # also a provider's fault: it is the answer to this request only
            future = failed(error)
        future.add_done_callback(lambda done: self._answered(request, epoch, done))

    def _wait(self, request: Request, epoch: Epoch) -> None:
        """Let a request wait for the next link, or for a handle; if that is there already, go on."""
        with self._state.guard:
            waits = self._state.epoch is epoch and self._state.usable
            if waits:
                self._waiting.append(request)
        if not waits:
            self.issue(request)

    def _answered(self, request: Request, epoch: Epoch, done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            with self._state.guard:
                # What is made on a link that is over is not there any more.
                current = self._state.epoch is epoch or self._state.is_closed
                kept = request.keep(epoch, done.result()) if current else None
            if current:
                resolve(request.future, kept)
                return
        elif isinstance(error, ProviderError) and request.again and error.kind is request.done_by_refusal:
            resolve(request.future, None)
            return
        elif not is_loss(error, over=epoch.over):
            fail(request.future, error)
            return
        request.again = True
        if isinstance(error, ProviderError):
            epoch.suspect(error)
        self._wait(request, epoch)

    def replay(self) -> None:
        """Make the calls again that wait for a link or a handle."""
        with self._state.guard:
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            self.issue(request)

    def fail(self) -> None:
        """Fail what waits: there will be no link."""
        with self._state.guard:
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            fail(request.future, self._state.why_not())
