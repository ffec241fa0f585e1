"""A connection's end of the SPI: one provider with the decorators it needs, and the events that come back.

A provider is opened once. Every call goes through ``call``, which waits with a deadline and translates errors; every event is
handed to the object it concerns. No lock is held here while a provider or an owner is called.
"""

from __future__ import annotations

import itertools
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from jmsapi._core import forked
from jmsapi._core.errors_map import jms_error
from jmsapi._core.expiry import Expiry
from jmsapi._core.plugins import create_provider
from jmsapi._core.telemetry import ConnectionLoad, ConnectionTelemetry, ServerAddress, telemetry_for
from jmsapi._core.waiting import AnswerWait, Steps, Window
from jmsapi._emulation import stack
from jmsapi.errors import JMSException, UnsupportedFeatureException
from jmsapi.spi import (
    Capabilities,
    Clock,
    Delivery,
    Handle,
    Level,
    Outcome,
    Provider,
    ProviderEntry,
    ProviderError,
    SendResult,
    Support,
    Tag,
    TakesBack,
    XAProvider,
    failed,
    none,
    traits_of,
)
from jmsapi.spi.label import message_label

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["ConnectionEvents", "Port", "ProviderConnection", "SendTicket"]

T = TypeVar("T")
_log = logging.getLogger("jmsapi")
_numbers = itertools.count(1)
_GRACE_S = 0.25
"""A provider that keeps the same deadline answers first: it knows what it waited for, so its error says more."""


class Port(Protocol):
    """What a provider connection calls of a consumer."""

    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """Store deliveries until they are received. Called on the provider's thread."""

    def broke(self, cause: ProviderError) -> None:
        """Take note that the broker closed the consumer."""


class SendTicket(Protocol):
    """What a provider connection calls of a send: the token that the SPI gives back."""

    def answered(self, error: Exception | None) -> None:
        """Take note that the broker took the message, or why it did not. Called on the provider's thread."""


class ConnectionEvents(Protocol):
    """What a provider connection calls of the JMS connection that owns it.

    Threads: the provider's, or the one that opens the connection; each method returns at once.
    """

    def lost(self, cause: ProviderError) -> None:
        """Take note that the broker cannot be reached any more. Called once."""

    def interrupted(self, cause: ProviderError) -> None:
        """Take note that the broker cannot be reached, and that the provider reconnects."""

    def resumed(self, url: str) -> None:
        """Take note that the provider has reconnected, with all sessions, consumers and producers."""

    def attempt_failed(self, url: str, attempt: int, cause: JMSException) -> None:
        """Take note that an attempt to connect has failed."""

    def left_behind(self) -> None:
        """Take note that this is a forked child, and the connection its parent's. Takes no lock."""

    def load(self) -> ConnectionLoad:
        """Return what the connection holds at the moment. Takes no lock."""
        ...


