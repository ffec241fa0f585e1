"""The connection's end of the seam: one provider, the decorators it needs, and the events that come back.

A link is opened once. Every call goes through ``call``, which waits with a deadline and turns errors; every event is handed
to the object it concerns. Nothing here holds a lock while it calls a provider or an owner.
"""

from __future__ import annotations

import itertools
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakKeyDictionary

from jmsapi._core import forked
from jmsapi._core.errors_map import jms_error
from jmsapi._core.plugins import create_provider
from jmsapi._core.waiting import Window, result
from jmsapi._emulation import stack
from jmsapi.errors import JMSException, UnsupportedFeatureException
from jmsapi.spi import (
    Capabilities,
    Clock,
    Delivery,
    Handle,
    Outcome,
    Provider,
    ProviderEntry,
    ProviderError,
    SendResult,
    Support,
    Tag,
    XAProvider,
    failed,
    none,
)

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Link", "LinkOwner", "Port", "SendTicket"]

T = TypeVar("T")
_log = logging.getLogger("jmsapi")
_numbers = itertools.count(1)
_GRACE_S = 0.25
"""A provider that keeps the same deadline is let speak first: it knows what it waited for."""


class Port(Protocol):
    """What a link knows of a consumer."""

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """File deliveries away. Called on the provider's thread."""

    def broke(self, cause: ProviderError) -> None:
        """The broker ended this one."""


class SendTicket(Protocol):
    """What a link knows of a send: the token of the seam."""

    def answered(self, error: Exception | None) -> None:
        """The broker took the message, or did not. Called on the provider's thread."""


class LinkOwner(Protocol):
    """What a link knows of its connection. All calls come on a provider's thread, and return at once."""

    def lost(self, cause: ProviderError) -> None:
        """The link is lost for good. Said once."""

    def interrupted(self, cause: ProviderError) -> None:
        """The link is lost, and another one is being made."""

    def resumed(self, url: str) -> None:
        """There is a link again, with everything on it."""

    def attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        """An attempt to make a link has failed."""

    def left_behind(self) -> None:
        """The link is lost, because it belongs to the process from which this one was forked. Takes no lock."""


