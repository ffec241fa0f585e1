"""What was sent, what the sender was told of it, what came, and what of that was acknowledged; and the verdict on all of it.

Each message has an id and is sent once. A mover takes it from the first queue and sends a copy to the second, in one
transaction; a consumer receives the copy and acknowledges it. Pure state behind one lock.

Violations:

- lost: the send or its commit was confirmed, and no consumer was ever given the message, nor is it left in a queue;
- ghost: the sender was told that the message is not sent (rolled back), and it came all the same;
- copied twice: one message became two, or is still where it was moved from: the mover's transaction takes and sends together;
- again: a copy came, or is left in a queue, after it had been acknowledged and the broker had taken that;
- in hand twice: a copy came while the application still had it from before, and no link broke in between;
- kept back: the application was given a copy, could not acknowledge it, and it neither came again nor is left in a queue;
- unanswered, answered twice: a send of which the sender was told nothing, or more than once;
- damaged: a body that nobody sent.

What the client was told is not known is counted apart: sends and commits without an answer, and acknowledgements that failed,
or, over AMQP, where the broker does not answer them, were written shortly before a break or before the client had met it.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Book", "Copy", "Fate", "Verdict", "body_of", "id_in"]

_FILL = "." * 200
_SHOWN = 10


class Fate(Enum):
    """What the sender was told of a message."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Copy:
    """One message in the second queue."""

    id: str
    copy: str


def body_of(id: str) -> str:
    """Form the body of a message."""
    return f"{id}|{_FILL[: 50 + len(id) * 7 % 150]}"


def id_in(body: str) -> str | None:
    """Read a body; None when nobody sent it so."""
    id, _, _ = body.partition("|")
    return id if body == body_of(id) else None


@dataclass(slots=True)
class Verdict:
    """The counts, and examples of what must not be."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    violations: dict[str, int] = field(default_factory=dict[str, int])
    examples: list[str] = field(default_factory=list[str])

    @property
    def good(self) -> bool:
        """Whether the contract was kept."""
        return not any(self.violations.values())


@dataclass(slots=True)
class _Break:
    """A break of the link: from when on it was possible, and when everybody had met it."""

    began_at: float
    ended_at: float = float("inf")


@dataclass(frozen=True, slots=True)
class _Again:
    """A copy that came after it had been acknowledged."""

    copy: Copy
    asked_at: float
    acked_at: float
    came_at: float

    def since(self, at: _Break) -> tuple[float, float]:
        """Return when a break began and ended, in seconds from the acknowledgement's end."""
        return round(at.began_at - self.acked_at, 2), round(at.ended_at - self.acked_at, 2)


