"""The backend's own provider with a hand on the SPI: answers held back, sends refused, the link broken, calls counted.

What a broker does by chance a test does here on purpose, in the same way on every backend. It shows what the library makes
of an answer, whenever that comes; that the provider notices a cut link by itself is for tests that need ``link_control``.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, cast

import jmsapi
from jmsapi import Connection, ConnectionFactory, JMSContext
from jmsapi.spi import (
    Capabilities,
    Clock,
    Delivery,
    ErrorKind,
    Events,
    Handle,
    Provider,
    ProviderEntry,
    ProviderError,
    SendResult,
    failed,
)
from jmsapi_conformance.backend import Backend, installed
from jmsapi_conformance.kit import PATIENCE_MS

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Interceptor"]

_LOST: Final = ProviderError(ErrorKind.CONNECTION, "the link was broken by a test", fatal=True)
_numbers = itertools.count(1)


class Interceptor:
    """Makes connections of a backend and holds their providers by the hand.

    Args:
        backend: Whose provider does the work.
    """

    def __init__(self, backend: Backend) -> None:
        scheme, separator, rest = backend.url.partition("://")
        self._entry = _InterceptingEntry(installed(scheme), scheme, f"interceptor{next(_numbers)}-{scheme}", self)
        self._url = f"{self._entry.schemes[0]}{separator}{rest}"
        self._guard = threading.Lock()
        self._holding = False
        self.full = False
        """Whether a new connection is refused, for want of resources."""
        self._refused: Callable[[int], bool] | None = None
        self._answers = 0
        self._held: list[tuple[_InterceptedProvider, SendResult]] = []
        self._made: list[Connection | JMSContext] = []
        self.providers: list[_InterceptedProvider] = []
        """One for each connection, in the order of making."""
        self.deliveries = 0
        """How many messages came up through the SPI."""
        self.calls: list[str] = []
        """Names of the calls that came down through the SPI, in order."""
        jmsapi.register_provider(self._entry)

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a new factory; the SPI's contract is asserted."""
        return jmsapi.connection_factory(self._url, **{"checked": True, **options})

    def connect(self, **options: object) -> Connection:
        """Return a new, started connection that is closed after the test."""
        made = self.factory(**options).create_connection()
        self._made.append(made)
        made.start()
        return made

    def context(self, session_mode: int = JMSContext.AUTO_ACKNOWLEDGE, **options: object) -> JMSContext:
        """Return a new context with a connection of its own that is closed after the test."""
        made = self.factory(**options).create_context(session_mode)
        self._made.append(made)
        return made

    def hold(self) -> None:
        """Keep back the answers to sends, from now on."""
        with self._guard:
            self._holding = True

    def let_go(self, *, backwards: bool = False) -> None:
        """Give what is held, and hold no more.

        Args:
            backwards: The youngest answer first.
        """
        with self._guard:
            self._holding = False
            held, self._held = self._held, []
        for provider, answer in reversed(held) if backwards else held:
            provider.up.on_sent((answer,))

    def refuse(self, chosen: Callable[[int], bool]) -> None:
        """Turn answers into failures, from now on.

        Args:
            chosen: Given the number of an answer, from 0; whether it is to be a failure.
        """
        with self._guard:
            self._answers = 0
            self._refused = chosen

    @property
    def held(self) -> int:
        """How many answers are held back now."""
        with self._guard:
            return len(self._held)

    def lose(self) -> None:
        """Break the links of all connections; what is held back fails with them."""
        for provider in self.providers:
            provider.lose()

    def close(self) -> None:
        """Close all connections, the youngest first."""
        self.let_go()
        for made in reversed(self._made):
            made.close()

    # ---- for the providers ----------------------------------------------------------------------------------------
    def answered(self, provider: _InterceptedProvider, results: Sequence[SendResult]) -> None:
        """Pass answers on, or not, or other ones."""
        passed: list[SendResult] = []
        with self._guard:
            for token, error in results:
                number, self._answers = self._answers, self._answers + 1
                if error is None and self._refused is not None and self._refused(number):
                    error = ProviderError(ErrorKind.RESOURCE, f"answer {number} was refused by a test")
                if self._holding:
                    self._held.append((provider, (token, error)))
                else:
                    passed.append((token, error))
        if passed:
            provider.up.on_sent(passed)

    def abandon(self, provider: _InterceptedProvider, error: ProviderError) -> None:
        """Fail what is held back of one provider."""
        with self._guard:
            gone = [(token, error) for owner, (token, _) in self._held if owner is provider]
            self._held = [one for one in self._held if one[0] is not provider]
        if gone:
            provider.up.on_sent(gone)


class _InterceptingEntry:
    """A provider entry that puts a ``_InterceptedProvider`` around what another one makes."""

    extra = None

    def __init__(self, entry: ProviderEntry, scheme: str, name: str, interceptor: Interceptor) -> None:
        self.spi_version = entry.spi_version
        self.name = name
        self.schemes = (name,)
        self._entry = entry
        self._scheme = scheme
        self._interceptor = interceptor

    def options(self) -> type[ProviderOptions]:
        """Return the model of the other one."""
        return self._entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make the other one's provider, and hold it."""
        inner = self._entry.create(options.model_copy(update={"scheme": self._scheme}), clock)
        held = _InterceptedProvider(inner, self._interceptor)
        self._interceptor.providers.append(held)
        # It has the calls by name, which no type checker sees.
        return cast("Provider", held)


class _InterceptedProvider:
    """A provider that passes everything on, but for what the test asked of its ``Interceptor``."""

    def __init__(self, inner: Provider, interceptor: Interceptor) -> None:
        self._inner = inner
        self._interceptor = interceptor
        self._lost = False
        self.up: Events

    def __getattr__(self, name: str) -> Any:
        # What the other one may have beside, and has not, this one has not either.
        getattr(self._inner, name)
        return functools.partial(self._ask, name)

    def _ask(self, name: str, *args: object, **kwargs: object) -> Any:
        self._interceptor.calls.append(name)
        if self._lost:
            return failed(_LOST)
        return getattr(self._inner, name)(*args, **kwargs)

    def open(self, events: Events) -> Future[Capabilities]:
        """Open, and stand between."""
        self._interceptor.calls.append("open")
        self.up = events
        if self._interceptor.full:
            return failed(ProviderError(ErrorKind.RESOURCE, "no more connections, says a test", fatal=True))
        return self._inner.open(self)

    def close(self) -> Future[None]:
        """Close; no token may stay unanswered."""
        self._interceptor.calls.append("close")
        self._interceptor.abandon(self, ProviderError(ErrorKind.CLOSED, "closed before the answer"))
        return self._inner.close()

    def send(self, producer: Handle, envelope: Any, tx: Handle | None, token: object) -> None:
        """Send, while there is a link."""
        self._interceptor.calls.append("send")
        if self._lost:
            raise _LOST
        self._inner.send(producer, envelope, tx, token)

    def lose(self) -> None:
        """End the link under the library's feet."""
        self._lost = True
        self._inner.close().result(PATIENCE_MS / 1000)
        self._interceptor.abandon(self, _LOST)
        self.up.on_lost(_LOST)

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass on."""
        self._interceptor.deliveries += len(deliveries)
        self.up.on_deliveries(consumer, deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Let the SPI decide."""
        self._interceptor.answered(self, results)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass on."""
        self.up.on_closed(handle, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Pass on, unless the test broke the link itself."""
        if not self._lost:
            self.up.on_lost(cause)

    def on_resumed(self) -> None:
        """Pass on."""
        self.up.on_resumed()
