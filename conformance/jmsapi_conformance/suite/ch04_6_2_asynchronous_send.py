"""4.6.2 Asynchronous send: 4.6.2.1 Quality of service, 4.6.2.2 Exceptions, 4.6.2.3 Message order."""

import pytest

from jmsapi import (
    Connection,
    DeliveryMode,
    IllegalArgumentException,
    IllegalStateException,
    InvalidDestinationException,
    JMSContext,
    JMSException,
    MessageFormatException,
    Queue,
    Session,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    Completions,
    eventually,
    expect_nothing,
    finish,
    must_wait,
    receive,
    receive_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.6.2-1")
@pytest.mark.parametrize("with_options", [False, True], ids=["defaults", "options"])
@pytest.mark.parametrize("with_destination", [False, True], ids=["own destination", "named destination"])
def test_each_form_of_send_takes_a_completion_listener(
    session: Session, queue: Queue, other_session: Session, with_destination: bool, with_options: bool
) -> None:
    completions = Completions()
    message = session.create_text_message("text")
    producer = session.create_producer(None if with_destination else queue)
    mode, priority, ttl = (DeliveryMode.NON_PERSISTENT, 7, 60_000) if with_options else (None, None, None)
    if with_destination:
        producer.send(
            *(queue, message), delivery_mode=mode, priority=priority, time_to_live_ms=ttl, completion_listener=completions
        )
    else:
        producer.send(message, delivery_mode=mode, priority=priority, time_to_live_ms=ttl, completion_listener=completions)
    received = receive(other_session.create_consumer(queue))
    assert text_of(received) == "text"
    assert (received.jms_delivery_mode, received.jms_priority) == ((1, 7) if with_options else (2, 4))
    assert (received.jms_expiration > 0) is with_options
    session.close()
    assert completions.completed == [message]
    assert completions.failed == []


@requirement("4.6.2-1")
def test_what_is_no_completion_listener_is_refused(
    session: Session, context: JMSContext, queue: Queue, other_session: Session
) -> None:
    with pytest.raises(IllegalArgumentException):
        session.create_producer(queue).send(
            session.create_message(),
            completion_listener="no listener",  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
        )
    with pytest.raises(IllegalArgumentException):
        context.create_producer().set_async("no listener")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.6.2-2")
def test_the_listener_is_told_of_each_message_once(session: Session, queue: Queue, other_session: Session) -> None:
    completions = Completions()
    producer = session.create_producer(queue)
    messages = [session.create_text_message(str(number)) for number in range(100)]
    for message in messages:
        producer.send(message, completion_listener=completions)
    completions.wait_for(100)
    session.close()
    assert all(told is sent for told, sent in zip(completions.completed, messages, strict=True))
    assert completions.failed == []
    assert receive_texts(other_session.create_consumer(queue), 100) == [str(number) for number in range(100)]


@requirement("4.6.2-2")
def test_the_producer_of_a_context_sends_asynchronously(context: JMSContext, names: Names) -> None:
    completions = Completions()
    queue = context.create_queue(names.queue())
    producer = context.create_producer().set_async(completions)
    assert producer.async_ is completions
    for number in range(10):
        producer.send(queue, str(number))
    told = completions.wait_for(10)
    assert [text_of(message) for message in told] == [str(number) for number in range(10)]
    assert receive_texts(context.create_consumer(queue), 10) == [str(number) for number in range(10)]
    assert completions.failed == []


@requirement("4.6.2-3")
def test_the_listener_is_told_of_messages_that_are_not_persistent(session: Session, queue: Queue) -> None:
    completions = Completions()
    producer = session.create_producer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    messages = [session.create_text_message(str(number)) for number in range(10)]
    for message in messages:
        producer.send(message, completion_listener=completions)
    assert completions.wait_for(10) == messages
    assert completions.failed == []


@requirement("4.6.2-3")
@needs("transactions")
def test_the_listener_is_told_of_the_messages_of_a_transaction_when_commit_returns(connection: Connection, queue: Queue) -> None:
    completions = Completions()
    session = connection.create_session(Session.SESSION_TRANSACTED)
    producer = session.create_producer(queue)
    messages = [session.create_text_message(str(number)) for number in range(10)]
    for message in messages:
        producer.send(message, completion_listener=completions)
    session.commit()
    assert completions.completed == messages
    assert completions.failed == []


@requirement("4.6.2.1-1")
def test_the_listener_is_told_no_earlier_than_a_synchronous_send_would_return(
    interceptor: Interceptor, queue: Queue, other_session: Session
) -> None:
    completions = Completions()
    connection = interceptor.connect()
    producers = [connection.create_session().create_producer(queue) for _ in range(2)]
    first, second = (other_session.create_text_message(text) for text in ("first", "second"))
    interceptor.hold()
    producers[0].send(first, completion_listener=completions)
    synchronous = must_wait(lambda: producers[1].send(second))
    assert (completions.completed, completions.failed) == ([], [])
    interceptor.let_go()
    finish(synchronous)
    assert completions.wait_for(1) == [first]
    assert completions.failed == []


@requirement("4.6.2.2-1")
def test_an_error_found_in_the_call_is_raised_by_it_and_told_to_nobody(session: Session, queue: Queue) -> None:
    completions = Completions()
    anonymous, closed, producer = session.create_producer(None), session.create_producer(queue), session.create_producer(queue)
    closed.close()
    message = session.create_text_message("text")
    with pytest.raises(InvalidDestinationException):
        anonymous.send(None, message, completion_listener=completions)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(IllegalStateException):
        closed.send(message, completion_listener=completions)
    with pytest.raises(MessageFormatException):
        producer.send("no message", completion_listener=completions)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(JMSException):
        producer.send(message, priority=10, completion_listener=completions)
    # A session tells in the order of sending, so this one comes behind whatever else there was to tell.
    last = session.create_text_message("good")
    producer.send(last, completion_listener=completions)
    completions.wait_for(1)
    session.close()
    assert completions.completed == [last]
    assert completions.failed == []


@requirement("4.6.2.2-2")
def test_a_refusal_that_comes_later_is_told_to_the_listener(
    interceptor: Interceptor, queue: Queue, other_session: Session
) -> None:
    completions = Completions()
    session = interceptor.connect().create_session()
    producer = session.create_producer(queue)
    messages = [session.create_text_message(str(number)) for number in range(3)]
    interceptor.refuse(lambda number: number == 1)
    for message in messages:
        producer.send(message, completion_listener=completions)
    assert completions.wait_for(3) == messages
    session.close()
    assert completions.completed == [messages[0], messages[2]]
    ((failed, exception),) = completions.failed
    assert failed is messages[1]
    assert isinstance(exception, JMSException)


@requirement("4.6.2.2-2")
def test_a_link_that_breaks_before_the_answer_is_told_to_the_listener(interceptor: Interceptor, queue: Queue) -> None:
    completions = Completions()
    connection = interceptor.connect()
    session = connection.create_session()
    producer = session.create_producer(queue)
    messages = [session.create_text_message(str(number)) for number in range(3)]
    interceptor.hold()
    for message in messages:
        producer.send(message, completion_listener=completions)
    eventually(lambda: interceptor.held == 3, "the broker has answered")
    interceptor.lose()
    completions.wait_for(3)
    connection.close()
    assert completions.completed == []
    assert [message for message, _ in completions.failed] == messages
    assert all(isinstance(exception, JMSException) for _, exception in completions.failed)


@requirement("4.6.2.3-1")
def test_order_holds_for_any_mixture_of_sends(session: Session, queue: Queue, other_session: Session) -> None:
    completions = Completions()
    producer = session.create_producer(queue)
    consumer = other_session.create_consumer(queue)
    expected = [str(number) for number in range(1000)]
    for number, text in enumerate(expected):
        producer.send(session.create_text_message(text), completion_listener=completions if number % 3 else None)
    assert receive_texts(consumer, 1000) == expected
    session.close()
    assert [text_of(message) for message in completions.completed] == [expected[n] for n in range(1000) if n % 3]


@requirement("4.6.2.3-1")
def test_order_holds_for_any_mixture_of_sends_of_a_context(context: JMSContext, names: Names, other_session: Session) -> None:
    completions = Completions()
    queue = context.create_queue(names.queue())
    producer = context.create_producer()
    expected = [str(number) for number in range(300)]
    for number, text in enumerate(expected):
        producer.set_async(completions if number % 3 else None).send(queue, text)
    assert receive_texts(other_session.create_consumer(queue), 300) == expected
    context.close()
    assert len(completions.completed) == 200


@requirement("4.6.2.3-2", "B.5.10-1")
def test_a_program_may_send_on_before_earlier_sends_are_complete(
    interceptor: Interceptor, queue: Queue, other_session: Session
) -> None:
    completions = Completions()
    session = interceptor.connect().create_session()
    producer = session.create_producer(queue)
    interceptor.hold()
    for number in range(100):
        producer.send(session.create_text_message(str(number)), completion_listener=completions)
    assert completions.completed == []
    interceptor.let_go()
    for number in range(100, 1000):
        producer.send(session.create_text_message(str(number)), completion_listener=completions)
    assert len(completions.wait_for(1000)) == 1000
    assert completions.failed == []
    assert receive_texts(other_session.create_consumer(queue), 1000) == [str(number) for number in range(1000)]