class Book:
    """The accounts of one run.

    Args:
        acks_answered: The broker answers acknowledgements.
        unsure_s: How exactly the times of breaks are known; where the broker does not answer acknowledgements, how long before
            a break one may have been on its way.
    """

    def __init__(self, *, acks_answered: bool, unsure_s: float = 2.0) -> None:
        self._lock = threading.Lock()
        self._acks_answered = acks_answered
        self._unsure_s = unsure_s
        self._fates: dict[str, Fate] = {}
        self._why: dict[str, str] = {}
        self._copies: dict[str, set[str]] = defaultdict(set)
        self._received: dict[Copy, list[float]] = defaultdict(list)
        self._acked: dict[Copy, tuple[float, float]] = {}
        self._ack_unknown: set[Copy] = set()
        self._in_hand: dict[Copy, float] = {}
        """Given to an application that has not asked yet to acknowledge it, and when."""
        self._twice_in_hand: list[tuple[Copy, float, float]] = []
        self._owed: dict[Copy, str] = {}
        """Given to an application that could not acknowledge it, and why: it is to come again."""
        self._left: set[str] = set()
        self._left_behind: set[str] = set()
        """Left where they are moved from."""
        self._left_copies: dict[str, set[str]] = defaultdict(set)
        self._answered_twice: list[str] = []
        self._breaks: list[_Break] = []
        self._again: list[_Again] = []
        self._damaged = 0
        self.confirmed = 0
        self.open_or_confirmed = 0
        self.handled = 0
        """Different messages that were received at the end, of those confirmed or not."""
        self.last_progress = time.monotonic()

    # ---- senders --------------------------------------------------------------------------------------------------
    def sending(self, ids: Iterable[str]) -> None:
        """Messages are about to be sent."""
        with self._lock:
            for id in ids:
                self._fates[id] = Fate.OPEN
                self.open_or_confirmed += 1

    def told(self, ids: Iterable[str], fate: Fate, why: str = "") -> None:
        """The sender knows now, or knows that it will not."""
        with self._lock:
            for id in ids:
                if self._fates[id] is not Fate.OPEN:
                    self._answered_twice.append(id)
                    raise AssertionError(f"{id} was answered twice: {self._fates[id]}, then {fate}")
                self._fates[id] = fate
                if why:
                    self._why[id] = why
                if fate is Fate.CONFIRMED:
                    self.confirmed += 1
                else:
                    self.open_or_confirmed -= 1
            self.last_progress = time.monotonic()

    # ---- the consumer at the end ----------------------------------------------------------------------------------
    def received(self, body: str, copy: str) -> Copy | None:
        """A copy was given to the application."""
        id = id_in(body)
        now = time.monotonic()
        with self._lock:
            if id is None or id not in self._fates:
                self._damaged += 1
                return None
            one = Copy(id, copy)
            if not self._copies[id]:
                self.handled += 1
            self._copies[id].add(copy)
            self._received[one].append(now)
            self._owed.pop(one, None)
            if one in self._in_hand:
                self._twice_in_hand.append((one, self._in_hand[one], now))
            self._in_hand[one] = now
            if one in self._acked:
                self._again.append(_Again(one, *self._acked[one], now))
            self.last_progress = now
            return one

    def acked(self, copies: Iterable[Copy], asked_at: float) -> None:
        """They were acknowledged with a call that was made then and has returned now."""
        now = time.monotonic()
        with self._lock:
            for one in copies:
                self._in_hand.pop(one, None)
                self._acked[one] = (asked_at, now)

    def ack_unknown(self, copies: Iterable[Copy]) -> None:
        """They were to be acknowledged, and the call failed so that it may have been done."""
        with self._lock:
            for one in copies:
                self._in_hand.pop(one, None)
                self._ack_unknown.add(one)

    def not_acked(self, copies: Sequence[Copy], *, since: float, why: str = "") -> None:
        """They are not acknowledged: nobody asked, or was told that it was not done. The application gives them back.

        Args:
            copies: As they were given to it, one more than once if it came again meanwhile.
            since: When it had none of them yet.
            why: What it was told.
        """
        now = time.monotonic()
        with self._lock:
            for one in copies:
                times = [at for at in self._received[one] if at >= since]
                if len(times) > copies.count(one):
                    continue  # it came again already, to another
                self._in_hand.pop(one, None)
                breaks = [f"{now - at.began_at:.2f} to {now - at.ended_at:.2f}" for at in self._breaks[-3:]]
                self._owed[one] = f"{why}; received {[f'{now - at:.2f}' for at in times]}, breaks {breaks} s before that"

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """The link or the broker is broken somewhere inside, and every client has met that when it ends."""
        one = _Break(time.monotonic())
        with self._lock:
            self._breaks.append(one)
        try:
            yield
        finally:
            one.ended_at = time.monotonic()

    def left(self, body: str, copy: str | None = None) -> None:
        """A message was found in a queue at the end: in the first one, or a copy in the second."""
        id = id_in(body)
        with self._lock:
            if id is None or id not in self._fates:
                self._damaged += 1
                return
            self._left.add(id)
            if copy is None:
                self._left_behind.add(id)
                return
            one = Copy(id, copy)
            self._left_copies[id].add(copy)
            self._owed.pop(one, None)
            if one in self._acked:
                self._again.append(_Again(one, *self._acked[one], time.monotonic()))

    # ---- verdict --------------------------------------------------------------------------------------------------
    @property
    def missing(self) -> int:
        """How many confirmed messages have not come yet."""
        with self._lock:
            return sum(fate is Fate.CONFIRMED and id not in self._copies for id, fate in self._fates.items())

    def verdict(self) -> Verdict:
        """Judge."""
        with self._lock:
            by_fate: dict[Fate, list[str]] = defaultdict(list)
            for id, fate in self._fates.items():
                by_fate[fate].append(id)
            came = set(self._copies) | self._left
            lost = [id for id in by_fate[Fate.CONFIRMED] if id not in came]
            ghosts = [id for id in by_fate[Fate.REFUSED] if id in came]
            copied = {id: self._copies.get(id, set()) | self._left_copies.get(id, set()) for id in came}
            twice = [id for id, copies in copied.items() if len(copies) + (id in self._left_behind) > 1]
            in_hand = [one for one, since, at in self._twice_in_hand if not self._broke_between(since, at)]
            unsure = [one for one in self._again if self._may_be_unknown(one)]
            again = [one for one in self._again if one not in unsure]
            redelivered = sum(len(times) - 1 for times in self._received.values())
            unknown = by_fate[Fate.UNKNOWN]
            verdict = Verdict(
                counts={
                    "sent": len(self._fates),
                    "confirmed": len(by_fate[Fate.CONFIRMED]),
                    "received": len(self._copies),
                    "redelivered": redelivered,
                    "not sent, said so": len(by_fate[Fate.REFUSED]),
                    "send unknown: came": sum(id in came for id in unknown),
                    "send unknown: did not": sum(id not in came for id in unknown),
                    "ack unknown": len(self._ack_unknown),
                    "ack unanswered, came again": len(unsure),
                    "left in a queue": len(self._left - set(self._copies)),
                },
                violations={
                    "lost": len(lost),
                    "ghost": len(ghosts),
                    "copied twice": len(twice),
                    "again": len(again),
                    "in hand twice": len(in_hand),
                    "kept back": len(self._owed),
                    "unanswered": len(by_fate[Fate.OPEN]),
                    "answered twice": len(self._answered_twice),
                    "damaged": self._damaged,
                },
            )
            verdict.examples += [f"lost: {id}" for id in lost[:_SHOWN]]
            verdict.examples += [f"ghost: {id}, though {self._why.get(id, '?')}" for id in ghosts[:_SHOWN]]
            verdict.examples += [f"copied twice: {id} as {sorted(copied[id])}" for id in twice[:_SHOWN]]
            verdict.examples += [f"in hand twice: {one.id} as {one.copy}" for one in in_hand[:_SHOWN]]
            verdict.examples += [f"kept back: {one.id} as {one.copy}: {why}" for one, why in list(self._owed.items())[:_SHOWN]]
            verdict.examples += [f"unanswered: {id}" for id in by_fate[Fate.OPEN][:_SHOWN]]
            verdict.examples += [f"answered twice: {id}" for id in self._answered_twice[:_SHOWN]]
            verdict.examples += [
                f"again: {one.copy.id} as {one.copy.copy}, {one.came_at - one.acked_at:.2f} s after it was acknowledged; breaks"
                f" {[one.since(at) for at in self._breaks if one.acked_at - 5 < at.ended_at and at.began_at < one.came_at]}"
                " s after that"
                for one in again[:_SHOWN]
            ]
            return verdict

    def _broke_between(self, since: float, until: float) -> bool:
        return any(at.began_at - self._unsure_s < until and since < at.ended_at + self._unsure_s for at in self._breaks)

    def _may_be_unknown(self, again: _Again) -> bool:
        """Whether an acknowledgement that nobody answered was on its way when the link broke, or followed it into the void."""
        return not self._acks_answered and any(
            again.asked_at <= at.ended_at and again.acked_at >= at.began_at - self._unsure_s and at.began_at < again.came_at
            for at in self._breaks
        )
