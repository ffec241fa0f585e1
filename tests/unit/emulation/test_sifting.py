"""A sifter on its own, above a provider that answers when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from jmsapi._emulation.sifting import Sifter
from jmsapi.spi import (
    DONE,
    Address,
    ConsumerSpec,
    Delivery,
    DestinationKind,
    ErrorKind,
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    ProviderError,
    Tag,
)
from jmsapi_selector import compile_selector


class Below:
    """Notes what is asked; a drain is answered by the test."""

    def __init__(self) -> None:
        self.credits: list[int] = []
        self.drains: list[Future[None]] = []
        self.released: list[Tag] = []
        self.opening: list[Future[Handle]] = []
        self.ended: list[Handle] = []
        self.raises: ProviderError | None = None
        """What the next consumer is refused with at once."""

    def open_consumer(self, *_: object) -> Future[Handle]:
        if self.raises is not None:
            raise self.raises
        self.opening.append(Future())
        return self.opening[-1]

    def credit(self, _: Handle, n: int) -> Future[None]:
        self.credits.append(n)
        return DONE

    def drain(self, _: Handle) -> Future[None]:
        self.drains.append(Future())
        return self.drains[-1]

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        assert outcome is Outcome.RELEASED
        self.released += tags
        return DONE

    def release(self, inner: Handle) -> Future[None]:
        self.ended.append(inner)
        return DONE


class Floor:
    """What a sifter stands on."""

    def __init__(self) -> None:
        self.noted = Below()
        self.below = cast("Provider", self.noted)
        self.up: list[Delivery] = []
        self.owned: set[Handle] = set()
        self.given_up: list[ProviderError] = []

    def adopt(self, inner: Handle, sifter: Sifter) -> None:
        del sifter
        self.owned.add(inner)

    def disown(self, inner: Handle) -> None:
        self.owned.discard(inner)

    def give_up(self, sifter: Sifter, cause: ProviderError) -> None:
        del sifter
        self.given_up.append(cause)

    def hand_up(self, sifter: Sifter, deliveries: Sequence[Delivery]) -> None:
        del sifter
        self.up += deliveries


class Hand:
    """A clock that the test moves by hand: each call is due at once, when asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        del seconds
        self.due.append(call)
        return _Cancel(self.due, call)

    def go(self) -> None:
        """Come to the next call."""
        self.now += 1.0
        self.due.pop(0)()


class _Cancel:
    def __init__(self, due: list[Callable[[], None]], call: Callable[[], None]) -> None:
        self._due, self._call = due, call

    def cancel(self) -> None:
        if self._call in self._due:
            self._due.remove(self._call)


ADDRESS = Address(DestinationKind.QUEUE, "q")


def sifter(*, renews: bool = False) -> tuple[Sifter, Floor, Hand]:
    floor, hand = Floor(), Hand()
    spec = ConsumerSpec(ADDRESS)
    made = Sifter(floor, Handle(), spec, compile_selector("n = 1"), cast("Any", hand), renews=renews)
    made.opened(Handle())
    made.credit(2)
    return made, floor, hand


def delivery(n: int) -> Delivery:
    return Delivery(Tag(), PlainEnvelope(MessageKind.TEXT, ADDRESS, body=str(n), properties={"n": n}), 1)


def test_a_drain_asked_for_while_a_scan_ends_is_answered_with_it() -> None:
    made, floor, hand = sifter()
    made.arrive([delivery(2)])
    hand.go()
    assert len(floor.noted.drains) == 1
    answer = made.drain()
    assert not answer.done()
    floor.noted.drains[0].set_result(None)
    # It goes on past the miss that was seen since the drain began, if there was one.
    for waiting in floor.noted.drains[1:]:
        waiting.set_result(None)
    assert answer.done()
    assert len(floor.noted.released) == 1


def test_two_drains_at_one_time_are_both_answered() -> None:
    made, floor, _ = sifter()
    answers = [made.drain(), made.drain()]
    assert len(floor.noted.drains) == 1
    floor.noted.drains[0].set_result(None)
    assert all(answer.done() for answer in answers)


def test_a_failed_drain_fails_all_who_wait_for_it() -> None:
    made, floor, _ = sifter()
    answers = [made.drain(), made.drain()]
    floor.noted.drains[0].set_exception(RuntimeError("the link is down"))
    assert [str(answer.exception()) for answer in answers] == ["the link is down"] * 2


