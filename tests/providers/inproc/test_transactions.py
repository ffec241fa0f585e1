"""Local transactions at the SPI."""

from __future__ import annotations

import gc

import pytest

from jmsapi.spi import ErrorKind, Outcome, ProviderError


def test_what_is_sent_in_a_transaction_is_answered_at_once_and_seen_after_commit(bench, line):
    tap = line.tap("q")
    tap.credit(10)
    tx = line.begin()
    line.send("q", "a", "b", tx=tx)
    assert (tap.texts(), bench.queued("q")) == ([], [])
    line.commit(tx)
    assert tap.texts() == ["a", "b"]
    assert line.events.batches == [(tap.handle, 2)], "one batch for a commit"


def test_a_rollback_drops_what_was_sent(bench, line):
    tx = line.begin()
    line.send("q", "a", tx=tx)
    line.roll_back(tx)
    assert bench.queued("q") == []


def test_a_commit_files_messages_of_all_destinations_in_order(bench, line):
    topic = bench.topic("t")
    subscriber = line.tap(topic)
    tx = line.begin()
    for number in range(100):
        line.send("q", number, tx=tx)
        line.send(topic, number, tx=tx)
    line.commit(tx)
    assert line.tap("q").take_texts() == [*range(100)]
    assert subscriber.take_texts() == [*range(100)]


def test_what_is_accepted_in_a_transaction_is_gone_after_commit(bench, line):
    line.send("q", "a")
    tap = line.tap("q", session=line.transacted)
    tx = line.begin()
    tap.settle(tap.take(), Outcome.ACCEPTED, tx)
    line.commit(tx)
    tap.release()
    assert bench.queued("q") == []


def test_what_was_accepted_in_a_rolled_back_transaction_is_its_consumers_again(bench, line):
    line.send("q", "a", "b")
    tap = line.tap("q", session=line.transacted)
    other = line.tap("q")
    other.credit(10)
    other.drain()
    tap.credit(5)
    other.settle(other.new(), Outcome.RELEASED)
    taken = tap.new()
    tx = line.begin()
    tap.settle(taken, Outcome.ACCEPTED, tx)
    line.roll_back(tx)
    other.credit(10)
    assert tap.texts() == [], "the core hands them out again itself"
    assert other.texts() == []
    tx = line.begin()
    tap.settle(taken[:1], Outcome.ACCEPTED, tx)
    line.commit(tx)
    tap.release()
    assert other.texts() == ["b"]
    assert not line.capabilities.rollback_returns


def test_what_was_accepted_goes_back_counted_when_its_consumer_left_before_the_rollback(line):
    line.send("q", "a", "b")
    tap = line.tap("q", session=line.transacted)
    tx = line.begin()
    tap.settle(tap.take(1), Outcome.ACCEPTED, tx)
    tap.release()
    other = line.tap("q")
    assert other.take_texts() == ["b"]
    line.roll_back(tx)
    assert [(one.envelope.body, one.delivery_count) for one in other.take()] == [("a", 2)]


@pytest.mark.parametrize("how", ["session", "connection"])
def test_ending_the_session_rolls_its_transaction_back(bench, how):
    line, other = bench.connect(), bench.connect()
    line.send("q", "a", "b")
    tap = line.tap("q", session=line.transacted)
    tx = line.begin()
    tap.settle(tap.take(1), Outcome.ACCEPTED, tx)
    line.send("q", "sent", tx=tx)
    if how == "session":
        line.provider.release(line.transacted).result(0)
    else:
        line.close()
    assert other.tap("q").take_texts() == ["a", "b"]


def test_an_ended_transaction_takes_nothing_more(line):
    line.send("q", "a")
    tap = line.tap("q")
    taken = tap.take()
    tx = line.begin()
    line.commit(tx)
    for call in (
        lambda: line.send("q", "b", tx=tx),
        lambda: tap.settle(taken, Outcome.ACCEPTED, tx),
        lambda: line.commit(tx),
        lambda: line.roll_back(tx),
    ):
        with pytest.raises(ProviderError) as caught:
            call()
        assert caught.value.kind is ErrorKind.CLOSED
    tap.settle(taken)


def test_only_a_transacted_session_begins_one_transaction_at_a_time(line):
    tx = line.begin()
    for session in (line.session, line.transacted):
        with pytest.raises(ProviderError) as caught:
            line.provider.begin(session).result(0)
        assert caught.value.kind is ErrorKind.PROTOCOL
    line.roll_back(tx)


def test_a_transaction_of_which_nobody_has_the_handle_is_open_only_if_something_was_done_in_it(line):
    line.begin()
    tx = line.begin()
    line.send("q", "a", tx=tx)
    del tx
    gc.collect()
    with pytest.raises(ProviderError) as caught:
        line.begin()
    assert caught.value.kind is ErrorKind.PROTOCOL


def test_the_delay_of_a_message_counts_from_its_sending_not_from_commit(bench, line):
    tx = line.begin()
    line.send("q", "a", tx=tx, delivery_time=bench.clock.now_ms() + 1000)
    line.send("q", "b", tx=tx, delivery_time=bench.clock.now_ms() + 2000)
    bench.clock.advance(1500)
    line.commit(tx)
    assert bench.queued("q") == ["a"]
    bench.clock.advance(500)
    assert bench.queued("q") == ["a", "b"]


def test_what_was_sent_to_a_destination_deleted_before_commit_is_lost_and_the_rest_is_not(bench, line):
    temporary = line.provider.create_temporary(line.session, topic=False).result(0)
    tx = line.begin()
    line.send(temporary, "a", tx=tx)
    line.send(temporary, "later", tx=tx, delivery_time=bench.clock.now_ms() + 1000)
    line.send("q", "b", tx=tx)
    line.provider.remove(line.session, temporary).result(0)
    line.commit(tx)
    assert bench.queued("q") == ["b"]
    assert bench.clock.timers == 0
