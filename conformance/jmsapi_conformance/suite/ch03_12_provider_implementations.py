"""3.12 Provider implementations of JMS message interfaces."""

from typing import Any, cast

import pytest

from jmsapi import (
    Byte,
    Char,
    Float,
    Long,
    MapMessage,
    Message,
    NullPointerException,
    ObjectMessage,
    Queue,
    Session,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import receive
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._foreign import foreign_message
from jmsapi_conformance.suite._kinds import INTERFACES, body_of, each_kind, each_kind_sent, fill, filled, new, passed

PROPERTIES: dict[str, object] = {
    "flag": True,
    "byte": Byte(1),
    "short": Short(2),
    "int": 3,
    "long": Long(4),
    "float": Float(1.5),
    "double": 2.5,
    "text": "grün",
    "nothing": None,
    "JMSXGroupID": "group",
}
ENTRIES: dict[str, object] = {"text": "x", "char": Char("c"), "bytes": b"\x00\xff", "null": None, "long": Long(4)}
BODIES: dict[str, Any] = {
    "plain": None,
    "text": "grüß €",
    "bytes": bytes(range(256)),
    "map": ENTRIES,
    "stream": list(ENTRIES.values()),
    "object": {"list": [1, (2, 3)]},
}


@requirement("3.12-1")
@each_kind_sent
def test_a_message_that_somebody_else_implements_is_sent(
    session: Session, other_session: Session, queue: Queue, names: Names, kind: str
) -> None:
    answers = session.create_queue(names.queue())
    message = foreign_message(kind, BODIES[kind], PROPERTIES, reply_to=answers)
    received = passed(message, session, queue, other_session)
    assert isinstance(received, INTERFACES[kind])
    assert body_of(received) == BODIES[kind]
    got = {name: received.get_object_property(name) for name in received.property_names if name in PROPERTIES}
    assert got == PROPERTIES
    assert {name: type(value) for name, value in got.items()} == {name: type(value) for name, value in PROPERTIES.items()}
    assert (received.jms_type, received.jms_correlation_id) == ("their type", "their correlation")
    assert received.jms_reply_to == answers


@requirement("3.12-2")
@each_kind
def test_a_session_makes_messages_of_its_provider(session: Session, kind: str) -> None:
    message = new(session, kind)
    assert isinstance(message, INTERFACES[kind])
    fill(message)
    message.set_int_property("number", 1)
    assert body_of(message) == body_of(filled(session, kind))


@requirement("3.12-3", "B.2.21-9")
def test_what_is_written_is_copied(session: Session) -> None:
    data, value = bytearray(b"data"), {"list": [1]}
    map_, stream, bytes_ = session.create_map_message(), session.create_stream_message(), session.create_bytes_message()
    object_, created = session.create_object_message(), session.create_object_message(value)
    map_.set_bytes("it", data)
    map_.set_object("object", data)
    stream.write_bytes(data)
    stream.write_object(data)
    bytes_.write_bytes(data)
    object_.object = value
    object_.jms_correlation_id_as_bytes = cast(bytes, data)
    data[:] = b"...."
    value["list"].append(2)
    assert map_.get_body(dict) == {"it": b"data", "object": b"data"}
    assert body_of(stream) == [b"data", b"data"]
    assert bytes_.get_body(bytes) == b"data"
    assert object_.object == created.object == {"list": [1]}
    assert object_.jms_correlation_id_as_bytes == b"data"


def put_null(session: Session, kind: str) -> Message:
    """Create a message that holds null wherever 3.12-4 says that an object may be null."""
    message = new(session, kind)
    if isinstance(message, TextMessage):
        message.text = "old"
        message.text = None
    elif isinstance(message, ObjectMessage):
        message.object = 1
        message.object = None
    elif isinstance(message, MapMessage):
        message.set_string("s", None)
        message.set_bytes("b", None)
        message.set_object("o", None)
    elif isinstance(message, StreamMessage):
        message.write_string(None)
        message.write_object(None)
    message.set_string_property("s", None)
    message.set_object_property("o", None)
    return message


NULL_BODIES: dict[str, object] = {
    "text": None,
    "object": None,
    "map": {"s": None, "b": None, "o": None},
    "stream": [None, None],
}


@requirement("3.12-4")
@pytest.mark.parametrize(
    "kind",
    [
        "text",
        pytest.param("object", marks=needs("object_message")),
        pytest.param("map", marks=needs("map_message")),
        pytest.param("stream", marks=needs("stream_message")),
    ],
)
def test_objects_may_be_null(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    message = put_null(session, kind)
    for one in (passed(message, session, queue, other_session), message):
        assert body_of(one) == NULL_BODIES[kind]
        assert one.property_exists("s")
        assert one.property_exists("o")
        assert one.get_string_property("s") is one.get_object_property("o") is None


@requirement("3.12-5")
def test_null_cannot_be_written_into_bytes(session: Session) -> None:
    nothing: Any = None
    message = session.create_bytes_message()
    message.write_byte(7)
    for write in (message.write_object, message.write_utf, message.write_bytes):
        with pytest.raises(NullPointerException):
            write(nothing)
    assert message.get_body(bytes) == b"\x07"


@requirement("3.12-6")
@needs("object_message")
def test_what_is_read_is_a_copy(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_object_message({"list": [1]})
    received = passed(message, session, queue, other_session)
    for one in (message, received):
        first = cast(dict[str, list[int]], one.get_body(dict))
        first["list"].append(2)
        assert one.get_body(dict) == {"list": [1]}


@requirement("3.12-6")
@needs("object_message", "map_message")
def test_receivers_share_no_objects(session: Session, other_session: Session, topic: Topic) -> None:
    first, second = session.create_consumer(topic), other_session.create_consumer(topic)
    map_ = session.create_map_message()
    map_.set_bytes("it", b"data")
    for message in (session.create_object_message({"list": [1]}), map_):
        session.create_producer(topic).send(message)
        mine, yours = receive(first), receive(second)
        cast(dict[str, object], mine.get_body(dict)).clear()
        assert yours.get_body(dict) == mine.get_body(dict) == message.get_body(dict) != {}
