"""11.2.4 Sending messages and bodies with a JMSProducer."""

from collections import OrderedDict
from collections.abc import Callable
from types import MappingProxyType

import pytest

from jmsapi import (
    BytesMessage,
    IllegalStateRuntimeException,
    JMSContext,
    JMSProducer,
    Long,
    MapMessage,
    Message,
    MessageFormatRuntimeException,
    ObjectMessage,
    Queue,
    Session,
    TextMessage,
    Topic,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import receive, receive_text, receive_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("11.2.4-1")
def test_a_message_is_sent_with_all_that_the_producer_holds(
    context: JMSContext, session: Session, queue: Queue, topic: Topic
) -> None:
    for destination in (queue, topic):
        with session.create_consumer(destination) as consumer:
            message = context.create_text_message("text")
            message.set_string_property("own", "kept")
            producer = context.create_producer().set_priority(7).set_property("p", "held").set_jms_type("t")
            producer.send(destination, message)
            received = receive(consumer)
        assert text_of(received) == "text"
        assert (received.jms_priority, received.jms_type) == (7, "t")
        assert (received.get_string_property("p"), received.get_string_property("own")) == ("held", "kept")
        assert received.jms_destination == destination


@requirement("11.2.4-2")
def test_a_producer_has_no_destination_and_each_send_names_one(context: JMSContext, queue: Queue) -> None:
    producer = context.create_producer()
    assert not hasattr(producer, "destination")
    with pytest.raises(TypeError):
        producer.send(context.create_message())  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(TypeError):
        context.create_producer(queue)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@requirement("11.2.4-2", "11.2.4-3")
def test_one_producer_sends_to_destinations_made_from_names(context: JMSContext, session: Session, names: Names) -> None:
    name, other, topic_name = names.queue(), names.queue(), names.topic()
    producer = context.create_producer()
    queue, topic = context.create_queue(name), context.create_topic(topic_name)
    assert (queue.queue_name, topic.topic_name) == (name, topic_name)
    subscriber = session.create_consumer(topic)
    producer.send(queue, "to the queue").send(context.create_queue(other), "to the other").send(topic, "to the topic")
    assert receive_text(session.create_consumer(session.create_queue(name))) == "to the queue"
    assert receive_text(session.create_consumer(session.create_queue(other))) == "to the other"
    assert receive_text(subscriber) == "to the topic"


@requirement("11.2.4-4")
@pytest.mark.parametrize("text", ["text", "", "é✓😀", "a\nb\0"], ids=["text", "empty", "unicode", "control"])
def test_a_string_goes_as_a_text_message(context: JMSContext, session: Session, queue: Queue, text: str) -> None:
    context.create_producer().send(queue, text)
    received = receive(session.create_consumer(queue))
    assert isinstance(received, TextMessage)
    assert received.text == text


MAPPINGS = {
    "dict": {"a": 1, "b": "x", "c": 2.5, "d": True, "e": None, "f": b"\0\1", "g": Long(2**40)},
    "ordered": OrderedDict([("b", 1), ("a", 2)]),
    "read-only": MappingProxyType({"a": 1}),
    "empty": {},
}


@requirement("11.2.4-5")
@needs("map_message")
@pytest.mark.parametrize("mapping", MAPPINGS.values(), ids=MAPPINGS)
def test_a_mapping_goes_as_a_map_message(context: JMSContext, session: Session, queue: Queue, mapping: dict[str, object]) -> None:
    context.create_producer().send(queue, mapping)
    received = receive(session.create_consumer(queue))
    assert isinstance(received, MapMessage)
    found = {name: received.get_object(name) for name in received.map_names}
    assert found == dict(mapping)
    assert [type(found[name]) for name in mapping] == [type(value) for value in mapping.values()]


@requirement("11.2.4-6")
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_go_as_a_bytes_message(
    context: JMSContext, session: Session, queue: Queue, kind: Callable[[bytes], bytes | bytearray | memoryview]
) -> None:
    context.create_producer().send(queue, kind(b"a\0b\xff"))
    received = receive(session.create_consumer(queue))
    assert isinstance(received, BytesMessage)
    assert received.get_body(bytes) == b"a\0b\xff"


@requirement("11.2.4-7")
@needs("object_message")
@pytest.mark.parametrize("value", [["a", {"b": 1}], 7, 2.5, True, ("a", 1)], ids=repr)
def test_any_other_object_goes_as_an_object_message(context: JMSContext, session: Session, queue: Queue, value: object) -> None:
    context.create_producer().send(queue, value)
    received = receive(session.create_consumer(queue))
    assert isinstance(received, ObjectMessage)
    assert received.object == value
    assert type(received.object) is type(value)


@requirement("11.2.4-7")
@needs("object_message")
def test_an_object_that_nobody_can_serialise_is_refused(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    with pytest.raises(MessageFormatRuntimeException):
        producer.send(queue, object())
    producer.send(queue, ["next"])
    message = receive(session.create_consumer(queue))
    assert isinstance(message, ObjectMessage)
    assert message.object == ["next"]


EMPTY: dict[str, tuple[type, type[Message]]] = {
    "text": (str, TextMessage),
    "bytes": (bytes, BytesMessage),
    "map": (dict, MapMessage),
    "object": (object, ObjectMessage),
}


@requirement("11.2.4-8")
@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "bytes",
        pytest.param("map", marks=needs("map_message")),
        pytest.param("object", marks=needs("object_message")),
    ],
)
def test_a_missing_body_goes_as_a_message_of_its_kind(context: JMSContext, session: Session, queue: Queue, kind: str) -> None:
    body_type, interface = EMPTY[kind]
    context.create_producer().send(queue, None, body_type=body_type)
    received = receive(session.create_consumer(queue))
    assert isinstance(received, interface)
    if isinstance(received, TextMessage):
        assert received.text is None
    elif isinstance(received, BytesMessage):
        assert received.body_length == 0
    elif isinstance(received, MapMessage):
        assert list(received.map_names) == []
    else:
        assert isinstance(received, ObjectMessage)
        assert received.object is None


