"""11.2.5 Receiving messages with a JMSConsumer: which ones the contexts make, listeners, receive methods."""

from collections.abc import Callable
from inspect import signature

import pytest

from jmsapi import IllegalStateRuntimeException, JMSConsumer, JMSContext, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Recorder,
    eventually,
    expect_nothing,
    finish,
    must_wait,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

RECEIVES: dict[str, Callable[[JMSConsumer], object]] = {
    "receive": lambda consumer: text_of(consumer.receive()),
    "receive with a timeout": lambda consumer: text_of(consumer.receive(PATIENCE_MS)),
    "receive_no_wait": lambda consumer: (message := consumer.receive_no_wait()) and text_of(message),
    "receive_body": lambda consumer: consumer.receive_body(str),
    "receive_body with a timeout": lambda consumer: consumer.receive_body(str, PATIENCE_MS),
    "receive_body_no_wait": lambda consumer: consumer.receive_body_no_wait(str),
}


@requirement("11.2.5-1")
@pytest.mark.parametrize("call", RECEIVES.values(), ids=RECEIVES)
def test_a_consumer_has_six_methods_to_receive_by(
    context: JMSContext, queue: Queue, other_session: Session, call: Callable[[JMSConsumer], object]
) -> None:
    consumer = context.create_consumer(queue)
    send_texts(other_session, queue, "text")
    received: list[object] = []

    def came() -> bool:
        received.append(call(consumer))
        return received[-1] is not None

    eventually(came, "the message is there")
    assert received[-1] == "text"


@requirement("11.2.5-2")
@pytest.mark.parametrize("call", RECEIVES.values(), ids=RECEIVES)
@pytest.mark.parametrize("closed", ["consumer", "context"])
def test_the_methods_of_a_closed_consumer_raise_unchecked_exceptions(
    context: JMSContext, queue: Queue, closed: str, call: Callable[[JMSConsumer], object]
) -> None:
    consumer = context.create_consumer(queue)
    (consumer if closed == "consumer" else context).close()
    with pytest.raises(IllegalStateRuntimeException):
        call(consumer)
    with pytest.raises(IllegalStateRuntimeException):
        _ = consumer.message_selector
    with pytest.raises(IllegalStateRuntimeException):
        consumer.message_listener = Recorder()
    consumer.close()


@requirement("11.2.5.1-1")
def test_create_consumer_takes_a_queue_or_a_topic(
    context: JMSContext, queue: Queue, topic: Topic, other_session: Session
) -> None:
    of_queue, of_topic = context.create_consumer(queue), context.create_consumer(topic)
    send_texts(other_session, queue, "to the queue")
    send_texts(other_session, topic, "to the topic")
    assert (receive_text(of_queue), receive_text(of_topic)) == ("to the queue", "to the topic")


