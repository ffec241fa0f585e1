"""Topics and the five kinds of subscription at the SPI."""

from __future__ import annotations

import pytest

from jmsapi.spi import ErrorKind, Outcome, ProviderError


def refused(call, kind):
    with pytest.raises(ProviderError) as caught:
        call()
    assert caught.value.kind is kind


@pytest.fixture
def news(bench):
    return bench.topic("news")


def test_each_subscriber_gets_a_copy_with_a_count_of_its_own(line, news):
    first, second = line.tap(news), line.tap(news)
    line.send(news, "a")
    first.settle(first.take(), Outcome.FAILED)
    assert [one.delivery_count for one in first.take()] == [2]
    assert [one.delivery_count for one in second.take()] == [1]


def test_a_nameless_subscription_begins_and_ends_with_its_consumer(line, news):
    line.send(news, "before")
    tap = line.tap(news)
    line.send(news, "during")
    tap.take(0)
    tap.release()
    line.send(news, "after")
    assert tap.texts() == []
    assert line.tap(news).take_texts() == []


def test_the_selector_decides_what_enters_a_subscription(line, news):
    tap = line.tap(news, selector="k = 1")
    for k in (1, 2, 1):
        line.send(news, f"k{k}", properties={"k": k})
    assert tap.take_texts() == ["k1", "k1"]


def test_no_local_keeps_out_only_what_its_own_connection_publishes(bench, news):
    own, other = bench.connect(), bench.connect()
    tap = own.tap(news, no_local=True)
    own.send(news, "own")
    own.send(news, "own, in a transaction", tx=(tx := own.begin()))
    own.commit(tx)
    other.send(news, "other")
    assert tap.take_texts() == ["other"]


def test_a_durable_subscription_collects_while_nobody_consumes(bench, news):
    first = bench.connect(client_id="c1")
    tap = first.tap(news, subscription="s", durable=True)
    first.send(news, "a")
    tap.release()
    first.send(news, "b")
    first.close()
    bench.connect().send(news, "c", delivery_mode=1)
    again = bench.connect(client_id="c1")
    assert again.tap(news, subscription="s", durable=True).take_texts() == ["a", "b", "c"]


def test_an_unshared_durable_subscription_needs_a_client_id(line, news):
    refused(lambda: line.tap(news, subscription="s", durable=True), ErrorKind.CLIENT_ID)


def test_an_unshared_durable_subscription_has_one_consumer_at_a_time(bench, news):
    line = bench.connect(client_id="c1")
    tap = line.tap(news, subscription="s", durable=True)
    refused(lambda: line.tap(news, subscription="s", durable=True), ErrorKind.IN_USE)
    refused(lambda: line.tap(bench.topic("other"), subscription="s", durable=True), ErrorKind.IN_USE)
    line.send(news, "a")
    assert tap.take_texts() == ["a"]


@pytest.mark.parametrize(
    ("shared", "topic", "change"),
    [
        (False, "sports", {}),
        (False, "news", {"selector": "k = 2"}),
        (False, "news", {"no_local": True}),
        (True, "sports", {}),
        (True, "news", {"selector": "k = 2"}),
    ],
)
def test_a_durable_subscription_without_consumers_is_replaced_when_asked_for_otherwise(bench, news, shared, topic, change):
    line, other = bench.connect(client_id="c1"), bench.connect()
    line.tap(news, subscription="s", durable=True, shared=shared).release()
    line.send(news, "old", properties={"k": 2})
    where = bench.topic(topic)
    tap = line.tap(where, subscription="s", durable=True, shared=shared, **change)
    other.send(where, "new", properties={"k": 2})
    assert tap.take_texts() == ["new"]
    tap.release()
    kept = line.tap(where, subscription="s", durable=True, shared=shared, **change)
    other.send(where, "newer", properties={"k": 2})
    assert kept.take_texts() == ["new", "newer"]


