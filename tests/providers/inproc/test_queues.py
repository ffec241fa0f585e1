"""Queues at the SPI: order, credit, settlement, fairness."""

from __future__ import annotations

import pytest

from jmsapi.spi import ErrorKind, Outcome, ProviderError


def test_a_message_sent_to_a_consumer_with_credit_arrives_inside_the_send(line):
    tap = line.tap("q")
    tap.credit()
    line.send("q", "a")
    assert tap.texts() == ["a"]


def test_messages_wait_for_credit_and_then_come_as_one_batch_in_order(line):
    line.send("q", "a", "b", "c")
    tap = line.tap("q")
    assert tap.texts() == []
    tap.credit(10)
    assert tap.texts() == ["a", "b", "c"]
    assert line.events.batches == [(tap.handle, 3)]


def test_no_more_comes_than_credit_allows(line):
    tap = line.tap("q")
    tap.credit(2)
    line.send("q", *range(5))
    assert tap.texts() == [0, 1]
    tap.credit(1)
    tap.credit(1)
    assert tap.texts() == [2, 3]


def test_drained_credit_is_gone(line):
    tap = line.tap("q")
    tap.credit(5)
    tap.drain()
    line.send("q", "a")
    assert tap.texts() == []
    tap.credit(1)
    assert tap.texts() == ["a"]


def test_higher_priorities_come_first_and_each_keeps_its_order(line):
    for priority in (4, 0, 9, 4, 9, 0):
        line.send("q", f"{priority}a", f"{priority}b", priority=priority)
    assert line.tap("q").take_texts() == ["9a", "9b", "9a", "9b", "4a", "4b", "4a", "4b", "0a", "0b", "0a", "0b"]


@pytest.mark.parametrize("priority", [-1, 10])
def test_a_priority_that_is_none_is_refused_by_send(line, priority):
    with pytest.raises(ProviderError) as caught:
        line.send("q", "a", priority=priority)
    assert caught.value.kind is ErrorKind.FORMAT
    assert line.events.sent == []


def test_an_accepted_message_is_gone_and_an_unsettled_one_is_not(line):
    line.send("q", "a", "b")
    tap = line.tap("q")
    first, _ = tap.take()
    tap.settle([first])
    tap.release()
    assert line.tap("q").take_texts() == ["b"]


def test_a_released_message_goes_back_to_its_place_with_no_count_spent(line):
    line.send("q", "a", "b", "c")
    tap = line.tap("q")
    taken = tap.take(2)
    tap.settle(taken[1:], Outcome.RELEASED)
    tap.settle(taken[:1], Outcome.RELEASED)
    again = tap.take()
    assert [(one.envelope.body, one.delivery_count) for one in again] == [("a", 1), ("b", 1), ("c", 1)]


def test_a_failed_message_goes_back_to_its_place_with_its_count_raised(line):
    line.send("q", "a", "b")
    tap = line.tap("q")
    for count in (1, 2, 3):
        (taken,) = tap.take(1)
        assert (taken.envelope.body, taken.delivery_count) == ("a", count)
        tap.settle([taken], Outcome.FAILED)
    assert tap.take_texts() == ["a", "b"]


def test_a_message_goes_back_between_its_neighbours(line):
    line.send("q", *range(6))
    tap = line.tap("q")
    taken = tap.take(6)
    for index in (5, 1, 3):
        tap.settle([taken[index]], Outcome.RELEASED)
    tap.settle([taken[2]], Outcome.FAILED)
    assert tap.take_texts() == [1, 2, 3, 5]


def test_a_returned_message_goes_at_once_to_who_has_credit(line):
    line.send("q", "a")
    first, second = line.tap("q"), line.tap("q")
    taken = first.take(1)
    second.credit(1)
    first.settle(taken, Outcome.FAILED)
    assert [(one.envelope.body, one.delivery_count) for one in second.new()] == [("a", 2)]


def test_releasing_a_consumer_returns_what_it_holds_uncounted_and_in_order(line):
    line.send("q", "a", "b", "c", "d")
    first, second = line.tap("q"), line.tap("q")
    first.take(3)
    first.release()
    assert [(one.envelope.body, one.delivery_count) for one in second.take()] == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]


