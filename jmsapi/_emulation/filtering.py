"""Selectors and no-local where a broker lacks them, or answers otherwise than the standard.

Each selector is planned (``jmsapi_selector.planner``): sent as it is, sent rewritten, or evaluated here. What a
subscription delivers and does not match is acknowledged and dropped, so the result is the standard's, exactly; a browser
just does not show it. On a queue that is not possible: a selector that the broker cannot answer is refused there, unless
``?emulate=queue-selector`` asks for the emulation of ``queue_selector``.

The capabilities below decide: what is NATIVE there is pushed, what is NONE is done here.

Spec: 3.8.1-1, 6.11-2, 6.11.1-4, 6.11.3-12, 5.8-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from jmsapi._emulation.forwarding import Forwarding
from jmsapi._emulation.guarded_calls import call_below
from jmsapi._emulation.queue_selector import SelectingConsumer, open_selecting
from jmsapi.spi import (
    Capabilities,
    ConsumerSpec,
    Delivery,
    ErrorKind,
    Handle,
    HeaderView,
    Outcome,
    Provider,
    ProviderError,
    Support,
    Tag,
    answered,
    emulated,
    failed,
    none,
    stop_consumer,
)
from jmsapi_selector import Selector, compile_selector
from jmsapi_selector.planner import Action, Dialect, covers, plan

if TYPE_CHECKING:
    from jmsapi.spi import Clock
    from jmsapi.spi.options import ProviderOptions

__all__ = ["Filtering"]

QUEUE_SELECTOR = "queue-selector"


class _Filter:
    """Which messages are kept from one consumer."""

    __slots__ = ("browse", "draining", "expiry", "missed", "origin", "selector", "stopped")

    def __init__(self, selector: Selector | None, origin: str | None, browse: bool, expiry: Clock | None) -> None:
        self.selector = selector
        self.origin = origin
        self.browse = browse
        self.expiry = expiry
        """The clock by which expired messages are left out; None: they are not."""
        self.draining = False
        self.missed = 0
        self.stopped = False
        """Nothing more is wanted, until there is credit again."""

    def passes(self, delivery: Delivery) -> bool:
        envelope = delivery.envelope
        try:
            if self.origin is not None and envelope.origin == self.origin:
                return False
            if self.expiry is not None and 0 < envelope.expiration <= self.expiry.now_ms():
                return False
            return self.selector is None or self.selector.matches(HeaderView(envelope))
        except ProviderError:
            # Its properties cannot be decoded: no selector is TRUE of it, and no-local says nothing of it.
            return self.selector is None


class Filtering(Forwarding):
    """Plans selectors, and filters what the broker cannot.

    Args:
        provider: The one below.
        options: For ``emulate``.
        clock: For pauses between scans of a queue.
    """

    def __init__(self, provider: Provider, options: ProviderOptions, clock: Clock) -> None:
        super().__init__(provider)
        self._emulates_queue_selector = QUEUE_SELECTOR in options.emulate
        self._clock = clock
        self._local_expiry = options.local_expiry
        self._dialect: Dialect | None = None
        self._has: Capabilities | None = None
        self._filters: dict[Handle, _Filter] = {}
        self._selecting: dict[Handle, SelectingConsumer] = {}
        """By the consumer below."""
        self._matched: dict[Tag, SelectingConsumer] = {}
        """Matches of selecting consumers that must know when those are settled."""
        self._transactions: dict[Handle, list[Tag]] = {}

    def changed(self, capabilities: Capabilities) -> Capabilities:
        """Fill in what is done here."""
        self._has = capabilities
        self._dialect = capabilities.selectors
        changes: dict[str, Support] = {}
        if not capabilities.topic_selector:
            changes["topic_selector"] = emulated("evaluated here; what does not match is acknowledged and dropped")
        if not capabilities.no_local:
            changes["no_local"] = emulated("messages carry a mark of their sender; own ones are acknowledged and dropped")
        if not capabilities.queue_selector and self._emulates_queue_selector:
            changes["queue_selector"] = emulated("evaluated here; what does not match is hidden for a moment, then given back")
            changes["redelivered_flag"] = none("on a queue with a selector what was looked at and given back comes marked")
        return capabilities.with_(**changes) if changes else capabilities

    # ---- calls ----------------------------------------------------------------------------------------------------
    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        """Decide who evaluates, and open the consumer with what is left for the broker."""
        has = self._has
        if has is None:
            return failed(ProviderError(ErrorKind.CLOSED, "the provider is not open"))
        origin = spec.origin if spec.no_local and not has.no_local else None
        pushed, selector = spec.selector, None
        if spec.selector is not None and (self._dialect is not None or not has.topic_selector):
            compiled = compile_selector(spec.selector)
            droppable = spec.address.kind.is_topic or spec.browse
            action, pushed, recheck, caveats, why = self._planned(compiled, "topic" if spec.address.kind.is_topic else "queue")
            if spec.browse and action is Action.LOCAL:
                # Else a browser shows what a consumer with its selector would get; what is too much it can leave out.
                action, pushed, recheck, caveats, why = self._planned(compiled, "topic")
            if spec.durable and pushed != spec.selector and self._dialect is not None and covers(compiled, self._dialect):
                # The text that other clients of the subscription send too: with any other the broker would make it anew.
                pushed, recheck = spec.selector, True
            if action is Action.LOCAL or recheck:
                selector = compiled
            if not droppable and (action is Action.LOCAL or (caveats and self._emulates_queue_selector)):
                if not self._emulates_queue_selector:
                    return failed(
                        ProviderError(
                            ErrorKind.UNSUPPORTED,
                            f"the selector {spec.selector!r} on a queue: {has.broker} cannot evaluate it ({why}); "
                            f"?emulate={QUEUE_SELECTOR} evaluates it here",
                        )
                    )
                # Without credit at the broker a resting consumer would still hide messages: then it ends for its rest.
                renews = not (has.release_while_open and has.broker_credit)
                return open_selecting(self, session, replace(spec, selector=None), compiled, self._clock, renews=renews)
        below = replace(spec, selector=pushed, no_local=spec.no_local and origin is None)
        if spec.subscription is not None and (pushed != spec.selector or origin is not None):
            # The broker compares the terms with those given before, so they must include what is evaluated here.
            below = replace(below, terms=(spec.selector or "") + (" (no local)" if origin is not None else ""))
        future = self.below.open_consumer(session, below)
        expiry = self._clock if spec.browse and has.browser_shows_expired and self._local_expiry is not False else None
        if selector is None and origin is None and expiry is None:
            return future
        return self._registered(future, _Filter(selector, origin, spec.browse, expiry))

    def _planned(self, selector: Selector, destination: Literal["queue", "topic"]) -> tuple[Action, str | None, bool, bool, str]:
        if self._dialect is None:
            return Action.LOCAL, None, False, False, "it has no selectors"
        decided = plan(selector, self._dialect, destination)
        why = "; ".join(fault.reason for fault in decided.reasons)
        return decided.action, decided.text, decided.recheck, bool(decided.caveats), why

    def _registered(self, future: Future[Handle], added: _Filter) -> Future[Handle]:
        def opened(consumer: Handle) -> Handle:
            self._filters[consumer] = added
            return consumer

        return answered(future, opened)

    def release(self, handle: Handle) -> Future[None]:
        """Forget the filter with its consumer."""
        self._filters.pop(handle, None)
        if isinstance(handle, SelectingConsumer):
            for tag in [tag for tag, selecting in list(self._matched.items()) if selecting is handle]:
                self._matched.pop(tag, None)
            return handle.release()
        return self.below.release(handle)

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        """Pass down, or to the one that scans a queue."""
        if isinstance(consumer, SelectingConsumer):
            return consumer.credit(n)
        watched = self._filters.get(consumer)
        if watched is not None:
            watched.stopped = False
        return self.below.credit(consumer, n)

    def drain(self, consumer: Handle) -> Future[None]:
        """Drain until what was dropped has been made up for: only matches use up credit."""
        if isinstance(consumer, SelectingConsumer):
            return consumer.drain()
        watched = self._filters.get(consumer)
        if watched is None:
            return self.below.drain(consumer)
        answer: Future[None] = Future()
        watched.draining = True
        self._drain_on(consumer, watched, answer)
        return answer

    def stop(self, consumer: Handle) -> Future[None]:
        """Take the credit back; what is dropped meanwhile need not be made up for."""
        if isinstance(consumer, SelectingConsumer):
            return consumer.stop()
        watched = self._filters.get(consumer)
        if watched is None:
            return stop_consumer(self.below, consumer)
        watched.stopped = True
        return stop_consumer(self.below, consumer)

    def _drain_on(self, consumer: Handle, watched: _Filter, answer: Future[None]) -> None:
        def drained(inner: Future[None]) -> None:
            error = inner.exception()
            missed, watched.missed = watched.missed, 0
            if error is not None:
                watched.draining = False
                answer.set_exception(error)
            elif missed and not watched.stopped:
                self.below.credit(consumer, missed)
                self._drain_on(consumer, watched, answer)
            else:
                watched.draining = False
                answer.set_result(None)

        self.below.drain(consumer).add_done_callback(drained)

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        """Pass down, and report to selecting consumers what of theirs is settled."""
        if not self._matched:
            return self.below.settle(tags, outcome, tx, failures)
        mine = [tag for tag in tags if tag in self._matched]
        if tx is not None:
            # Noted before it is asked: whatever becomes of the acknowledgement, the end of the transaction is the end of it.
            self._transactions.setdefault(tx, []).extend(mine)
            return self.below.settle(tags, outcome, tx, failures)
        future = call_below(self.below.settle, tags, outcome, tx, failures)
        if mine:
            future.add_done_callback(lambda _: self._settled(mine))
        return future

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        """Pass down; what a commit has accepted is settled then, and what one in doubt may have accepted as well.

        The core says no more of that, so its consumer must not wait for a word. What was rolled back the core hands out
        again and settles later, unless the broker takes it back and delivers it anew.
        """
        mine = self._transactions.pop(tx, [])
        future = call_below(self.below.end, tx, commit=commit)

        def ended(done: Future[None]) -> None:
            error = done.exception()
            if error is not None and not commit:
                return  # not rolled back: the core has them still
            rolled_back = not commit or (isinstance(error, ProviderError) and error.kind is ErrorKind.ROLLED_BACK)
            if not rolled_back or (self._has is not None and self._has.rollback_returns):
                self._settled(mine)

        if mine:
            future.add_done_callback(ended)
        return future

    def _settled(self, tags: Sequence[Tag]) -> None:
        for tag in tags:
            selecting = self._matched.pop(tag, None)
            if selecting is not None:
                selecting.settled(1)

    # ---- the host of selecting consumers ------------------------------------------------------------------------------------
    def adopt(self, inner: Handle, selecting: SelectingConsumer) -> None:
        """Let the events of a consumer below come to a selecting consumer."""
        self._selecting[inner] = selecting

    def disown(self, inner: Handle) -> None:
        """Forget a consumer below that has ended."""
        self._selecting.pop(inner, None)

    def give_up(self, selecting: SelectingConsumer, cause: ProviderError) -> None:
        """Report that a selecting consumer has ended."""
        self.above.on_closed(selecting, cause)

    def hand_up(self, selecting: SelectingConsumer, deliveries: Sequence[Delivery]) -> None:
        """Give matches to the core; remember whose they are."""
        if selecting.renews:
            for delivery in deliveries:
                self._matched[delivery.tag] = selecting
        self.above.on_deliveries(selecting, deliveries)

    # ---- events ---------------------------------------------------------------------------------------------------
    def on_deliveries(self, consumer: Handle, deliveries: Sequence[Delivery]) -> None:
        """Pass on what matches, drop the rest and make up for its credit."""
        watched = self._filters.get(consumer)
        if watched is None:
            selecting = self._selecting.get(consumer)
            if selecting is None:
                self.above.on_deliveries(consumer, deliveries)
            else:
                selecting.arrive(deliveries)
            return
        kept: list[Delivery] = []
        dropped: list[Tag] = []
        for delivery in deliveries:
            if watched.passes(delivery):
                kept.append(delivery)
            else:
                dropped.append(delivery.tag)
        if kept:
            self.above.on_deliveries(consumer, kept)
        if dropped:
            if not watched.browse:
                self.below.settle(dropped, Outcome.ACCEPTED)
            if watched.draining:
                watched.missed += len(dropped)
            elif not watched.stopped:
                self.below.credit(consumer, len(dropped))

    def on_closed(self, handle: Handle, cause: ProviderError) -> None:
        """Pass up, under the name that the core knows."""
        selecting = self._selecting.get(handle)
        if selecting is None:
            self.above.on_closed(handle, cause)
        elif selecting.ended(handle):
            self.above.on_closed(selecting, cause)
