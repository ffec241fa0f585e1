"""A short proof in every run; ``make proof`` has the long one. And the proof's accounts notice what they are there to notice."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

from .proof.__main__ import PAIRS, Run
from .proof.book import Book, Fate, body_of, id_in


def booked(fate: Fate, *, acks_answered: bool = True) -> Book:
    book = Book(acks_answered=acks_answered)
    book.sending(["a:1"])
    book.told(["a:1"], fate)
    return book


def test_a_message_that_came_once_and_was_acknowledged_is_good() -> None:
    book = booked(Fate.CONFIRMED)
    copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    book.acked([copy], time.monotonic())
    verdict = book.verdict()
    assert verdict.good
    assert (book.confirmed, book.handled, book.missing) == (1, 1, 0)


def test_a_confirmed_message_that_never_came_is_lost_unless_it_is_left_in_a_queue() -> None:
    book = booked(Fate.CONFIRMED)
    assert book.verdict().violations["lost"] == 1
    assert not book.verdict().good
    book.left(body_of("a:1"))
    assert book.verdict().good
    book = booked(Fate.CONFIRMED)
    book.left(body_of("a:1"), "ID:1")
    assert (book.verdict().good, book.verdict().counts["left in a queue"]) == (True, 1)


def test_a_message_that_was_rolled_back_and_came_is_a_ghost() -> None:
    book = booked(Fate.REFUSED)
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["ghost"] == 1


def test_a_message_of_unknown_fate_may_come_or_not() -> None:
    book = booked(Fate.UNKNOWN)
    assert (book.verdict().good, book.verdict().counts["send unknown: did not"]) == (True, 1)
    book.received(body_of("a:1"), "ID:1")
    assert (book.verdict().good, book.verdict().counts["send unknown: came"]) == (True, 1)


def test_two_copies_of_one_message_are_one_too_many() -> None:
    book = booked(Fate.CONFIRMED)
    book.received(body_of("a:1"), "ID:1")
    book.received(body_of("a:1"), "ID:2")
    assert book.verdict().violations["copied twice"] == 1


def test_a_message_that_was_moved_and_is_still_there_is_one_too_many() -> None:
    book = booked(Fate.CONFIRMED)
    book.received(body_of("a:1"), "ID:1")
    book.left(body_of("a:1"))
    assert book.verdict().violations["copied twice"] == 1
    book = booked(Fate.CONFIRMED)
    book.left(body_of("a:1"), "ID:1")
    book.left(body_of("a:1"), "ID:2")
    assert book.verdict().violations["copied twice"] == 1


def test_an_acknowledged_copy_that_is_left_in_a_queue_is_one_too_many() -> None:
    book = booked(Fate.CONFIRMED)
    copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    book.acked([copy], time.monotonic())
    book.left(body_of("a:1"), "ID:1")
    assert book.verdict().violations["again"] == 1


def test_a_copy_that_could_not_be_acknowledged_is_owed_until_it_comes_again_or_is_found() -> None:
    for found in (True, False):
        book = booked(Fate.CONFIRMED)
        copy = book.received(body_of("a:1"), "ID:1")
        assert copy is not None
        book.not_acked([copy], since=0)
        assert book.verdict().violations["kept back"] == 1
        if found:
            book.left(body_of("a:1"), "ID:1")
        else:
            book.received(body_of("a:1"), "ID:1")
        assert book.verdict().good


@pytest.mark.parametrize("times", [1, 2])
def test_a_copy_is_not_owed_to_one_application_when_another_was_given_it_meanwhile(times: int) -> None:
    book = booked(Fate.CONFIRMED)
    copies = [book.received(body_of("a:1"), "ID:1") for _ in range(times)]
    with book.breaking():
        elsewhere = book.received(body_of("a:1"), "ID:1")
    assert elsewhere is not None
    book.acked([elsewhere], 0)
    book.not_acked([copy for copy in copies if copy is not None], since=0)
    assert book.verdict().good


def test_a_copy_that_comes_twice_to_one_application_and_cannot_be_acknowledged_is_owed() -> None:
    book = booked(Fate.CONFIRMED)
    copies = [copy for copy in (book.received(body_of("a:1"), "ID:1"), book.received(body_of("a:1"), "ID:1")) if copy is not None]
    book.not_acked(copies, since=0)
    assert book.verdict().violations["kept back"] == 1


@pytest.mark.parametrize("broken", [True, False])
def test_a_copy_that_comes_while_it_is_in_hand_is_one_too_many_unless_a_link_broke(broken: bool) -> None:
    book = booked(Fate.CONFIRMED)
    book.received(body_of("a:1"), "ID:1")
    if broken:
        with book.breaking():
            pass
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["in hand twice"] == (not broken)


def test_a_send_of_which_nothing_was_told_is_a_violation() -> None:
    book = Book(acks_answered=True)
    book.sending(["a:1"])
    assert book.verdict().violations["unanswered"] == 1


@pytest.mark.parametrize("answered", [True, False])
def test_a_copy_that_comes_after_its_acknowledgement_is_one_too_many_unless_nobody_answered_it(
    answered: bool,
) -> None:
    book = booked(Fate.CONFIRMED, acks_answered=answered)
    copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    book.acked([copy], time.monotonic())
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["again"] == 1
    book = booked(Fate.CONFIRMED, acks_answered=answered)
    copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    book.acked([copy], time.monotonic())
    with book.breaking():
        pass
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["again"] == answered


@pytest.mark.parametrize("answered", [True, False])
def test_an_acknowledgement_that_nobody_answered_may_follow_a_breaking_link_but_not_be_lost_on_the_next(
    answered: bool,
) -> None:
    book = booked(Fate.CONFIRMED, acks_answered=answered)
    copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    with book.breaking():
        book.acked([copy], time.monotonic())
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["again"] == answered
    book = booked(Fate.CONFIRMED, acks_answered=answered)
    with book.breaking():
        copy = book.received(body_of("a:1"), "ID:1")
    assert copy is not None
    book.acked([copy], time.monotonic())
    book.received(body_of("a:1"), "ID:1")
    assert book.verdict().violations["again"] == 1


def test_a_redelivery_without_an_acknowledgement_is_no_violation() -> None:
    book = booked(Fate.CONFIRMED)
    for _ in range(2):
        copy = book.received(body_of("a:1"), "ID:1")
        assert copy is not None
        book.ack_unknown([copy])
    assert (book.verdict().good, book.verdict().counts["redelivered"]) == (True, 1)


def test_a_damaged_body_is_noticed() -> None:
    book = booked(Fate.CONFIRMED)
    assert book.received(body_of("a:1") + "x", "ID:1") is None
    assert book.verdict().violations["damaged"] == 1
    assert id_in(body_of("a:77")) == "a:77"


def test_an_answer_that_comes_twice_is_a_fault() -> None:
    book = booked(Fate.CONFIRMED)
    with pytest.raises(AssertionError):
        book.told(["a:1"], Fate.UNKNOWN)
    # Whoever was told in a listener cannot say so: it is in the accounts.
    assert book.verdict().violations["answered twice"] == 1


@pytest.mark.broker
@pytest.mark.timeout(900)
@pytest.mark.parametrize("wire", list(PAIRS))
def test_nothing_confirmed_is_lost_and_nothing_comes_twice_while_brokers_are_killed_and_links_cut(
    wire: Wire, own_broker: Callable[[BrokerKind], Broker]
) -> None:
    run = Run(wire, messages=2000, kills=1, cuts=8, limit_s=500, seed=20260101, failover=True)
    verdict, _ = run.on(own_broker(PAIRS[wire]))
    assert (verdict.violations, verdict.examples, run.troubles) == (dict.fromkeys(verdict.violations, 0), [], [])
    assert verdict.counts["confirmed"] >= 2000
    assert (run.done["kill"], run.done["cut"]) == (1, 8)
