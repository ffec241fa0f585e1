"""Sending and receiving at the SPI, on each broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi.spi import Address, DestinationKind, ErrorKind, MessageKind, Outcome, ProviderError
from jmsapi.values import Byte, Char, Float, Long, Short
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]
MIB = 1 << 20

BODIES: list[tuple[MessageKind, Any]] = [
    (MessageKind.MESSAGE, None),
    (MessageKind.TEXT, None),
    (MessageKind.TEXT, ""),
    (MessageKind.TEXT, "\u0000 é 😀"),
    (MessageKind.BYTES, b""),
    (MessageKind.BYTES, bytes(range(256))),
    (MessageKind.OBJECT, b"\xac\xed\x00\x05"),
    (
        MessageKind.MAP,
        {"i": 1, "l": Long(2), "b": Byte(3), "s": Short(4), "f": Float(0.5), "d": 0.1, "c": Char("x"), "y": b"\x00", "n": None},
    ),
    (MessageKind.MAP, {"é": "a\u0000b 😀"}),
    (MessageKind.STREAM, [1, "two", b"three", None, True]),
]


@pytest.mark.parametrize(("kind", "body"), BODIES)
def test_every_kind_of_body_arrives_as_it_was(
    each_broker: Broker, dial: Dial, queue: Address, kind: MessageKind, body: Any
) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, body, kind=kind)
    [delivery] = line.receive(consumer)
    assert delivery.envelope.kind is kind
    assert delivery.envelope.body == body


def test_every_header_arrives_as_it_was(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    expiration = line.wire._clock.now_ms() + 600_000
    line.send(
        queue, "x", message_id="ID:AMQP_ULONG:7", timestamp=1_700_000_000_123, correlation_id="c", jms_type="kind", priority=7,
        delivery_mode=1, expiration=expiration, reply_to=Address(DestinationKind.TOPIC, "answers"),
        properties={"a": 1, "b": Long(1), "c": Short(1), "d": Byte(1), "e": Float(0.5), "f": 0.5, "g": "x", "h": True,
                    "JMSXGroupID": "g", "JMSXGroupSeq": 1},
    )  # fmt: skip
    [delivery] = line.receive(consumer)
    envelope = delivery.envelope
    assert delivery.delivery_count == 1
    assert envelope.destination == queue
    assert (envelope.message_id, envelope.timestamp, envelope.correlation_id) == ("ID:AMQP_ULONG:7", 1_700_000_000_123, "c")
    assert (envelope.jms_type, envelope.priority, envelope.delivery_mode, envelope.expiration) == ("kind", 7, 1, expiration)
    assert envelope.reply_to == Address(DestinationKind.TOPIC, "answers")
    found = envelope.properties
    assert {name: type(found[name]) for name in "abcdefgh"} == {
        "a": int, "b": Long, "c": Short, "d": Byte, "e": Float, "f": float, "g": str, "h": bool,
    }  # fmt: skip
    assert (found["JMSXGroupID"], found["JMSXGroupSeq"]) == ("g", 1)


def test_a_name_with_every_awkward_character_is_one_name(each_broker: Broker, dial: Dial, queue: Address) -> None:
    awkward = Address(DestinationKind.QUEUE, queue.name + " %2F/é")
    line = dial(each_broker)
    consumer = line.consumer(awkward)
    line.send(awkward)
    [delivery] = line.receive(consumer)
    assert delivery.envelope.destination == awkward


def test_a_topic_gives_each_subscriber_a_copy_and_says_who_sent_it(each_broker: Broker, dial: Dial, topic: Address) -> None:
    line = dial(each_broker)
    consumers = [line.consumer(topic), line.consumer(topic)]
    line.send(topic, "news", origin="me")
    for consumer in consumers:
        [delivery] = line.receive(consumer)
        assert (delivery.envelope.body, delivery.envelope.origin) == ("news", "me")
        assert dict(delivery.envelope.properties) == {}


def test_a_send_to_a_topic_nobody_hears_is_a_success(each_broker: Broker, dial: Dial, topic: Address) -> None:
    dial(each_broker).send(topic)


def test_deliveries_that_one_read_brought_come_in_one_call(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    tokens = [line.post(queue, f"{number}") for number in range(300)]
    assert all(line.events.answer(token) is None for token in tokens)
    consumer = line.consumer(queue, credit=300)
    taken = line.events.take(consumer, 300)
    line.accept(taken)
    assert [delivery.envelope.body for delivery in taken] == [f"{number}" for number in range(300)]
    assert max(line.events.batches) > 1


def test_callbacks_come_from_one_named_thread_that_ends_with_the_connection(
    each_broker: Broker, dial: Dial, queue: Address
) -> None:
    line = dial(each_broker)
    line.send(queue)
    line.receive(line.consumer(queue))
    [name] = line.events.threads
    assert name.startswith("jmsapi-")
    assert name.endswith("-io")
    line.close()
    assert line.wire._connection.wait_ended(10)
    assert name not in {thread.name for thread in threading.enumerate()}


def test_without_credit_nothing_comes_and_a_drain_says_what_there_is(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "1")
    line.send(queue, "2")
    line.provider.drain(consumer).result(30)
    assert line.events.waiting(consumer) == []
    line.provider.credit(consumer, 1).result(30)
    line.provider.drain(consumer).result(30)
    [first] = line.events.take(consumer, 1)
    assert first.envelope.body == "1"
    line.provider.credit(consumer, 5).result(30)
    line.provider.drain(consumer).result(30)
    [second] = line.events.take(consumer, 1)
    line.accept([first, second])
    assert line.nothing_more(consumer)


def test_what_is_released_with_its_consumer_comes_again_uncounted(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue, "1")
    line.send(queue, "2")
    one, two = line.receive(consumer, 2, accept=False)
    line.accept([one, two], outcome=Outcome.RELEASED)
    line.provider.release(consumer).result(30)
    again = line.receive(line.consumer(queue), 2)
    assert [delivery.envelope.body for delivery in again] == ["1", "2"]
    if line.capabilities.broker != "rabbitmq":  # which marks it, for it knows no better
        assert [delivery.delivery_count for delivery in again] == [1, 1]


def test_what_failed_comes_again_with_a_count(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue)
    line.accept(line.receive(consumer, accept=False), outcome=Outcome.FAILED)
    line.provider.release(consumer).result(30)
    [again] = line.receive(line.consumer(queue))
    assert again.delivery_count == 2


def test_what_is_rejected_does_not_come_again(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    consumer = line.consumer(queue)
    line.send(queue)
    line.accept(line.receive(consumer, accept=False), outcome=Outcome.REJECTED)
    assert line.nothing_more(consumer)


def test_ten_mebibytes_arrive_whole_while_small_messages_pass(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    other = Address(DestinationKind.QUEUE, queue.name + ".other")
    small = line.provider.open_producer(line.session(), other).result(30)
    consumer = line.consumer(queue)
    large = line.post(queue, bytes(10 * MIB))
    line._producer = small
    tokens = [line.post(other, "small") for _ in range(10)]
    assert all(line.events.answer(token) is None for token in tokens)
    assert line.events.answer(large) is None
    [delivery] = line.receive(consumer)
    assert delivery.envelope.body == bytes(10 * MIB)
    line.receive(line.consumer(other), 10)


def test_a_message_larger_than_rabbitmq_takes_is_refused_before_it_is_sent(rabbitmq: Broker, dial: Dial, queue: Address) -> None:
    line = dial(rabbitmq)
    with pytest.raises(ProviderError) as refused:
        line.post(queue, bytes(17 * MIB))
    assert refused.value.kind is ErrorKind.FORMAT
    line.send(queue, "the session lives")


def test_a_message_that_cannot_be_encoded_is_refused_and_the_producer_goes_on(
    each_broker: Broker, dial: Dial, queue: Address
) -> None:
    line = dial(each_broker)
    with pytest.raises(ProviderError) as refused:
        line.post(queue, "\ud800")
    assert refused.value.kind is ErrorKind.FORMAT
    line.send(queue, "fine")


def test_an_expired_message_does_not_come(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    line.send(queue, "old", expiration=line.wire._clock.now_ms() + 1)
    line.send(queue, "new")
    [delivery] = line.receive(line.consumer(queue))
    assert delivery.envelope.body == "new"


def test_messages_with_and_without_a_time_keep_their_order(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker)
    now = line.wire._clock.now_ms()
    line.send(queue, "1", timestamp=now, delivery_time=now)
    line.send(queue, "2")
    assert [delivery.envelope.body for delivery in line.receive(line.consumer(queue), 2)] == ["1", "2"]


def test_a_delayed_message_comes_late_and_counts_as_new(each_broker: Broker, dial: Dial, queue: Address) -> None:
    line = dial(each_broker, classic_scheduler=True)
    due = line.wire._clock.now_ms() + 600
    consumer = line.consumer(queue, credit=1)
    line.send(queue, "late", delivery_time=due)
    [delivery] = line.receive(consumer, credit=False)
    assert line.wire._clock.now_ms() >= due - 20
    assert delivery.delivery_count == 1
    assert delivery.envelope.destination == queue


def test_classic_is_tried_before_it_is_trusted_with_a_delay_unless_its_scheduler_is_said_to_be_on(
    classic: Broker, dial: Dial
) -> None:
    assert "schedulerSupport" in dial(classic).capabilities.delay_trial
    assert dial(classic, classic_scheduler=True).capabilities.delay_trial is None
    assert not dial(classic).capabilities.delay_keeps_subscribers


@pytest.mark.parametrize("arguments", ["", "x-queue-type:quorum"], ids=["classic queue", "quorum queue"])
@pytest.mark.parametrize("released", [False, True], ids=["with the consumer", "one by one"])
def test_what_rabbitmq_gets_back_that_nobody_has_seen_comes_again_as_if_somebody_had(
    rabbitmq: Broker, dial: Dial, queue: Address, arguments: str, released: bool
) -> None:
    line = dial(rabbitmq, rabbit_queue_args=arguments)
    first = line.consumer(queue)
    line.send(queue, "unseen")
    [delivery] = line.receive(first, accept=False)
    if released:
        line.accept([delivery], outcome=Outcome.RELEASED)
    line.provider.release(first).result(30)
    [again] = line.receive(line.consumer(queue))
    assert (again.envelope.body, again.delivery_count) == ("unseen", 2)
