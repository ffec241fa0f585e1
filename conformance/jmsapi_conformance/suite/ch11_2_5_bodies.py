"""11.2.5 Receiving message bodies with a JMSConsumer."""

from collections.abc import Callable, Mapping

import pytest

from jmsapi import JMSConsumer, JMSContext, MessageFormatRuntimeException, Queue, Session
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    eventually,
    expect_nothing,
    finish,
    must_wait,
    receive,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

MANUAL = [JMSContext.CLIENT_ACKNOWLEDGE, pytest.param(JMSContext.SESSION_TRANSACTED, marks=needs("transactions"))]
AUTOMATIC = [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE]


@requirement("11.2.5.1-11")
def test_receive_body_waits_for_a_message_and_returns_its_body(context: JMSContext, queue: Queue, other_session: Session) -> None:
    waiting = must_wait(lambda: context.create_consumer(queue).receive_body(str))
    send_texts(other_session, queue, "text")
    assert finish(waiting) == "text"


@requirement("11.2.5.1-12")
def test_receive_body_with_a_timeout_gives_up_after_it(context: JMSContext, queue: Queue, other_session: Session) -> None:
    consumer = context.create_consumer(queue)
    waiting = must_wait(lambda: consumer.receive_body(str, 3 * QUIET_MS))
    assert finish(waiting) is None
    send_texts(other_session, queue, "text")
    assert consumer.receive_body(str, PATIENCE_MS) == "text"


