"""4.4.5 Optimized message implementations."""

import pytest

from jmsapi import (
    BytesMessage,
    MapMessage,
    Message,
    MessageEOFException,
    ObjectMessage,
    Queue,
    Session,
    StreamMessage,
    TextMessage,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import receive, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.5-1")
def test_a_session_creates_all_kinds_of_messages_empty_and_writable(session: Session) -> None:
    text, object_, bytes_ = session.create_text_message(), session.create_object_message(), session.create_bytes_message()
    map_, stream, plain = session.create_map_message(), session.create_stream_message(), session.create_message()
    assert isinstance(text, TextMessage)
    assert isinstance(object_, ObjectMessage)
    assert isinstance(bytes_, BytesMessage)
    assert isinstance(map_, MapMessage)
    assert isinstance(stream, StreamMessage)
    assert isinstance(plain, Message)
    assert not isinstance(plain, TextMessage | ObjectMessage | BytesMessage | MapMessage | StreamMessage)
    assert text.text is None
    assert object_.object is None
    assert list(map_.map_names) == []
    text.text = "text"
    object_.object = ["object"]
    bytes_.write_int(7)
    map_.set_int("number", 7)
    stream.write_int(7)
    plain.set_int_property("number", 7)
    bytes_.reset()
    stream.reset()
    assert (text.text, object_.object, bytes_.read_int(), map_.get_int("number"), stream.read_int()) == (
        *("text", ["object"], 7, 7, 7),
    )
    with pytest.raises(MessageEOFException):
        stream.read_int()


@requirement("4.4.5-1")
def test_text_and_object_messages_are_created_with_a_body(session: Session) -> None:
    text, object_ = session.create_text_message("text"), session.create_object_message({"key": [1, 2]})
    assert text.text == "text"
    assert object_.object == {"key": [1, 2]}
    text.text = "another"
    assert text.text == "another"


@requirement("4.4.5-2")
def test_a_message_is_sent_through_a_session_of_another_connection(
    session: Session, queue: Queue, other_session: Session
) -> None:
    message = session.create_text_message("text")
    message.set_string_property("colour", "red")
    other_session.create_producer(queue).send(message)
    received = receive(session.create_consumer(queue))
    assert (text_of(received), received.get_string_property("colour")) == ("text", "red")


@requirement("4.4.5-2")
def test_a_message_is_sent_through_another_provider(interceptor: Interceptor, session: Session, queue: Queue) -> None:
    # To the library, the provider behind the SPI is another one than that of the session.
    elsewhere = interceptor.connect().create_session()
    elsewhere.create_producer(queue).send(session.create_text_message("made here"))
    with elsewhere.create_consumer(queue) as consumer:
        received = receive(consumer)
    assert text_of(received) == "made here"
    session.create_producer(queue).send(received)
    assert text_of(receive(session.create_consumer(queue))) == "made here"


@requirement("4.4.5-2")
@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "bytes",
        pytest.param("map", marks=needs("map_message")),
        pytest.param("stream", marks=needs("stream_message")),
        pytest.param("object", marks=needs("object_message")),
    ],
)
def test_a_received_message_is_sent_on_and_gets_new_headers(
    connect: Connect, queue: Queue, other_session: Session, names: Names, kind: str
) -> None:
    target = other_session.create_queue(names.queue())
    message: Message
    if kind == "text":
        message = other_session.create_text_message("body")
    elif kind == "bytes":
        message = other_session.create_bytes_message()
        message.write_bytes(b"body")
    elif kind == "map":
        message = other_session.create_map_message()
        message.set_string("key", "body")
    elif kind == "stream":
        message = other_session.create_stream_message()
        message.write_string("body")
    else:
        message = other_session.create_object_message(["body"])
    message.set_string_property("colour", "red")
    other_session.create_producer(queue).send(message, delivery_mode=1, priority=7, time_to_live_ms=0)
    session = connect().create_session()
    received = receive(session.create_consumer(queue))
    first_id = received.jms_message_id
    session.create_producer(target).send(received)
    again = receive(other_session.create_consumer(target))
    assert again.jms_destination == target
    assert again.jms_message_id != first_id
    assert (again.jms_delivery_mode, again.jms_priority) == (2, 4)
    assert again.get_string_property("colour") == "red"
    assert body_of(again) == body_of(message)


def body_of(message: Message) -> object:
    """Return the body, whatever the kind of message."""
    if isinstance(message, StreamMessage):
        message.reset()
        return message.read_string()
    if isinstance(message, MapMessage):
        return {name: message.get_object(name) for name in message.map_names}
    return message.get_body(bytes if isinstance(message, BytesMessage) else object)
