"""A selector on a queue, evaluated here: ``?emulate=queue-selector``.

It cannot be exact: a message that is looked at is hidden from everybody else meanwhile. What is promised: nothing is lost,
nothing that does not match is acknowledged, no count is spent on it where the broker gives it back without one, and the
broker is not hammered.

A *scan* takes messages as fast as the core has credit for matches, and holds what does not match. It ends when the queue
has nothing new for a moment, after half a second, or with a thousand messages held; then all that is held goes back at once,
and the next scan begins after a pause that doubles from 50 ms to 5 s and starts anew with a match. Where the
broker gives back only when a consumer ends, or credit is not the broker's, each scan is a consumer of its own, which ends
as soon as nothing that matched is unsettled there any more. A broker that refuses the next one is asked again for half a minute;
then the consumer is reported as closed, with the reason.

Spec: 5.8-3. The numbers are those of RabbitMQ's and Classic's measured behaviour.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from jmsapi._emulation.guarded_calls import call_below
from jmsapi.spi import (
    DONE,
    ConsumerSpec,
    Delivery,
    ErrorKind,
    Handle,
    HeaderView,
    Outcome,
    Provider,
    ProviderError,
    Tag,
    answered,
    stop_consumer,
)
from jmsapi_selector import Selector

if TYPE_CHECKING:
    from jmsapi.spi import Clock, Timer

__all__ = ["EmulationHost", "SelectingConsumer", "open_selecting"]

SCAN_S: Final = 0.5
IDLE_S: Final = 0.025
SCAN_MAX: Final = 1000
FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 5.0
REFUSED_S: Final = 30.0
"""How long a broker may refuse the consumer of the next scan: as long as a queue may take to move to another node."""


class EmulationHost(Protocol):
    """The decorator that selecting consumers belong to: the provider below, and the way up."""

    @property
    def below(self) -> Provider:
        """The provider."""
        ...

    def adopt(self, inner: Handle, selecting: SelectingConsumer) -> None:
        """Let the events of a consumer below come to a selecting consumer."""
        ...

    def disown(self, inner: Handle) -> None:
        """Forget a consumer below that has ended."""
        ...

    def hand_up(self, selecting: SelectingConsumer, deliveries: Sequence[Delivery]) -> None:
        """Give matches to the core."""
        ...

    def give_up(self, selecting: SelectingConsumer, cause: ProviderError) -> None:
        """Report to the core that there will be no more matches."""
        ...


class _Mode(Enum):
    """The state of a selecting consumer."""

    SCANNING = 1
    ENDING = 2
    """The credit is being taken back."""
    RESTING = 3
    """Nothing is held; a pause runs, or the old consumer waits for its last matches to be settled."""


class SelectingConsumer(Handle):
    """One selecting consumer on a queue: the handle that the core knows, whatever consumers stand below it.

    Args:
        host: The decorator that it belongs to.
        session: The provider's session.
        spec: What the consumer below is to be: without a selector.
        selector: What the core wants.
        clock: Time.
        renews: The broker gives messages back only when a consumer ends.
    """

    __slots__ = (
        "_answers",
        "_began",
        "_clock",
        "_credit",
        "_guard",
        "_held",
        "_host",
        "_inner",
        "_last",
        "_matched",
        "_missed",
        "_mode",
        "_opening",
        "_pause",
        "_refused_at",
        "_released",
        "_selector",
        "_session",
        "_spec",
        "_stale",
        "_timer",
        "renews",
    )

    def __init__(
        self, host: EmulationHost, session: Handle, spec: ConsumerSpec, selector: Selector, clock: Clock, *, renews: bool
    ) -> None:
        self._host = host
        self._session = session
        self._spec = spec
        self._selector = selector
        self._clock = clock
        self.renews = renews
        self._guard = threading.Lock()
        self._inner: Handle | None = None
        self._mode = _Mode.SCANNING
        self._credit = 0
        """Matches that the core still wants."""
        self._held: list[Tag] = []
        self._matched = 0
        """Matches of this consumer below that are not settled."""
        self._stale = False
        """The consumer below is to be replaced as soon as nothing of it is unsettled."""
        self._missed = 0
        """Number of messages that did not match since the last drain began."""
        self._answers: list[Future[None]] = []
        """Drains that the core waits for."""
        self._timer: Timer | None = None
        self._pause = FIRST_PAUSE_S
        self._began = self._last = 0.0
        self._refused_at: float | None = None
        """When the broker first refused the consumer of the next scan, and has refused it since."""
        self._opening = False
        """The consumer of the next scan has been asked for, and there is no answer yet."""
        self._released = False
        """Whether the consumer has ended, by the core or by the broker."""

    # ---- what the core asks ---------------------------------------------------------------------------------------
    def opened(self, inner: Handle) -> None:
        """Take the consumer below."""
        self._host.adopt(inner, self)
        with self._guard:
            over = self._released
            if not over:
                self._inner = inner
                self._stale = False
                self._refused_at = None
                self._mode = _Mode.ENDING if self._answers else _Mode.SCANNING
            self._opening = False
            ending = self._mode is _Mode.ENDING
            want = self._credit
        if over:
            self._let_go(inner)
            return
        if want:
            self._host.below.credit(inner, want)
        if ending:
            self._drain_below(inner)

    def credit(self, n: int) -> Future[None]:
        """Allow more matches."""
        with self._guard:
            self._credit += n
            inner = self._inner if self._mode is _Mode.SCANNING else None
        return DONE if inner is None else self._host.below.credit(inner, n)

    def drain(self) -> Future[None]:
        """Go through the queue once, now; done when it has nothing more that was not seen.

        Between two scans the consumer of the next one is opened for it at once. While that of the last one waits for its matches
        to be settled, what it has held is not looked at again, but what has come since is.
        """
        answer: Future[None] = Future()
        with self._guard:
            if self._released:
                self._credit = 0
                return DONE
            self._answers.append(answer)
            self._missed = 0
            self._stop_timer()
            inner = self._inner
            open_now = inner is None and not self._opening
            before = self._mode
            if inner is not None:
                self._mode = _Mode.ENDING
            want = self._credit
        if inner is None:
            if open_now:
                self._reopen()
            return answer
        if before is _Mode.RESTING and want:
            self._host.below.credit(inner, want)
        if before is not _Mode.ENDING:
            self._drain_below(inner)
        return answer

    def stop(self) -> Future[None]:
        """Take the core's credit back: a scan under way ends, and finds nothing more for it."""
        answer: Future[None] = Future()
        with self._guard:
            self._credit = 0
            inner, before = self._inner, self._mode
            if self._released or inner is None or before is _Mode.RESTING:
                return DONE
            self._answers.append(answer)
            self._stop_timer()
            self._mode = _Mode.ENDING
        if before is _Mode.SCANNING:
            self._end_scan(inner, partial(stop_consumer, self._host.below))
        return answer

    def release(self) -> Future[None]:
        """End the consumer below; what is held goes back by that."""
        with self._guard:
            self._released = True
            self._stop_timer()
            inner, self._inner = self._inner, None
            answers = self._take_answers() if inner is None else []
        for answer in answers:
            answer.set_result(None)
        return DONE if inner is None else self._let_go(inner)

    def _take_answers(self) -> list[Future[None]]:
        """Return the drains that the core waits for; the caller ends them. With the guard held."""
        answers, self._answers = self._answers, []
        return answers

    def _let_go(self, inner: Handle) -> Future[None]:
        """End a consumer below; what it holds goes back by that."""
        ended = call_below(self._host.below.release, inner)
        ended.add_done_callback(lambda _: self._host.disown(inner))
        return ended

    def settled(self, n: int) -> None:
        """Note that the broker has settled a number of matches."""
        with self._guard:
            self._matched -= n
            renew = self._stale and not self._matched and not self._released
        if renew:
            self._renew()

    def ended(self, inner: Handle) -> bool:
        """The broker has ended a consumer below; False when that one was done with."""
        with self._guard:
            if inner is not self._inner or self._released:
                return False
            self._released = True
            self._stop_timer()
            return True

    # ---- what comes -----------------------------------------------------------------------------------------------
    def arrive(self, deliveries: Sequence[Delivery]) -> None:
        """Hand matches up and hold the rest."""
        matches = [delivery for delivery in deliveries if self._matches(delivery)]
        matching = {delivery.tag for delivery in matches}
        misses = [delivery.tag for delivery in deliveries if delivery.tag not in matching]
        now = self._clock.monotonic()
        with self._guard:
            if self._released:
                return  # they go back with the consumer below
            inner = self._inner
            self._credit = max(0, self._credit - len(matches))
            self._matched += len(matches)
            if matches:
                self._pause = FIRST_PAUSE_S
            if misses and not self._held:
                self._began = now
            self._held += misses
            self._missed += len(misses)
            self._last = now
            scanning = self._mode is _Mode.SCANNING
            full = scanning and len(self._held) >= SCAN_MAX
            again = len(misses) if scanning and not full else 0
            if full:
                self._stop_timer()
                self._mode = _Mode.ENDING
            elif scanning and self._held and self._timer is None:
                self._timer = self._clock.call_later(IDLE_S, self._look)
        if matches:
            self._host.hand_up(self, matches)
        if inner is not None and again:
            self._host.below.credit(inner, again)
        if inner is not None and full:
            self._drain_below(inner)

    def _matches(self, delivery: Delivery) -> bool:
        try:
            return self._selector.matches(HeaderView(delivery.envelope))
        except ProviderError:
            return False

    def _look(self) -> None:
        """See whether the scan is over. On the clock's thread."""
        now = self._clock.monotonic()
        with self._guard:
            self._timer = None
            inner = self._inner
            if inner is None or self._mode is not _Mode.SCANNING or not self._held:
                return
            if now - self._last < IDLE_S and now - self._began < SCAN_S:
                self._timer = self._clock.call_later(IDLE_S, self._look)
                return
            self._mode = _Mode.ENDING
        self._drain_below(inner)

    # ---- the end of a scan ----------------------------------------------------------------------------------------
    def _drain_below(self, inner: Handle) -> None:
        self._end_scan(inner, self._host.below.drain)

    def _end_scan(self, inner: Handle, take_back: Callable[[Handle], Future[None]]) -> None:
        call_below(take_back, inner).add_done_callback(lambda taken_back: self._drained(inner, taken_back.exception()))

    def _drained(self, inner: Handle, error: BaseException | None) -> None:
        with self._guard:
            missed, self._missed = self._missed, 0
            # A drain that the core asked for goes on past what does not match, as long as that may be held.
            go_on = self._answers and missed and error is None and self._credit and len(self._held) < SCAN_MAX
            answers: list[Future[None]] = []
            held: list[Tag] = []
            renew = False
            if not go_on:
                answers = self._take_answers()
                if answers:
                    self._credit = 0
                held, self._held = self._held, []
                self._mode = _Mode.RESTING
                self._stale = self._stale or (self.renews and bool(held))
                renew = self._stale and not self._matched
                if not self._released and not self._stale:
                    # Also when it failed: if that is the consumer's end, or the link's, others report it.
                    self._rest(bool(held))
        if go_on:
            self._host.below.credit(inner, missed)
            self._drain_below(inner)
            return
        if not self.renews and held:
            call_below(self._host.below.settle, held, Outcome.RELEASED)
        for answer in answers:
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(None)
        if renew:
            self._renew()

    def _rest(self, pausing: bool) -> None:
        # A little chance keeps two of them on one queue from hiding messages from each other for ever.
        pause = self._pause * random.uniform(0.75, 1.25) if pausing else 0.0
        self._pause = min(self._pause * 2, LAST_PAUSE_S)
        self._timer = self._clock.call_later(pause, self._resume)

    def _resume(self) -> None:
        with self._guard:
            self._timer = None
            inner = self._inner
            if self._mode is not _Mode.RESTING or inner is None or self._stale or self._released:
                return
            self._mode = _Mode.SCANNING
            want = self._credit
            if self._held:
                # It came on credit given just before the drain, and after its answer.
                self._timer = self._clock.call_later(IDLE_S, self._look)
        if want:
            self._host.below.credit(inner, want)

    def _renew(self) -> None:
        """Replace the consumer below: its end gives back what was held."""
        with self._guard:
            if self._released:
                return
            inner, self._inner = self._inner, None
        if inner is None:
            return
        self._let_go(inner)
        with self._guard:
            self._reopen_later()

    def _reopen_later(self) -> None:
        pause = self._pause * random.uniform(0.75, 1.25)
        self._pause = min(self._pause * 2, LAST_PAUSE_S)
        if not (self._released or self._opening or self._inner is not None):
            self._stop_timer()
            self._timer = self._clock.call_later(pause, self._reopen)

    def _reopen(self) -> None:
        with self._guard:
            self._timer = None
            if self._released or self._opening or self._inner is not None:
                return  # a drain has opened it already
            self._opening = True
        call_below(self._host.below.open_consumer, self._session, self._spec).add_done_callback(self._reopened)

    def _reopened(self, future: Future[Handle]) -> None:
        error = future.exception()
        if error is None:
            self.opened(future.result())
            return
        if not isinstance(error, ProviderError):
            error = ProviderError(ErrorKind.PROTOCOL, repr(error))
        with self._guard:
            self._opening = False
            answers = self._take_answers()
            reported = self._released or error.fatal  # the link reports its own end
            again = False
            if not reported:
                now = self._clock.monotonic()
                if self._refused_at is None:
                    self._refused_at = now
                again = not error.kind.is_final and now - self._refused_at < REFUSED_S
                if again:
                    self._reopen_later()
                else:
                    self._released = True
        for answer in answers:
            answer.set_exception(error)
        if reported or again:
            return
        text = f"the consumer of the next scan of {self._spec.address.name!r} was refused: {error.message}"
        self._host.give_up(self, ProviderError(error.kind, text))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def open_selecting(
    host: EmulationHost, session: Handle, spec: ConsumerSpec, selector: Selector, clock: Clock, *, renews: bool
) -> Future[Handle]:
    """Open a consumer on a queue whose selector is evaluated here.

    Args:
        host: The decorator that it belongs to.
        session: The provider's session.
        spec: The consumer, without its selector.
        selector: What it wants.
        clock: Time.
        renews: The broker gives messages back only when a consumer ends.
    """
    selecting = SelectingConsumer(host, session, spec, selector, clock, renews=renews)

    def opened(inner: Handle) -> Handle:
        selecting.opened(inner)
        return selecting

    return answered(host.below.open_consumer(session, spec), opened)