def test_no_drain_is_lost_however_threads_meet() -> None:
    for _ in range(200):
        made, floor, hand = sifter()
        made.arrive([delivery(2)])
        hand.go()
        asked: list[Future[None]] = []
        thread = threading.Thread(target=lambda made=made, asked=asked: asked.append(made.drain()))  # type: ignore[misc]
        thread.start()
        floor.noted.drains[0].set_result(None)
        thread.join(5)
        for waiting in floor.noted.drains[1:]:
            waiting.set_result(None)
        assert asked[0].done()


def test_what_comes_after_a_drain_is_given_back_by_the_next_scan() -> None:
    made, floor, hand = sifter()
    made.drain()
    floor.noted.drains[0].set_result(None)
    late = delivery(2)
    made.arrive([late])
    assert floor.noted.released == []
    hand.go()
    hand.go()
    floor.noted.drains[1].set_result(None)
    assert floor.noted.released == [late.tag]


def renewing() -> tuple[Sifter, Floor, Hand]:
    """Return one whose first scan has ended, and whose second consumer is about to be asked for."""
    made, floor, hand = sifter(renews=True)
    made.arrive([delivery(2)])
    hand.go()
    floor.noted.drains[0].set_result(None)
    assert len(floor.noted.ended) == 1
    return made, floor, hand


BUSY = ProviderError(ErrorKind.RESOURCE, "busy")


def test_a_refused_consumer_of_the_next_scan_is_asked_for_again() -> None:
    _, floor, hand = renewing()
    hand.go()
    floor.noted.opening[0].set_exception(BUSY)
    hand.go()
    inner = Handle()
    floor.noted.opening[1].set_result(inner)
    assert floor.owned == {inner}
    assert floor.noted.credits[-1] == 2
    assert (floor.given_up, hand.due) == ([], [])


def test_a_consumer_of_the_next_scan_that_is_refused_at_once_is_asked_for_again() -> None:
    _, floor, hand = renewing()
    floor.noted.raises = BUSY
    hand.go()
    floor.noted.raises = None
    hand.go()
    assert len(floor.noted.opening) == 1


def test_after_half_a_minute_of_refusals_the_core_is_told_once_and_nothing_is_asked_any_more() -> None:
    made, floor, hand = renewing()
    asked = 0
    while hand.due:
        hand.go()
        floor.noted.opening[-1].set_exception(BUSY)
        asked += 1
    assert 20 < asked < 40
    assert [(error.kind, "busy" in error.message) for error in floor.given_up] == [(ErrorKind.RESOURCE, True)]
    assert made.drain().done()
    made.release()


def test_a_refusal_that_stays_one_is_told_at_once() -> None:
    _, floor, hand = renewing()
    hand.go()
    floor.noted.opening[0].set_exception(ProviderError(ErrorKind.SECURITY, "no"))
    assert [error.kind for error in floor.given_up] == [ErrorKind.SECURITY]
    assert hand.due == []


def test_the_end_of_the_link_is_left_to_the_link_to_tell() -> None:
    _, floor, hand = renewing()
    hand.go()
    floor.noted.opening[0].set_exception(ProviderError(ErrorKind.CONNECTION, "gone", fatal=True))
    assert (floor.given_up, hand.due) == ([], [])


def test_a_consumer_that_comes_after_the_release_is_ended() -> None:
    made, floor, hand = renewing()
    hand.go()
    made.release()
    inner = Handle()
    floor.noted.opening[0].set_result(inner)
    assert floor.noted.ended[-1] is inner
    assert floor.owned == set()


def test_what_the_broker_has_ended_is_not_opened_again_and_an_end_that_comes_late_is_no_news() -> None:
    made, floor, hand = sifter(renews=True)
    (inner,) = floor.owned
    made.arrive([delivery(1), delivery(2)])
    hand.go()
    floor.noted.drains[0].set_result(None)
    assert made.ended(inner)
    assert not made.ended(inner)
    made.settled(1)
    assert (floor.noted.ended, hand.due) == ([], [])
    made.release()
    assert (floor.noted.ended, floor.owned) == ([inner], set())


def test_a_scan_whose_end_fails_gives_back_what_it_held_and_the_next_one_comes() -> None:
    made, floor, hand = sifter()
    miss = delivery(2)
    made.arrive([miss])
    hand.go()
    floor.noted.drains[0].set_exception(ProviderError(ErrorKind.TIMEOUT, "no answer"))
    assert floor.noted.released == [miss.tag]
    credits = len(floor.noted.credits)
    hand.go()
    assert len(floor.noted.credits) == credits + 1
