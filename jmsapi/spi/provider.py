"""The provider interface (SPI): what the core asks of a provider, and what a provider reports to the core.

The contract, asserted by ``jmsapi._emulation.checked`` in every test and certification run:

1. Calls come from any thread. Callbacks are serialised per consumer and come from the provider's I/O thread or, in the
   in-process provider, from inside the causing call. The core holds no lock that a callback takes while it calls.
2. A callback only files things away: it never blocks, waits for a future, or runs user code. It does not call the provider.
3. No delivery without credit, none after ``release`` or ``close`` is done. A tag is settled once (again, if its
   transaction rolled back).
4. RELEASED and FAILED take effect at the latest on ``release``.
5. What the capabilities call NONE is never asked for.
6. ``send`` returns at once; ``on_sent`` answers every token exactly once, also when the link is lost or the provider closes.
7. Objects of a wire library live and die on the I/O thread; tags and handles hold numbers and text.
8. Every failure is a ``ProviderError``: raised by a call, set on its future, or given to a callback.

Futures fail when the provider closes or loses its link, so no wait outlives it. Setting a future's result runs no code of
the core but waking its waiter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from jmsapi.spi._errors import ProviderError
from jmsapi.spi.capabilities import Capabilities, ProviderTraits
from jmsapi.spi.clock import Clock
from jmsapi.spi.model import Address, ConsumerSpec, Delivery, Envelope, Handle, Outcome, Tag

if TYPE_CHECKING:
    from jmsapi.spi.options import ProviderOptions

__all__ = [
    "VERSION",
    "Events",
    "HasTraits",
    "KeepsTime",
    "Provider",
    "ProviderEntry",
    "ReadsWire",
    "SendResult",
    "StopsConsumers",
    "TakesBack",
    "stop_consumer",
    "traits_of",
]

VERSION: Final = (1, 0)
"""Major and minor version of this interface; a provider of another major is refused."""

SendResult = tuple[object, "Exception | None"]
"""A token as it was given to ``send``, and what went wrong (a ProviderError) or None."""


class Events(Protocol):
    """What a provider tells the core. Five calls; all return at once."""

    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Take what one read brought for one consumer, in order. Never more than its credit."""

    def on_sent(self, results: Sequence[SendResult]) -> None:
        """Take the answers to sends that one read brought. Order need not be that of sending."""

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """The broker ended one session, consumer or producer by itself; the rest of the connection lives."""

    def on_lost(self, cause: ProviderError) -> None:
        """The link is gone; every handle is dead, every pending future has failed. Said once.

        A reconnecting decorator says it of each link: a cause that is not fatal means that another one is being made. What was
        delivered is void then and comes again, credit that was given holds, handles stay.
        """

    def on_resumed(self) -> None:
        """The link is back and all handles are valid again; only a reconnecting decorator says so.

        The one event from inside of which the provider may be called.
        """


class Provider(Protocol):
    """One connection to one broker. Fourteen calls."""

    def open(self, events: Events) -> Future[Capabilities]:
        """Connect and authenticate; what this broker can do is known only now. Called once."""
        ...

    def close(self) -> Future[None]:
        """End in order: everything sent is written out, then pending futures fail, then threads end. Idempotent."""
        ...

    def open_session(self, *, transacted: bool) -> Future[Handle]:
        """Open a wire session, or make a token where the wire has none."""
        ...

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Open a consumer, subscription or browser, with no credit.

        A browser answers ``drain`` when it has shown everything; its deliveries are never settled.
        Errors: DESTINATION, SELECTOR, IN_USE (an exclusive subscription is active), MISMATCH (a shared one is active with
        another topic or selector), SECURITY.
        """
        ...

    def open_producer(self, session: Handle, destination: Address | None) -> Future[Handle]:
        """Open a producer; with None each envelope says where it goes."""
        ...

    def release(self, handle: Handle) -> Future[None]:
        """End a session, consumer or producer. What a consumer holds unsettled goes back to the broker."""
        ...

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        """Send one message, in the transaction if there is one. Returns at once; ``on_sent`` answers ``token``.

        The answer comes when the broker took the message as firmly as its delivery mode asks; for NON_PERSISTENT, or inside
        a transaction, it may come as soon as the message is written; where the token has a true ``wants_answer``, a completion
        listener is told it, and what the broker says at once counts more than speed. A message that cannot be encoded raises
        ``ProviderError(FORMAT)`` here, and then ``on_sent`` does not come.
        """
        ...

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Allow ``n`` more deliveries. Done when the provider has taken note."""
        ...

    def drain(self, consumer: Handle) -> Future[None]:
        """Take all credit back: done when what was on its way has come through ``on_deliveries``, and nothing more will.

        When this has brought nothing, the broker had nothing for the consumer; a browser has shown everything, or used up its
        credit. Who only wants nothing more to come calls ``stop_consumer``.
        """
        ...

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Say what became of deliveries, all of one consumer or not; in a transaction only ACCEPTED is given.

        What came by a consumer that the broker has ended the broker gives out again. ACCEPTED of it fails. In a transaction it
        has failed when this returns, and the core rolls back; or the commit fails, as ROLLED_BACK, or as IN_DOUBT when the
        broker may have applied it before.

        Args:
            tags: Of the deliveries.
            outcome: Of all of them.
            tx: The transaction in which it happens, if any.
            failures: With FAILED, how often the application was handed each of them, when any was more than once: a session
                hands out again by itself. A wire that counts one at a time ignores it (3.5.11-3 asks for no exact number).
        """
        ...

    def begin(self, session: Handle) -> Future[Handle]:
        """Begin a local transaction of a transacted session."""
        ...

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Commit or roll back. Errors: ROLLED_BACK; IN_DOUBT when the answer was lost."""
        ...

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        """Create a destination that lives with this connection."""
        ...

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        """Remove a temporary destination, or end the durable subscription of that name.

        Errors: IN_USE; SUBSCRIPTION when there is none of that name; DESTINATION.
        """
        ...


