"""Queue browsers on Artemis over STOMP, made of what the broker's management lists and copies."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi import DeliveryMode, JMSContext, Message, Queue, UnsupportedFeatureException
from jmsapi_brokers import artemis_management
from jmsapi_conformance.brokers import Broker, Wire

WAIT_MS = 60_000
pytestmark = pytest.mark.broker
Open = Callable[..., JMSContext]
Ask = Callable[..., Any]


@pytest.fixture
def opened(artemis: Broker) -> Iterator[Open]:
    """Give a function that opens a context, which is closed after the test."""
    contexts: list[JMSContext] = []

    def opened(wire: Wire = "stomp", mode: int = JMSContext.AUTO_ACKNOWLEDGE, url: str | None = None) -> JMSContext:
        contexts.append(jmsapi.connection_factory(url or artemis.url(wire), checked=True).create_context(mode))
        return contexts[-1]

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def context(opened: Open) -> JMSContext:
    """Give a context over STOMP."""
    return opened()


@pytest.fixture
def queue(context: JMSContext) -> Queue:
    """Give a queue that is nobody else's."""
    return context.create_queue(f"browsing.{uuid.uuid4().hex}")


@pytest.fixture
def ask(artemis: Broker) -> Iterator[Ask]:
    """Give a function that asks the broker's management and returns the result."""
    with jmsapi.connection_factory(artemis.url("amqp")).create_connection() as connection:
        session = connection.create_session()
        answers = session.create_temporary_queue()
        consumer = session.create_consumer(answers)
        producer = session.create_producer(session.create_queue(artemis_management.ADDRESS))
        connection.start()

        def ask(operation: str, *arguments: object, resource: str = "broker") -> Any:
            request = session.create_text_message(json.dumps(list(arguments)))
            request.set_string_property(artemis_management.RESOURCE, resource)
            request.set_string_property(artemis_management.OPERATION, operation)
            request.jms_reply_to = answers
            producer.send(request, delivery_mode=DeliveryMode.NON_PERSISTENT)
            answer = consumer.receive(WAIT_MS)
            assert answer is not None
            found = json.loads(answer.get_body(str) or "[]")
            assert answer.get_boolean_property("_AMQ_OperationSucceeded"), found
            return found[0] if found else None

        yield ask


def texts(context: JMSContext, queue: Queue, selector: str | None = None) -> list[str | None]:
    with context.create_browser(queue, selector) as browser:
        return [message.get_body(str) for message in browser.enumeration]


def send(context: JMSContext, queue: Queue, *bodies: str, **properties: Any) -> None:
    producer = context.create_producer()
    for name, value in properties.items():
        producer.set_property(name, value)
    for body in bodies:
        producer.send(queue, body)


def shown(message: Message) -> dict[str, object]:
    """Return all of a message that does not belong to the one delivery."""
    names = sorted(set(message.property_names))
    return {
        "class": [one for one in ("Text", "Bytes", "Map", "Stream", "Object") if one in type(message).__name__],
        "id": message.jms_message_id,
        "correlation": message.jms_correlation_id,
        "destination": str(message.jms_destination),
        "reply to": str(message.jms_reply_to),
        "mode": message.jms_delivery_mode,
        "priority": message.jms_priority,
        "expiration": message.jms_expiration,
        "timestamp": message.jms_timestamp,
        "due": message.jms_delivery_time,
        "type": message.jms_type,
        "redelivered": message.jms_redelivered,
        "properties": {name: message.get_object_property(name) for name in names},
        "body": repr(vars_of(message)),
    }


def vars_of(message: Message) -> object:
    if isinstance(message, jmsapi.TextMessage):
        return message.text
    if isinstance(message, jmsapi.BytesMessage):
        return message.get_body(bytes)
    if isinstance(message, jmsapi.MapMessage):
        return {name: message.get_object(name) for name in message.map_names}
    if isinstance(message, jmsapi.StreamMessage):
        return [message.read_object() for _ in range(2)]
    return str(message.object) if isinstance(message, jmsapi.ObjectMessage) else None


