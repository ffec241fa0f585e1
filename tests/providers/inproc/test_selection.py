"""Selectors on queues, message groups and browsers."""

from __future__ import annotations

import pytest

from jmsapi.spi import ErrorKind, Outcome, ProviderError


def numbered(line, count, **more):
    for number in range(count):
        line.send("q", number, properties={"n": number, **more})


def grouped(line, *bodies):
    """Send texts such as ``a1``: group a."""
    for body in bodies:
        line.send("q", body, properties={"JMSXGroupID": body[0]})


def test_a_selector_takes_what_matches_and_leaves_the_rest_in_order(line):
    numbered(line, 10)
    tap = line.tap("q", selector="n >= 3 AND n < 6")
    assert tap.take_texts() == [3, 4, 5]
    assert line.tap("q").take_texts() == [0, 1, 2, 6, 7, 8, 9]


def test_a_selector_stops_at_its_credit_and_goes_on_from_there(line):
    numbered(line, 12)
    tap = line.tap("q", selector="n <> 5 AND n <> 0")
    got = []
    for _ in range(5):
        got += tap.take_texts(2)
    assert got == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert line.tap("q").take_texts() == [0, 5]


def test_a_new_message_goes_to_the_consumer_whose_selector_matches(line):
    odd, even = line.tap("q", selector="n = 1"), line.tap("q", selector="n = 2")
    odd.credit(5)
    even.credit(5)
    numbered(line, 4)
    assert (odd.texts(), even.texts()) == ([1], [2])
    assert line.tap("q").take_texts() == [0, 3]


def test_a_selector_sees_a_message_that_came_back_behind_where_it_has_looked(line):
    numbered(line, 4)
    everything = line.tap("q")
    chosen = line.tap("q", selector="n < 2")
    held = everything.take(1)
    assert chosen.take_texts() == [1]
    everything.settle(held, Outcome.RELEASED)
    assert chosen.take_texts() == [0]


def test_a_selector_sees_the_six_header_fields(line):
    fields = {
        "priority": 7,
        "delivery_mode": 1,
        "message_id": "ID:1",
        "correlation_id": "c",
        "jms_type": "t",
        "timestamp": 5,
        "delivery_time": 0,
    }
    conditions = (
        "JMSPriority = 7",
        "JMSDeliveryMode = 'NON_PERSISTENT'",
        "JMSMessageID = 'ID:1'",
        "JMSCorrelationID = 'c'",
        "JMSType = 't'",
        "JMSTimestamp = 5",
        "absent IS NULL",
    )
    for condition in conditions:
        line.send("q", condition, **fields)
        line.send("q", "other", priority=1, message_id="ID:2", correlation_id=b"c", properties={"absent": 1})
        tap = line.tap("q", selector=condition)
        taken = tap.take()
        assert [one.envelope.body for one in taken] == [condition]
        tap.settle(taken)
        tap.release()
        rest = line.tap("q")
        rest.settle(rest.take())
        rest.release()


def test_a_selector_works_through_priorities(line):
    for priority in (1, 9, 5):
        for number in range(3):
            line.send("q", f"{priority}.{number}", priority=priority, properties={"n": number})
    assert line.tap("q", selector="n <> 1").take_texts() == ["9.0", "9.2", "5.0", "5.2", "1.0", "1.2"]
    assert line.tap("q").take_texts() == ["9.1", "5.1", "1.1"]


def test_a_bad_selector_is_refused_with_its_reason(line):
    with pytest.raises(ProviderError) as caught:
        line.tap("q", selector="a = = 1")
    assert caught.value.kind is ErrorKind.SELECTOR
    assert caught.value.__cause__ is not None


def test_a_group_stays_with_one_consumer_while_others_take_turns(line):
    taps = [line.tap("q") for _ in range(2)]
    for tap in taps:
        tap.credit(10)
    grouped(line, "a1", "b1", "a2", "b2", "b3", "a3")
    assert [tap.texts() for tap in taps] == [["a1", "a2", "a3"], ["b1", "b2", "b3"]]


