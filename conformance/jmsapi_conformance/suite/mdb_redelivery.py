"""MDB-63 to MDB-71 Redelivery: at once or after a wait, without end or up to a limit, and what becomes of a message then."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from jmsapi import ConnectionFactory, Message, Queue, Session, Topic
from jmsapi.listener import MessageDrivenContext
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import eventually, expect_nothing, receive, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._annotated import TOPIC
from jmsapi_conformance.suite._deployed import Script, deployed

ATTRIBUTES = ["Required", "NotSupported", "Bean"]
DELAY_MS = 300


@pytest.fixture(params=ATTRIBUTES)
def attribute(request: pytest.FixtureRequest, backend: Backend) -> str:
    """Give each transaction attribute that the broker can serve."""
    if request.param == "Required" and not backend.capabilities.transactions:
        pytest.skip("the broker has no transactions")
    return str(request.param)


def always(text: str) -> Script:
    """Return a script that fails on a text each time."""
    return Script({text: [ValueError(f"failure {number}") for number in range(100)]})


@requirement("MDB-63")
@needs("transactions")
def test_what_is_rolled_back_comes_again_whenever_that_is(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    script = Script({"first": [ValueError("once")]})
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "first", "second")
        assert sorted(map(str, script.wait_for_texts(3))) == ["first", "first", "second"]


@requirement("MDB-64", "MDB-71")
def test_without_any_settings_a_message_comes_again_at_once(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str
) -> None:
    script = Script({"first": [ValueError("once"), ValueError("twice")]})
    with deployed(factory, script, queue, transactionAttribute=attribute, start=False) as deployment:
        send_texts(other_session, queue, "first", "second")
        deployment.start()
        assert script.wait_for_texts(4) == ["first", "first", "first", "second"]


@requirement("MDB-65", "MDB-68", "MDB-69")
@needs("delivery_count_exact")
def test_at_the_limit_a_message_is_deleted_and_the_next_one_is_handled(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str
) -> None:
    script = always("poison")
    terms: dict[str, Any] = {"transactionAttribute": attribute, "redeliveryLimit": 2, "redeliveryAction": "Delete"}
    with deployed(factory, script, queue, start=False, **terms) as deployment:
        send_texts(other_session, queue, "poison", "good")
        deployment.start()
        assert script.wait_for_texts(4) == ["poison", "poison", "poison", "good"]
        eventually(lambda: deployment.health.endpoints[0].given_up == 1, "the message is given up")
    consumer = other_session.create_consumer(queue)
    expect_nothing(consumer, other_session, queue)
    assert len(script.seen) == 4


@requirement("MDB-70")
def test_at_the_limit_a_message_is_forwarded_with_all_it_had_and_the_cause(
    factory: ConnectionFactory, queue: Queue, other_session: Session, names: Names, attribute: str
) -> None:
    script, dead = always("poison"), other_session.create_queue(names.queue())
    terms: dict[str, Any] = {"transactionAttribute": attribute, "redeliveryLimit": 1, "deadLetterDestination": dead.queue_name}
    with deployed(factory, script, queue, **terms):
        message = other_session.create_text_message("poison")
        message.jms_correlation_id, message.jms_type = "correlation", "type"
        message.set_int_property("number", 7)
        message.set_string_property("word", "text")
        with other_session.create_producer(queue) as producer:
            producer.priority = 7
            producer.send(message)
        found = receive(other_session.create_consumer(dead))
        assert script.texts == ["poison", "poison"]
    assert found.get_body(str) == "poison"
    assert (found.get_int_property("number"), found.get_string_property("word")) == (7, "text")
    assert (found.jms_correlation_id, found.jms_type, found.jms_priority) == ("correlation", "type", 7)
    assert found.get_string_property("jmsapi_dead_letter_cause") == "ValueError: failure 1"
    assert found.get_string_property("jmsapi_dead_letter_origin") == queue.queue_name
    assert found.get_string_property("jmsapi_dead_letter_message_id") == message.jms_message_id
    assert found.get_int_property("jmsapi_dead_letter_deliveries") == 2
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("MDB-70")
def test_at_the_limit_a_message_is_forwarded_to_all_who_subscribe_to_a_topic(
    factory: ConnectionFactory, queue: Queue, topic: Topic, other_session: Session, attribute: str
) -> None:
    script = always("poison")
    terms: dict[str, Any] = {"redeliveryLimit": 1, "deadLetterDestination": topic.topic_name, "deadLetterType": TOPIC}
    subscribers = [other_session.create_consumer(topic) for _ in range(2)]
    with deployed(factory, script, queue, transactionAttribute=attribute, **terms):
        send_texts(other_session, queue, "poison", "good")
        found = [receive(one) for one in subscribers]
        eventually(lambda: "good" in script.texts, "the next one is handled")
    assert [(one.get_body(str), one.get_int_property("jmsapi_dead_letter_deliveries")) for one in found] == [("poison", 2)] * 2
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("MDB-66", "MDB-67")
def test_while_a_message_waits_for_its_delay_later_ones_are_handled(
    factory: ConnectionFactory, queue: Queue, other_session: Session, attribute: str
) -> None:
    times: list[float] = []

    def then(message: Message, _: MessageDrivenContext) -> None:
        if message.get_body(str) == "first":
            times.append(time.monotonic())
            if "second" not in script.texts:
                raise ValueError("the second one first")

    script = Script(then=then)
    terms: dict[str, Any] = {"transactionAttribute": attribute, "redeliveryDelayMs": DELAY_MS}
    with deployed(factory, script, queue, start=False, **terms) as deployment:
        send_texts(other_session, queue, "first", "second")
        deployment.start()
        eventually(lambda: "second" in script.texts[:-1] and script.texts[-1] == "first", "the second one, then the first again")
    assert script.texts[0] == "first"
    assert all(again - before >= DELAY_MS / 1000 for before, again in itertools.pairwise(times))
    assert script.seen[-1].redelivered


@requirement("MDB-61")
@needs("transactions", "delivery_count_exact")
def test_a_rolled_back_message_is_marked_and_its_count_is_higher(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    script = Script({"m": [ValueError("once")]})
    with deployed(factory, script, queue):
        send_texts(other_session, queue, "m")
        assert [(one.redelivered, one.count) for one in script.wait_for(2)] == [(False, 1), (True, 2)]
