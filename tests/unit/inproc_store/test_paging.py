"""More messages than memory keeps: order, selectors, groups, browsers, and what goes back."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from jmsapi import DeliveryMode, JMSContext
from jmsapi_inproc import scheduler
from jmsapi_inproc.store import delayed, paging, partition


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(paging, "MOST", 7)
    monkeypatch.setattr(paging, "PAGE", 3)
    monkeypatch.setattr(partition, "PAGE", 3)
    monkeypatch.setattr(delayed, "MOST", 4)


def fill(file, n=100, **properties):
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        producer = context.create_producer()
        for i in range(n):
            producer.priority = 9 if i % 10 == 0 else 4
            producer.delivery_mode = DeliveryMode.NON_PERSISTENT if i % 7 == 0 else DeliveryMode.PERSISTENT
            producer.set_property("n", i)
            for name, value in properties.items():
                producer.set_property(name, value(i))
            producer.send(context.create_queue("q"), str(i))
        context.commit()
    return sorted(range(n), key=lambda i: i % 10 != 0)


def numbers(texts):
    return [int(text) for text in texts]


def test_messages_come_in_order_however_many_there_are(file):
    expected = fill(file)
    assert numbers(file.texts("q")) == expected


def test_messages_that_come_while_others_are_only_in_the_file_stay_in_order(file, take_all):
    with file.context(prefetch=2) as context, file.context() as sending:
        queue = context.create_queue("q")
        consumer = context.create_consumer(queue)
        found = []
        for i in range(200):
            sending.create_producer().send(queue, str(i))
            if i % 3 == 0:
                found.append(consumer.receive_body(str, 20_000))
        assert numbers(found + take_all(consumer)) == list(range(200))


def test_a_selector_finds_its_messages_behind_all_others(file, take_all):
    fill(file)
    with file.context() as context:
        queue = context.create_queue("q")
        assert sorted(numbers(take_all(context.create_consumer(queue, "n >= 90")))) == list(range(90, 100))
        assert sorted(numbers(take_all(context.create_consumer(queue, "n BETWEEN 20 AND 39")))) == list(range(20, 40))
        rest = numbers(take_all(context.create_consumer(queue)))
    assert sorted(rest) == [*range(20), *range(40, 90)]
    assert file.texts("q") == []


def test_what_goes_back_comes_again_at_its_place_and_once(file, take_all):
    expected = fill(file)
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        queue = context.create_queue("q")
        picky = context.create_consumer(queue, "n = 55 OR n = 77")
        assert sorted(numbers(take_all(picky))) == [55, 77]
        picky.close()
        plain = context.create_consumer(queue)
        for _ in range(20):
            plain.receive(20_000)
        plain.close()
        context.rollback()
    assert numbers(file.texts("q")) == expected


def test_a_group_stays_with_its_consumer(file, take_all):
    fill(file, JMSXGroupID=lambda i: f"g{i % 2}")
    with file.context(prefetch=1) as context:
        queue = context.create_queue("q")
        one, other = context.create_consumer(queue), context.create_consumer(queue)
        first, second = [one.receive_body(str, 20_000)], [other.receive_body(str, 20_000)]
        first, second = numbers(first + take_all(one)), numbers(second + take_all(other))
        first += numbers(take_all(one))
    assert len({i % 2 for i in first}) == 1
    assert sorted(first + second) == list(range(100))


def test_a_browser_shows_what_is_only_in_the_file_too(file):
    expected = fill(file)
    with file.context() as context:
        browser = context.create_browser(context.create_queue("q"), "n < 60")
        assert numbers(message.text for message in browser) == [i for i in expected if i < 60]


def test_a_message_with_a_short_delay_does_not_wait_for_those_with_a_long_one(file):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        for delay in (3_600_000, 3_600_001, 3_600_002, 3_600_003, 50, 3_600_004, 20):
            producer.delivery_delay = delay
            producer.send(queue, str(delay))
        consumer = context.create_consumer(queue)
        assert sorted(consumer.receive_body(str, 20_000) for _ in range(2)) == ["20", "50"]
        assert consumer.receive_no_wait() is None


def test_ever_shorter_delays_do_not_fill_the_memory(file, monkeypatch):
    schedulers = []
    made = scheduler.Scheduler.__init__
    monkeypatch.setattr(scheduler.Scheduler, "__init__", lambda self, *given: (schedulers.append(self), made(self, *given))[1])
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        kept = []
        for delay in range(100, 0, -1):
            producer.delivery_delay = 600_000 + delay
            producer.send(queue, str(delay))
            kept.append(len(schedulers[-1].all_delayed()))
        assert max(kept) <= 8


def test_many_delayed_messages_come_when_they_are_due(file, take_all):
    with file.context() as context:
        queue, producer = context.create_queue("q"), context.create_producer()
        for i in range(30):
            producer.delivery_delay = 1 + (i * 7) % 30
            producer.send(queue, str(i))
        crashed = file.crashed()
        consumer = context.create_consumer(queue)
        assert sorted(int(consumer.receive_body(str, 20_000)) for _ in range(30)) == list(range(30))
        assert consumer.receive_no_wait() is None
    with crashed.context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        assert sorted(int(consumer.receive_body(str, 20_000)) for _ in range(30)) == list(range(30))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_each_message_is_handled_once(file, seed, take_all):
    rng = random.Random(seed)
    done: list[int] = []
    sent = 0
    # No message is to become a dead letter: this test counts those of the queue.
    with file.context(JMSContext.SESSION_TRANSACTED, prefetch=3, max_redeliveries=-1, redelivery_delay_ms=0) as context:
        queue = context.create_queue("q")
        consumers = []
        for _ in range(120):
            act = rng.random()
            if act < 0.4:
                producer = context.create_producer()
                producer.priority = rng.choice((0, 4, 4, 9))
                for _ in range(rng.randint(1, 8)):
                    producer.set_property("n", sent % 5).send(queue, str(sent))
                    sent += 1
                context.commit()
            elif act < 0.55 or not consumers:
                consumers.append(context.create_consumer(queue, rng.choice((None, "n = 3", "n > 1"))))
            elif act < 0.65:
                consumers.pop(rng.randrange(len(consumers))).close()
            else:
                got = [message for _ in range(rng.randint(1, 9)) if (message := rng.choice(consumers).receive_no_wait())]
                if rng.random() < 0.6:
                    context.commit()
                    done += [int(message.text) for message in got]
                else:
                    context.rollback()
        context.rollback()
    done += numbers(file.texts("q"))
    assert sorted(done) == list(range(sent))


def test_memory_does_not_grow_with_what_an_idle_subscription_keeps(file, monkeypatch):
    monkeypatch.undo()
    with file.context(JMSContext.SESSION_TRANSACTED) as context:
        topic = context.create_topic("t")
        context.create_shared_durable_consumer(topic, "s").close()
        producer = context.create_producer()

        def publish(n):
            for _ in range(n):
                for _ in range(500):
                    producer.send(topic, "x" * 1000)
                context.commit()

        publish(3)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            publish(8)
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
    assert grown < 3_000_000, f"4,000 messages of 1,000 bytes took {grown} bytes"


def test_delayed_messages_of_a_subscription_that_is_ended_do_not_keep_others_back(file):
    with file.context() as context:
        topic, queue, producer = context.create_topic("t"), context.create_queue("q"), context.create_producer()
        context.create_shared_durable_consumer(topic, "s").close()
        producer.delivery_delay = 3_600_000
        for mode in (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT):
            producer.delivery_mode = mode
            for _ in range(4):
                producer.send(topic, "never")
        producer.delivery_mode, producer.delivery_delay = DeliveryMode.PERSISTENT, 1
        for i in range(10):
            producer.send(queue, str(i))
        context.unsubscribe("s")
        consumer = context.create_consumer(queue)
        assert sorted(int(consumer.receive_body(str, 20_000)) for _ in range(10)) == list(range(10))
