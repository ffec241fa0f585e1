"""Credit, windows, settling and closing on each broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi.spi import Address, DestinationKind, ErrorKind, Outcome, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def bodies(deliveries: list[Any]) -> list[Any]:
    return [delivery.envelope.body for delivery in deliveries]


def test_nothing_comes_without_credit_and_no_more_than_there_is(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue, prefetch=100)
    for n in range(6):
        line.send(queue, str(n))
    assert bodies(line.receive(consumer, 2)) == ["0", "1"]
    assert bodies(line.receive(consumer, 1)) == ["2"]
    assert line.events.waiting(consumer) == []
    assert bodies(line.receive(consumer, 3)) == ["3", "4", "5"]


def test_drain_brings_what_is_on_its_way_and_then_takes_the_credit_back(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    for n in range(3):
        line.send(queue, str(n))
    consumer = line.consumer(queue, prefetch=10)
    line.provider.credit(consumer, 10).result(30)
    line.provider.drain(consumer).result(30)
    line.accept(line.events.take(consumer, 3))
    line.send(queue, "after")
    time.sleep(0.1)  # nobody can tell that nothing comes without waiting a little
    assert line.events.waiting(consumer) == []
    assert bodies(line.receive(consumer)) == ["after"]


def test_drain_on_an_empty_queue_takes_no_longer_than_the_grace(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, drain_ms=25)
    consumer = line.consumer(queue)
    line.provider.credit(consumer, 1).result(30)
    began = time.monotonic()
    line.provider.drain(consumer).result(30)
    assert 0.02 < time.monotonic() - began < 10


def test_what_stood_in_a_queue_comes_in_order_on_the_io_thread(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    for n in range(200):
        line.post(queue, str(n))
    consumer = line.consumer(queue, prefetch=500, credit=200)
    got = line.events.take(consumer, 200)
    line.accept(got)
    assert bodies(got) == [str(n) for n in range(200)]
    assert all(name.endswith("-io") for name in line.events.threads)


def test_releasing_a_consumer_gives_everything_back(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    for n in range(300):
        line.post(queue, str(n))
    consumer = line.consumer(queue, prefetch=200)
    first = line.receive(consumer, 5, accept=False)
    line.accept(first[:2])
    line.provider.settle([delivery.tag for delivery in first[2:4]], Outcome.FAILED)
    line.provider.settle([first[4].tag], Outcome.RELEASED)
    line.provider.release(consumer).result(30)
    other = dial(each_broker)
    rest = other.receive(other.consumer(queue, prefetch=400), 298)
    assert sorted(bodies(rest), key=int) == [str(n) for n in range(2, 300)]


def test_what_was_held_comes_again_after_the_connection_is_closed(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    line.send(queue, "held")
    assert line.receive(line.consumer(queue), accept=False)[0].delivery_count == 1
    line.close()
    other = dial(each_broker)
    (again,) = other.receive(other.consumer(queue))
    assert again.envelope.body == "held"
    assert again.delivery_count == 2


def test_acknowledged_messages_do_not_come_again(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue, prefetch=10, deferred_acks=True)
    for n in range(4):
        line.send(queue, str(n))
    line.accept(line.receive(consumer, 4, accept=False))
    line.close()
    other = dial(each_broker)
    assert other.nothing_more(other.consumer(queue))


def test_two_consumers_of_one_connection_settle_apart(dial: Dial, each_broker: Broker, queue: Address) -> None:
    other = Address(queue.kind, queue.name + ".other")
    line = dial(each_broker)
    line.send(queue, "a")
    line.send(other, "b")
    first, second = line.consumer(queue), line.consumer(other)
    line.receive(first, accept=False)
    line.receive(second)
    line.close()
    again = dial(each_broker)
    assert bodies(again.receive(again.consumer(queue))) == ["a"]
    assert again.nothing_more(again.consumer(other))


def test_a_consumer_that_acknowledges_late_gets_more_than_the_window_holds(
    dial: Dial, each_broker: Broker, queue: Address
) -> None:
    line = dial(each_broker)
    for n in range(1000):
        line.post(queue, f"{n:04}" + "x" * 2000, delivery_mode=1)
    consumer = line.consumer(queue, prefetch=20, deferred_acks=True)
    held: list[Any] = []
    while len(held) < 1000:
        held += line.receive(consumer, 20, accept=False)
    assert sorted(body[:4] for body in bodies(held)) == [f"{n:04}" for n in range(1000)]
    line.accept(held)
    line.provider.release(consumer).result(30)
    other = dial(each_broker)
    assert other.nothing_more(other.consumer(queue))


def test_prefetch_one_leaves_the_rest_to_others(dial: Dial, each_broker: Broker, queue: Address) -> None:
    slow, quick = dial(each_broker), dial(each_broker)
    idle = slow.consumer(queue, prefetch=1, credit=1)
    busy = quick.consumer(queue, prefetch=1)
    for n in range(8):
        slow.send(queue, "x" * (10 if n % 2 else 20_000))
    slow.events.take(idle, 1)
    for _ in range(7 - 1):
        quick.receive(busy)
    held = len(slow.events.waiting(idle))
    assert held == 0


def test_a_topic_gives_each_consumer_a_copy(dial: Dial, each_broker: Broker, topic: Address) -> None:
    one, two = dial(each_broker), dial(each_broker)
    first, second, third = one.consumer(topic), one.consumer(topic), two.consumer(topic)
    two.send(topic, "news")
    for line, consumer in ((one, first), (one, second), (two, third)):
        delivery = line.receive(consumer)[0]
        assert (delivery.envelope.body, delivery.envelope.destination) == ("news", topic)


def test_rejected_messages_go_away(dial: Dial, each_broker: Broker, queue: Address) -> None:
    line = dial(each_broker, dlq=queue.name + ".dead")
    consumer = line.consumer(queue)
    line.send(queue, "poison", properties={"n": 7})
    line.accept(line.receive(consumer, accept=False), outcome=Outcome.REJECTED)
    line.provider.release(consumer).result(30)
    assert line.nothing_more(line.consumer(queue))
    if each_broker.kind == "artemis":
        dead = line.consumer(Address(DestinationKind.QUEUE, queue.name + ".dead"))
        (copy,) = line.receive(dead)
        assert (copy.envelope.body, dict(copy.envelope.properties)) == ("poison", {"n": 7})


def test_rabbitmq_gives_released_messages_to_others_while_the_consumer_is_open(
    dial: Dial, rabbitmq: Broker, queue: Address
) -> None:
    line, other = dial(rabbitmq), dial(rabbitmq)
    line.send(queue, "x")
    got = line.receive(line.consumer(queue, prefetch=1), accept=False)
    waiting = other.consumer(queue, prefetch=1, credit=1)
    line.provider.settle([got[0].tag], Outcome.RELEASED).result(30)
    # It may come to the first consumer's buffer as well; releasing that one hands it on.
    line.provider.release(line.session()).result(30)
    (again,) = other.events.take(waiting, 1)
    other.accept([again])
    assert again.delivery_count == 2


def test_classic_shows_a_queue_without_taking_from_it(dial: Dial, classic: Broker, queue: Address) -> None:
    line = dial(classic)
    for n in range(5):
        line.send(queue, str(n), properties={"n": n})
    browser = line.consumer(queue, browse=True, prefetch=10, credit=10)
    line.provider.drain(browser).result(30)
    assert bodies(line.events.waiting(browser)) == ["0", "1", "2", "3", "4"]
    line.provider.release(browser).result(30)
    step = line.consumer(queue, browse=True, prefetch=10, selector="n >= 3.0", credit=1)
    line.provider.drain(step).result(30)
    assert bodies(line.events.take(step, 1)) == ["3"]
    line.provider.credit(step, 5).result(30)
    line.provider.drain(step).result(30)
    assert bodies(line.events.take(step, 1)) == ["4"]
    line.provider.release(step).result(30)
    assert bodies(line.receive(line.consumer(queue, prefetch=10), 5)) == ["0", "1", "2", "3", "4"]


def test_an_empty_queue_is_shown_at_once(dial: Dial, classic: Broker, queue: Address) -> None:
    line = dial(classic)
    browser = line.consumer(queue, browse=True, prefetch=10, credit=10)
    line.provider.drain(browser).result(30)
    assert line.events.waiting(browser) == []


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_artemis_and_classic_select(dial: Dial, each_broker: Broker, queue: Address, topic: Address, kind: str) -> None:
    if each_broker.kind == "rabbitmq":
        line = dial(each_broker)
        assert not line.capabilities.queue_selector
        assert not line.capabilities.topic_selector
        return
    prefix = "convert_string_expressions:" if each_broker.kind == "artemis" else ""
    address = queue if kind == "queue" else topic
    line = dial(each_broker)
    consumer = line.consumer(address, selector=f"{prefix}n > 5.0 AND s = 'a'", prefetch=10)
    for n, s in ((4, "a"), (6, "b"), (7, "a"), (7.5, "a")):
        line.send(address, f"{n}{s}", properties={"n": n, "s": s})
    assert bodies(line.receive(consumer, 2)) == ["7a", "7.5a"]


def test_a_selector_the_broker_refuses_is_an_error_of_the_selector(dial: Dial, each_broker: Broker, topic: Address) -> None:
    if each_broker.kind == "rabbitmq":
        return
    line = dial(each_broker)
    with pytest.raises(ProviderError) as caught:
        line.consumer(topic, selector="a = ")
    assert caught.value.kind is ErrorKind.SELECTOR


def test_a_name_the_broker_would_misread_is_refused(dial: Dial, each_broker: Broker) -> None:
    bad = {"artemis": "a\nb", "classic": "a,b", "rabbitmq": "a%b"}[each_broker.kind]
    line = dial(each_broker)
    for call in (line.consumer, line.send):
        with pytest.raises(ProviderError) as caught:
            call(Address(DestinationKind.QUEUE, bad))
        assert caught.value.kind is ErrorKind.DESTINATION
    with pytest.raises(ProviderError):
        line.provider.open_producer(line.session(), Address(DestinationKind.QUEUE, bad)).result(30)


@pytest.mark.parametrize("deferred", [True, False])
def test_a_small_prefetch_is_kept_to_the_message_even_where_windows_are_bytes(
    dial: Dial, each_broker: Broker, queue: Address, deferred: bool
) -> None:
    line, other = dial(each_broker), dial(each_broker)
    for n in range(10):
        line.send(queue, str(n))
    consumer = line.consumer(queue, prefetch=3, deferred_acks=deferred, credit=3)
    assert len(line.events.take(consumer, 3)) == 3
    rest = other.receive(other.consumer(queue, prefetch=20), 7)
    assert bodies(rest) == [str(n) for n in range(3, 10)]