@requirement("11.2.5.1-2")
@pytest.mark.parametrize(
    "kind", [pytest.param("queue", marks=needs("queue_selector")), pytest.param("topic", marks=needs("topic_selector"))]
)
def test_create_consumer_takes_a_selector(
    context: JMSContext, queue: Queue, topic: Topic, other_session: Session, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    consumer = context.create_consumer(destination, "k = 1")
    assert consumer.message_selector == "k = 1"
    send_texts(other_session, destination, "2", k=2)
    send_texts(other_session, destination, "1", k=1)
    assert receive_text(consumer) == "1"
    expect_nothing(consumer, other_session, destination, k=1)


@requirement("11.2.5.1-3")
@needs("no_local")
def test_create_consumer_takes_no_local(context: JMSContext, topic: Topic, other_session: Session) -> None:
    consumer = context.create_consumer(topic, None, True)
    other_context = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
    context.create_producer().send(topic, "of the same connection")
    other_context.create_producer().send(topic, "of the same connection too")
    send_texts(other_session, topic, "of another connection")
    assert receive_text(consumer) == "of another connection"
    expect_nothing(consumer, other_session, topic)
    other_context.close()


@requirement("11.2.5.1-4")
@needs("shared_subscription")
def test_contexts_share_a_subscription_by_its_name(connect: Connect, topic: Topic, other_session: Session, names: Names) -> None:
    name = names.subscription()
    one, other = (connect.context(prefetch=1).create_shared_consumer(topic, name) for _ in range(2))
    sent = [str(number) for number in range(10)]
    send_texts(other_session, topic, *sent)
    assert sorted(received_by(one, other, count=10)) == sent
    other.close()
    expect_nothing(one, other_session, topic)


@requirement("11.2.5.1-5")
@needs("shared_subscription", "topic_selector")
def test_create_shared_consumer_takes_a_selector(connect: Connect, topic: Topic, other_session: Session, names: Names) -> None:
    name = names.subscription()
    one, other = (connect.context(prefetch=1).create_shared_consumer(topic, name, "k = 1") for _ in range(2))
    for number in range(8):
        send_texts(other_session, topic, str(number), k=number % 2)
    assert sorted(received_by(one, other, count=4)) == ["1", "3", "5", "7"]
    other.close()
    expect_nothing(one, other_session, topic, k=1)


@requirement("11.2.5.1-6")
@needs("durable_subscription")
def test_create_durable_consumer_makes_a_subscription_that_keeps_messages(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    context, name = connect.context(client_id=names.client_id()), names.subscription()
    context.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "kept")
    with context.create_durable_consumer(topic, name) as consumer:
        assert receive_text(consumer) == "kept"
        expect_nothing(consumer, other_session, topic)


@requirement("11.2.5.1-7")
@needs("durable_subscription", "topic_selector", "no_local")
def test_create_durable_consumer_takes_a_selector_and_no_local(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    context, name = connect.context(client_id=names.client_id()), names.subscription()
    context.create_durable_consumer(topic, name, "k = 1", True).close()
    context.create_producer().set_property("k", 1).send(topic, "own")
    send_texts(other_session, topic, "does not match", k=2)
    send_texts(other_session, topic, "matches", k=1)
    with context.create_durable_consumer(topic, name, "k = 1", True) as consumer:
        assert receive_text(consumer) == "matches"
        expect_nothing(consumer, other_session, topic, k=1)


@requirement("11.2.5.1-8")
@needs("shared_durable_subscription")
def test_contexts_share_a_durable_subscription_without_a_client_id(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    one, other = (connect.context(prefetch=1).create_shared_durable_consumer(topic, name) for _ in range(2))
    sent = [str(number) for number in range(10)]
    send_texts(other_session, topic, *sent)
    assert sorted(received_by(one, other, count=10)) == sent
    one.close()
    other.close()
    send_texts(other_session, topic, "kept")
    with connect.context().create_shared_durable_consumer(topic, name) as consumer:
        assert receive_text(consumer) == "kept"
        expect_nothing(consumer, other_session, topic)


@requirement("11.2.5.1-9")
@needs("shared_durable_subscription", "topic_selector")
def test_create_shared_durable_consumer_takes_a_selector(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    with connect.context().create_shared_durable_consumer(topic, name, "k = 1") as consumer:
        send_texts(other_session, topic, "2", k=2)
        send_texts(other_session, topic, "1", k=1)
        assert receive_text(consumer) == "1"
        expect_nothing(consumer, other_session, topic, k=1)


@requirement("11.2.5.1-10", "A.3.2-1", "B.5.19-2")
@pytest.mark.parametrize("interface", [JMSContext, Session])
@pytest.mark.parametrize("method", ["create_shared_consumer", "create_shared_durable_consumer"])
def test_shared_consumers_have_no_no_local(
    context: JMSContext, session: Session, topic: Topic, interface: type, method: str
) -> None:
    assert "no_local" not in signature(getattr(interface, method)).parameters
    client = context if interface is JMSContext else session
    with pytest.raises(TypeError):
        getattr(client, method)(topic, "name", None, True)


@requirement("11.2.5.2-1")
def test_a_listener_makes_a_consumer_asynchronous(context: JMSContext, queue: Queue, other_session: Session) -> None:
    consumer, recorder = context.create_consumer(queue), Recorder()
    assert consumer.message_listener is None
    consumer.message_listener = recorder
    assert consumer.message_listener is recorder
    send_texts(other_session, queue, "1", "2")
    assert recorder.wait_for_texts(2) == ["1", "2"]
    consumer.message_listener = None
    assert consumer.message_listener is None
    expect_nothing(consumer, other_session, queue)
    assert recorder.texts == ["1", "2"]


@requirement("11.2.5.3-1")
def test_receive_waits_for_the_next_message(context: JMSContext, queue: Queue, other_session: Session) -> None:
    waiting = must_wait(context.create_consumer(queue).receive)
    send_texts(other_session, queue, "text")
    assert text_of(finish(waiting)) == "text"


@requirement("11.2.5.3-2")
def test_receive_with_a_timeout_gives_up_after_it(context: JMSContext, queue: Queue, other_session: Session) -> None:
    consumer = context.create_consumer(queue)
    assert finish(must_wait(lambda: consumer.receive(3 * QUIET_MS))) is None
    waiting = must_wait(lambda: consumer.receive(0))
    send_texts(other_session, queue, "text")
    assert text_of(finish(waiting)) == "text"


@requirement("11.2.5.3-3")
@needs("receive_no_wait_exact")
def test_receive_no_wait_returns_what_is_there(context: JMSContext, queue: Queue, other_session: Session) -> None:
    consumer = context.create_consumer(queue)
    assert consumer.receive_no_wait() is None
    send_texts(other_session, queue, "1", "2")
    assert [text_of(consumer.receive_no_wait()), text_of(consumer.receive_no_wait())] == ["1", "2"]
    assert consumer.receive_no_wait() is None


def received_by(*consumers: JMSConsumer, count: int) -> list[str]:
    """Receive ``count`` texts, whichever of the consumers they come to."""
    received: list[str] = []

    def came() -> bool:
        for consumer in consumers:
            text = consumer.receive_body(str, 50)
            if text is not None:
                received.append(text)
        return len(received) >= count

    eventually(came, f"{count} messages come to either consumer")
    return received