@requirement("11.2.4-8")
def test_a_missing_body_of_no_kind_is_refused(context: JMSContext, queue: Queue) -> None:
    with pytest.raises(MessageFormatRuntimeException):
        context.create_producer().send(queue, None)
    with pytest.raises(MessageFormatRuntimeException):
        context.create_producer().send(queue, None, body_type=int)


@requirement("11.2.4-22")
def test_send_returns_the_producer(context: JMSContext, session: Session, queue: Queue) -> None:
    producer = context.create_producer()
    assert producer.send(queue, "a").send(queue, "b") is producer
    assert producer.send(queue, context.create_text_message("c")) is producer
    assert receive_texts(session.create_consumer(queue), 3) == ["a", "b", "c"]


@requirement("11.2.4-23")
def test_a_producer_is_light_and_needs_no_closing(interceptor: Interceptor, queue: Queue) -> None:
    assert not hasattr(JMSProducer, "close")
    context = interceptor.context()
    context.create_producer().send(queue, "text")
    before = list(interceptor.calls)
    made = [context.create_producer() for _ in range(10_000)]
    assert interceptor.calls == before
    assert all(isinstance(producer, JMSProducer) for producer in made)


@requirement("11.2.4-27")
def test_a_producer_of_a_closed_context_raises_unchecked_exceptions(context: JMSContext, queue: Queue) -> None:
    fresh, used = context.create_producer(), context.create_producer()
    message = context.create_text_message("text")
    used.send(queue, "text")
    context.close()
    for producer in (fresh, used):
        with pytest.raises(IllegalStateRuntimeException):
            producer.send(queue, "text")
        with pytest.raises(IllegalStateRuntimeException):
            producer.send(queue, message)
