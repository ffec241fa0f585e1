"""The same broker over STOMP and AMQP: what jmsapi sends by one wire it reads by the other."""

from __future__ import annotations

from typing import Any

import pytest

import jmsapi
from jmsapi import BytesMessage, MapMessage, Message, Session, StreamMessage, TextMessage
from jmsapi.spi import Address
from jmsapi.values import Byte, Char, Float, Long, Short, Value
from jmsapi_conformance.brokers import Broker

PROPERTIES: dict[str, Value] = {
    "z": True, "y": Byte(1), "s": Short(2), "i": 3, "l": Long(4), "f": Float(1.5), "d": 2.5, "t": "grüß: €", "n": None,
    "priority_": "a", "selector": "taken", "nul": "a\u0000b",
}  # fmt: skip
ENTRIES: dict[str, Any] = {
    "i": 3,
    "l": Long(4),
    "y": Byte(1),
    "f": Float(1.5),
    "c": Char("x"),
    "b": b"\x00\xff",
    "t": "ü",
    "n": None,
}


def messages(session: Session) -> list[Message]:
    """Make one of each kind, and the bodies that are easily taken for something else."""
    made: list[Message] = [session.create_text_message(text) for text in ("grüß €", "", "a\u0000b")]
    for data in (b"", b"text", b"\xf0\x01\x41\xff\x00"):
        of_bytes = session.create_bytes_message()
        of_bytes.write_bytes(data)
        made.append(of_bytes)
    of_map, of_stream = session.create_map_message(), session.create_stream_message()
    for name, value in ENTRIES.items():
        of_map.set_object(name, value)
        of_stream.write_object(value)
    return [*made, of_map, of_stream, session.create_message()]


def told(message: Message) -> object:
    """Return what a message says of itself: kind, content, types."""
    if isinstance(message, TextMessage):
        return ("text", message.text)
    if isinstance(message, BytesMessage):
        return ("bytes", message.get_body(bytes))
    if isinstance(message, MapMessage):
        return ("map", {name: (type(v := message.get_object(name)), v) for name in message.map_names})
    if isinstance(message, StreamMessage):
        return ("stream", [(type(v := message.read_object()), v) for _ in ENTRIES])
    return ("message", None)


@pytest.mark.parametrize(("sending", "receiving"), [("stomp", "amqp"), ("amqp", "stomp")])
def test_what_goes_in_by_one_wire_comes_out_by_the_other(
    each_broker: Broker, queue: Address, sending: Any, receiving: Any
) -> None:
    if (sending, each_broker.kind) == ("amqp", "rabbitmq"):
        pytest.skip("RabbitMQ 4.0.5 shows STOMP readers an AMQP value as its raw bytes and drops booleans and doubles")
    if (sending, each_broker.kind) == ("amqp", "classic"):
        pytest.skip("Classic 6.3.1 reads a STOMP acknowledgement's id as its own kind of id, and closes the connection over ours")
    source = jmsapi.connection_factory(each_broker.url(sending)).create_connection()
    sink = jmsapi.connection_factory(each_broker.url(receiving)).create_connection()
    with source, sink:
        sink.start()
        session, reader = source.create_session(), sink.create_session()
        consumer = reader.create_consumer(reader.create_queue(queue.name))
        producer = session.create_producer(session.create_queue(queue.name))
        for message in messages(session):
            if sending == "amqp" and not isinstance(message, TextMessage | BytesMessage):
                continue  # a STOMP reader gets no body of the other kinds from anybody but a STOMP sender
            if (
                (sending, each_broker.kind) == ("amqp", "classic")
                and isinstance(message, TextMessage)
                and "\0" in (message.text or "")
            ):
                continue  # Classic 6.3.1 sends it without a length, so that the NUL ends the frame
            for name, value in PROPERTIES.items():
                # Classic 6.3.1 puts a NUL into a STOMP header as it is, which ends the frame there, and closes the connection
                # of a STOMP reader over a property that is null.
                if sending == "stomp" or name not in ("nul", "n"):
                    message.set_object_property(name, value)
            message.jms_correlation_id = "x:y\\z"
            message.jms_type = "kind"
            producer.send(message)
            received = consumer.receive(10_000)
            assert received is not None
            assert (received.jms_correlation_id, received.jms_type) == ("x:y\\z", "kind")
            if sending == "stomp":
                assert received.jms_message_id == message.jms_message_id
                found = {name: (type(v := received.get_object_property(name)), v) for name in received.property_names}
                assert found.pop("JMSXDeliveryCount", (int, 1)) == (int, 1)
                assert found.pop("JMSXUserID") == (str, message.get_string_property("JMSXUserID"))
                assert found == {name: (type(value), value) for name, value in PROPERTIES.items()}
            else:
                assert received.get_int_property("i") == 3
                assert received.get_string_property("t") == "grüß: €"
            if isinstance(message, BytesMessage | StreamMessage):
                message.reset()
            assert told(received) == told(message)