@requirement("11.2.5.1-13")
def test_receive_body_no_wait_returns_the_body_of_what_is_there(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    consumer = context.create_consumer(queue)
    assert consumer.receive_body_no_wait(str) is None
    send_texts(other_session, queue, "text")
    found: list[str | None] = []

    def came() -> bool:
        found.append(consumer.receive_body_no_wait(str))
        return found[-1] is not None

    eventually(came, "a message that was sent is there")
    assert found[-1] == "text"
    assert consumer.receive_body_no_wait(str) is None


@requirement("11.2.5.1-14")
@pytest.mark.parametrize(
    "kind", [pytest.param("stream", marks=needs("stream_message")), pytest.param("plain", marks=needs("plain_message"))]
)
def test_streams_and_plain_messages_have_no_body_to_receive(
    context: JMSContext, queue: Queue, other_session: Session, kind: str
) -> None:
    message = other_session.create_message()
    if kind == "stream":
        message = other_session.create_stream_message()
        message.write_string("text")
    other_session.create_producer(queue).send(message)
    consumer = context.create_consumer(queue)
    for body_type in (object, str, list):
        with pytest.raises(MessageFormatRuntimeException):
            consumer.receive_body(body_type, PATIENCE_MS)
    assert receive(consumer).jms_message_id == message.jms_message_id


@requirement("11.2.5.1-14", "11.2.5-1")
@pytest.mark.parametrize(
    "body",
    [
        "text",
        b"bytes",
        pytest.param({"name": 1}, marks=needs("map_message")),
        pytest.param(["object"], marks=needs("object_message")),
    ],
    ids=["text", "bytes", "map", "object"],
)
def test_the_bodies_of_the_other_kinds_are_received(context: JMSContext, queue: Queue, body: object) -> None:
    producer, consumer = context.create_producer(), context.create_consumer(queue)
    producer.send(queue, body).send(queue, body)
    assert consumer.receive_body(type(body), PATIENCE_MS) == body
    assert consumer.receive_body(object, PATIENCE_MS) == body


@requirement("11.2.5.1-15", "11.2.5.1-17")
def test_a_text_is_received_as_text_or_as_an_object_and_as_nothing_else(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2")
    consumer = context.create_consumer(queue)
    for wrong in (bytes, dict, int, list):
        with pytest.raises(MessageFormatRuntimeException):
            consumer.receive_body(wrong, PATIENCE_MS)
    assert consumer.receive_body(str, PATIENCE_MS) == "1"
    assert consumer.receive_body(object, PATIENCE_MS) == "2"


@requirement("11.2.5.1-16")
@pytest.mark.parametrize("kind", ["text", pytest.param("object", marks=needs("object_message"))])
def test_a_message_without_a_body_is_refused(context: JMSContext, queue: Queue, other_session: Session, kind: str) -> None:
    empty = other_session.create_text_message() if kind == "text" else other_session.create_object_message()
    other_session.create_producer(queue).send(empty)
    consumer = context.create_consumer(queue)
    for body_type in (str, object):
        with pytest.raises(MessageFormatRuntimeException):
            consumer.receive_body(body_type, PATIENCE_MS)
    message = receive(consumer)
    assert message.jms_message_id == empty.jms_message_id
    assert message.get_body(str) is None


@requirement("11.2.5.1-18")
@needs("object_message")
def test_an_object_is_received_as_its_class_or_a_base_of_it(context: JMSContext, queue: Queue) -> None:
    # True is a value that every codec takes and whose class has a base of its own.
    producer, consumer = context.create_producer(), context.create_consumer(queue)
    for body_type in (bool, int, object):
        producer.send(queue, True)
        assert consumer.receive_body(body_type, PATIENCE_MS) is True
    producer.send(queue, True)
    with pytest.raises(MessageFormatRuntimeException):
        consumer.receive_body(str, PATIENCE_MS)
    assert consumer.receive_body(bool, PATIENCE_MS) is True


@requirement("11.2.5.1-19")
@needs("map_message")
def test_a_map_is_received_as_a_mapping_or_an_object(context: JMSContext, queue: Queue) -> None:
    entries = {"a": 1, "b": "x"}
    producer, consumer = context.create_producer(), context.create_consumer(queue)
    producer.send(queue, entries).send(queue, entries).send(queue, entries)
    with pytest.raises(MessageFormatRuntimeException):
        consumer.receive_body(list, PATIENCE_MS)
    assert consumer.receive_body(dict, PATIENCE_MS) == entries
    mapping: type[Mapping[str, object]] = Mapping  # type: ignore[type-abstract]
    assert consumer.receive_body(mapping, PATIENCE_MS) == entries
    assert consumer.receive_body(object, PATIENCE_MS) == entries


@requirement("11.2.5.1-20")
def test_bytes_are_received_as_bytes_or_an_object(context: JMSContext, queue: Queue) -> None:
    producer, consumer = context.create_producer(), context.create_consumer(queue)
    producer.send(queue, b"1").send(queue, b"2")
    for wrong in (str, dict, list):
        with pytest.raises(MessageFormatRuntimeException):
            consumer.receive_body(wrong, PATIENCE_MS)
    assert consumer.receive_body(bytes, PATIENCE_MS) == b"1"
    assert consumer.receive_body(object, PATIENCE_MS) == b"2"


FAILING: dict[str, Callable[[JMSConsumer], object]] = {
    "receive_body": lambda consumer: consumer.receive_body(bytes),
    "receive_body with a timeout": lambda consumer: consumer.receive_body(bytes, PATIENCE_MS),
    "receive_body_no_wait": lambda consumer: consumer.receive_body_no_wait(bytes),
}


@requirement("11.2.5.1-21")
@pytest.mark.parametrize("mode", AUTOMATIC)
@pytest.mark.parametrize("call", FAILING.values(), ids=FAILING)
def test_after_a_failed_call_an_automatic_mode_delivers_the_message_again_before_any_other(
    connect: Connect, queue: Queue, other_session: Session, mode: int, call: Callable[[JMSConsumer], object]
) -> None:
    send_texts(other_session, queue, "1", "2")
    consumer = connect.context(session_mode=mode).create_consumer(queue)
    fail(consumer, call)
    fail(consumer, call)
    assert consumer.receive_body(str, PATIENCE_MS) == "1"
    assert consumer.receive_body(str, PATIENCE_MS) == "2"
    expect_nothing(consumer, other_session, queue)


@requirement("11.2.5.1-22")
@pytest.mark.parametrize("mode", AUTOMATIC)
def test_in_an_automatic_mode_a_failed_call_does_not_count_as_a_delivery(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    send_texts(other_session, queue, "text")
    consumer = connect.context(session_mode=mode).create_consumer(queue)
    for _ in range(3):
        with pytest.raises(MessageFormatRuntimeException):
            consumer.receive_body(bytes, PATIENCE_MS)
    message = receive(consumer)
    assert text_of(message) == "text"
    assert message.jms_redelivered is False
    assert message.get_int_property("JMSXDeliveryCount") == 1


@requirement("11.2.5.1-23", "11.2.5.1-25")
@pytest.mark.parametrize("mode", MANUAL)
@pytest.mark.parametrize("call", FAILING.values(), ids=FAILING)
def test_after_a_failed_call_the_other_modes_go_on_with_the_next_message(
    connect: Connect, queue: Queue, other_session: Session, mode: int, call: Callable[[JMSConsumer], object]
) -> None:
    send_texts(other_session, queue, "1", "2")
    consumer = connect.context(session_mode=mode).create_consumer(queue)
    fail(consumer, call)
    assert consumer.receive_body(str, PATIENCE_MS) == "2"
    expect_nothing(consumer, other_session, queue)


@requirement("11.2.5.1-24")
def test_recover_delivers_again_what_a_failed_call_has_left_unacknowledged(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2")
    context = connect.context(session_mode=JMSContext.CLIENT_ACKNOWLEDGE)
    consumer = context.create_consumer(queue)
    with pytest.raises(MessageFormatRuntimeException):
        consumer.receive_body(bytes, PATIENCE_MS)
    context.recover()
    message = receive(consumer)
    assert text_of(message) == "1"
    assert message.jms_redelivered is True
    assert message.get_int_property("JMSXDeliveryCount") == 2
    assert receive_text(consumer) == "2"


@requirement("11.2.5.1-24")
def test_acknowledge_covers_what_a_failed_call_has_left_unacknowledged(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2")
    context = connect.context(session_mode=JMSContext.CLIENT_ACKNOWLEDGE)
    consumer = context.create_consumer(queue)
    with pytest.raises(MessageFormatRuntimeException):
        consumer.receive_body(bytes, PATIENCE_MS)
    assert consumer.receive_body(str, PATIENCE_MS) == "2"
    context.acknowledge()
    context.recover()
    expect_nothing(consumer, other_session, queue)
    # The marker, too, waits for that.
    context.acknowledge()
    context.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("11.2.5.1-26")
@needs("transactions")
def test_rollback_delivers_again_what_a_failed_call_has_consumed(connect: Connect, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "1", "2")
    context = connect.context(session_mode=JMSContext.SESSION_TRANSACTED)
    consumer = context.create_consumer(queue)
    with pytest.raises(MessageFormatRuntimeException):
        consumer.receive_body(bytes, PATIENCE_MS)
    context.rollback()
    message = receive(consumer)
    assert text_of(message) == "1"
    assert message.jms_redelivered is True
    assert message.get_int_property("JMSXDeliveryCount") == 2
    assert receive_text(consumer) == "2"
    context.commit()
    expect_nothing(consumer, other_session, queue)


def fail(consumer: JMSConsumer, call: Callable[[JMSConsumer], object]) -> None:
    """Ask for the next body as a type that it is not of; it may still be on its way for a call that does not wait."""

    def failed() -> bool:
        try:
            assert call(consumer) is None
        except MessageFormatRuntimeException:
            return True
        return False

    eventually(failed, "the body is refused")
