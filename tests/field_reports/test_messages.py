"""What went wrong with messages in other people's clients (B05, B06, B07, B12, B19), tried with ours on every backend.

Where a report takes ``amqp_backend`` the same is tested over STOMP in ``tests/providers/stomp``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

import jmsapi
from jmsapi import BytesMessage, MapMessage, Message, ObjectMessage, Session, StreamMessage, TextMessage
from jmsapi_conformance.brokers import Broker

Backend = Any
WAIT_MS = 30_000


def received(consumer: jmsapi.MessageConsumer) -> Message:
    message = consumer.receive(WAIT_MS)
    assert message is not None, "nothing came"
    return message


def of_bytes(session: Session, data: bytes) -> BytesMessage:
    message = session.create_bytes_message()
    message.write_bytes(data)
    return message


def test_b05_a_body_that_is_no_text_does_not_stop_what_comes_after(amqp_backend: Backend) -> None:
    data = b"\xf0\x01\x41\x63\xff\x00\x1f\x8b"
    with amqp_backend.connect().create_session() as session:
        queue = session.create_queue(amqp_backend.label)
        consumer, producer = session.create_consumer(queue), session.create_producer(queue)
        producer.send(of_bytes(session, data))
        producer.send(session.create_text_message("after"))
        first = received(consumer)
        assert isinstance(first, BytesMessage)
        assert (first.body_length, first.get_body(bytes)) == (8, data)
        second = received(consumer)
        assert isinstance(second, TextMessage)
        assert second.text == "after"


@pytest.mark.parametrize(("sending", "receiving"), [("stomp", "stomp"), ("amqp", "amqp"), ("stomp", "amqp"), ("amqp", "stomp")])
def test_b06_text_stays_text_and_bytes_stay_bytes(
    each_broker: Broker, sending: Any, receiving: Any, leave_out: Callable[[str], NoReturn]
) -> None:
    if not {sending, receiving} <= set(each_broker.wires):
        leave_out(f"{each_broker.kind} was given without {sending} or {receiving}")
    bodies: list[str | bytes] = ["grüß €", "", "a\0b", b"", b"text"]
    source = jmsapi.connection_factory(each_broker.url(sending)).create_context()
    sink = jmsapi.connection_factory(each_broker.url(receiving)).create_context()
    with source, sink:
        queue = f"field.b06.{sending}.{receiving}.{id(source)}"
        consumer = sink.create_consumer(sink.create_queue(queue))
        if (each_broker.kind, sending, receiving) == ("classic", "amqp", "stomp"):
            # Classic 6.3.1 cannot settle them there; what cannot be kept is not taken.
            source.create_producer().send(source.create_queue(queue), bodies[0])
            with pytest.raises(jmsapi.UnsupportedFeatureRuntimeException, match="consume it over AMQP"):
                consumer.receive(WAIT_MS)
            return
        for body in bodies:
            source.create_producer().send(source.create_queue(queue), body)
        found: list[tuple[bool, str | bytes]] = []
        for _ in bodies:
            message = consumer.receive(WAIT_MS)
            assert message is not None, found
            if isinstance(message, TextMessage):
                found.append((True, message.text or ""))
            else:
                data = cast(BytesMessage, message)
                found.append((False, data.get_body(bytes) or b"" if data.body_length else b""))
        assert found == [(isinstance(body, str), body) for body in bodies]


def test_b07_special_characters_in_headers_and_properties_arrive(amqp_backend: Backend) -> None:
    texts = ["a:b", "c\\d", "e\nf", "g\rh", " lead and trail ", "", "ü"]
    with amqp_backend.connect().create_session() as session:
        queue = session.create_queue(amqp_backend.label)
        consumer = session.create_consumer(queue)
        message = session.create_text_message("x")
        for number, text in enumerate(texts):
            message.set_string_property(f"p{number}", text)
        message.jms_correlation_id = message.jms_type = "x:y\\z"
        session.create_producer(queue).send(message)
        found = received(consumer)
        assert [found.get_string_property(f"p{number}") for number in range(len(texts))] == texts
        assert (found.jms_correlation_id, found.jms_type) == ("x:y\\z", "x:y\\z")


def test_b12_a_read_that_fails_leaves_the_position_where_it_was(backend: Backend) -> None:
    with backend.connect().create_session() as session:
        queue = session.create_queue(backend.label)
        consumer, producer = session.create_consumer(queue), session.create_producer(queue)
        producer.send(of_bytes(session, b"\x00\x02\xff\xff"))
        stream = session.create_stream_message()
        stream.write_string("abc")
        producer.send(stream)
        entries = session.create_map_message()
        entries.set_string("text", "abc")
        producer.send(entries)

        read = received(consumer)
        assert isinstance(read, BytesMessage)
        with pytest.raises(jmsapi.MessageFormatException):
            read.read_utf()
        assert read.read_byte() == 0
        items = received(consumer)
        assert isinstance(items, StreamMessage)
        with pytest.raises(jmsapi.NumberFormatException):
            items.read_int()
        assert items.read_string() == "abc"
        mapped = received(consumer)
        assert isinstance(mapped, MapMessage)
        with pytest.raises(jmsapi.NumberFormatException):
            mapped.get_int("text")
        assert mapped.get_string("text") == "abc"


class Touches:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


JAVA_TEXT = b"\xac\xed\x00\x05t\x00\x04java"


@pytest.mark.parametrize("content_type", ["application/vnd.jmsapi.object+pickle", "application/x-java-serialized-object"])
def test_b19_a_foreign_object_is_never_made(backend: Backend, tmp_path: Path, content_type: str) -> None:
    touched = tmp_path / "touched"
    payload = JAVA_TEXT if "java" in content_type else pickle.dumps(Touches(touched))
    if "pickle" in content_type:
        pickle.loads(payload)  # the payload does what it is for
        touched.unlink()
    with backend.connect().create_session(Session.CLIENT_ACKNOWLEDGE) as session:
        queue = session.create_queue(backend.label)
        consumer, producer = session.create_consumer(queue), session.create_producer(queue)
        hostile: Any = session.create_object_message()
        # No sender of ours makes such a body; another program's does.
        hostile._data, hostile._content_type = payload, content_type
        producer.send(hostile)
        producer.send(session.create_text_message("next"))
        message = received(consumer)
        assert isinstance(message, ObjectMessage)
        with pytest.raises(jmsapi.JMSException):
            _ = message.object
        with pytest.raises(jmsapi.JMSException):
            message.get_body(object)
        assert not touched.exists()
        assert message.get_body(bytes) == payload
        after = received(consumer)
        assert after.get_body(str) == "next"
        after.acknowledge()
