"""4.6.2.7 Restrictions on threading, 4.6.2.8 Use of the completion listener and 4.6.2.9 Restrictions on the message object."""

import threading

import pytest

from jmsapi import Connection, DeliveryMode, JMSContext, JMSException, Message, Queue, Session
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import PATIENCE_MS, Completions, eventually, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.6.2.7-1")
def test_the_program_goes_on_using_a_session_while_a_completion_listener_runs(
    session: Session, queue: Queue, names: Names
) -> None:
    running, going = threading.Event(), threading.Event()

    def hold(_: Message) -> None:
        running.set()
        going.wait(PATIENCE_MS / 1000)

    completions = Completions(then=hold)
    producer = session.create_producer(queue)
    for number in range(3):
        producer.send(session.create_text_message(str(number)), completion_listener=completions)
    assert running.wait(PATIENCE_MS / 1000)
    other_queue = session.create_queue(names.queue())
    send_texts(session, other_queue, "sent meanwhile")
    assert receive_text(session.create_consumer(other_queue)) == "sent meanwhile"
    assert receive_texts(session.create_consumer(queue), 3) == ["0", "1", "2"]
    assert len(completions.completed) == 1
    going.set()
    completions.wait_for(3)


@requirement("4.6.2.8-1")
def test_a_session_runs_one_completion_listener_at_a_time(session: Session, names: Names) -> None:
    inside = threading.Lock()
    alone: list[bool] = []

    def notice(_: Message) -> None:
        free = inside.acquire(blocking=False)
        # Let other threads run, so that they get the chance to come in.
        threading.Event().wait(0.002)
        alone.append(free)
        if free:
            inside.release()

    listeners = [Completions(then=notice) for _ in range(3)]
    producers = [session.create_producer(session.create_queue(names.queue())) for _ in listeners]
    for _ in range(20):
        for producer, listener in zip(producers, listeners, strict=True):
            producer.send(session.create_text_message("text"), completion_listener=listener)
    for listener in listeners:
        assert len(listener.wait_for(20)) == 20
    session.close()
    assert alone == [True] * 60


@requirement("4.6.2.8-2")
@pytest.mark.parametrize("kind", ["producer", "context"])
def test_completion_listeners_are_called_in_the_order_of_sending(interceptor: Interceptor, queue: Queue, kind: str) -> None:
    completions = Completions()
    interceptor.hold()
    interceptor.refuse(lambda number: number % 3 == 0)
    with interceptor.factory().create_context() as context:
        session = interceptor.connect().create_session()
        producer, of_context = session.create_producer(queue), context.create_producer().set_async(completions)
        messages: list[Message] = []
        for number in range(10):
            messages.append(session.create_text_message(str(number)))
            if kind == "producer":
                producer.send(messages[-1], completion_listener=completions)
            else:
                of_context.send(queue, messages[-1])
        eventually(lambda: interceptor.held == 10, "the broker has answered")
        interceptor.let_go(backwards=True)
        told = completions.wait_for(10)
    assert [text_of(message) for message in told] == [str(number) for number in range(10)]
    assert (len(completions.failed), len(completions.completed)) == (4, 6)


@requirement("4.6.2.8-3", "B.5.10-1")
@pytest.mark.parametrize("delivery_mode", [DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT])
@pytest.mark.parametrize(
    "mode", [Session.AUTO_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_completion_listener_is_never_called_in_the_thread_that_sends(
    connection: Connection, queue: Queue, mode: int, delivery_mode: int
) -> None:
    completions = Completions()
    session = connection.create_session(mode)
    producer = session.create_producer(queue)
    producer.delivery_mode = delivery_mode
    for number in range(10):
        producer.send(session.create_text_message(str(number)), completion_listener=completions)
    if session.transacted:
        session.commit()
    completions.wait_for(10)
    assert threading.get_ident() not in completions.threads


@requirement("4.6.2.8-3")
def test_a_completion_listener_of_a_context_is_never_called_in_the_thread_that_sends(context: JMSContext, names: Names) -> None:
    completions = Completions()
    context.create_producer().set_async(completions).send(context.create_queue(names.queue()), "text")
    completions.wait_for(1)
    assert threading.get_ident() not in completions.threads


@requirement("4.6.2.9-1")
def test_a_message_may_be_touched_from_its_completion_listener_on(interceptor: Interceptor, queue: Queue) -> None:
    seen: list[tuple[str | None, str | None]] = []
    completions = Completions(then=lambda message: seen.append((message.jms_message_id, text_of(message))))
    session = interceptor.connect().create_session()
    message = session.create_text_message("text")
    interceptor.hold()
    session.create_producer(queue).send(message, completion_listener=completions)
    eventually(lambda: interceptor.held == 1, "the broker has answered")
    # Between send and listener: a value, or an exception.
    try:
        assert message.jms_priority == 4
    except JMSException as error:
        assert str(error)
    interceptor.let_go()
    completions.wait_for(1)
    eventually(lambda: seen, "the listener has read the message")
    assert seen == [(message.jms_message_id, "text")]
    assert message.jms_message_id is not None
    message.set_int_property("number", 1)
    message.text = "anew"
    assert (message.get_int_property("number"), message.text) == (1, "anew")