def test_a_group_waits_for_its_consumer_and_holds_up_nobody_else(line):
    owner, other = line.tap("q"), line.tap("q")
    owner.credit(1)
    grouped(line, "a1")
    other.credit(10)
    grouped(line, "a2", "b1")
    line.send("q", "none")
    assert (owner.texts(), other.texts()) == (["a1"], ["b1", "none"])
    owner.credit(1)
    assert owner.texts() == ["a2"]


def test_the_group_of_a_consumer_that_left_goes_whole_to_another(line):
    owner = line.tap("q")
    owner.credit(2)
    grouped(line, "a1", "a2", "a3")
    taken = owner.new()
    others = [line.tap("q") for _ in range(2)]
    for other in others:
        other.credit(10)
    assert [other.texts() for other in others] == [[], []]
    owner.settle(taken[:1])
    owner.release()
    grouped(line, "a4")
    assert sorted([other.texts() for other in others]) == [[], ["a2", "a3", "a4"]]


def test_a_waiting_group_goes_to_who_has_looked_at_it_before_once_its_consumer_left(line):
    owner, other = line.tap("q"), line.tap("q")
    owner.credit(1)
    grouped(line, "a1", "a2")
    other.credit(10)
    assert other.texts() == []
    owner.settle(owner.new())
    owner.release()
    assert other.texts() == ["a2"]


def test_forgotten_groups_are_those_without_messages(line, monkeypatch):
    monkeypatch.setattr("jmsapi_inproc.queue.MOST_GROUPS", 3)
    first = line.tap("q")
    first.handle.queue._most_groups = 3
    first.credit(4)
    grouped(line, "a1", "b1", "c1", "d1", "a2")
    first.settle(first.new()[1:])
    second = line.tap("q")
    second.credit(10)
    grouped(line, "e1", "a3")
    assert second.texts() == ["e1"], "a is held by the first consumer and waits for it"
    first.credit(10)
    assert first.texts() == ["a2", "a3"]


def test_a_group_with_a_waiting_message_is_not_forgotten(line):
    first = line.tap("q")
    first.handle.queue._most_groups = 3
    first.credit(2)
    grouped(line, "a1", "b1")
    first.settle(first.new())
    grouped(line, "a2")
    second = line.tap("q")
    second.credit(10)
    grouped(line, "c1", "d1", "a3")
    assert second.texts() == ["c1", "d1"]
    first.credit(10)
    assert first.texts() == ["a2", "a3"]


def test_a_browser_shows_what_waits_and_changes_nothing(bench, line):
    numbered(line, 5)
    for _ in range(2):
        assert bench.queued("q") == [0, 1, 2, 3, 4]
    assert [(one.envelope.body, one.delivery_count) for one in line.tap("q").take()] == [(n, 1) for n in range(5)]


def test_a_browser_selects_and_keeps_the_order_of_delivery(bench, line):
    for priority in (1, 9):
        numbered(line, 4, p=priority)
    line.send("q", "first", priority=9, properties={"n": 1})
    assert bench.queued("q", selector="n = 1") == ["first", 1, 1]


def test_a_browser_keeps_to_its_credit_and_to_what_was_there(line):
    numbered(line, 3)
    browser = line.tap("q", browse=True)
    assert browser.take_texts(2) == [0, 1]
    numbered(line, 1)
    assert browser.take_texts(2) == [2]
    assert browser.take_texts(2) == []


def test_a_browser_does_not_show_what_others_hold(bench, line):
    numbered(line, 3)
    line.tap("q").take(1)
    assert bench.queued("q") == [1, 2]


def test_a_topic_cannot_be_browsed(bench, line):
    with pytest.raises(ProviderError) as caught:
        line.tap(bench.topic("t"), browse=True)
    assert caught.value.kind is ErrorKind.DESTINATION


def test_a_released_browser_shows_nothing_more(line):
    numbered(line, 3)
    browser = line.tap("q", browse=True)
    browser.release()
    with pytest.raises(ProviderError) as caught:
        browser.credit()
    assert caught.value.kind is ErrorKind.CLOSED