def shown_or_error(message: Message) -> dict[str, object]:
    try:
        return shown(message)
    except jmsapi.JMSException as error:
        return {"error": str(error), "id": message.jms_message_id, "priority": message.jms_priority}


def fill(context: JMSContext, queue: Queue) -> int:
    """Send one message of each kind, with all that a message can have; return how many."""
    text = context.create_text_message("a text ä \U0001f600 " + "long " * 300)
    bytes_message = context.create_bytes_message()
    bytes_message.write_bytes(bytes(range(256)))
    mapped = context.create_map_message()
    mapped.set_int("i", 7)
    mapped.set_string("s", "x" * 1000)
    stream = context.create_stream_message()
    stream.write_int(3)
    stream.write_string("three")
    kept = context.create_object_message({"a": [1, 2]})
    messages = [text, bytes_message, mapped, stream, kept, context.create_message()]
    for number, message in enumerate(messages):
        message.jms_correlation_id = f"c{number}"
        message.jms_type = "kind"
        message.jms_reply_to = context.create_queue("browsing.answers")
        message.set_int_property("n", number)
        message.set_string_property("long", "y" * 2000)
        message.set_boolean_property("flag", True)
        producer = context.create_producer()
        producer.priority = 9 - number
        producer.time_to_live = 3_600_000 * (number % 2)
        producer.delivery_mode = DeliveryMode.PERSISTENT if number % 2 else DeliveryMode.NON_PERSISTENT
        producer.send(queue, message)
    return len(messages)


@pytest.mark.parametrize("sender", ["stomp", "amqp"])
def test_a_browser_shows_what_a_consumer_gets(opened: Open, context: JMSContext, queue: Queue, sender: Wire) -> None:
    count = fill(opened(sender), queue)
    with context.create_browser(queue) as browser:
        first = [shown_or_error(message) for message in browser.enumeration]
        again = [shown_or_error(message) for message in browser.enumeration]
    consumer = context.create_consumer(queue)
    got = [consumer.receive(WAIT_MS) for _ in range(count)]
    assert None not in got
    assert first == again == [shown_or_error(message) for message in got if message is not None]
    assert [one["priority"] for one in first] == [9, 8, 7, 6, 5, 4]


def test_a_long_queue_is_shown_by_pages_in_order_and_left_as_it_is(opened: Open, context: JMSContext, queue: Queue) -> None:
    expected = [str(number) for number in range(700)]
    send(opened("amqp"), queue, *expected)
    assert texts(context, queue) == expected
    assert texts(context, queue, "JMSPriority = 4") == expected
    consumer = opened("amqp").create_consumer(queue)
    got = [consumer.receive(WAIT_MS) for _ in expected]
    assert [one.get_body(str) for one in got if one is not None] == expected
    assert {one.get_int_property("JMSXDeliveryCount") for one in got if one is not None} == {1}


def test_what_others_receive_and_send_meanwhile_neither_hides_nor_adds_anything(
    opened: Open, context: JMSContext, queue: Queue
) -> None:
    numbers = [str(number) for number in range(600)]
    other = opened("amqp")
    send(other, queue, *numbers)
    with context.create_browser(queue) as browser:
        look = browser.enumeration
        first = [next(look).get_body(str) for _ in range(10)]
        consumer = other.create_consumer(queue)
        for _ in range(550):
            assert consumer.receive(WAIT_MS) is not None
        consumer.close()
        send(other, queue, *(f"late {number}" for number in range(300)))
        urgent = other.create_producer()
        urgent.priority = 9
        for number in range(300):
            urgent.send(queue, f"urgent {number}")
        rest = [message.get_body(str) for message in look]
    assert first == numbers[:10]
    # A part had been copied before others received; of the rest all that is still there is shown.
    copied = len(rest) - 50
    assert 246 <= copied < 540
    assert rest == numbers[10 : 10 + copied] + numbers[550:]


