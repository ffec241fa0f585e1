"""Calls with an answer, of a connection that may be made again: each is answered once, on the link that can."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsapi._emulation.reconnecting_handles import NotYet, Refused, Request, is_loss, resolve
from jmsapi.spi import ErrorKind, ProviderError, failed

if TYPE_CHECKING:
    from jmsapi._emulation.reconnecting_epoch import Epoch
    from jmsapi._emulation.reconnecting_lifecycle import Lifecycle

__all__ = ["Requests"]


class Requests:
    """The calls that are not answered.

    Args:
        life: The connection.
        timeout: Seconds that a call may wait for a link.
    """

    def __init__(self, life: Lifecycle, timeout: float) -> None:
        self._life = life
        self._timeout = timeout
        self._parked: list[Request] = []
        """What waits for a link, or for a handle that is still to be made again; guarded by the connection's guard."""

    def ask(
        self,
        start: Callable[[Epoch], Future[Any]],
        keep: Callable[[Epoch, Any], Any],
        done_by_refusal: ErrorKind | None = None,
    ) -> Future[Any]:
        """Make a call on the link of the moment, and again on the next one if its answer was lost. See ``Request``."""
        request = Request(start, keep, self._life.clock.monotonic(), done_by_refusal)
        self.issue(request)
        return request.future

    def issue(self, request: Request) -> None:
        """Make a request's call, or let it wait for a link."""
        with self._life.guard:
            epoch = self._life.epoch
            usable = self._life.usable
            if usable and epoch is None:
                self._parked.append(request)
        if not usable:
            resolve(request.future, error=self._life.why_not())
            return
        if epoch is None:
            return
        if self._life.clock.monotonic() - request.since > self._timeout:
            resolve(request.future, error=ProviderError(ErrorKind.TIMEOUT, "the link was not back in time"))
            return
        try:
            future = request.start(epoch)
        except NotYet:
            self._park(request, epoch)
            return
        except Refused as refused:
            resolve(request.future, error=refused.cause)
            return
        except Exception as error:  # also a provider's fault: only who asked for this is told
            future = failed(error)
        future.add_done_callback(lambda done: self._answered(request, epoch, done))

    def _park(self, request: Request, epoch: Epoch) -> None:
        """Let a request wait for the next link, or for a handle; if that is there already, go on."""
        with self._life.guard:
            waits = self._life.epoch is epoch and self._life.usable
            if waits:
                self._parked.append(request)
        if not waits:
            self.issue(request)

    def _answered(self, request: Request, epoch: Epoch, done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            with self._life.guard:
                # What is made on a link that is over is not there any more.
                current = self._life.epoch is epoch or self._life.is_closed
                kept = request.keep(epoch, done.result()) if current else None
            if current:
                resolve(request.future, kept)
                return
        elif isinstance(error, ProviderError) and request.again and error.kind is request.done_by_refusal:
            resolve(request.future)
            return
        elif not is_loss(error, over=epoch.over):
            resolve(request.future, error=error)
            return
        request.again = True
        if isinstance(error, ProviderError):
            self._life.suspect(epoch, error)
        self._park(request, epoch)

    def replay(self) -> None:
        """Make the calls again that wait for a link or a handle."""
        with self._life.guard:
            parked, self._parked = self._parked, []
        for request in parked:
            self.issue(request)

    def fail(self) -> None:
        """Fail what waits: there will be no link."""
        with self._life.guard:
            parked, self._parked = self._parked, []
        for request in parked:
            resolve(request.future, error=self._life.why_not())
