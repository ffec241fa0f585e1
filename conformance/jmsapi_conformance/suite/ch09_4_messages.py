"""9.4 JMS message types: creating them, and reading them back."""

import pytest

from jmsapi import BytesMessage, MapMessage, MessageFormatException, ObjectMessage, Queue, Session, StreamMessage
from jmsapi_conformance.kit import receive
from jmsapi_conformance.marks import needs, requirement


@requirement("9.4.4-1", "B.4.5.1-1")
def test_the_length_of_a_body_tells_how_large_a_buffer_must_be(session: Session, other_session: Session, queue: Queue) -> None:
    sent = session.create_bytes_message()
    sent.write_bytes(b"12345")
    sent.reset()
    session.create_producer(queue).send(sent)
    received = receive(other_session.create_consumer(queue))
    assert isinstance(received, BytesMessage)
    for message in (sent, received):
        buffer = bytearray(message.body_length)
        assert message.body_length == 5
        assert message.read_bytes(buffer) == 5
        assert buffer == b"12345"


@requirement("9.4.4-2", "B.2.20-1")
def test_a_smaller_buffer_is_filled_and_the_next_read_goes_on_from_there(session: Session) -> None:
    message = session.create_bytes_message()
    message.write_bytes(b"12345")
    message.reset()
    buffer = bytearray(2)
    parts: list[bytes] = []
    for count in (2, 2, 1):
        assert message.read_bytes(buffer) == count
        parts.append(bytes(buffer[:count]))
    assert parts == [b"12", b"34", b"5"]
    assert message.read_bytes(buffer) == -1
    assert message.read_bytes(bytearray(4)) == -1


@requirement("9.4.4-3")
def test_the_bytes_of_a_message_are_got_whole_whatever_was_read_before(session: Session) -> None:
    message = session.create_bytes_message()
    message.write_bytes(b"12345")
    message.reset()
    message.read_bytes(bytearray(3))
    body = message.get_body(bytes)
    assert body == b"12345"
    assert type(body) is bytes
    assert message.read_byte() == ord("1")


@requirement("9.4.5-1", "9.4.6-1", "9.4.6-2")
@needs("map_message")
def test_entries_of_a_map_are_read_by_name_in_any_order_and_listed_and_got_whole(
    session: Session, other_session: Session, queue: Queue
) -> None:
    message = session.create_map_message()
    message.set_string("Name", "ACME")
    message.set_double("Value", 9.5)
    message.set_long("Time", 2**40)
    message.set_boolean("Open", True)
    message.set_bytes("Logo", b"\0\1")
    session.create_producer(queue).send(message)
    received = receive(other_session.create_consumer(queue))
    assert isinstance(received, MapMessage)
    assert received.get_long("Time") == 2**40
    assert received.get_string("Name") == "ACME"
    assert received.get_bytes("Logo") == b"\0\1"
    assert received.get_double("Value") == 9.5
    assert received.get_boolean("Open") is True
    assert set(received.map_names) == {"Name", "Value", "Time", "Open", "Logo"}
    assert received.get_body(dict) == {"Name": "ACME", "Value": 9.5, "Time": 2**40, "Open": True, "Logo": b"\0\1"}


@requirement("9.4.8-1")
@needs("stream_message")
def test_the_elements_of_a_stream_are_read_in_the_order_of_writing(
    session: Session, other_session: Session, queue: Queue
) -> None:
    message = session.create_stream_message()
    message.write_string("ACME")
    message.write_double(9.5)
    message.write_long(2**40)
    session.create_producer(queue).send(message)
    received = receive(other_session.create_consumer(queue))
    assert isinstance(received, StreamMessage)
    assert received.read_string() == "ACME"
    with pytest.raises(MessageFormatException):
        received.read_long()
    assert received.read_double() == 9.5
    with pytest.raises(MessageFormatException):
        received.read_boolean()
    assert received.read_long() == 2**40


@requirement("9.4.8-2")
@pytest.mark.parametrize("kind", [object, list, str, bytes, dict])
def test_a_stream_has_no_body_to_get(session: Session, kind: type) -> None:
    message = session.create_stream_message()
    message.write_string("ACME")
    message.reset()
    assert message.is_body_assignable_to(kind) is False
    with pytest.raises(MessageFormatException):
        message.get_body(kind)


@requirement("9.4.10-1")
@needs("object_message")
def test_the_object_of_a_message_is_read_in_two_ways(session: Session, other_session: Session, queue: Queue) -> None:
    value = ["ACME", {"value": 9.5}]
    session.create_producer(queue).send(session.create_object_message(value))
    received = receive(other_session.create_consumer(queue))
    assert isinstance(received, ObjectMessage)
    assert received.object == value
    assert received.get_body(list) == value
    assert received.get_body(object) == value
