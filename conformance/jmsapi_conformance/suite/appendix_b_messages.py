"""B. Change history: messages."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi import (
    IllegalArgumentException,
    MapMessage,
    Message,
    MessageFormatException,
    MessageNotWriteableException,
    Queue,
    Session,
    StreamMessage,
)
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import own_names, receive, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._foreign import foreign_message
from jmsapi_conformance.suite._kinds import body_of, each_body, each_kind, fill, filled, new, passed

TYPES = (str, bytes, dict, list, int, object)


@requirement("B.2.11-1")
@needs("map_message", "stream_message")
def test_values_in_messages_may_be_null(session: Session, other_session: Session, queue: Queue) -> None:
    map_, stream, text = session.create_map_message(), session.create_stream_message(), session.create_text_message(None)
    map_.set_string("text", None)
    map_.set_object("object", None)
    stream.write_string(None)
    stream.write_object(None)
    text.set_string_property("text", None)
    text.set_object_property("object", None)
    received_map = passed(map_, session, queue, other_session)
    assert isinstance(received_map, MapMessage)
    assert set(received_map.map_names) == {"text", "object"}
    assert (received_map.get_string("text"), received_map.get_object("object")) == (None, None)
    received_stream = passed(stream, session, queue, other_session)
    assert isinstance(received_stream, StreamMessage)
    assert (received_stream.read_string(), received_stream.read_object()) == (None, None)
    received_text = passed(text, session, queue, other_session)
    assert text_of(received_text) is None
    assert received_text.get_string_property("text") is None
    assert received_text.get_object_property("object") is None


@requirement("B.2.14-1")
def test_text_does_not_convert_to_a_char_but_a_char_does_to_text(session: Session) -> None:
    map_, stream = session.create_map_message(), session.create_stream_message()
    map_.set_string("text", "x")
    map_.set_char("char", "x")
    stream.write_string("x")
    stream.write_char("x")
    stream.reset()
    with pytest.raises(MessageFormatException):
        map_.get_char("text")
    assert (map_.get_string("char"), map_.get_char("char")) == ("x", "x")
    with pytest.raises(MessageFormatException):
        stream.read_char()
    assert (stream.read_string(), stream.read_string()) == ("x", "x")


@requirement("B.2.17-1")
@each_body
def test_of_a_received_message_only_header_fields_may_be_changed(
    session: Session, other_session: Session, queue: Queue, kind: str
) -> None:
    sent = filled(session, kind)
    sent.set_int_property("p", 1)
    received = passed(sent, session, queue, other_session)
    received.jms_type, received.jms_correlation_id, received.jms_reply_to = "type", "correlation", queue
    assert (received.jms_type, received.jms_correlation_id, received.jms_reply_to) == ("type", "correlation", queue)
    for name in ("p", "q"):
        with pytest.raises(MessageNotWriteableException):
            received.set_int_property(name, 2)
    with pytest.raises(MessageNotWriteableException):
        fill(received, "other")
    assert body_of(received) == body_of(filled(session, kind))
    # Reading does not unlock it.
    with pytest.raises(MessageNotWriteableException):
        fill(received, "other")
    assert own_names(received) == {"p"}
    assert received.get_int_property("p") == 1


@requirement("B.2.19-2", "B.5.22-1")
@pytest.mark.parametrize("time_to_live", [60_000, 2**40])
def test_a_message_expires_its_time_to_live_after_now_in_milliseconds_since_1970(
    session: Session, other_session: Session, queue: Queue, time_to_live: int
) -> None:
    message = session.create_text_message("text")
    with session.create_producer(queue) as producer, other_session.create_consumer(queue) as consumer:
        producer.time_to_live = time_to_live
        before = int(time.time() * 1000)
        producer.send(message)
        after = time.time() * 1000
        assert before + time_to_live <= message.jms_expiration <= after + time_to_live
        assert message.jms_expiration == message.jms_timestamp + time_to_live
        assert receive(consumer).jms_expiration == message.jms_expiration


@requirement("B.2.21-1")
def test_byte_arrays_come_out_as_bytes(session: Session) -> None:
    map_, stream = session.create_map_message(), session.create_stream_message()
    map_.set_bytes("it", bytearray(b"ab"))
    stream.write_bytes(bytearray(b"ab"))
    stream.reset()
    for found in (map_.get_object("it"), map_.get_bytes("it"), stream.read_object()):
        assert type(found) is bytes
        assert found == b"ab"


@requirement("B.2.21-4")
def test_a_byte_field_is_read_in_several_calls_and_nothing_else_in_between(session: Session) -> None:
    message = session.create_stream_message()
    message.write_bytes(b"12345")
    message.write_int(7)
    message.reset()
    buffer = bytearray(2)
    assert message.read_bytes(buffer) == 2
    with pytest.raises(MessageFormatException):
        message.read_int()
    with pytest.raises(MessageFormatException):
        message.read_object()
    assert (message.read_bytes(buffer), bytes(buffer)) == (2, b"34")
    assert (message.read_bytes(buffer), bytes(buffer[:1])) == (1, b"5")
    assert message.read_int() == 7


@requirement("B.2.21-4", "B.2.21-5")
@pytest.mark.parametrize("size", [1, 2, 4], ids="buffer of {}".format)
def test_a_byte_field_that_fills_its_last_buffer_needs_one_more_call(session: Session, size: int) -> None:
    message = session.create_stream_message()
    message.write_bytes(b"1234")
    message.write_int(7)
    message.reset()
    buffer = bytearray(size)
    for start in range(0, 4, size):
        assert message.read_bytes(buffer) == size
        assert buffer == b"1234"[start : start + size]
        with pytest.raises(MessageFormatException):
            message.read_int()
    assert message.read_bytes(buffer) == -1
    assert message.read_int() == 7


class ForeignQueue(Queue):
    """A queue that somebody else implements."""

    @property
    def queue_name(self) -> str:
        """Give its name there."""
        return "elsewhere"

    def __str__(self) -> str:
        """Write it for people."""
        return "the queue elsewhere"


@requirement("B.3.1-8")
def test_a_foreign_reply_destination_of_a_foreign_message_is_kept_or_dropped(
    session: Session, other_session: Session, queue: Queue
) -> None:
    message = foreign_message("text", "text", reply_to=ForeignQueue())
    received = passed(message, session, queue, other_session)
    assert text_of(received) == "text"
    assert received.jms_reply_to is None or getattr(received.jms_reply_to, "queue_name", None) == "elsewhere"


MAP_SETTERS: dict[str, Callable[[MapMessage, Any], object]] = {
    "set_boolean": lambda message, name: message.set_boolean(name, True),
    "set_byte": lambda message, name: message.set_byte(name, 1),
    "set_bytes": lambda message, name: message.set_bytes(name, b"a"),
    "set_char": lambda message, name: message.set_char(name, "a"),
    "set_double": lambda message, name: message.set_double(name, 1.0),
    "set_float": lambda message, name: message.set_float(name, 1.0),
    "set_int": lambda message, name: message.set_int(name, 1),
    "set_long": lambda message, name: message.set_long(name, 1),
    "set_object": lambda message, name: message.set_object(name, 1),
    "set_short": lambda message, name: message.set_short(name, 1),
    "set_string": lambda message, name: message.set_string(name, "a"),
}
SETTER_ROWS = [
    pytest.param(name, marks=requirement("B.5.24-1")) if name == "set_bytes" else name
    for name in sorted({name for name in dir(MapMessage) if name.startswith("set_") and not name.endswith("_property")})
]


@requirement("B.4.5.2-1")
@pytest.mark.parametrize("setter", SETTER_ROWS)
@pytest.mark.parametrize("name", [None, ""], ids=["None", "empty"])
def test_every_setter_of_a_map_refuses_a_missing_name(session: Session, setter: str, name: str | None) -> None:
    message = session.create_map_message()
    with pytest.raises(IllegalArgumentException) as caught:
        MAP_SETTERS[setter](message, name)
    assert isinstance(caught.value, ValueError)
    assert list(message.map_names) == []


BODIES: dict[str, tuple[type, object]] = {
    "text": (str, "body"),
    "bytes": (bytes, b"body"),
    "map": (dict, {"key": "body"}),
    "object": (list, ["body"]),
}


@requirement("B.5.14-1")
@pytest.mark.parametrize("kind", BODIES)
def test_a_body_is_got_without_knowing_the_kind_of_message(session: Session, kind: str) -> None:
    body_type, body = BODIES[kind]
    message: Message = filled(session, kind)
    assert message.get_body(body_type) == body
    assert message.get_body(object) == body


@requirement("B.5.14-2")
@each_kind
def test_a_body_is_assignable_exactly_to_the_types_that_it_is_got_as(session: Session, kind: str) -> None:
    answers: set[bool] = set()
    for message in (filled(session, kind), new(session, kind)):
        for body_type in TYPES:
            expected = message.is_body_assignable_to(body_type)
            answers.add(expected)
            if expected:
                message.get_body(body_type)
            else:
                with pytest.raises(MessageFormatException):
                    message.get_body(body_type)
    assert answers == {"plain": {True}, "stream": {False}}.get(kind, {True, False})


@requirement("B.5.14-3")
@pytest.mark.parametrize("kind", ["plain", "text", "object"])
@pytest.mark.parametrize("body_type", TYPES)
def test_a_message_without_a_body_gives_null_as_any_type(session: Session, kind: str, body_type: type) -> None:
    message = new(session, kind)
    assert message.is_body_assignable_to(body_type) is True
    assert message.get_body(body_type) is None


@requirement("B.5.16-1")
@pytest.mark.parametrize("through", ["a session of its connection", "a session of another connection"])
def test_a_message_is_sent_through_any_session(
    connect: Connect, session: Session, other_session: Session, queue: Queue, through: str
) -> None:
    connection = connect()
    creator = connection.create_session()
    message = creator.create_text_message("text")
    message.set_int_property("p", 1)
    creator.close()
    sender = connection.create_session() if through == "a session of its connection" else other_session
    received = passed(message, sender, queue, session)
    assert (text_of(received), received.get_int_property("p")) == ("text", 1)
