"""Delivery times and expirations, by a clock that is set by hand."""

from __future__ import annotations

import pytest

import jmsapi_inproc


def test_a_delayed_message_is_nowhere_before_its_time(bench, line):
    tap = line.tap("q")
    tap.credit(5)
    line.send("q", "a", delivery_time=bench.clock.now_ms() + 1000)
    bench.clock.advance(999)
    assert (tap.texts(), bench.queued("q")) == ([], [])
    bench.clock.advance(1)
    assert tap.texts() == ["a"]


def test_delayed_messages_come_in_the_order_of_their_times_behind_those_sent_meanwhile(bench, line):
    now = bench.clock.now_ms()
    line.send("q", "late", delivery_time=now + 2000)
    line.send("q", "early", delivery_time=now + 1000)
    bench.clock.advance(500)
    line.send("q", "meanwhile")
    bench.clock.advance(5000)
    assert line.tap("q").take_texts() == ["meanwhile", "early", "late"]


def test_a_delivery_time_without_a_timestamp_is_honoured(bench, line):
    line.send("q", "late", timestamp=0, delivery_time=bench.clock.now_ms() + 1)
    line.send("q", "at once", timestamp=0)
    line.send("q", "never told", timestamp=0, delivery_time=0)
    assert bench.queued("q") == ["at once", "never told"]
    bench.clock.advance(1)
    assert bench.queued("q") == ["at once", "never told", "late"]


def test_only_one_timer_runs_for_any_number_of_messages(bench, line):
    now = bench.clock.now_ms()
    for ms in (3000, 1000, 2000):
        line.send("q", ms, delivery_time=now + ms)
        line.send("q", ms, expiration=now + ms)
    assert bench.clock.timers == 1
    bench.clock.advance(10_000)
    assert bench.clock.timers == 0
    assert line.tap("q").take_texts() == [1000, 2000, 3000]


def test_a_message_that_is_due_earlier_does_not_wait_for_the_others(bench, line):
    now = bench.clock.now_ms()
    line.send("q", "late", delivery_time=now + 2000)
    line.send("q", "early", delivery_time=now + 1000)
    bench.clock.advance(1000)
    assert bench.queued("q") == ["early"]


def test_a_delayed_message_comes_soon_after_the_wall_clock_was_set_past_its_time(bench, line):
    line.send("q", "a", delivery_time=bench.clock.now_ms() + 3_600_000)
    bench.clock.jump(3_600_000)
    bench.clock.advance(60_000)
    assert bench.queued("q") == ["a"]


@pytest.mark.parametrize("ms", [-3_600_000, 3_600_000])
def test_a_message_that_is_sent_after_the_wall_clock_was_set_comes_when_it_is_due(bench, line, ms):
    line.send("q", "far", delivery_time=bench.clock.now_ms() + 7_200_000)
    bench.clock.jump(ms)
    line.send("q", "a", delivery_time=bench.clock.now_ms() + 1500)
    bench.clock.advance(1500)
    assert bench.queued("q") == ["a"]


def test_a_delay_of_days_is_kept_across_short_naps(bench, line):
    day = 86_400_000
    line.send("q", "a", delivery_time=bench.clock.now_ms() + 2 * day)
    bench.clock.advance(2 * day - 1)
    assert bench.queued("q") == []
    bench.clock.advance(1)
    assert bench.queued("q") == ["a"]


def test_an_expired_message_is_neither_delivered_nor_shown(bench, line):
    line.send("q", "short", expiration=bench.clock.now_ms() + 100)
    line.send("q", "long", expiration=bench.clock.now_ms() + 10_000)
    line.send("q", "for ever")
    bench.clock.advance(100)
    assert bench.queued("q") == ["long", "for ever"]
    assert line.tap("q").take_texts() == ["long", "for ever"]


def test_an_expired_message_does_not_use_up_credit(bench, line):
    line.send("q", "dead", expiration=bench.clock.now_ms() + 10)
    line.send("q", "a", "b")
    bench.clock.advance(10)
    tap = line.tap("q")
    tap.credit(1)
    assert tap.texts() == ["a"]


def test_a_message_that_is_dead_on_arrival_is_answered_and_dropped(bench, line):
    tap = line.tap("q")
    tap.credit(1)
    line.send("q", "dead", expiration=bench.clock.now_ms())
    line.send("q", "a")
    assert tap.texts() == ["a"]


def test_a_message_that_expires_while_delayed_never_comes(bench, line):
    now = bench.clock.now_ms()
    line.send("q", "a", delivery_time=now + 2000, expiration=now + 1000)
    bench.clock.advance(3000)
    assert bench.queued("q") == []


def test_a_message_that_expires_with_its_consumer_is_dropped_when_it_comes_back(bench, line):
    line.send("q", "a", expiration=bench.clock.now_ms() + 1000)
    tap = line.tap("q")
    tap.take()
    bench.clock.advance(5000)
    tap.release()
    assert bench.queued("q") == []


def test_expired_messages_leave_the_memory_without_anybody_asking(bench, line):
    tap = line.tap("q")
    line.send("q", *range(50), expiration=bench.clock.now_ms() + 1000)
    waiting = tap.handle.queue.backlog
    assert len(waiting) == 50
    bench.clock.advance(1200)
    assert len(waiting) == 0


def test_a_message_that_was_taken_leaves_no_trace_in_the_agenda(bench, line):
    tap = line.tap("q")
    agenda = line.provider._broker.context.scheduler
    for _ in range(10):
        line.send("q", *range(200), expiration=bench.clock.now_ms() + 3_600_000)
        tap.settle(tap.take())
    assert len(agenda) < 600


def test_a_deleted_queues_delayed_messages_go_with_it(bench, line):
    agenda = line.provider._broker.context.scheduler
    for _ in range(3):
        temporary = line.provider.create_temporary(line.session, topic=False).result(0)
        line.send(temporary, *range(200), delivery_time=bench.clock.now_ms() + 3_600_000)
        line.provider.remove(line.session, temporary).result(0)
    line.send("q", *range(2), expiration=bench.clock.now_ms() + 60_000)
    tap = line.tap("q")
    tap.settle(tap.take())
    assert len(agenda) < 10
    bench.clock.advance(3_600_000)
    assert line.tap("q").take() == []


def test_a_broker_without_connections_keeps_no_timer_and_catches_up_on_the_next_one(bench):
    line = bench.connect()
    now = bench.clock.now_ms()
    line.send("q", "late", delivery_time=now + 1000)
    line.send("q", "dead", expiration=now + 1000)
    line.send("q", "later", delivery_time=now + 9000)
    line.close()
    assert bench.clock.timers == 0
    bench.clock.advance(2000)
    bench.connect()
    assert bench.queued("q") == ["late"]
    bench.clock.advance(7000)
    assert bench.queued("q") == ["late", "later"]


def test_discarding_a_broker_stops_its_timer(bench, line):
    line.send("q", "late", delivery_time=bench.clock.now_ms() + 1000)
    jmsapi_inproc.discard(bench.name)
    assert bench.clock.timers == 0


@pytest.mark.parametrize("selector", [None, "k = 1"])
def test_delayed_messages_of_one_moment_come_as_one_batch(bench, line, selector):
    tap = line.tap("q", selector=selector)
    tap.credit(10)
    line.send("q", "a", "b", delivery_time=bench.clock.now_ms() + 5, properties={"k": 1})
    bench.clock.advance(5)
    assert line.events.batches == [(tap.handle, 2)]