class Link:
    """One open provider.

    Args:
        entry: Where the provider comes from.
        options: Its settings.
        clock: Time.
        owner: Told of its end, and of what comes between.
    """

    def __init__(self, entry: ProviderEntry, options: ProviderOptions, clock: Clock, owner: LinkOwner) -> None:
        self.options = options
        self.clock = clock
        self.number = next(_numbers)
        self.origin = options.client_id or uuid.uuid4().hex
        self.window = Window(options.max_in_flight)
        self.lost: ProviderError | None = None
        self.interrupted = False
        """There is no link at the moment; another one is being made."""
        self.closed = False
        self._owner = owner
        self._ports: dict[Handle, Port] = {}
        self._ended: WeakKeyDictionary[Handle, ProviderError] = WeakKeyDictionary()
        """Handles that the broker ended before anybody was attached to them."""
        self._guard = threading.Lock()
        self._url = ""
        self.provider, self.capabilities = self._open(entry)
        self.turn: AbstractContextManager[object] = nullcontext() if self.capabilities.transactions_apart else threading.RLock()
        """For sessions that settle deliveries of one consumer: held from the moment that they are accepted in a transaction until
        it has ended, where only one can do so at a time."""

        if options.scheme != "inproc" or options.failover is not None:
            # A broker in this process is copied with it; one that has a file sees to that itself.
            forked.watch(self)

    def _open(self, entry: ProviderEntry) -> tuple[Provider, Capabilities]:
        failover = self.options.failover
        longest_ms = self.options.connect_timeout_ms if failover is None else failover.startup_timeout_ms
        try:
            opened = stack.build(lambda server: create_provider(entry, server, self.clock), self.options, self.clock, self)
        except ProviderError as error:
            raise jms_error(error, "connect") from error
        try:
            capabilities = result(opened.open(self), longest_ms / 1000 + _GRACE_S, "connect")
            if capabilities.xa and not isinstance(opened, XAProvider):
                capabilities = capabilities.with_(xa=none("what stands before the provider offers no distributed transactions"))
            return opened, capabilities
        except BaseException:
            self.closed = True
            opened.close()
            raise

    # ---- calls ----------------------------------------------------------------------------------------------------
    def ask(self, start: Callable[[], Future[T]]) -> Future[T]:
        """Start a call of the provider; what it raises at once fails the future too."""
        try:
            return start()
        except ProviderError as error:
            return failed(error)

    def wait(self, future: Future[T], asked: str, timeout: float | None = None) -> T:
        """Wait for a provider's answer.

        Args:
            future: From ``ask``.
            asked: What was asked, to begin an error's text with.
            timeout: Seconds; the option ``request_timeout_ms`` when None.
        Raises:
            JMSException: As the errors table says; code ``timeout`` when no answer came.
        """
        return result(future, self.options.request_timeout_ms / 1000 + _GRACE_S if timeout is None else timeout, asked)

    def call(self, start: Callable[[], Future[T]], asked: str, timeout: float | None = None) -> T:
        """Start a call of the provider and wait for its answer; see ``wait``."""
        return self.wait(self.ask(start), asked, timeout)

    def settle(self, tags: Sequence[Tag], outcome: Outcome, failures: Sequence[int] = ()) -> Future[None] | None:
        """Settle, without waiting. None when there is nothing to do or nobody to tell."""
        if not tags or self.lost:
            return None
        return self.ask(lambda: self.provider.settle(tags, outcome, None, failures))

    def require(self, feature: str, words: str) -> None:
        """Refuse a feature that this provider on this broker does not have.

        Raises:
            UnsupportedFeatureException: It is NONE.
        """
        support: Support = self.capabilities.of(feature)
        if not support:
            has = self.capabilities
            broker = f"{has.broker} {has.version}".strip()
            way_out = f"; ?emulate={support.emulate} asks for a weaker substitute" if support.emulate else ""
            why = f": {support.note}" if support.note else ""
            raise UnsupportedFeatureException(
                words,
                has.provider,
                broker,
                support.emulate,
                reason=f"{words}: the provider {has.provider} on {broker} does not offer it{why}{way_out}",
            )

    def attach(self, handle: Handle, port: Port) -> None:
        """Let a consumer's deliveries come to ``port``; before it has credit."""
        with self._guard:
            self._ports[handle] = port
            cause = self._ended.pop(handle, None)
        if cause is not None:
            port.broke(cause)

    def detach(self, handle: Handle) -> None:
        """Stop that."""
        with self._guard:
            self._ports.pop(handle, None)

    def sever(self, provider: Provider, cause: ProviderError) -> None:
        """Be lost, in a forked child: no thread is here that could say so, and none that holds a lock.

        Args:
            provider: What stands where the parent's was.
            cause: Why.
        """
        self.lost = cause
        self.provider = provider
        forked.free(self._guard)
        self._owner.left_behind()

    def close(self, timeout: float) -> None:
        """Close the provider, waiting at most ``timeout`` seconds. Problems are logged: there is nothing left to save."""
        if self.closed:
            return
        self.closed = True
        try:
            result(self.provider.close(), timeout, "close the connection")
        except JMSException as error:
            if not self.lost:
                _log.warning("link %d: %s", self.number, error)

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Hand deliveries to their consumer."""
        port = self._ports.get(consumer)
        if port is None:
            _log.debug("link %d: %d deliveries for a consumer that is gone", self.number, len(deliveries))
            return
        port.arrive(deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Give places of the window back and tell each send."""
        self.window.leave(len(results))
        for token, error in results:
            token.answered(error)  # type: ignore[attr-defined]

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Tell the consumer that the broker ended it, at the latest when it is attached."""
        with self._guard:
            port = self._ports.get(handle)
            if port is None:
                self._ended[handle] = cause
        if port is not None:
            port.broke(cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Remember why, and tell the connection: that it is the end, or that another link is on its way."""
        if self.closed or self.lost:
            return
        if self.options.failover is not None and not cause.fatal:
            self.interrupted = True
            self._owner.interrupted(cause)
            return
        self.lost = cause
        self._owner.lost(cause)

    def on_resumed(self) -> None:
        """A reconnecting decorator has made all handles valid again."""
        self.interrupted = False
        if not self.closed:
            self._owner.resumed(self._url)

    def on_attempt(self, url: str, attempt: int, cause: Exception | None) -> None:
        """An attempt to make a link has failed, or succeeded (None)."""
        if cause is None:
            self._url = url
        elif not self.closed:
            self._owner.attempt_failed(url, attempt, jms_error(cause, f"connect to {url}"))

    def survives(self, error: JMSException) -> bool:
        """Return whether an error only says that there is no link at the moment, while another one is on its way."""
        return self.options.failover is not None and self.lost is None and error.error_code == "connection"
