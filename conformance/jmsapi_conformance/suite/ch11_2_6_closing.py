"""11.2.6 Closing a JMSContext."""

import pytest

from jmsapi import (
    ConnectionFactory,
    IllegalStateRuntimeException,
    JMSContext,
    JMSException,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    HeldRecorder,
    Recorder,
    expect_nothing,
    finish,
    must_wait,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement

ANY = JMSContext.AUTO_ACKNOWLEDGE


@requirement("11.2.6-1")
def test_closing_a_context_closes_its_producers_and_consumers(
    context: JMSContext, queue: Queue, topic: Topic, other_session: Session
) -> None:
    producer, consumer, on_topic = context.create_producer(), context.create_consumer(queue), context.create_consumer(topic)
    producer.send(queue, "before")
    context.close()
    with pytest.raises(IllegalStateRuntimeException):
        producer.send(queue, "after")
    with pytest.raises(IllegalStateRuntimeException):
        consumer.receive(1)
    with pytest.raises(IllegalStateRuntimeException):
        on_topic.message_listener = Recorder()
    assert receive_text(other_session.create_consumer(queue)) == "before"


@requirement("11.2.6-1")
@needs("browser")
def test_closing_a_context_closes_its_browsers(context: JMSContext, queue: Queue) -> None:
    browser = context.create_browser(queue)
    context.close()
    with pytest.raises((IllegalStateRuntimeException, JMSException)):
        _ = browser.enumeration


@requirement("11.2.6-1")
@needs("transactions")
def test_closing_a_context_rolls_its_transaction_back(
    factory: ConnectionFactory, queue: Queue, other_session: Session, names: Names
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "1", "2")
    with factory.create_context(JMSContext.SESSION_TRANSACTED) as context:
        assert receive_texts(context.create_consumer(queue), 2) == ["1", "2"]
        context.create_producer().send(target, "never")
    assert receive_texts(other_session.create_consumer(queue), 2) == ["1", "2"]
    expect_nothing(other_session.create_consumer(target), other_session, target)


@requirement("11.2.6-2")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_closing_the_last_context_of_a_connection_closes_the_connection(
    interceptor: Interceptor, queue: Queue, other_session: Session, order: tuple[int, ...]
) -> None:
    first = interceptor.context()
    contexts = [first, first.create_context(ANY)]
    contexts.append(contexts[1].create_context(ANY))
    consumer = other_session.create_consumer(queue)
    for number in order:
        assert "close" not in interceptor.calls
        contexts[number].create_producer().send(queue, str(number))
        assert receive_text(consumer) == str(number)
        contexts[number].close()
        contexts[number].close()
    assert interceptor.calls.count("close") == 1
    for context in contexts:
        with pytest.raises(IllegalStateRuntimeException):
            context.create_context(ANY)


@requirement("11.2.6-2")
def test_a_context_that_was_never_used_counts_too(interceptor: Interceptor) -> None:
    first = interceptor.context()
    second = first.create_context(ANY)
    first.close()
    assert "close" not in interceptor.calls
    second.close()
    assert interceptor.calls.count("close") == 1


@requirement("11.2.6-2")
def test_a_context_that_several_threads_close_at_once_counts_once(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    second = context.create_context(ANY)
    listener = HeldRecorder()
    second.create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "1")
    listener.started()
    closing = [must_wait(second.close) for _ in range(3)]
    listener.go_on()
    for pending in closing:
        finish(pending)
    context.create_producer().send(queue, "2")
    assert receive_text(context.create_consumer(queue)) == "2"


@requirement("11.2.6-2")
@needs("temporary_queue")
def test_a_temporary_queue_lives_until_the_last_context_is_closed(factory: ConnectionFactory, other_session: Session) -> None:
    with factory.create_context() as first:
        second = first.create_context(ANY)
        temporary = first.create_temporary_queue()
    send_texts(other_session, temporary, "text")
    assert receive_text(second.create_consumer(temporary)) == "text"
    second.close()


@requirement("11.2.6-3")
def test_the_end_of_a_block_closes_the_context_and_passes_an_exception_on(factory: ConnectionFactory) -> None:
    with pytest.raises(KeyError, match="from the block"), factory.create_context() as context:
        raise KeyError("from the block")
    with pytest.raises(IllegalStateRuntimeException):
        context.create_message()


@requirement("11.2.6-3")
def test_the_end_of_a_block_closes_the_consumer_of_a_context(context: JMSContext, queue: Queue) -> None:
    with context.create_consumer(queue) as consumer:
        assert consumer.message_listener is None
    with pytest.raises(IllegalStateRuntimeException):
        consumer.receive(1)
    context.create_message()
