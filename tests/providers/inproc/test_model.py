"""The queue beside a plain model of it: any order of sends, credit, settlements, transactions, departures and time.

The model does not say who gets a message, which is the queue's choice; it says what may be handed out, in which order, with
which count, and that nothing waits which somebody with credit would take.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from jmsapi.spi import Outcome

LATER = 1 << 60


@dataclass
class Model:
    """One message as the model knows it."""

    body: int
    priority: int
    k: int
    group: str | None
    expiration: int
    due: int
    order: int = LATER
    failures: int = 0

    def rank(self):
        return -self.priority, self.order


@dataclass(eq=False)
class Customer:
    """One consumer as the model knows it."""

    tap: object
    k: int | None
    credit: int = 0
    held: dict = field(default_factory=dict)

    def wants(self, message, pins):
        owner = pins.get(message.group)
        return (self.k is None or message.k == self.k) and (message.group is None or owner is None or owner is self)


class QueueMachine(RuleBasedStateMachine):
    bench_class = None

    def __init__(self):
        super().__init__()
        self.bench = self.bench_class()
        self.line = self.bench.connect()
        self.messages = {}
        self.waiting = []
        self.delayed = []
        self.customers = []
        self.pins = {}
        self.tx = None
        self.tx_sent = []
        self.tx_acked = []
        self.order = 0

    def teardown(self):
        self.bench.end()

    # what happens to a message

    def arrive(self, message):
        if message.due > self.bench.clock.now_ms():
            self.delayed.append(message)
            return
        self.order += 1
        message.order = self.order
        self.back(message)

    def back(self, message):
        if not 0 < message.expiration <= self.bench.clock.now_ms():
            self.waiting.append(message)

    def look(self):
        """Take note of what came, and check it."""
        fresh = []
        for customer in self.customers:
            for delivery in customer.tap.new():
                message = self.messages[delivery.envelope.body]
                assert message in self.waiting
                assert delivery.delivery_count == message.failures + 1
                assert customer.credit > 0
                assert customer.wants(message, self.pins)
                self.waiting.remove(message)
                customer.credit -= 1
                customer.held[message.body] = delivery
                if message.group is not None:
                    self.pins[message.group] = customer
                fresh.append((customer, message))
        for customer, message in fresh:
            better = [one for one in self.waiting if customer.wants(one, self.pins) and one.rank() < message.rank()]
            assert not better

    @rule(
        count=st.integers(1, 4),
        priority=st.sampled_from([0, 4, 9]),
        k=st.integers(0, 1),
        group=st.sampled_from([None, None, "a", "b"]),
        life=st.sampled_from([0, 0, 5, 50]),
        delay=st.sampled_from([0, 0, 0, 10, 20]),
        in_tx=st.booleans(),
    )
    def send(self, count, priority, k, group, life, delay, in_tx):
        now = self.bench.clock.now_ms()
        tx = self.tx if in_tx else None
        properties = {"k": k} if group is None else {"k": k, "JMSXGroupID": group}
        for _ in range(count):
            message = Model(len(self.messages), priority, k, group, now + life if life else 0, now + delay)
            self.messages[message.body] = message
            self.line.send(
                "q",
                message.body,
                priority=priority,
                properties=properties,
                expiration=message.expiration,
                delivery_time=message.due,
                tx=tx,
            )
            if tx is None:
                self.arrive(message)
            else:
                self.tx_sent.append(message)
            self.look()

    @precondition(lambda self: len(self.customers) < 4)
    @rule(k=st.sampled_from([None, None, 0, 1]))
    def open(self, k):
        tap = self.line.tap("q", session=self.line.transacted, selector=None if k is None else f"k = {k}")
        self.customers.append(Customer(tap, k))

    @precondition(lambda self: self.customers)
    @rule(data=st.data(), n=st.integers(1, 5))
    def credit(self, data, n):
        customer = data.draw(st.sampled_from(self.customers))
        customer.credit += n
        customer.tap.credit(n)
        self.look()

    @precondition(lambda self: self.customers)
    @rule(data=st.data())
    def drain(self, data):
        customer = data.draw(st.sampled_from(self.customers))
        customer.tap.drain()
        customer.credit = 0

    @precondition(lambda self: any(customer.held for customer in self.customers))
    @rule(data=st.data(), outcome=st.sampled_from(Outcome), in_tx=st.booleans())
    def settle(self, data, outcome, in_tx):
        customer = data.draw(st.sampled_from([one for one in self.customers if one.held]))
        bodies = data.draw(st.lists(st.sampled_from([*customer.held]), min_size=1, unique=True))
        tx = self.tx if in_tx and outcome is Outcome.ACCEPTED else None
        deliveries = [customer.held.pop(body) for body in bodies]
        for delivery in deliveries:
            message = self.messages[delivery.envelope.body]
            if tx is not None:
                self.tx_acked.append((customer, delivery))
            if outcome is Outcome.FAILED:
                message.failures += 1
            if outcome in (Outcome.FAILED, Outcome.RELEASED):
                self.back(message)
        customer.tap.settle(deliveries, outcome, tx)
        self.look()

    @precondition(lambda self: self.customers)
    @rule(data=st.data())
    def leave(self, data):
        customer = data.draw(st.sampled_from(self.customers))
        self.customers.remove(customer)
        self.pins = {group: owner for group, owner in self.pins.items() if owner is not customer}
        for body in customer.held:
            self.back(self.messages[body])
        customer.tap.release()
        assert customer.tap.new() == []
        self.look()

    @precondition(lambda self: self.tx is None)
    @rule()
    def begin(self):
        self.tx = self.line.begin()

    @precondition(lambda self: self.tx is not None)
    @rule(commit=st.booleans())
    def end(self, commit):
        tx, sent, acked = self.tx, self.tx_sent, self.tx_acked
        self.tx, self.tx_sent, self.tx_acked = None, [], []
        if commit:
            for message in sent:
                self.arrive(message)
            self.line.commit(tx)
        else:
            for customer, delivery in acked:
                message = self.messages[delivery.envelope.body]
                if customer in self.customers:
                    customer.held[message.body] = delivery
                else:
                    message.failures += 1
                    self.back(message)
            self.line.roll_back(tx)
        self.look()

    @rule(ms=st.sampled_from([1, 5, 10, 200]))
    def wait(self, ms):
        end = self.bench.clock.now_ms() + ms
        due = sorted((one for one in self.delayed if one.due <= end), key=lambda one: one.due)
        # One moment after another, so that what falls due is alive at its time.
        for moment in sorted({one.due for one in due}):
            for message in due:
                if message.due == moment:
                    self.delayed.remove(message)
                    self.order += 1
                    message.order = self.order
                    if not 0 < message.expiration <= moment:
                        self.waiting.append(message)
            self.bench.clock.advance(moment - self.bench.clock.now_ms())
            self.look()
        self.bench.clock.advance(end - self.bench.clock.now_ms())
        self.waiting = [one for one in self.waiting if not 0 < one.expiration <= end]
        self.look()

    @invariant()
    def nothing_waits_for_a_consumer_with_credit(self):
        for customer in self.customers:
            assert not (customer.credit and any(customer.wants(one, self.pins) for one in self.waiting))

    @invariant()
    def a_browser_shows_what_waits_in_order(self):
        assert self.bench.queued("q") == [one.body for one in sorted(self.waiting, key=Model.rank)]


def test_any_order_of_events_agrees_with_the_model(new_bench):
    class Machine(QueueMachine):
        bench_class = new_bench

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
