"""11.2.7 Starting and stopping a JMSContext."""

from collections.abc import Callable

import pytest

from jmsapi import JMSConsumer, JMSContext, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing_for,
    receive_text,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement

CREATORS: dict[str, Callable[[JMSContext, Queue, Topic, str], JMSConsumer]] = {
    "create_consumer on a queue": lambda context, queue, _, __: context.create_consumer(queue),
    "create_consumer on a topic": lambda context, _, topic, __: context.create_consumer(topic),
    "create_durable_consumer": lambda context, _, topic, name: context.create_durable_consumer(topic, name),
    "create_shared_consumer": lambda context, _, topic, name: context.create_shared_consumer(topic, name),
    "create_shared_durable_consumer": lambda context, _, topic, name: context.create_shared_durable_consumer(topic, name),
}
ROWS = [
    "create_consumer on a queue",
    "create_consumer on a topic",
    pytest.param("create_durable_consumer", marks=needs("durable_subscription")),
    pytest.param("create_shared_consumer", marks=needs("shared_subscription")),
    pytest.param("create_shared_durable_consumer", marks=needs("shared_durable_subscription")),
]


@requirement("11.2.7-1", "11.2.7-2")
@pytest.mark.parametrize("method", ROWS)
def test_creating_a_consumer_starts_delivery(
    connect: Connect, queue: Queue, topic: Topic, other_session: Session, names: Names, method: str
) -> None:
    context = connect.context(client_id=names.client_id())
    send_texts(other_session, queue, "text")
    with CREATORS[method](context, queue, topic, names.subscription()) as consumer:
        send_texts(other_session, topic, "text")
        assert receive_text(consumer) == "text"


@requirement("11.2.7-1")
def test_a_message_that_waits_in_a_queue_is_delivered_to_a_listener_without_start(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text")
    recorder = Recorder()
    context.create_consumer(queue).message_listener = recorder
    assert recorder.wait_for_texts(1) == ["text"]


@requirement("11.2.7-3")
def test_stop_pauses_delivery_and_start_resumes_it(context: JMSContext, queue: Queue, other_session: Session) -> None:
    consumer = context.create_consumer(queue)
    context.stop()
    send_texts(other_session, queue, "1", "2")
    expect_nothing_for(consumer)
    assert consumer.receive_no_wait() is None
    assert consumer.receive_body_no_wait(str) is None
    context.start()
    assert [receive_text(consumer), receive_text(consumer)] == ["1", "2"]


@requirement("11.2.7-3")
def test_stop_pauses_the_listeners_of_all_contexts_of_the_connection(
    context: JMSContext, queue: Queue, topic: Topic, other_session: Session
) -> None:
    recorder = Recorder()
    second = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
    second.create_consumer(queue).message_listener = recorder
    watch = context.create_consumer(topic)
    context.stop()
    send_texts(other_session, queue, "text")
    expect_nothing_for(watch)
    assert recorder.texts == []
    second.start()
    assert recorder.wait_for_texts(1) == ["text"]
    second.close()


@requirement("11.2.7-4")
@pytest.mark.parametrize("method", ROWS)
def test_without_auto_start_only_start_starts_delivery(
    connect: Connect, queue: Queue, topic: Topic, other_session: Session, names: Names, method: str
) -> None:
    context = connect.context(client_id=names.client_id())
    context.auto_start = False
    assert context.auto_start is False
    send_texts(other_session, queue, "text")
    with CREATORS[method](context, queue, topic, names.subscription()) as consumer:
        send_texts(other_session, topic, "text")
        expect_nothing_for(consumer)
        context.start()
        assert receive_text(consumer) == "text"


@requirement("11.2.7-5")
def test_auto_start_is_on_and_changing_it_neither_starts_nor_stops(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    assert context.auto_start is True
    consumer = context.create_consumer(queue)
    assert context.auto_start is True
    context.auto_start = False
    send_texts(other_session, queue, "text")
    assert receive_text(consumer) == "text"
    context.stop()
    context.auto_start = True
    send_texts(other_session, queue, "text")
    expect_nothing_for(consumer)


@requirement("11.2.7-5")
def test_each_context_has_an_auto_start_of_its_own(
    context: JMSContext, queue: Queue, topic: Topic, other_session: Session
) -> None:
    context.auto_start = False
    second = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
    assert second.auto_start is True
    send_texts(other_session, queue, "text")
    consumer = context.create_consumer(queue)
    expect_nothing_for(consumer)
    second.create_consumer(topic)
    assert receive_text(consumer) == "text"
    second.close()
