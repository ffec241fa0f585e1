"""What a sender may say of a message, and what every broker's receiver then sees, whichever of the wires each of them uses."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSContext, Message, ObjectMessage
from jmsapi.values import Byte, Float, Long, Short
from jmsapi_conformance.brokers import Broker, Wire

WAIT_MS = 20_000
WIRES: tuple[Wire, ...] = ("amqp", "stomp")
OUTSIDE = "gr\u00fcn \u20ac \U0001f600\U0010ffff"
"""Characters of two, three and four bytes."""

pytestmark = pytest.mark.broker
Opened = Callable[..., JMSContext]


@dataclasses.dataclass
class Sign:
    """What an ObjectMessage holds."""

    name: str
    count: int = 1


@dataclasses.dataclass
class Note:
    """What a text of JSON holds."""

    words: str


jmsapi.register_class(Sign)


@pytest.fixture(params=["artemis", "classic", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Give each broker."""
    found: Broker = request.getfixturevalue(str(request.param))
    return found


@pytest.fixture
def name() -> str:
    """Give a name that is nobody else's."""
    return f"sent.{uuid.uuid4().hex}"


def take(context: JMSContext, name: str) -> Message:
    """Return the next message of a queue."""
    with context.create_consumer(context.create_queue(name)) as consumer:
        message = consumer.receive(WAIT_MS)
    assert message is not None
    return message


def routes(broker: Broker) -> list[tuple[Wire, Wire]]:
    """Return the ways from sender to reader; over STOMP Classic takes no acknowledgement of what an AMQP client has named."""
    return [(one, other) for one in WIRES for other in WIRES if (broker.kind, one, other) != ("classic", "amqp", "stomp")]


def test_objects_and_json_keep_every_character_over_both_wires(broker: Broker, opened: Opened, name: str) -> None:
    contexts = {wire: opened(broker, wire) for wire in WIRES}
    sign = Sign(OUTSIDE)
    for sender, reader in routes(broker):
        context = contexts[sender]
        place = context.create_queue(f"{name}.{sender}.{reader}")
        context.create_producer().send(place, context.create_object_message(sign)).send(place, Note(OUTSIDE))
        first, second = (take(contexts[reader], place.queue_name) for _ in range(2))
        assert isinstance(first, ObjectMessage)
        assert first.object == sign, (sender, reader)
        assert json.loads(second.get_body(str) or "") == {"words": OUTSIDE}, (sender, reader)


@pytest.mark.parametrize("size", [3, 255, 256, 5000])
def test_texts_of_any_length_arrive_over_both_wires(broker: Broker, opened: Opened, name: str, size: int) -> None:
    contexts = {wire: opened(broker, wire) for wire in WIRES}
    text, binary, long_name = "\u00e9" * (size // 2) + "e" * (size % 2), b"\xff" * size, "n" * size
    for sender, reader in routes(broker):
        context = contexts[sender]
        place = context.create_queue(f"{name}.{sender}.{reader}.{size}")
        for correlation in (text, binary):
            message = context.create_text_message("text")
            message.jms_type = text
            message.set_string_property("JMSXGroupID", text)
            message.set_int_property("JMSXGroupSeq", 7)
            message.set_long_property(long_name, 5)
            message.set_string_property(f"{long_name}_", text)
            if isinstance(correlation, str):
                message.jms_correlation_id = correlation
            else:
                message.jms_correlation_id_as_bytes = correlation
            message.jms_reply_to = context.create_queue("q" * min(size, 255))
            context.create_producer().send(place, message)
            got = take(contexts[reader], place.queue_name)
            seen = got.jms_correlation_id if isinstance(correlation, str) else got.jms_correlation_id_as_bytes
            assert seen == correlation, (sender, reader)
            assert got.jms_type == text, (sender, reader)
            assert isinstance(got.jms_reply_to, jmsapi.Queue)
            assert got.jms_reply_to.queue_name == "q" * min(size, 255), (sender, reader)
            assert (got.get_string_property("JMSXGroupID"), got.get_int_property("JMSXGroupSeq")) == (text, 7), (sender, reader)
            assert got.get_long_property(long_name) == 5, (sender, reader)
            assert got.get_string_property(f"{long_name}_") == text, (sender, reader)
            shown = {"JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount", long_name, f"{long_name}_"}
            # RabbitMQ shows over STOMP what its readers of AMQP 0-9-1 get: a text's content type, and the group in another place.
            assert set(got.property_names) - {"content-type", "app-id"} == shown, (sender, reader)


TYPED: dict[str, Any] = {
    "z": True,
    "b": Byte(1),
    "h": Short(-2),
    "i": -3,
    "l": Long(-(2**40)),
    "f": Float(0.5),
    "d": -0.25,
    "s": "t",
}


def test_properties_keep_their_types_over_both_wires_of_rabbitmq(rabbitmq: Broker, opened: Opened, name: str) -> None:
    contexts = {wire: opened(rabbitmq, wire) for wire in WIRES}
    for sender, reader in routes(rabbitmq):
        message, place = contexts[sender].create_text_message("text"), f"{name}.{sender}.{reader}"
        for key, value in {**TYPED, "n": None}.items():
            message.set_object_property(key, value)
        contexts[sender].create_producer().set_time_to_live(60_000).send(contexts[sender].create_queue(place), message)
        got = take(contexts[reader], place)
        assert got.jms_expiration == message.jms_expiration
        assert {key: (type(v := got.get_object_property(key)), v) for key in TYPED} == {
            key: (type(v := message.get_object_property(key)), v) for key in TYPED
        }, (sender, reader)
        assert got.property_exists("n")
        assert got.get_object_property("n") is None


def test_a_message_says_who_has_sent_it_unless_it_is_not_to(broker: Broker, opened: Opened, name: str) -> None:
    contexts = {wire: opened(broker, wire) for wire in WIRES}
    silent = {wire: opened(broker, wire, user_id=False) for wire in WIRES}
    for sender, reader in routes(broker):
        for context, user in ((contexts[sender], "admin"), (silent[sender], None)):
            message, place = context.create_text_message("text"), f"{name}.{sender}.{reader}"
            context.create_producer().send(context.create_queue(place), message)
            got = take(contexts[reader], place)
            assert got.get_string_property("JMSXUserID") == message.get_string_property("JMSXUserID") == user, (sender, reader)
            assert bool(jmsapi.capabilities(context).user_id) == (user is not None)


def test_who_sends_a_message_on_is_its_sender(broker: Broker, opened: Opened, name: str) -> None:
    context, silent = opened(broker, "amqp"), opened(broker, "amqp", user_id=False)
    context.create_producer().send(context.create_queue(name), "text")
    got = take(silent, name)
    assert got.get_string_property("JMSXUserID") == "admin"
    silent.create_producer().send(silent.create_queue(name), got)
    assert take(context, name).get_string_property("JMSXUserID") is None
