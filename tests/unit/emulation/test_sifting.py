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
    Handle,
    MessageKind,
    Outcome,
    PlainEnvelope,
    Provider,
    Tag,
)
from jmsapi_selector import compile_selector


class Below:
    """Notes what is asked; a drain is answered by the test."""

    def __init__(self) -> None:
        self.credits: list[int] = []
        self.drains: list[Future[None]] = []
        self.released: list[Tag] = []

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

    def release(self, _: Handle) -> Future[None]:
        return DONE


class Floor:
    """What a sifter stands on."""

    def __init__(self) -> None:
        self.noted = Below()
        self.below = cast("Provider", self.noted)
        self.up: list[Delivery] = []

    def adopt(self, inner: Handle, sifter: Sifter) -> None:
        del inner, sifter

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


def sifter() -> tuple[Sifter, Floor, Hand]:
    floor, hand = Floor(), Hand()
    spec = ConsumerSpec(ADDRESS)
    made = Sifter(floor, Handle(), spec, compile_selector("n = 1"), cast("Any", hand), renews=False)
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
