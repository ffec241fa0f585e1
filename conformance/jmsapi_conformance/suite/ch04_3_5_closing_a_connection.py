"""4.3.5 Closing a connection."""

import functools
import time
from functools import partial

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    IllegalStateRuntimeException,
    Message,
    MessageConsumer,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    HeldRecorder,
    eventually,
    expect_nothing,
    finish,
    in_thread,
    must_wait,
    outcome_of,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.3.5-1", "B.2.13-1")
@pytest.mark.parametrize("timeout_ms", [None, 6 * PATIENCE_MS])
def test_close_ends_pending_receives(connect: Connect, names: Names, timeout_ms: float | None) -> None:
    connection = connect()
    sessions = [connection.create_session() for _ in range(2)]
    consumers = [session.create_consumer(session.create_queue(names.queue())) for session in sessions]
    pending = [in_thread(functools.partial(consumer.receive, timeout_ms)) for consumer in consumers]
    for one in pending:
        with pytest.raises(TimeoutError):
            finish(one, 100)
    connection.close()
    assert [finish(one) for one in pending] == [None, None]


@requirement("4.3.5-2")
@needs("transactions")
def test_a_listener_that_runs_when_its_connection_is_closed_keeps_all_services(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    answers = other_session.create_queue(names.queue())
    connection = connect()
    session = connection.create_session(Session.SESSION_TRANSACTED)
    helper = connection.create_session()

    def answer() -> None:
        send_texts(session, answers, "in the transaction")
        session.commit()
        send_texts(helper, answers, "through another session")
        send_texts(connection.create_session(), answers, "through a new session")

    listener = HeldRecorder(answer)
    session.create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "question")
    listener.started()
    closing = must_wait(connection.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    consumer = other_session.create_consumer(answers)
    assert receive_texts(consumer, 3) == ["in the transaction", "through another session", "through a new session"]
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.3.5-2")
def test_a_listener_that_runs_when_its_connection_is_closed_can_acknowledge(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    connection = connect()
    listener = HeldRecorder(lambda: listener.messages[0].acknowledge())
    connection.create_session(Session.CLIENT_ACKNOWLEDGE).create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "text")
    listener.started()
    closing = must_wait(connection.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.3.5-3", "B.2.3-1")
def test_close_returns_when_all_listeners_and_receives_have_returned(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    connection = connect()
    receiving = connection.create_session()
    consumer = receiving.create_consumer(receiving.create_queue(names.queue()))
    pending = in_thread(consumer.receive)
    listener = HeldRecorder()
    connection.create_session().create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "first", "second")
    listener.started()
    closing = must_wait(connection.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    assert finish(pending) is None
    assert receive_text(other_session.create_consumer(queue)) == "second"
    assert len(listener.messages) == 1


@requirement("4.3.5-3")
def test_the_receives_that_are_pending_return_before_close_does(connect: Connect, names: Names) -> None:
    returned: list[float] = []

    def receive_until_closed(consumer: MessageConsumer) -> None:
        assert consumer.receive() is None
        returned.append(time.monotonic())

    closed: list[float] = []
    # One at a time: with several the close of one would give the receive of another time to return.
    for _ in range(20):
        connection = connect()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(names.queue()))
        pending = must_wait(partial(receive_until_closed, consumer), 50)
        connection.close()
        closed.append(time.monotonic())
        finish(pending)
    # Some may have returned as well, and their threads had no turn yet to look at the clock.
    assert sum(one <= other for one, other in zip(returned, closed, strict=True)) >= 10


@requirement("4.3.5-4", "B.5.18-1")
def test_a_listener_that_closes_its_own_connection_does_not_deadlock(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    connection = connect()
    session = connection.create_session()
    outcomes: list[BaseException | None] = []
    session.create_consumer(queue).message_listener = lambda _: outcomes.append(outcome_of(connection.close))
    send_texts(other_session, queue, "text")
    eventually(lambda: outcomes, "close returned in the listener")
    # The final text lets close succeed instead; its message counts as handled then, too.
    if outcomes[0] is None:
        with pytest.raises(IllegalStateException):
            connection.create_session()
    else:
        assert isinstance(outcomes[0], IllegalStateException)
        send_texts(session, queue, "more")
        eventually(lambda: len(outcomes) == 2, "the connection goes on")
        connection.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.3.5-4", "B.5.18-4")
def test_a_listener_that_closes_its_own_context_does_not_deadlock(
    factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    outcomes: list[BaseException | None] = []
    with factory.create_context() as context:
        context.create_consumer(queue).message_listener = lambda _: outcomes.append(outcome_of(context.close))
        send_texts(other_session, queue, "text")
        eventually(lambda: outcomes, "close returned in the listener")
        assert outcomes[0] is None or isinstance(outcomes[0], IllegalStateRuntimeException)
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.3.5-6", "B.5.11-1")
def test_a_connection_is_a_resource_of_a_with_statement(factory: ConnectionFactory) -> None:
    with factory.create_connection() as orderly:
        orderly.create_session()
    with pytest.raises(IllegalStateException):
        orderly.create_session()
    with pytest.raises(LookupError, match="of the block"), factory.create_connection() as failing:
        raise LookupError("of the block")
    with pytest.raises(IllegalStateException):
        failing.create_session()


@requirement("4.3.5-6", "B.5.11-1")
def test_a_context_is_a_resource_of_a_with_statement(factory: ConnectionFactory) -> None:
    with factory.create_context() as orderly:
        orderly.create_message()
    with pytest.raises(IllegalStateRuntimeException):
        orderly.create_message()
    with pytest.raises(LookupError, match="of the block"), factory.create_context() as failing:
        raise LookupError("of the block")
    with pytest.raises(IllegalStateRuntimeException):
        failing.create_message()


@requirement("4.3.5-7")
@needs("transactions")
def test_closing_a_connection_rolls_back_open_transactions(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "received")
    connection = connect()
    session = connection.create_session(Session.SESSION_TRANSACTED)
    assert receive_text(session.create_consumer(queue)) == "received"
    send_texts(session, target, "never")
    connection.close()
    assert receive_text(other_session.create_consumer(queue)) == "received"
    expect_nothing(other_session.create_consumer(target), other_session, target)


@requirement("4.3.5-8")
@pytest.mark.parametrize("kind", ["queue", pytest.param("durable subscription", marks=needs("durable_subscription"))])
@needs("redelivered_flag")
def test_closing_a_connection_does_not_acknowledge_for_the_client(
    connect: Connect, other_session: Session, names: Names, kind: str, queue: Queue, topic: Topic
) -> None:
    client_id, subscription = names.client_id(), names.subscription()

    def consume() -> tuple[Connection, list[Message]]:
        connection = connect(client_id=client_id)
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(queue) if kind == "queue" else session.create_durable_consumer(topic, subscription)
        if not sent:
            send_texts(other_session, queue if kind == "queue" else topic, "1", "2", "3")
            sent.append(kind)
        return connection, receive_all(consumer, 3)

    sent: list[str] = []
    first, messages = consume()
    assert [message.jms_redelivered for message in messages] == [False] * 3
    first.close()
    second, again = consume()
    assert [text_of(message) for message in again] == ["1", "2", "3"]
    assert [message.jms_redelivered for message in again] == [True] * 3
    again[-1].acknowledge()
    second.close()