def test_what_has_expired_is_not_shown(context: JMSContext, queue: Queue) -> None:
    producer = context.create_producer()
    producer.time_to_live = 1
    producer.send(queue, "gone")
    producer.time_to_live = 0
    producer.send(queue, "here")
    assert texts(context, queue) == ["here"]


def test_a_queue_that_nobody_has_made_is_empty(context: JMSContext, queue: Queue) -> None:
    assert texts(context, queue) == []


def test_the_queue_of_an_address_is_found_by_any_name(context: JMSContext, queue: Queue, ask: Ask) -> None:
    made = {"name": f"of.{queue.queue_name}", "address": queue.queue_name, "routing-type": "ANYCAST", "auto-delete": True}
    ask("createQueue", json.dumps(made), False)
    send(context, queue, "1", "2")
    assert texts(context, queue) == ["1", "2"]
    ask("destroyQueue", made["name"])


def test_a_look_leaves_nothing_at_the_broker(context: JMSContext, queue: Queue, ask: Ask) -> None:
    def consumed() -> set[str]:
        private = [name for name in ask("getQueueNames", "ANYCAST") if name.startswith("jmsapi.temp.")]
        return {name for name in private if ask("getConsumerCount", resource=f"queue.{name}")}

    send(context, queue, "1")
    before = consumed()
    look = context.create_browser(queue).enumeration
    assert next(look).get_body(str) == "1"
    # Its own, and perhaps those of other programs, which come and go.
    during = consumed() - before
    assert during
    look.close()  # type: ignore[attr-defined]
    end = time.monotonic() + 120
    while left := consumed() & during:
        assert time.monotonic() < end, f"left behind: {left}"
        time.sleep(0.1)


def test_who_may_not_manage_the_broker_is_refused_by_name_and_goes_on(
    artemis: Broker, opened: Open, queue: Queue, ask: Ask
) -> None:
    user = f"weak-{uuid.uuid4().hex[:8]}"
    role = f"role-of-{user}"
    ask("addUser", user, "none", role, True)
    matches = [queue.queue_name, "jmsapi.temp.#"]
    for match in matches:
        ask("addSecuritySettings", match, *[f"amq,{role}"] * 6, "amq", *[f"amq,{role}"] * 3)
    try:
        place = urlsplit(artemis.url("stomp"))
        weak = opened(url=f"stomp://{user}:none@{place.hostname}:{place.port}")
        send(weak, queue, "1")
        with pytest.raises(UnsupportedFeatureException, match="the right to manage Artemis"):
            texts(weak, queue)
        received = weak.create_consumer(queue).receive(WAIT_MS)
        assert received is not None
        assert received.get_body(str) == "1"
    finally:
        for match in matches:
            ask("removeSecuritySettings", match)
        ask("removeUser", user)


def test_a_queue_that_does_not_fit_into_the_brokers_memory_is_refused(context: JMSContext, queue: Queue, ask: Ask) -> None:
    settings = {"maxSizeBytes": 20_000, "pageSizeBytes": 10_000, "addressFullMessagePolicy": "PAGE"}
    ask("addAddressSettings", queue.queue_name, json.dumps(settings))
    try:
        send(context, queue, *("x" * 1000 for _ in range(300)))
        with pytest.raises(UnsupportedFeatureException, match="outside its memory"):
            texts(context, queue)
    finally:
        ask("removeAddressSettings", queue.queue_name)


def test_a_message_without_an_id_of_its_sender_keeps_the_brokers(opened: Open, context: JMSContext, queue: Queue) -> None:
    producer = opened("amqp").create_producer()
    producer.disable_message_id = True
    producer.send(queue, "1")
    with context.create_browser(queue) as browser:
        [seen] = [message.jms_message_id for message in browser.enumeration]
    ids: list[str | None] = []
    for _ in range(2):
        reader = opened(mode=JMSContext.CLIENT_ACKNOWLEDGE)
        message = reader.create_consumer(queue).receive(WAIT_MS)
        assert message is not None
        ids.append(message.jms_message_id)
        reader.close()
    assert ids == [seen, seen]
