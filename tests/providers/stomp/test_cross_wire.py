"""STOMP and AMQP clients on one broker: what one sends the other receives as far as the broker lets it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import jmsapi
from jmsapi import BytesMessage, JMSContext, MapMessage, Message, TextMessage
from jmsapi_conformance.brokers import Broker

pytest.importorskip("proton", reason="the other wire is AMQP")


def messages(context: JMSContext) -> list[Message]:
    """Make one of each kind that both wires have, with headers and properties."""
    made: list[Message] = [context.create_text_message(text) for text in ("grüß €", "", "a\0b")]
    for data in (b"", b"text", b"\xf0\x01\xff\0\x1f\x8b"):
        message = context.create_bytes_message()
        message.write_bytes(data)
        made.append(message)
    for message in made:
        message.set_string_property("s", "x:y")
        message.set_int_property("n", 7)
        message.jms_correlation_id = "c:1"
        message.jms_reply_to = context.create_queue("answers")
    return made


def content(message: Message | None) -> tuple[str, Any]:
    assert message is not None, "no message came"
    if isinstance(message, TextMessage):
        return "text", message.text
    if isinstance(message, BytesMessage):
        return "bytes", message.get_body(bytes)
    if isinstance(message, MapMessage):
        return "map", message.get_body(dict)
    return type(message).__name__, None


def exchange(sender_url: str, receiver_url: str) -> list[tuple[Message, Message]]:
    name = f"cross.{uuid.uuid4().hex}"
    pairs: list[tuple[Message, Message]] = []
    with (
        jmsapi.connection_factory(sender_url).create_context() as sender,
        jmsapi.connection_factory(receiver_url).create_context() as receiver,
    ):
        consumer = receiver.create_consumer(receiver.create_queue(name))
        producer = sender.create_producer()
        for message in messages(sender):
            producer.send(sender.create_queue(name), message)
            got = consumer.receive(10_000)
            assert got is not None
            assert content(got) == content(message)
            pairs.append((message, got))
    return pairs


def test_what_a_stomp_client_sends_an_amqp_client_receives(each_broker: Broker) -> None:
    for sent, got in exchange(each_broker.url("stomp"), each_broker.url("amqp")):
        assert got.jms_message_id == sent.jms_message_id
        assert got.jms_correlation_id == "c:1"
        assert got.jms_timestamp == sent.jms_timestamp
        assert str(got.jms_reply_to) == str(sent.jms_reply_to)
        assert (got.get_object_property("s"), got.get_object_property("n")) == ("x:y", 7)


def test_what_an_amqp_client_sends_a_stomp_client_receives(each_broker: Broker) -> None:
    if each_broker.kind == "classic":
        pytest.skip("Classic takes no ACK for it: test_classic_cannot_settle_what_an_amqp_client_named")
    for sent, got in exchange(each_broker.url("amqp"), each_broker.url("stomp")):
        assert got.jms_message_id == sent.jms_message_id
        assert got.jms_correlation_id == "c:1"
        assert str(got.jms_reply_to) == str(sent.jms_reply_to)
        # STOMP shows every property as text; it converts.
        assert (got.get_string_property("s"), got.get_int_property("n")) == ("x:y", 7)


def test_classic_cannot_settle_what_an_amqp_client_named(classic: Broker) -> None:
    name = f"cross.{uuid.uuid4().hex}"
    with (
        jmsapi.connection_factory(classic.url("amqp")).create_context() as sender,
        jmsapi.connection_factory(classic.url("stomp")).create_context() as receiver,
    ):
        sender.create_producer().send(sender.create_queue(name), "named by its sender")
        consumer = receiver.create_consumer(receiver.create_queue(name))
        with pytest.raises(jmsapi.JMSRuntimeException, match="over AMQP"):
            consumer.receive(10_000)
        # The connection lives, and the message is still there for others.
        receiver.create_producer().send(receiver.create_queue(name + ".other"), "x")
        assert receiver.create_consumer(receiver.create_queue(name + ".other")).receive_body(str, 10_000) == "x"
        assert sender.create_consumer(sender.create_queue(name)).receive_body(str, 10_000) == "named by its sender"
