"""A decorator that changes nothing: the base of those that change a few calls."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from jmsapi.spi import (
    Address,
    Capabilities,
    ConsumerSpec,
    Delivery,
    Envelope,
    ErrorKind,
    Events,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    SendResult,
    Tag,
    TakesBack,
    answered,
    stop_consumer,
)

__all__ = ["Forwarding"]


class Forwarding:
    """Passes calls down and events up.

    Args:
        provider: The one below.
    """

    def __init__(self, provider: Provider) -> None:
        self.below = provider
        self._above: Events | None = None

    @property
    def above(self) -> Events:
        """Where events go; known from ``open`` on."""
        if self._above is None:
            raise ProviderError(ErrorKind.PROTOCOL, "an event before open was called")
        return self._above

    def changed(self, capabilities: Capabilities) -> Capabilities:
        """Return what can be done with this decorator in place."""
        return capabilities

    def open(self, events: Events) -> Future[Capabilities]:
        """Open the provider below, listening to its events."""
        self._above = events
        return answered(self.below.open(self), self.changed)

    def close(self) -> Future[None]:
        """Pass down."""
        return self.below.close()

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Pass down."""
        return self.below.open_session(transacted=transacted)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Pass down."""
        return self.below.open_consumer(session, spec)

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Pass down."""
        return self.below.open_producer(session, destination)

    def release(self, handle: Handle) -> Future[None]:
        """Pass down."""
        return self.below.release(handle)

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Pass down."""
        self.below.send(producer, envelope, tx, token)

    def take_back(self, token: object) -> None:
        """Pass down, where sends can be taken back."""
        if isinstance(self.below, TakesBack):
            self.below.take_back(token)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Pass down."""
        return self.below.credit(consumer, n)

    def drain(self, consumer: Handle) -> Future[None]:
        """Pass down."""
        return self.below.drain(consumer)

    def stop(self, consumer: Handle) -> Future[None]:
        """Pass down, as a drain where there is nothing cheaper."""
        return stop_consumer(self.below, consumer)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Pass down."""
        return self.below.settle(tags, outcome, tx, failures)

    def begin(self, session: Handle) -> Future[Handle]:
        """Pass down."""
        return self.below.begin(session)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Pass down."""
        return self.below.end(tx, commit=commit)

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Pass down."""
        return self.below.create_temporary(session, topic=topic)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Pass down."""
        return self.below.remove(session, what)

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass up."""
        self.above.on_deliveries(consumer, deliveries)

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Pass up."""
        self.above.on_sent(results)

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass up."""
        self.above.on_closed(handle, cause)

    def on_lost(self, cause: ProviderError) -> None:
        """Pass up."""
        self.above.on_lost(cause)

    def on_resumed(self) -> None:
        """Pass up."""
        self.above.on_resumed()