def test_the_replaced_subscription_collects_nothing_any_more(bench, news):
    line = bench.connect(client_id="c1")
    for selector in ("k = 1", "k = 2", None):
        line.tap(news, subscription="s", durable=True, selector=selector).release()
    tap = line.tap(bench.topic("sports"), subscription="s", durable=True)
    line.send(news, "of the old topic")
    assert tap.take_texts() == []
    assert line.provider._broker.resolve(news).subscriptions == []


def test_a_durable_no_local_goes_by_client_id_now_and_later(bench, news):
    first = bench.connect(client_id="c1")
    first.tap(news, subscription="s", durable=True, no_local=True).release()
    first.send(news, "own")
    first.close()
    later = bench.connect(client_id="c1")
    later.send(news, "own, later")
    bench.connect(client_id="c2").send(news, "other")
    assert later.tap(news, subscription="s", durable=True, no_local=True).take_texts() == ["other"]


def test_unsubscribe_ends_a_durable_subscription_and_frees_its_name(bench, news):
    line = bench.connect(client_id="c1")
    line.tap(news, subscription="s", durable=True).release()
    line.send(news, "a")
    line.provider.remove(line.session, "s").result(0)
    tap = line.tap(news, subscription="s", durable=True, shared=True)
    assert tap.take_texts() == []


def test_unsubscribing_an_unknown_name_or_that_of_another_client_id_is_refused(bench, news):
    line, other = bench.connect(client_id="c1"), bench.connect(client_id="c2")
    line.tap(news, subscription="s", durable=True).release()
    refused(lambda: other.provider.remove(other.session, "s").result(0), ErrorKind.SUBSCRIPTION)
    refused(lambda: line.provider.remove(line.session, "t").result(0), ErrorKind.SUBSCRIPTION)


def test_unsubscribing_is_refused_while_there_is_a_consumer_or_an_open_transaction(bench, news):
    line = bench.connect(client_id="c1")
    tap = line.tap(news, subscription="s", durable=True, session=line.transacted)
    line.send(news, "a", "b")
    refused(lambda: line.provider.remove(line.session, "s").result(0), ErrorKind.IN_USE)
    tx = line.begin()
    tap.settle(tap.take(1), Outcome.ACCEPTED, tx)
    tap.release()
    refused(lambda: line.provider.remove(line.session, "s").result(0), ErrorKind.IN_USE)
    line.commit(tx)
    line.provider.remove(line.session, "s").result(0)


@pytest.mark.parametrize("durable", [False, True])
def test_consumers_of_a_shared_subscription_take_turns_across_connections(bench, news, durable):
    taps = [bench.connect().tap(news, subscription="s", shared=True, durable=durable) for _ in range(3)]
    for tap in taps:
        tap.credit(10)
    other = bench.lines[0].tap(news)
    bench.lines[0].send(news, *range(6))
    assert [tap.texts() for tap in taps] == [[0, 3], [1, 4], [2, 5]]
    assert other.take_texts() == [*range(6)]


@pytest.mark.parametrize("durable", [False, True])
def test_a_client_id_makes_another_shared_subscription_of_the_same_name(bench, news, durable):
    lines = [bench.connect(), bench.connect(client_id="c1"), bench.connect(client_id="c2")]
    taps = [line.tap(news, subscription="s", shared=True, durable=durable) for line in lines]
    lines[0].send(news, "a")
    assert [tap.take_texts() for tap in taps] == [["a"]] * 3


@pytest.mark.parametrize("durable", [False, True])
def test_joining_an_active_shared_subscription_with_another_topic_or_selector_is_refused(bench, line, news, durable):
    tap = line.tap(news, subscription="s", shared=True, durable=durable, selector="k = 1")
    for where, selector in ((bench.topic("sports"), "k = 1"), (news, "k = 2"), (news, None)):
        other = {"subscription": "s", "shared": True, "durable": durable, "selector": selector}
        refused(lambda where=where, other=other: line.tap(where, **other), ErrorKind.MISMATCH)
    line.send(news, "a", properties={"k": 1})
    assert tap.take_texts() == ["a"]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("active", [False, True])
