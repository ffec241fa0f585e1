"""A selecting consumer on its own, above a provider that answers when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from jmsapi._emulation.queue_selector import SelectingConsumer
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


class Host:
    """The decorator that a selecting consumer belongs to."""

    def __init__(self) -> None:
        self.noted = Below()
        self.below = cast("Provider", self.noted)
        self.up: list[Delivery] = []
        self.owned: set[Handle] = set()
        self.given_up: list[ProviderError] = []

    def adopt(self, inner: Handle, selecting: SelectingConsumer) -> None:
        del selecting
        self.owned.add(inner)

    def disown(self, inner: Handle) -> None:
        self.owned.discard(inner)

    def give_up(self, selecting: SelectingConsumer, cause: ProviderError) -> None:
        del selecting
        self.given_up.append(cause)

    def hand_up(self, selecting: SelectingConsumer, deliveries: Sequence[Delivery]) -> None:
        del selecting
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


def selecting(*, renews: bool = False) -> tuple[SelectingConsumer, Host, Hand]:
    host, hand = Host(), Hand()
    spec = ConsumerSpec(ADDRESS)
    made = SelectingConsumer(host, Handle(), spec, compile_selector("n = 1"), cast("Any", hand), renews=renews)
    made.opened(Handle())
    made.credit(2)
    return made, host, hand


def delivery(n: int) -> Delivery:
    return Delivery(Tag(), PlainEnvelope(MessageKind.TEXT, ADDRESS, body=str(n), properties={"n": n}), 1)


def test_a_drain_asked_for_while_a_scan_ends_is_answered_with_it() -> None:
    made, host, hand = selecting()
    made.arrive([delivery(2)])
    hand.go()
    assert len(host.noted.drains) == 1
    answer = made.drain()
    assert not answer.done()
    host.noted.drains[0].set_result(None)
    # It goes on past the miss that was seen since the drain began, if there was one.
    for waiting in host.noted.drains[1:]:
        waiting.set_result(None)
    assert answer.done()
    assert len(host.noted.released) == 1


def test_two_drains_at_one_time_are_both_answered() -> None:
    made, host, _ = selecting()
    answers = [made.drain(), made.drain()]
    assert len(host.noted.drains) == 1
    host.noted.drains[0].set_result(None)
    assert all(answer.done() for answer in answers)


def test_a_stop_ends_the_scan_and_is_not_followed_by_another_one() -> None:
    made, host, hand = selecting()
    stopped = made.stop()
    made.arrive([delivery(2), delivery(1)])  # on its way
    assert [one.envelope.body for one in host.up] == ["1"]
    assert not stopped.done()
    host.noted.drains[0].set_result(None)
    assert stopped.done()
    while hand.due:
        hand.go()
    assert host.noted.credits == [2]
    assert len(host.noted.drains) == 1


def test_a_stop_between_two_scans_is_done_at_once() -> None:
    made, host, hand = selecting()
    answer = made.drain()
    host.noted.drains[0].set_result(None)
    assert answer.done()
    made.credit(1)
    assert made.stop().done()
    hand.go()
    assert host.noted.credits == [2]


def test_a_failed_drain_fails_all_who_wait_for_it() -> None:
    made, host, _ = selecting()
    answers = [made.drain(), made.drain()]
    host.noted.drains[0].set_exception(RuntimeError("the link is down"))
    assert [str(answer.exception()) for answer in answers] == ["the link is down"] * 2


def test_no_drain_is_lost_however_threads_meet() -> None:
    for _ in range(200):
        made, host, hand = selecting()
        made.arrive([delivery(2)])
        hand.go()
        asked: list[Future[None]] = []
        thread = threading.Thread(target=lambda made=made, asked=asked: asked.append(made.drain()))  # type: ignore[misc]
        thread.start()
        host.noted.drains[0].set_result(None)
        thread.join(5)
        for waiting in host.noted.drains[1:]:
            waiting.set_result(None)
        assert asked[0].done()


def test_what_comes_after_a_drain_is_given_back_by_the_next_scan() -> None:
    made, host, hand = selecting()
    made.drain()
    host.noted.drains[0].set_result(None)
    late = delivery(2)
    made.arrive([late])
    assert host.noted.released == []
    hand.go()
    hand.go()
    host.noted.drains[1].set_result(None)
    assert host.noted.released == [late.tag]


def renewing() -> tuple[SelectingConsumer, Host, Hand]:
    """Return one whose first scan has ended, and whose second consumer is about to be asked for."""
    made, host, hand = selecting(renews=True)
    made.arrive([delivery(2)])
    hand.go()
    host.noted.drains[0].set_result(None)
    assert len(host.noted.ended) == 1
    return made, host, hand


BUSY = ProviderError(ErrorKind.RESOURCE, "busy")


def test_a_refused_consumer_of_the_next_scan_is_asked_for_again() -> None:
    _, host, hand = renewing()
    hand.go()
    host.noted.opening[0].set_exception(BUSY)
    hand.go()
    inner = Handle()
    host.noted.opening[1].set_result(inner)
    assert host.owned == {inner}
    assert host.noted.credits[-1] == 2
    assert (host.given_up, hand.due) == ([], [])


def test_a_consumer_of_the_next_scan_that_is_refused_at_once_is_asked_for_again() -> None:
    _, host, hand = renewing()
    host.noted.raises = BUSY
    hand.go()
    host.noted.raises = None
    hand.go()
    assert len(host.noted.opening) == 1


def test_after_half_a_minute_of_refusals_the_core_is_told_once_and_nothing_is_asked_any_more() -> None:
    made, host, hand = renewing()
    asked = 0
    while hand.due:
        hand.go()
        host.noted.opening[-1].set_exception(BUSY)
        asked += 1
    assert 20 < asked < 40
    assert [(error.kind, "busy" in error.message) for error in host.given_up] == [(ErrorKind.RESOURCE, True)]
    assert made.drain().done()
    made.release()


def test_a_refusal_that_stays_one_is_told_at_once() -> None:
    _, host, hand = renewing()
    hand.go()
    host.noted.opening[0].set_exception(ProviderError(ErrorKind.SECURITY, "no"))
    assert [error.kind for error in host.given_up] == [ErrorKind.SECURITY]
    assert hand.due == []


def test_the_end_of_the_link_is_left_to_the_link_to_tell() -> None:
    _, host, hand = renewing()
    hand.go()
    host.noted.opening[0].set_exception(ProviderError(ErrorKind.CONNECTION, "gone", fatal=True))
    assert (host.given_up, hand.due) == ([], [])


def test_a_consumer_that_comes_after_the_release_is_ended() -> None:
    made, host, hand = renewing()
    hand.go()
    made.release()
    inner = Handle()
    host.noted.opening[0].set_result(inner)
    assert host.noted.ended[-1] is inner
    assert host.owned == set()


def test_what_the_broker_has_ended_is_not_opened_again_and_an_end_that_comes_late_is_no_news() -> None:
    made, host, hand = selecting(renews=True)
    (inner,) = host.owned
    made.arrive([delivery(1), delivery(2)])
    hand.go()
    host.noted.drains[0].set_result(None)
    assert made.ended(inner)
    assert not made.ended(inner)
    made.settled(1)
    assert (host.noted.ended, hand.due) == ([], [])
    made.release()
    assert (host.noted.ended, host.owned) == ([inner], set())


def test_a_scan_whose_end_fails_gives_back_what_it_held_and_the_next_one_comes() -> None:
    made, host, hand = selecting()
    miss = delivery(2)
    made.arrive([miss])
    hand.go()
    host.noted.drains[0].set_exception(ProviderError(ErrorKind.TIMEOUT, "no answer"))
    assert host.noted.released == [miss.tag]
    credits = len(host.noted.credits)
    hand.go()
    assert len(host.noted.credits) == credits + 1


def test_a_drain_between_two_scans_opens_the_next_consumer_at_once_and_looks() -> None:
    made, host, hand = renewing()
    answers = [made.drain(), made.drain()]
    assert (len(host.noted.opening), hand.due) == (1, [])
    inner = Handle()
    host.noted.opening[0].set_result(inner)
    assert host.noted.credits[-1] == 2
    assert len(host.noted.drains) == 2
    match = delivery(1)
    made.arrive([match])
    host.noted.drains[1].set_result(None)
    assert (host.up, [answer.exception(0) for answer in answers]) == ([match], [None, None])


def test_a_drain_while_the_next_consumer_is_being_opened_waits_for_it() -> None:
    made, host, hand = renewing()
    hand.go()
    answer = made.drain()
    assert len(host.noted.opening) == 1
    host.noted.opening[0].set_result(Handle())
    assert not answer.done()
    host.noted.drains[-1].set_result(None)
    assert answer.done()


def test_a_drain_between_two_scans_fails_when_the_next_consumer_is_refused() -> None:
    made, host, hand = renewing()
    answer = made.drain()
    host.noted.opening[0].set_exception(BUSY)
    assert answer.exception(0) is BUSY
    assert len(hand.due) == 1, "it is asked for again later"


def test_a_drain_between_two_scans_fails_with_the_link() -> None:
    made, host, _ = renewing()
    answer = made.drain()
    gone = ProviderError(ErrorKind.CONNECTION, "gone", fatal=True)
    host.noted.opening[0].set_exception(gone)
    assert answer.exception(0) is gone


def test_a_drain_between_two_scans_ends_with_the_release() -> None:
    made, host, _ = renewing()
    answer = made.drain()
    made.release()
    assert answer.exception(0) is None
    inner = Handle()
    host.noted.opening[0].set_result(inner)
    assert host.noted.ended[-1] is inner


def test_a_drain_while_matches_of_the_last_scan_are_unsettled_looks_at_what_has_come_since() -> None:
    made, host, hand = selecting(renews=True)
    made.arrive([delivery(1), delivery(2)])
    hand.go()
    host.noted.drains[0].set_result(None)
    assert host.noted.ended == [], "a match is not settled"
    made.credit(1)
    answer = made.drain()
    assert host.noted.credits[-1] == 2
    match = delivery(1)
    made.arrive([match])
    host.noted.drains[1].set_result(None)
    assert answer.done()
    assert host.up[-1] is match
    made.settled(2)
    assert len(host.noted.ended) == 1, "what was held goes back as soon as all is settled"


def test_a_drain_that_comes_while_the_last_consumer_is_being_ended_leaves_one_consumer_open() -> None:
    made, host, hand = selecting(renews=True)
    made.arrive([delivery(2)])
    hand.go()
    release, drains = host.noted.release, list[Future[None]]()

    def released(inner: Handle) -> Future[None]:
        drains.append(made.drain())
        host.noted.opening[-1].set_result(Handle())
        return release(inner)

    host.noted.release = released  # type: ignore[method-assign]
    host.noted.drains[0].set_result(None)
    host.noted.release = release  # type: ignore[method-assign]
    while hand.due and len(host.noted.opening) < 2:
        hand.go()
    assert len(host.noted.opening) == 1
    assert len(host.owned) == 1
