"""4.3.8 ExceptionListener."""

import threading

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSContext,
    JMSException,
    MessageFormatException,
    Queue,
    Session,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Problems,
    eventually,
    finish,
    must_wait,
    outcome_of,
    receive_text,
    send_texts,
)
from jmsapi_conformance.marks import requirement


@requirement("4.3.8-1")
def test_a_listener_hears_of_a_connection_that_fails(interceptor: Interceptor) -> None:
    problems = Problems()
    connection = interceptor.connect()
    connection.exception_listener = problems
    interceptor.lose()
    (problem,) = problems.wait_for(1)
    assert isinstance(problem, JMSException)
    assert str(problem)
    with pytest.raises(JMSException):
        connection.create_session()
    connection.close()
    assert len(problems.exceptions) == 1


@requirement("4.3.8-1")
def test_a_listener_of_a_context_hears_of_a_connection_that_fails(interceptor: Interceptor) -> None:
    problems = Problems()
    with interceptor.factory().create_context() as context:
        context.exception_listener = problems
        interceptor.lose()
        assert isinstance(problems.wait_for(1)[0], JMSException)


@requirement("4.3.8-1")
def test_a_plain_function_can_be_an_exception_listener(interceptor: Interceptor) -> None:
    problems = Problems()
    interceptor.connect().exception_listener = problems.on_exception
    interceptor.lose()
    problems.wait_for(1)


@requirement("4.3.8-2", "B.4.3.2-2")
def test_the_registered_listener_is_returned(connection: Connection, context: JMSContext) -> None:
    for one in (connection, context):
        assert one.exception_listener is None
        problems = Problems()
        one.exception_listener = problems
        assert one.exception_listener is problems
        one.exception_listener = None
        assert one.exception_listener is None


@requirement("4.3.8-3", "B.5.17-1")
def test_a_connection_calls_its_listener_in_one_thread_at_a_time(interceptor: Interceptor, queue: Queue) -> None:
    entered, met, going = threading.Event(), threading.Event(), threading.Event()
    running = threading.Lock()
    heard: list[bool] = []

    def listen(_: JMSException) -> None:
        alone = running.acquire(blocking=False)
        (entered if alone else met).set()
        going.wait(PATIENCE_MS / 1000)
        heard.append(alone)
        if alone:
            running.release()

    connection = interceptor.connect()
    connection.exception_listener = listen
    interceptor.refuse(lambda number: True)
    session = connection.create_session()
    # Nobody waits for the answers to NON_PERSISTENT sends, so their failures go to the listener.
    for _ in range(5):
        session.create_producer(queue).send(session.create_text_message(), delivery_mode=1, priority=4, time_to_live_ms=0)
    assert entered.wait(PATIENCE_MS / 1000)
    # Time for a second call to come in while the first is held; only time can show that none does.
    assert not met.wait(QUIET_MS / 1000)
    going.set()
    eventually(lambda: len(heard) == 5, "the listener was called for each failure")
    assert heard == [True] * 5


@requirement("4.3.8-5")
def test_what_a_call_raises_the_listener_does_not_hear(interceptor: Interceptor, queue: Queue) -> None:
    problems = Problems()
    connection = interceptor.connect()
    connection.exception_listener = problems
    session = connection.create_session()
    with pytest.raises(InvalidSelectorException):
        session.create_consumer(queue, "no selector at all =")
    with pytest.raises(InvalidDestinationException):
        session.create_consumer(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(MessageFormatException):
        session.create_producer(queue).send("no message")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    interceptor.refuse(lambda number: number == 0)
    with pytest.raises(JMSException):
        send_texts(session, queue, "refused")
    # The loss is told behind whatever was told before.
    interceptor.lose()
    problems.wait_for(1)
    connection.close()
    assert len(problems.exceptions) == 1
    assert "link" in str(problems.exceptions[0])


@requirement("4.3.8-5")
def test_a_receive_that_waits_when_the_link_breaks_raises(interceptor: Interceptor, queue: Queue) -> None:
    consumer = interceptor.connect().create_session().create_consumer(queue)
    pending = must_wait(consumer.receive)
    interceptor.lose()
    with pytest.raises(JMSException):
        finish(pending)


@requirement("4.3.8-6", "B.5.17-2")
def test_a_listener_may_close_the_failed_connection_and_open_another(
    interceptor: Interceptor, factory: ConnectionFactory, names: Names, other_session: Session
) -> None:
    queue = other_session.create_queue(names.queue())
    failed = interceptor.connect()
    outcomes: list[BaseException | None] = []

    def begin_again() -> None:
        failed.close()
        with factory.create_connection() as another:
            send_texts(another.create_session(), queue, "from another connection")

    failed.exception_listener = lambda _: outcomes.append(outcome_of(begin_again))
    failed.create_session().create_consumer(queue)
    interceptor.lose()
    eventually(lambda: outcomes, "the listener has done its work")
    assert outcomes == [None]
    assert receive_text(other_session.create_consumer(queue)) == "from another connection"