def test_a_released_consumer_gets_nothing_more(line):
    tap = line.tap("q")
    tap.credit(5)
    tap.release()
    tap.release()
    line.send("q", "a")
    assert tap.texts() == []
    with pytest.raises(ProviderError) as caught:
        tap.credit(1)
    assert caught.value.kind is ErrorKind.CLOSED


def test_settling_a_tag_twice_fails_and_settles_the_others_all_the_same(line):
    line.send("q", "a", "b")
    tap = line.tap("q")
    first, second = tap.take()
    tap.settle([first])
    with pytest.raises(ProviderError, match="1 of 2"):
        tap.settle([first, second])
    tap.release()
    assert line.tap("q").take_texts() == []


def test_consumers_with_credit_take_turns(line):
    taps = [line.tap("q") for _ in range(3)]
    for tap in taps:
        tap.credit(100)
    line.send("q", *range(9))
    assert [tap.texts() for tap in taps] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_a_consumer_without_credit_is_passed_over(line):
    slow, fast = line.tap("q"), line.tap("q")
    slow.credit(1)
    fast.credit(100)
    line.send("q", *range(10))
    assert len(slow.texts()) == 1
    assert len(fast.texts()) == 9


def test_what_a_leaving_consumer_held_is_shared_in_turn(line):
    line.send("q", *range(6))
    first, second, third = (line.tap("q") for _ in range(3))
    first.take()
    second.credit(10)
    third.credit(10)
    first.release()
    assert (second.texts(), third.texts()) == ([0, 2, 4], [1, 3, 5])


def test_a_queue_and_a_topic_of_one_name_are_two(line, bench):
    topic = line.tap(bench.topic("same"))
    queue = line.tap("same")
    line.send("same", "to the queue")
    line.send(bench.topic("same"), "to the topic")
    assert (queue.take_texts(), topic.take_texts()) == (["to the queue"], ["to the topic"])


def test_messages_and_their_counts_outlive_every_connection(bench):
    first = bench.connect()
    first.send("q", "a", "b", delivery_mode=1)
    tap = first.tap("q")
    tap.settle(tap.take(1), Outcome.FAILED)
    first.close()
    second = bench.connect()
    assert [(one.envelope.body, one.delivery_count) for one in second.tap("q").take()] == [("a", 2), ("b", 1)]


def test_a_rejected_message_goes_to_the_dead_letter_queue_as_it_was(line):
    line.send("orders", "bad", properties={"k": 1})
    tap = line.tap("orders")
    (taken,) = tap.take()
    tap.settle([taken], Outcome.FAILED)
    tap.settle(tap.take(), Outcome.REJECTED)
    (dead,) = line.tap("DLQ.orders").take()
    assert dead.envelope is taken.envelope
    assert dead.delivery_count == 1
    assert tap.take() == []


def test_a_dead_letter_does_not_expire(line, bench):
    line.send("orders", "bad", expiration=bench.clock.now_ms() + 1000)
    tap = line.tap("orders")
    tap.settle(tap.take(), Outcome.REJECTED)
    bench.clock.advance(5000)
    (dead,) = line.tap("DLQ.orders").take()
    assert (dead.envelope.body, dead.envelope.expiration) == ("bad", 0)


def test_a_dead_letter_for_which_there_can_be_no_queue_comes_again(bench, caplog):
    line = bench.connect(dead_letter="jmsapi-temporary.graveyard")
    line.send("q", "bad")
    tap = line.tap("q")
    tap.settle(tap.take(), Outcome.REJECTED)
    (again,) = tap.take()
    assert (again.envelope.body, again.delivery_count) == ("bad", 2)
    assert "is dead and stays in 'q'" in caplog.text


def test_the_dead_letter_queue_can_be_named_or_left_out(bench):
    named, without = bench.connect(dead_letter="graveyard"), bench.connect(dead_letter="")
    for line in (named, without):
        line.send("q", "bad")
        tap = line.tap("q")
        tap.settle(tap.take(), Outcome.REJECTED)
        tap.release()
    assert named.tap("graveyard").take_texts() == ["bad"]
    assert named.tap("DLQ.q").take_texts() == []
