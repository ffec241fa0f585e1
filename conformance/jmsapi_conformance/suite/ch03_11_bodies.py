"""3.11 JMS message body: what each kind holds, clearing (3.11.1), read-only bodies (3.11.2)."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from jmsapi import (
    BytesMessage,
    MapMessage,
    Message,
    MessageEOFException,
    MessageNotReadableException,
    MessageNotWriteableException,
    ObjectMessage,
    Queue,
    Session,
    StreamMessage,
    TextMessage,
)
from jmsapi_conformance.kit import own_names, receive
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import body_of, each_body, each_kind, fill, filled, passed

VALUES: dict[str, Any] = {
    "boolean": True,
    "byte": -128,
    "short": 32767,
    "char": "ä",
    "int": -(2**31),
    "long": 2**63 - 1,
    "float": 1.5,
    "double": 0.1,
    "string": "grüß €\U0001f600\0",
    "bytes": b"\x00\xff",
}
TEXTS = [None, "", "text", "a\0b", "\r\nline\n", "grüß €", "\U0001f600", "\ufffe", "x" * 2**20]
GRAPH = {"list": [1, 2.5, None, True], "tuple": (1, ("a", b"b")), "set": {1, 2}, 7: {"deep": [[["x"]]]}}
WRITES: dict[str, list[Callable[[Any], None]]] = {
    "text": [lambda it: setattr(it, "text", "new")],
    "object": [lambda it: setattr(it, "object", "new")],
    "map": [
        *(lambda it, kind=kind, value=value: getattr(it, f"set_{kind}")("new", value) for kind, value in VALUES.items()),
        lambda it: it.set_object("new", 1),
    ],
    "bytes": [
        *(
            lambda it, kind=kind, value=value: getattr(it, f"write_{kind}")(value)
            for kind, value in VALUES.items()
            if kind != "string"
        ),
        lambda it: it.write_utf("new"),
        lambda it: it.write_object(1),
    ],
    "stream": [
        *(lambda it, kind=kind, value=value: getattr(it, f"write_{kind}")(value) for kind, value in VALUES.items()),
        lambda it: it.write_object(1),
    ],
}


def check_stream(message: StreamMessage) -> None:
    """Read one value of each type, in order."""
    message.reset()
    for kind, value in VALUES.items():
        if kind == "bytes":
            buffer = bytearray(9)
            assert message.read_bytes(buffer) == len(value)
            assert buffer[: len(value)] == value
        else:
            assert getattr(message, f"read_{kind}")() == value
    with pytest.raises(MessageEOFException):
        message.read_object()


@requirement("3.11-1")
def test_a_stream_is_a_sequence_of_values(session: Session) -> None:
    message = session.create_stream_message()
    for kind, value in VALUES.items():
        getattr(message, f"write_{kind}")(value)
    check_stream(message)


@requirement("3.11-2")
def test_a_map_holds_values_by_name(session: Session) -> None:
    message = session.create_map_message()
    for kind, value in VALUES.items():
        getattr(message, f"set_{kind}")(f"a {kind}", value)
    assert {kind: getattr(message, f"get_{kind}")(f"a {kind}") for kind in VALUES} == VALUES
    assert message.item_exists("a long")
    assert not message.item_exists("along")
    message.set_string("a long", "another")
    assert message.get_string("a long") == "another"
    assert len(list(message.map_names)) == len(VALUES)


@requirement("3.11-3")
def test_the_entries_of_a_map_are_listed(session: Session) -> None:
    message = session.create_map_message()
    for name in "abcde":
        message.set_int(name, 1)
    assert set(message.map_names) == set("abcde")


@requirement("3.11-4")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:12])
def test_a_text_arrives_unchanged(session: Session, other_session: Session, queue: Queue, text: str | None) -> None:
    message = session.create_text_message(text)
    assert message.text == text
    received = passed(message, session, queue, other_session)
    assert isinstance(received, TextMessage)
    assert received.text == text


@requirement("3.11-5")
@needs("object_message")
@pytest.mark.parametrize("value", [GRAPH, None, 0, "", b"", []], ids=lambda value: repr(value)[:10])
def test_an_object_arrives_equal(session: Session, other_session: Session, queue: Queue, value: object) -> None:
    message = session.create_object_message(value)
    assert message.object == value
    received = passed(message, session, queue, other_session)
    assert isinstance(received, ObjectMessage)
    assert received.object == value


@requirement("3.11-6")
@pytest.mark.parametrize("data", [bytes(range(256)), b"", random.Random(7).randbytes(2**20)], ids=["all values", "none", "1 MiB"])
def test_bytes_arrive_as_they_are(session: Session, other_session: Session, queue: Queue, data: bytes) -> None:
    message = session.create_bytes_message()
    message.write_bytes(data)
    received = passed(message, session, queue, other_session)
    assert isinstance(received, BytesMessage)
    buffer = bytearray(len(data) + 1)
    assert received.body_length == len(data)
    assert received.read_bytes(buffer) == (len(data) or -1)
    assert buffer[: len(data)] == data
    # Whether no bytes are a body is not said.
    assert (received.get_body(bytes) or b"") == data


@requirement("3.11.1-1")
@each_kind
def test_a_cleared_body_is_like_new(session: Session, kind: str) -> None:
    message = filled(session, kind)
    if isinstance(message, StreamMessage | BytesMessage):
        message.reset()
    message.clear_body()
    check_new(message)
    fill(message, "again")
    assert body_of(message) == body_of(filled(session, kind, "again"))


def check_new(message: Message) -> None:
    """The body is what a create method gives."""
    if isinstance(message, TextMessage):
        assert message.text is None
    elif isinstance(message, ObjectMessage):
        assert message.object is None
    elif isinstance(message, MapMessage):
        assert list(message.map_names) == []
    elif isinstance(message, StreamMessage | BytesMessage):
        for read in (message.read_int, message.read_boolean):
            with pytest.raises(MessageNotReadableException):
                read()
        message.reset()
        with pytest.raises(MessageEOFException):
            message.read_int()
        message.clear_body()


@requirement("3.11.1-2", "B.2.7-1")
@each_kind
def test_clearing_the_body_leaves_the_properties(session: Session, kind: str) -> None:
    message = filled(session, kind)
    message.set_string_property("colour", "red")
    message.jms_type = "type"
    message.clear_body()
    assert own_names(message) == {"colour"}
    assert (message.get_string_property("colour"), message.jms_type) == ("red", "type")


@requirement("3.11.2-1", "B.2.16-1")
@each_body
def test_a_received_body_cannot_be_changed(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    received = passed(filled(session, kind), session, queue, other_session)
    for write in WRITES[kind]:
        with pytest.raises(MessageNotWriteableException):
            write(received)
    assert body_of(received) == body_of(filled(session, kind))


@requirement("3.11.2-2")
@each_body
def test_a_received_body_is_like_new_once_cleared(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    received = passed(filled(session, kind), session, queue, other_session)
    received.clear_body()
    check_new(received)
    for write in WRITES[kind]:
        write(received)
    received.clear_body()
    fill(received, "new")
    other_session.create_producer(queue).send(received)
    again = receive(session.create_consumer(queue))
    assert body_of(again) == body_of(filled(session, kind, "new"))