class ProviderConnection:
    """One open provider.

    What the provider reports while its owner is not ready is kept until ``begin``.

    Args:
        entry: Where the provider comes from.
        options: Its settings.
        clock: Time.
        owner: The JMS connection, called with what the provider reports.
    """

    provider: Provider
    capabilities: Capabilities
    expiry: Expiry
    turn: AbstractContextManager[object]
    """For sessions that settle deliveries of one consumer: held from the moment that they are accepted in a transaction until
    it has ended, where only one can do so at a time."""

    def __init__(self, entry: ProviderEntry, options: ProviderOptions, clock: Clock, owner: ConnectionEvents) -> None:
        self.options = options
        self.clock = clock
        self.number = next(_numbers)
        self.origin = options.client_id or uuid.uuid4().hex
        self.window = Window(options.max_in_flight)
        self.telemetry: ConnectionTelemetry | None = None
        """The observer of this connection's messages; None when there is none."""
        self.lost: ProviderError | None = None
        self.interrupted = False
        """The broker cannot be reached at the moment, and the provider reconnects."""
        self.closed = False
        self.delays_in_doubt = False
        """Whether a trial is to show that the broker obeys delays, since it does not tell."""
        self.closes_apart = not traits_of(entry).in_process
        """See ``close_when_possible``."""
        self._entry = entry
        self._owner = owner
        self._ports: dict[Handle, Port] = {}
        self._ended: WeakKeyDictionary[Handle, ProviderError] = WeakKeyDictionary()
        """Handles that the broker closed before a consumer was attached to them."""
        self._guard = threading.Lock()
        self._early: deque[Callable[[], None]] | None = deque()
        """Calls of the owner that wait for ``begin``; None after it."""
        self._url = ""

    def open_steps(self) -> Steps[None]:
        """Open the provider. Called once, before anything else.

        Raises:
            JMSException: It could not be opened. Nothing is left open.
        """
        self.provider, self.capabilities = yield from self._open_steps(self._entry)
        self.delays_in_doubt = self.capabilities.delay_trial is not None
        native = self.capabilities.expiry_in_broker.level is Level.NATIVE
        local = self.options.local_expiry
        self.expiry = Expiry(self.clock, local=not native if local is None else local)
        self.turn = nullcontext() if self.capabilities.transactions_apart else threading.RLock()
        forked.watch(self)
        watching = telemetry_for(self.options.telemetry)
        if watching is not None:
            self.telemetry = watching.connected(self.server, self._owner.load)

    @property
    def server(self) -> ServerAddress | None:
        """The broker that the provider is connected to; None for one in this process."""
        options = self.options
        if traits_of(self._entry).in_process:
            return None
        if options.failover is None:
            return ServerAddress(options.host, options.port)
        url = urlsplit(self._url)
        return ServerAddress(url.hostname or "", url.port)

    def _open_steps(self, entry: ProviderEntry) -> Steps[tuple[Provider, Capabilities]]:
        failover = self.options.failover
        longest_ms = self.options.connect_timeout_ms if failover is None else failover.startup_timeout_ms
        try:
            opened = stack.build(
                lambda server: create_provider(entry, server, self.clock), self.options, self.clock, self, traits_of(entry)
            )
        except ProviderError as error:
            raise jms_error(error, "connect") from error
        try:
            capabilities: Capabilities = yield self.awaiting(opened.open(self), "connect", longest_ms / 1000 + _GRACE_S)
            if capabilities.xa and not isinstance(opened, XAProvider):
                capabilities = capabilities.with_(xa=none("what stands before the provider offers no distributed transactions"))
            return opened, capabilities
        except BaseException:
            self.closed = True
            opened.close()
            raise

    def begin(self) -> None:
        """Hand over what the provider has reported so far, and from now on at once. Called when the owner is ready for it."""
        while True:
            with self._guard:
                early = self._early
                if not early:
                    self._early = None
                    return
                call = early.popleft()
            call()

    def _report(self, call: Callable[[], None]) -> None:
        with self._guard:
            if self._early is not None:
                self._early.append(call)
                return
        call()

    # ---- calls ----------------------------------------------------------------------------------------------------
    def ask(self, start: Callable[[], Future[T]]) -> Future[T]:
        """Start a call of the provider; what it raises at once fails the future too."""
        try:
            return start()
        except ProviderError as error:
            return failed(error)

    def take_back(self, token: object) -> None:
        """Have a send answered now if its message was not written; see ``TakesBack``."""
        if isinstance(self.provider, TakesBack):
            self.provider.take_back(token)

    def wait(self, future: Future[T], asked: str, timeout: float | None = None) -> T:
        """Wait for a provider's answer.

        Args:
            future: From ``ask``.
            asked: What was asked, to begin an error's text with.
            timeout: Seconds; the option ``request_timeout_ms`` when None.
        Raises:
            JMSException: As the errors table says; code ``timeout`` when no answer came.
        """
        return self.awaiting(future, asked, timeout).block()

    def awaiting(self, future: Future[T], asked: str, timeout: float | None = None) -> AnswerWait[T]:
        """Return the wait for a provider's answer, for an operation to yield; see ``wait``."""
        return AnswerWait(future, self.options.request_timeout_ms / 1000 + _GRACE_S if timeout is None else timeout, asked)

    def call(self, start: Callable[[], Future[T]], asked: str, timeout: float | None = None) -> T:
        """Start a call of the provider and wait for its answer; see ``wait``."""
        return self.wait(self.ask(start), asked, timeout)

    def settle(self, tags: Sequence[Tag], outcome: Outcome, failures: Sequence[int] = ()) -> Future[None] | None:
        """Settle, without waiting. None when there is nothing to settle, or no broker to settle it with."""
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
            raise self.refused(words, support.note, support.emulate)

    def refused(self, words: str, why: str, emulate: str | None = None) -> UnsupportedFeatureException:
        """Return the refusal of a feature, for a reason, with the word that asks for a weaker substitute."""
        has = self.capabilities
        broker = f"{has.broker} {has.version}".strip()
        way_out = f"; ?emulate={emulate} asks for a weaker substitute" if emulate else ""
        reason = f"{words}: the provider {has.provider} on {broker} does not offer it{': ' if why else ''}{why}{way_out}"
        return UnsupportedFeatureException(words, has.provider, broker, emulate, reason=reason)

    def attach(self, handle: Handle, port: Port) -> None:
        """Let a consumer's deliveries come to ``port``. Called before the consumer has credit."""
        with self._guard:
            self._ports[handle] = port
            cause = self._ended.pop(handle, None)
        if cause is not None:
            port.broke(cause)

    def detach(self, handle: Handle) -> None:
        """Let no more deliveries come to a consumer; what still comes is dropped."""
        with self._guard:
            self._ports.pop(handle, None)

    def sever(self, provider: Provider, cause: ProviderError) -> None:
        """Be lost, in a forked child, where neither the provider's threads exist nor those that held a lock.

        Args:
            provider: What takes the place of the parent's.
            cause: Why.
        """
        self.lost = cause
        self.provider = provider
        forked.free(self._guard)
        forked.free(self.turn)
        self.window.left_behind()
        self._owner.left_behind()

    def close_steps(self, timeout: float) -> Steps[None]:
        """Close the provider, waiting at most ``timeout`` seconds. An error is logged: the caller could do nothing about it."""
        if self.closed:
            return
        self.closed = True
        try:
            yield self.awaiting(self.provider.close(), "close the connection", timeout)
        except JMSException as error:
            if not self.lost:
                _log.warning("link %d: %s", self.number, error)

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Hand deliveries to their consumer."""
        port = self._ports.get(consumer)
        if port is None:
            for one in deliveries:
                _log.debug("link %d: %s is for a consumer that is gone", self.number, message_label(one.envelope))
            return
        port.arrive(deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Make room in the window of unconfirmed sends, and hand each answer to its send."""
        self.window.leave(len(results))
        for token, error in results:
            token.answered(error)  # type: ignore[attr-defined]

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Report to a consumer that the broker closed it, at once or when it is attached."""
        with self._guard:
            port = self._ports.get(handle)
            if port is None:
                self._ended[handle] = cause
        if port is not None:
            port.broke(cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Record the cause, and report to the owner that the broker is lost for good, or that the provider reconnects."""
        if self.closed or self.lost:
            return
        if self.options.failover is not None and not cause.fatal:
            self.interrupted = True
            self._report(lambda: self._owner.interrupted(cause))
            return
        self.lost = cause
        self._report(lambda: self._owner.lost(cause))

    def on_resumed(self) -> None:
        """Report to the owner that a reconnecting decorator has made all handles valid again."""
        self.interrupted = False
        self.delays_in_doubt = self.capabilities.delay_trial is not None  # it may be another broker
        if self.telemetry is not None:
            self.telemetry.resumed(self.server)
        if not self.closed:
            url = self._url
            self._report(lambda: self._owner.resumed(url))

    def on_attempt(self, url: str, attempt: int, cause: Exception | None) -> None:
        """Report to the owner that an attempt to connect has failed; of one that succeeded (None), keep the URL."""
        if cause is None:
            self._url = url
        elif not self.closed:
            self._owner.attempt_failed(url, attempt, jms_error(cause, f"connect to {url}"))

    def survives(self, error: JMSException) -> bool:
        """Return whether an error only says that the broker cannot be reached, while the provider reconnects."""
        return self.options.failover is not None and self.lost is None and error.error_code == "connection"
