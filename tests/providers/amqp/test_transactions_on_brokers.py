"""Local transactions through the coordinator, on the brokers that have them, and their refusal on RabbitMQ."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import jmsapi
from jmsapi.spi import Address, ConsumerSpec, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.broker) for kind in ("artemis", "classic")])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Give each of the brokers that have transactions."""
    found: Broker = request.getfixturevalue(request.param)
    return found


def consumer_of(line: Any, queue: Address) -> Any:
    return line.provider.open_consumer(line.session(transacted=True), ConsumerSpec(queue)).result(30)


def test_what_is_sent_in_a_transaction_is_seen_after_its_commit(broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(broker)
    consumer = line.consumer(queue)
    tx = line.begin()
    for number in range(300):
        line.post(queue, str(number), tx)
    line.send(queue, "last", tx)
    assert line.nothing_more(consumer)
    line.end(tx)
    assert [delivery.envelope.body for delivery in line.receive(consumer, 301)][-1] == "last"


def test_what_is_rolled_back_was_never_sent_and_comes_again_with_a_count(broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(broker)
    consumer = consumer_of(line, queue)
    line.send(queue, "kept")
    delivery = line.receive(consumer, accept=False)
    tx = line.begin()
    line.send(queue, "never", tx)
    line.accept(delivery, tx)
    line.end(tx, commit=False)
    assert line.capabilities.rollback_returns
    tx = line.begin()
    [again] = line.receive(consumer, accept=False)
    assert (again.envelope.body, again.delivery_count) == ("kept", 2)
    line.accept([again], tx)
    line.end(tx)
    assert line.nothing_more(consumer)


def test_acks_and_sends_of_many_messages_are_one_thing(broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(broker)
    answers = Address(queue.kind, queue.name + ".answers")
    for number in range(250):
        line.post(queue, str(number))
    consumer = consumer_of(line, queue)
    tx = line.begin()
    deliveries = line.receive(consumer, 250, accept=False)
    for delivery in deliveries:
        line.post(answers, delivery.envelope.body, tx)
    line.accept(deliveries, tx)
    line.end(tx)
    assert line.nothing_more(consumer)
    assert len(line.receive(line.consumer(answers), 250)) == 250


def test_a_commit_asked_for_before_all_of_it_has_credit_loses_nothing(broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(broker)
    answers = Address(queue.kind, queue.name + ".answers")
    line.send(queue, "asked")
    consumer = consumer_of(line, queue)
    [delivery] = line.receive(consumer, accept=False)
    for number, (count, size) in enumerate(((1000, 10), (1000, 10), (20, 300_000))):
        tx = line.begin()
        posted = [
            line.post(answers, "x" * size, tx) for _ in range(count)
        ]  # all that there is credit for, or more than a socket takes
        if number == 0:
            line.accept([delivery], tx)
        line.end(tx)
        assert [line.events.answer(token) for token in posted] == [None] * count
    assert line.nothing_more(consumer)
    assert len(line.receive(line.consumer(answers), 2020)) == 2020


def test_transactions_of_two_sessions_do_not_touch_each_other(broker: Broker, dial: Dial, queue: Address) -> None:
    line, other = dial(broker), dial(broker)
    one, two = line.begin(), other.begin()
    line.send(queue, "one", one)
    other.send(queue, "two", two)
    line.end(one, commit=False)
    other.end(two)
    consumer = line.consumer(queue)
    assert line.receive(consumer)[0].envelope.body == "two"
    assert line.nothing_more(consumer)


def test_a_transaction_whose_session_is_closed_is_rolled_back(broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(broker)
    session = line.provider.open_session(transacted=True).result(30)
    tx = line.provider.begin(session).result(30)
    line.send(queue, "never", tx)
    line.provider.release(session).result(30)
    with pytest.raises(ProviderError) as ended:
        line.provider.end(tx, commit=True).result(30)
    assert ended.value.kind is ErrorKind.ROLLED_BACK
    assert line.nothing_more(line.consumer(queue))


def test_a_commit_whose_answer_is_lost_is_in_doubt(
    broker: Broker, dial: Dial, queue: Address, relay: Callable[..., Any], until: Callable[[Callable[[], bool]], None]
) -> None:
    between = relay(broker)
    line = dial(f"amqp://127.0.0.1:{between.port}", user=broker.user, password=broker.password)
    tx = line.begin()
    line.send(queue, "x", tx)
    between.stall()
    answer = line.provider.end(tx, commit=True)
    links = line.wire._connection.context.links
    until(lambda: any(getattr(link, "unanswered", None) for link in list(links.values())))  # the commit is on its way
    between.cut()
    with pytest.raises(ProviderError) as doubt:
        answer.result(30)
    assert doubt.value.kind is ErrorKind.IN_DOUBT


def test_the_broker_may_refuse_a_commit(artemis: Broker, dial: Dial, queue: Address) -> None:
    line = dial(artemis)
    line.send(queue, "first", properties={"_AMQ_DUPL_ID": queue.name})
    tx = line.begin()
    line.send(queue, "again", tx, properties={"_AMQ_DUPL_ID": queue.name})
    with pytest.raises(ProviderError) as refused:
        line.end(tx)
    assert refused.value.kind is ErrorKind.ROLLED_BACK
    consumer = line.consumer(queue)
    assert line.receive(consumer)[0].envelope.body == "first"
    assert line.nothing_more(consumer)


def test_rabbitmq_has_none_and_says_so(rabbitmq: Broker, dial: Dial) -> None:
    line = dial(rabbitmq)
    assert not line.capabilities.transactions
    assert line.capabilities.transactions.emulate == "tx"
    session = line.wire.open_session(transacted=True).result(30)
    with pytest.raises(ProviderError) as refused:
        line.wire.begin(session).result(30)
    assert refused.value.kind is ErrorKind.UNSUPPORTED


@pytest.mark.parametrize("prefetch", [0, 1000])
def test_a_message_that_is_rolled_back_again_and_again_is_counted_and_put_away_by_the_broker(
    artemis: Broker, queue: Address, prefetch: int
) -> None:
    """Ten attempts are Artemis' default. What waits behind the poison keeps its place and its count."""
    options = {"user": artemis.user, "password": artemis.password, "prefetch": prefetch}
    with jmsapi.connection_factory(artemis.url("amqp"), **options).create_connection() as connection:
        session = connection.create_session(jmsapi.Session.SESSION_TRANSACTED)
        where = session.create_queue(queue.name)
        consumer = session.create_consumer(where)
        sender = connection.create_session()
        producer = sender.create_producer(where)
        for text in ("poison", "next", "last"):
            producer.send(sender.create_text_message(text))
        connection.start()
        seen: list[tuple[str | None, int]] = []
        while len(seen) < 30 and (message := consumer.receive(2000 if len(seen) < 13 else 500)) is not None:
            assert isinstance(message, jmsapi.TextMessage)
            count = message.get_int_property("JMSXDeliveryCount")
            seen.append((message.text, count))
            if message.text == "poison" or (message.text == "next" and count == 1):
                session.rollback()
            else:
                session.commit()
    assert seen == [*(("poison", count) for count in range(1, 11)), ("next", 1), ("next", 2), ("last", 1)]


@pytest.mark.parametrize("prefetch", [0, 1000])
def test_a_message_that_is_recovered_again_and_again_is_counted_and_put_away_by_the_broker(
    artemis: Broker, queue: Address, prefetch: int
) -> None:
    options = {"user": artemis.user, "password": artemis.password, "prefetch": prefetch}
    with jmsapi.connection_factory(artemis.url("amqp"), **options).create_connection() as connection:
        session = connection.create_session(jmsapi.Session.CLIENT_ACKNOWLEDGE)
        where = session.create_queue(queue.name)
        consumer = session.create_consumer(where)
        sender = connection.create_session()
        producer = sender.create_producer(where)
        for text in ("a", "b", "c"):
            producer.send(sender.create_text_message(text))
        connection.start()

        def next_one(wait_ms: int) -> tuple[str | None, int] | None:
            message = consumer.receive(wait_ms)
            if message is None:
                return None
            assert isinstance(message, jmsapi.TextMessage)
            return message.text, message.get_int_property("JMSXDeliveryCount")

        for count in range(1, 11):
            # What waits behind the two keeps its place and its count.
            assert [next_one(5000), next_one(5000)] == [("a", count), ("b", count)]
            session.recover()
        assert [next_one(5000), next_one(500)] == [("c", 1), None]


@pytest.mark.parametrize("limit", [2, -1])
def test_the_failures_of_a_listener_are_counted_by_the_broker_and_end_at_the_first_of_both_limits(
    artemis: Broker, queue: Address, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"user": artemis.user, "password": artemis.password, "max_redeliveries": limit}
    seen: list[tuple[str | None, int]] = []
    done = threading.Event()

    def listener(message: jmsapi.Message) -> None:
        assert isinstance(message, jmsapi.TextMessage)
        seen.append((message.text, message.get_int_property("JMSXDeliveryCount")))
        if message.text == "poison":
            raise ValueError(message.text)
        if message.text == "last":
            done.set()

    with jmsapi.connection_factory(artemis.url("amqp"), **options).create_connection() as connection:
        session = connection.create_session()
        where = session.create_queue(queue.name)
        session.create_consumer(where).message_listener = listener
        sender = connection.create_session()
        producer = sender.create_producer(where)
        for text in ("poison", "next", "last"):
            producer.send(sender.create_text_message(text))
        connection.start()
        assert done.wait(30)
    attempts = 10 if limit < 0 else limit + 1
    assert seen == [*(("poison", count) for count in range(1, attempts + 1)), ("next", 1), ("last", 1)]
