"""Many threads at one broker: nothing lost, nothing doubled, nothing stuck."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from queue import SimpleQueue

import pytest

from jmsapi.spi import Outcome, ProviderError
from jmsapi_inproc.lock import BrokerLock

DEADLINE_S = 60
PRODUCERS = 50
CONSUMERS = 50
EACH = 60


def run(*jobs):
    """Run each job in a thread of its own, all at once; raise what one of them raised."""
    failures = SimpleQueue()
    start = threading.Barrier(len(jobs))

    def body(job):
        try:
            start.wait(DEADLINE_S)
            job()
        except BaseException as error:
            failures.put(error)

    threads = [threading.Thread(target=body, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a thread is stuck"
    if not failures.empty():
        raise failures.get()


class Tally:
    """Counts accepted bodies and wakes whoever waits for all of them."""

    def __init__(self, expected):
        self.expected = expected
        self.seen = Counter()
        self.done = threading.Event()
        self._lock = threading.Lock()

    def add(self, bodies):
        with self._lock:
            self.seen.update(bodies)
            if self.seen.total() >= self.expected:
                self.done.set()


class Inbox:
    """Events that hand each batch to the thread of its consumer, and check that a consumer's batches never overlap."""

    def __init__(self):
        self.boxes = {}
        self.busy = Counter()
        self.sent = Counter()

    def on_deliveries(self, consumer, deliveries):
        self.busy[consumer] += 1
        assert self.busy[consumer] == 1
        self.boxes.setdefault(consumer, SimpleQueue()).put(list(deliveries))
        self.busy[consumer] -= 1

    def on_sent(self, results):
        for token, error in results:
            assert error is None
            self.sent[token] += 1


def consume(line, inbox, where, tally, rng, **spec):
    """Take, settle at random, now and then leave and come back, until all is accepted."""
    while not tally.done.is_set():
        tap = line.tap(where, **spec)
        box = inbox.boxes.setdefault(tap.handle, SimpleQueue())
        tap.credit(rng.randint(1, 5))
        for _ in range(rng.randint(1, 40)):
            if tally.done.wait(0) or (box.empty() and tally.done.wait(0.002)):
                break
            if box.empty():
                continue
            batch = box.get()
            outcome = rng.choices([Outcome.ACCEPTED, Outcome.RELEASED, Outcome.FAILED], [6, 1, 1])[0]
            tap.settle(batch, outcome)
            if outcome is Outcome.ACCEPTED:
                tally.add(delivery.envelope.body for delivery in batch)
            tap.credit(len(batch))
        tap.release()


def bare(line, inbox):
    line.provider._events = inbox
    return line


def produce(line, where, name, rng):
    producer = line.provider.open_producer(line.session, None).result(0)
    session = line.provider.open_session(transacted=True).result(0)
    tx = None
    for number in range(EACH):
        if tx is None and rng.random() < 0.2:
            tx = line.provider.begin(session).result(0)
        line.file(producer, where, (name, number), tx, rng)
        if tx is not None and rng.random() < 0.3:
            line.commit(tx)
            tx = None
    if tx is not None:
        line.commit(tx)


@pytest.mark.parametrize("kind", ["queue", "shared"])
@pytest.mark.parametrize("selective", [False, True])
def test_a_hundred_threads_on_one_queue_lose_and_double_nothing(bench, kind, selective):
    spec = {} if kind == "queue" else {"subscription": "s", "shared": True, "durable": True}
    where = bench.queue("q") if kind == "queue" else bench.topic("t")
    inbox = Inbox()
    lines = [bare(bench.connect(), inbox) for _ in range(10)]
    if kind == "shared":
        lines[0].tap(where, **spec).release()
    tally = Tally(PRODUCERS * EACH)
    seeds = random.Random(7)

    def producer(index):
        rng = random.Random(seeds.random())
        line = lines[index % 10]
        return lambda: produce(line, where, index, rng)

    def consumer(index):
        rng = random.Random(seeds.random())
        line = lines[index % 10]
        chosen = {"selector": f"half = {index % 2}"} if selective and kind == "queue" else {}
        return lambda: consume(line, inbox, where, tally, rng, **spec, **chosen)

    run(*map(producer, range(PRODUCERS)), *map(consumer, range(CONSUMERS)))
    assert tally.seen == Counter({(name, number): 1 for name in range(PRODUCERS) for number in range(EACH)})
    assert set(inbox.sent.values()) == {1}
    assert inbox.sent.total() == PRODUCERS * EACH


def test_each_producers_messages_keep_their_order_at_each_subscriber(bench):
    topic = bench.topic("t")
    lines = [bench.connect() for _ in range(10)]
    taps = [line.tap(topic) for line in lines]
    for tap in taps:
        tap.credit(10 * EACH)

    def publish(index):
        line = lines[index]
        producer = line.provider.open_producer(line.session, topic).result(0)
        return lambda: [line.send(topic, (index, number), producer=producer) for number in range(EACH)]

    run(*map(publish, range(10)))
    for tap in taps:
        got = tap.texts()
        assert len(got) == 10 * EACH
        for index in range(10):
            assert [number for name, number in got if name == index] == [*range(EACH)]


def test_connections_closing_amid_traffic_get_nothing_after_and_leave_nothing_behind(bench):
    keeper = bench.connect()
    tally = Tally(20 * EACH)

    def sender():
        for number in range(20 * EACH):
            keeper.send("q", number)

    def visitor(seed):
        rng = random.Random(seed)

        def visit():
            while not tally.done.is_set():
                line = bench.connect()
                tap = line.tap("q")
                tap.credit(rng.randint(1, 50))
                tally.done.wait(0.001)
                got = tap.new()
                tap.settle(got)
                tally.add(delivery.envelope.body for delivery in got)
                line.close()
                settled = len(tap.line.events.deliveries.get(tap.handle, []))
                bench.lines.remove(line)
                late = len(tap.line.events.deliveries.get(tap.handle, [])) - settled
                assert late == 0
                with pytest.raises(ProviderError):
                    tap.credit(1)

        return visit

    run(sender, *map(visitor, range(20)))
    assert tally.seen == Counter(range(20 * EACH))
    assert len(keeper.provider._broker.connections) == 1
    assert not keeper.provider._broker.consumers


@pytest.mark.parametrize("held_s", [0.0, 0.2])
def test_the_brokers_lock_keeps_others_out_for_as_long_as_its_holder_has_it_and_lets_the_holder_in_again(held_s: float) -> None:
    lock = BrokerLock()
    order: list[str] = []
    asks = threading.Event()

    def other() -> None:
        asks.set()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        assert asks.wait(5)
        with lock:
            order.append("again")
        time.sleep(held_s)
        order.append("out")
    thread.join(5)
    assert order == ["again", "out", "other"]
    with lock:
        assert not thread.is_alive()
