"""An in-process provider without selectors and no-local, and if asked one that gives back only at a consumer's end.

It stands for the wires whose brokers are like that, so that the decorators are tested without a broker.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

import jmsapi_inproc
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import (
    DONE,
    VERSION,
    Capabilities,
    Clock,
    ConsumerSpec,
    Handle,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    failed,
    none,
)
from jmsapi.spi.options import ProviderOptions

calls: Counter[str] = Counter()
"""How often a consumer was opened, and credit given, since it was cleared."""
refusals: deque[ProviderError | None] = deque()
"""What the next consumers are refused with; None lets one through."""
doubts: deque[tuple[ProviderError, bool]] = deque()
"""How the next commits end, without an effect; True raises at once."""


class Blind(Forwarding):
    """Knows nothing of selectors and senders; ``stubborn``: RELEASED has no effect before the consumer ends."""

    def __init__(self, below: Provider, stubborn: bool) -> None:
        super().__init__(below)
        self._stubborn = stubborn

    def changed(self, capabilities: Capabilities) -> Capabilities:
        less = capabilities.with_(
            queue_selector=none("blind", emulate="queue-selector"), topic_selector=none("blind"), no_local=none("blind")
        )
        return replace(less, provider="blind", release_while_open=not self._stubborn, broker_credit=not self._stubborn)

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        assert spec.selector is None, "a selector is asked of a broker that has none"
        assert not spec.no_local, "no-local is asked of a broker that has none"
        calls["open"] += 1
        refusal = refusals.popleft() if refusals else None
        if refusal is not None:
            return failed(refusal)
        return super().open_consumer(session, spec)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        calls["credit"] += 1
        return super().credit(consumer, n)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        if self._stubborn and outcome is Outcome.RELEASED:
            return DONE
        return super().settle(tags, outcome, tx, failures)

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        if not commit or not doubts:
            return super().end(tx, commit=commit)
        super().end(tx, commit=False)
        error, raises = doubts.popleft()
        if raises:
            raise error
        return failed(error)


class Entry:
    """The entry of both."""

    spi_version = VERSION
    name = "blind"
    schemes = ("blind", "stubborn")
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return Blind(jmsapi_inproc.entry.create(options, clock), options.scheme == "stubborn")