def test_shared_and_unshared_durable_subscriptions_of_one_name_never_meet(bench, news, first, active):
    line = bench.connect(client_id="c1")
    tap = line.tap(news, subscription="s", durable=True, shared=first)
    if not active:
        tap.release()
    refused(lambda: line.tap(news, subscription="s", durable=True, shared=not first), ErrorKind.IN_USE)
    refused(lambda: line.tap(news, subscription="s", durable=True, shared=not first, selector="k = 1"), ErrorKind.IN_USE)


def test_a_shared_non_durable_and_a_durable_subscription_of_one_name_are_two(bench, news):
    line = bench.connect(client_id="c1")
    taps = [line.tap(news, subscription="s", shared=True), line.tap(news, subscription="s", durable=True)]
    line.send(news, "a")
    assert [tap.take_texts() for tap in taps] == [["a"], ["a"]]
    taps[1].release()
    line.provider.remove(line.session, "s").result(0)
    line.send(news, "b")
    assert taps[0].take_texts() == ["b"]


def test_a_shared_non_durable_subscription_ends_with_its_last_consumer(bench, line, news):
    first, second = (line.tap(news, subscription="s", shared=True) for _ in range(2))
    line.send(news, "a", "b")
    first.take(1)
    first.release()
    line.send(news, "c")
    assert second.take_texts() == ["a", "b", "c"]
    second.release()
    line.send(news, "d")
    assert line.tap(bench.topic("sports"), subscription="s", shared=True, selector="k = 1").take_texts() == []


@pytest.mark.parametrize("durable", [False, True])
def test_what_one_shared_consumer_leaves_unsettled_goes_to_another(line, news, durable):
    first, second = (line.tap(news, subscription="s", shared=True, durable=durable) for _ in range(2))
    line.send(news, "a", "b")
    taken = first.take()
    first.settle(taken[:1], Outcome.FAILED)
    first.release()
    assert [(one.envelope.body, one.delivery_count) for one in second.take()] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("durable", [False, True])
def test_consumers_of_a_shared_subscription_can_be_limited(bench, news, durable):
    line = bench.connect(max_shared_consumers=1)
    tap = line.tap(news, subscription="s", shared=True, durable=durable)
    line.tap(news, subscription="other", shared=True, durable=durable)
    refused(lambda: line.tap(news, subscription="s", shared=True, durable=durable), ErrorKind.RESOURCE)
    tap.release()
    line.tap(news, subscription="s", shared=True, durable=durable)


@pytest.mark.parametrize(("client_id", "named"), [(None, "'s' has 1"), ("me", "'s' of client id 'me' has 1")])
def test_the_error_names_the_subscription_and_whose_it_is(bench, news, client_id, named):
    line = bench.connect(max_shared_consumers=1, client_id=client_id)
    line.tap(news, subscription="s", shared=True)
    with pytest.raises(ProviderError, match=f"shared subscription {named}"):
        line.tap(news, subscription="s", shared=True)


def test_consumers_of_a_shared_subscription_are_not_limited_unless_asked(line, news):
    taps = [line.tap(news, subscription="s", shared=True) for _ in range(50)]
    for tap in taps:
        tap.credit()
    line.send(news, *range(50))
    assert [tap.texts() for tap in taps] == [[number] for number in range(50)]


def test_a_failed_subscription_message_comes_to_the_dead_letter_queue_of_its_topic(line, news):
    tap = line.tap(news)
    line.send(news, "bad")
    tap.settle(tap.take(), Outcome.REJECTED)
    assert line.tap("DLQ.news").take_texts() == ["bad"]


def test_a_delayed_message_goes_to_the_subscriptions_of_the_time_of_sending(bench, line, news):
    early = line.tap(news)
    line.send(news, "a", delivery_time=bench.clock.now_ms() + 1000)
    late = line.tap(news)
    bench.clock.advance(1000)
    assert (early.take_texts(), late.take_texts()) == (["a"], [])