@runtime_checkable
class TakesBack(Protocol):
    """What a provider may have beside: sends that wait for the broker's leave to be written can be taken back."""

    def take_back(self, token: object) -> None:
        """Answer a send now, if its message was not written: ``on_sent`` gives an error, and the message is never sent.

        One that was written, in part or whole, is answered as before. Returns at once.
        """
        ...


@runtime_checkable
class StopsConsumers(Protocol):
    """What a provider may have beside: credit can be taken back without seeing whether the broker has anything."""

    def stop(self, consumer: Handle) -> Future[None]:
        """Take all credit back, as ``drain`` does, whether or not the broker has anything for the consumer.

        Drains under way are answered with it. Credit may be given again later.
        """
        ...


def stop_consumer(provider: Provider, consumer: Handle) -> Future[None]:
    """Have nothing more delivered to a consumer, in the cheapest way that its provider has."""
    return provider.stop(consumer) if isinstance(provider, StopsConsumers) else provider.drain(consumer)


class ProviderEntry(Protocol):
    """What the entry point group ``jmsapi.providers`` names: how to get at a provider without importing its wire library."""

    @property
    def spi_version(self) -> tuple[int, int]:
        """The version of the provider interface it was written for."""
        ...

    @property
    def name(self) -> str:
        """The provider's name."""
        ...

    @property
    def schemes(self) -> tuple[str, ...]:
        """The URL schemes it serves."""
        ...

    @property
    def extra(self) -> str | None:
        """The extra of jmsapi that installs its wire library; None when it needs none."""
        ...

    def options(self) -> type[ProviderOptions]:
        """Return the pydantic model of its options; pydantic is imported by this call."""
        ...

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        """Make an unopened provider. Raises ImportError when the wire library is missing."""
        ...


@runtime_checkable
class HasTraits(Protocol):
    """What a provider entry may have beside: what is known of the provider before any broker is reached."""

    @property
    def traits(self) -> ProviderTraits:
        """Its traits; an entry without them has those of a provider that reaches its broker over a wire."""
        ...


def traits_of(entry: ProviderEntry) -> ProviderTraits:
    """Return the traits of a provider entry, whether or not it tells them."""
    return entry.traits if isinstance(entry, HasTraits) else ProviderTraits()


@runtime_checkable
class ReadsWire(Protocol):
    """What a provider entry may have beside: messages that were kept as a ``WireForm`` are read again, without a broker."""

    def wire_reader(self, how: str) -> Callable[[bytes, int], Envelope]:
        """Return what makes an envelope of a message's data and the time it was received at, in milliseconds since 1970.

        Args:
            how: Of the form, as one of this provider's connections gave it.
        """
        ...


@runtime_checkable
class KeepsTime(Protocol):
    """What a provider entry may have beside: brokers in this process that keep a time of their own."""

    def clock(self, options: ProviderOptions) -> Clock | None:
        """Return the clock that connections with these options share with their broker; None: the machine's time."""
        ...
