"""3.11.4 Messages for non-JMS clients: between JMS clients every message keeps its form."""

import math
from typing import Any, cast

import pytest

from jmsapi import (
    Byte,
    BytesMessage,
    Char,
    Float,
    Long,
    MapMessage,
    Message,
    Queue,
    Session,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.kit import receive
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.native import send_native
from jmsapi_conformance.suite._kinds import INTERFACES, body_of, each_kind_sent, filled, new, passed

VALUES: list[object] = [
    *(True, False, Byte(-128), Short(32767), Char("ä"), -(2**31), 2**31 - 1, Long(5), 2**63 - 1, -(2**63)),
    *(Float(0.1), Float(math.inf), 0.1, 1e308, -0.0, "", "grüß €\U0001f600\0", "7", b"", b"\x00\xff", None),
]


@requirement("3.11.4-1")
@pytest.mark.parametrize(
    "kind", [pytest.param("map", marks=needs("map_message")), pytest.param("stream", marks=needs("stream_message"))]
)
def test_values_arrive_equal_and_of_the_same_type(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    message = new(session, kind)
    for number, value in enumerate(VALUES):
        if isinstance(message, MapMessage):
            message.set_object(f"name {number} ü", value)
        elif isinstance(message, StreamMessage):
            message.write_object(value)
    received = passed(message, session, queue, other_session)
    assert isinstance(received, INTERFACES[kind])
    expected = [kept(value) for value in VALUES]
    body: Any = body_of(received)
    names = [f"name {number} ü" for number in range(len(VALUES))]
    assert kind == "stream" or set(body) == set(names)
    got = cast(list[object], [body[name] for name in names] if kind == "map" else body)
    assert [type(value) for value in got] == [type(value) for value in expected]
    assert repr(got) == repr(expected)


def kept(value: object) -> object:
    """Return a value in the class by which its type is told."""
    return Long(value) if type(value) is int and abs(value) >= 2**31 and value != -(2**31) else value


@requirement("3.11.4-2")
@each_kind_sent
@pytest.mark.parametrize("content", ["empty", "filled"])
@pytest.mark.parametrize("where", ["queue", "topic"])
def test_a_message_keeps_its_kind(
    session: Session, other_session: Session, queue: Queue, topic: Topic, kind: str, content: str, where: str
) -> None:
    message = filled(session, kind) if content == "filled" else new(session, kind)
    received = passed(message, session, queue if where == "queue" else topic, other_session)
    assert kind_of(received) == kind
    assert body_of(received) == body_of(message)


def kind_of(message: Message) -> str:
    """Return the one kind that a message is; the plain one is no other."""
    found = [kind for kind, interface in INTERFACES.items() if kind != "plain" and isinstance(message, interface)]
    return found[0] if len(found) == 1 else "plain" if not found else "several"


FORMS: dict[str, tuple[Any, str | None, type[Any], object]] = {
    "text": ("grüß", "text/plain", TextMessage, "grüß"),
    "bytes": (b"\x00\xffbytes", "application/octet-stream", BytesMessage, b"\x00\xffbytes"),
    "map": ({"key": "value"}, None, MapMessage, {"key": "value"}),
    "list": (["one", "two"], None, StreamMessage, ["one", "two"]),
}


@requirement("3.11.4-3")
@needs("native_client")
def test_a_message_of_another_client_becomes_the_kind_that_suits_it(backend: Backend, session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    forms = list(FORMS) if backend.url.startswith("amqp") else ["text", "bytes"]
    for form in forms:
        body, content_type, interface, content = FORMS[form]
        send_native(backend.url, backend.capabilities.broker, queue.queue_name, body, content_type)
        received = receive(consumer)
        assert isinstance(received, interface)
        assert body_of(received) == content


@requirement("3.11.4-4")
@needs("native_client")
def test_an_opaque_message_of_another_client_becomes_bytes(backend: Backend, session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    opaque = b"\xf0\x01\x00\xff opaque"
    send_native(backend.url, backend.capabilities.broker, queue.queue_name, opaque, "application/x-unknown")
    received = receive(consumer)
    assert isinstance(received, BytesMessage)
    assert received.get_body(bytes) == opaque
