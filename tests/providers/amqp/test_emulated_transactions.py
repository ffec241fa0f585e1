"""``?emulate=tx`` on RabbitMQ over AMQP: what a transaction promises there, and what is left when its client is killed."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

import jmsapi
from jmsapi import JMSContext, JMSRuntimeException, MessageFormatRuntimeException, TransactionRolledBackRuntimeException
from jmsapi_conformance.brokers import Broker

pytestmark = pytest.mark.broker
SOON = 10_000
# Moves numbers from one queue to another in transactions of seven, and says when one is committed.
MOVER = """
import sys, jmsapi
url, source, target = sys.argv[1:]
with jmsapi.connection_factory(url, emulate="tx").create_context(jmsapi.JMSContext.SESSION_TRANSACTED) as context:
    consumer = context.create_consumer(context.create_queue(source))
    producer, out = context.create_producer(), context.create_queue(target)
    while True:
        for _ in range(7):
            producer.send(out, consumer.receive_body(str))
        context.commit()
        print("committed", flush=True)
"""


@pytest.fixture
def context(rabbitmq: Broker) -> Iterator[JMSContext]:
    """Give a transacted context."""
    with jmsapi.connection_factory(rabbitmq.url("amqp"), emulate="tx").create_context(JMSContext.SESSION_TRANSACTED) as made:
        yield made


@pytest.fixture
def plain(rabbitmq: Broker) -> Iterator[JMSContext]:
    """Give a context without transactions."""
    with jmsapi.connection_factory(rabbitmq.url("amqp")).create_context() as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"amqp.tx.{uuid.uuid4().hex}"


def bodies(context: JMSContext, name: str) -> list[str]:
    """Take what is in a queue."""
    consumer = context.create_consumer(context.create_queue(name))
    found: list[str] = []
    while (body := consumer.receive_body_no_wait(str)) is not None:
        found.append(body)
    consumer.close()
    return found


def test_messages_are_there_after_the_commit_and_not_before(context: JMSContext, plain: JMSContext, name: str) -> None:
    producer, queue = context.create_producer(), context.create_queue(name)
    numbers = [str(number) for number in range(2500)]  # more than a window, and more than a link's credit
    for number in numbers:
        producer.send(queue, number)
    assert bodies(plain, name) == []
    context.commit()
    assert bodies(plain, name) == numbers


def test_a_rollback_undoes_sends_and_brings_messages_back(context: JMSContext, plain: JMSContext, name: str) -> None:
    plain.create_producer().send(plain.create_queue(name), "input")
    consumer = context.create_consumer(context.create_queue(name))
    assert consumer.receive_body(str, SOON) == "input"
    context.create_producer().send(context.create_queue(name + ".out"), "output")
    context.rollback()
    again = consumer.receive(SOON)
    assert again is not None
    assert (again.get_body(str), again.jms_redelivered, again.get_int_property("JMSXDeliveryCount")) == ("input", True, 2)
    context.commit()
    assert bodies(plain, name + ".out") == []
    consumer.close()
    assert bodies(plain, name) == []


def test_a_message_too_large_is_refused_when_it_is_sent(context: JMSContext, name: str) -> None:
    with pytest.raises(MessageFormatRuntimeException, match="larger than"):
        context.create_producer().send(context.create_queue(name), b"x" * (17 << 20))


def test_a_commit_of_which_nothing_can_be_sent_is_a_rollback(context: JMSContext, plain: JMSContext, name: str) -> None:
    plain.create_producer().send(plain.create_queue(name), "input")
    temporary = plain.create_temporary_queue()
    consumer = context.create_consumer(context.create_queue(name))
    assert consumer.receive_body(str, SOON) == "input"
    context.create_producer().send(temporary, "for nobody")
    temporary.delete()
    with pytest.raises(TransactionRolledBackRuntimeException, match="took nothing"):
        context.commit()
    assert consumer.receive_body(str, SOON) == "input"
    context.commit()


def test_a_commit_of_which_a_part_can_be_sent_is_in_doubt(context: JMSContext, plain: JMSContext, name: str) -> None:
    plain.create_producer().send(plain.create_queue(name), "input")
    temporary = plain.create_temporary_queue()
    consumer = context.create_consumer(context.create_queue(name))
    assert consumer.receive_body(str, SOON) == "input"
    context.create_producer().send(context.create_queue(name + ".out"), "output")
    context.create_producer().send(temporary, "for nobody")
    temporary.delete()
    with pytest.raises(JMSRuntimeException) as caught:
        context.commit()
    assert caught.value.error_code == "in-doubt"
    assert consumer.receive_body(str, SOON) == "input"
    context.commit()
    assert bodies(plain, name + ".out") == ["output"]


def test_a_client_killed_again_and_again_loses_nothing(rabbitmq: Broker, plain: JMSContext, name: str) -> None:
    numbers = [str(number) for number in range(1400)]
    producer, queue = plain.create_producer(), plain.create_queue(name)
    for number in numbers:
        producer.send(queue, number)
    for kills in range(4):
        command = [sys.executable, "-c", MOVER, rabbitmq.url("amqp"), name, name + ".out"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mover:
            assert mover.stdout is not None
            for _ in range(5 + 11 * kills):
                assert mover.stdout.readline() == "committed\n"
            mover.kill()
    moved, left = Counter(bodies(plain, name + ".out")), Counter(bodies(plain, name))
    assert set(moved) | set(left) == set(numbers)
    assert len(moved) >= 7 * (5 + 16 + 27 + 38) - 4 * 7
    # What was received and not acknowledged at a kill comes again: at most one transaction each time.
    assert sum(moved.values()) + sum(left.values()) - len(numbers) <= 4 * 7
