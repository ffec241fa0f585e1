"""4.3.4 Pausing delivery."""

import threading
import time
from functools import partial

import pytest

from jmsapi import Connection, IllegalStateException, JMSContext, Message, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Completions,
    HeldRecorder,
    Recorder,
    eventually,
    expect_nothing_for,
    finish,
    in_thread,
    must_wait,
    outcome_of,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.3.4-1")
def test_a_stopped_connection_delivers_nothing_to_any_of_its_sessions(
    connection: Connection, other_session: Session, names: Names
) -> None:
    first, second = (other_session.create_queue(names.queue()) for _ in range(2))
    listener = Recorder()
    consumer = connection.create_session().create_consumer(first)
    connection.create_session().create_consumer(second).message_listener = listener
    connection.stop()
    send_texts(other_session, second, *map(str, range(10)))
    send_texts(other_session, first, *map(str, range(10)))
    expect_nothing_for(consumer)
    assert consumer.receive_no_wait() is None
    assert listener.messages == []
    connection.start()
    assert receive_text(consumer) == "0"
    listener.wait_for(10)


@requirement("4.3.4-1", "4.3.4-2")
def test_what_the_client_has_fetched_before_stop_is_received_after_start(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    consumer = session.create_consumer(queue)
    assert receive_text(consumer) == "0"
    time.sleep(QUIET_MS / 1000)  # nobody can see that the rest has come
    connection.stop()
    assert consumer.receive_no_wait() is None
    expect_nothing_for(consumer)
    connection.start()
    assert receive_texts(consumer, 9) == expected[1:]


@requirement("4.3.4-1", "4.3.4-2", "4.3.4-5")
def test_the_listener_that_stop_waits_for_is_not_called_with_the_next_message(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    listener = HeldRecorder()
    session.create_consumer(queue).message_listener = listener
    listener.started()
    stopping = must_wait(connection.stop)
    listener.go_on()
    finish(stopping)
    assert len(listener.messages) == 1
    time.sleep(QUIET_MS / 1000)
    assert len(listener.messages) == 1
    connection.start()
    assert listener.wait_for_texts(10) == expected


@requirement("4.3.4-2")
def test_start_after_stop_resumes_with_nothing_lost_and_in_order(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    consumer = session.create_consumer(queue)
    send_texts(other_session, queue, "before")
    assert receive_text(consumer) == "before"
    connection.stop()
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    expect_nothing_for(consumer)
    connection.start()
    assert receive_texts(consumer, 10) == expected


@requirement("4.3.4-3")
def test_sending_is_not_affected_by_stop(connection: Connection, session: Session, queue: Queue, other_session: Session) -> None:
    connection.stop()
    send_texts(session, queue, "sync")
    completions = Completions()
    session.create_producer(queue).send(session.create_text_message("async"), completion_listener=completions)
    completions.wait_for(1)
    assert receive_texts(other_session.create_consumer(queue), 2) == ["sync", "async"]


@requirement("4.3.4-4")
def test_a_repeated_stop_or_start_has_no_effect(connection: Connection, session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    connection.stop()
    connection.stop()
    send_texts(session, queue, "text")
    expect_nothing_for(consumer)
    connection.start()
    connection.start()
    assert receive_text(consumer) == "text"


@requirement("4.3.4-5")
def test_when_stop_has_returned_no_listener_is_called_and_no_receive_returns_a_message(
    connect: Connect, other_session: Session, names: Names
) -> None:
    to_listener, to_receive = (other_session.create_queue(names.queue()) for _ in range(2))
    connection = connect()
    listener, received = Recorder(), list[Message | None]()
    connection.create_session().create_consumer(to_listener).message_listener = listener
    consumer = connection.create_session().create_consumer(to_receive)
    over = threading.Event()

    def receive_until_over() -> None:
        while not over.is_set():
            received.append(consumer.receive(50))

    def send_until_over() -> None:
        while not over.is_set():
            send_texts(other_session, to_listener, "x")
            send_texts(other_session, to_receive, "x")

    def messages_since(place: int) -> bool:
        return received[place:] != [None] * len(received[place:])

    def three_more_than(place: int) -> bool:
        return len(received) >= place + 3

    receiving, sending = in_thread(receive_until_over), in_thread(send_until_over)
    for _ in range(5):
        heard, returned = len(listener.messages), len(received)
        listener.wait_for(heard + 5)
        eventually(partial(messages_since, returned), "a receive has returned a message")
        connection.stop()
        heard, returned = len(listener.messages), len(received)
        # More messages arrive meanwhile. The first of the receives may have returned before stop and be noted after it.
        eventually(partial(three_more_than, returned), "three more receives have returned")
        assert received[returned + 1 :] == [None] * (len(received) - returned - 1)
        assert len(listener.messages) == heard
        connection.start()
    over.set()
    finish(receiving)
    finish(sending)


@requirement("4.3.4-5")
def test_a_receive_that_is_pending_when_its_connection_is_stopped_returns_no_message_until_start(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    consumer = session.create_consumer(queue)
    pending = must_wait(consumer.receive)
    connection.stop()
    send_texts(other_session, queue, "text")
    with pytest.raises(TimeoutError):
        finish(pending, QUIET_MS)
    connection.start()
    assert text_of(finish(pending)) == "text"


@requirement("4.3.4-6")
def test_the_timeout_of_a_pending_receive_keeps_running_on_a_stopped_connection(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    consumer = session.create_consumer(queue)
    begun = time.monotonic()
    pending = in_thread(lambda: consumer.receive(500))
    connection.stop()
    send_texts(other_session, queue, "late")
    assert finish(pending) is None
    assert 0.45 <= time.monotonic() - begun < PATIENCE_MS / 1000


@requirement("4.3.4-7")
def test_stop_waits_for_listeners_that_are_running(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    running, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def listen(_: Message) -> None:
        running.set()
        go_on.wait(PATIENCE_MS / 1000)
        done.set()

    session.create_consumer(queue).message_listener = listen
    send_texts(other_session, queue, "text")
    assert running.wait(PATIENCE_MS / 1000)
    stopping = in_thread(connection.stop)
    with pytest.raises(TimeoutError):
        finish(stopping, 200)
    go_on.set()
    finish(stopping)
    assert done.is_set()


@requirement("4.3.4-8")
@needs("transactions")
def test_a_listener_that_finishes_during_stop_has_all_services_of_the_connection(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    answers = other_session.create_queue(names.queue())
    session = connection.create_session(Session.SESSION_TRANSACTED)
    running, stopping_begun = threading.Event(), threading.Event()
    outcome: list[BaseException | None] = []

    def answer() -> None:
        send_texts(session, answers, "answer")
        session.commit()

    def listen(_: Message) -> None:
        running.set()
        stopping_begun.wait(PATIENCE_MS / 1000)
        outcome.append(outcome_of(answer))

    session.create_consumer(queue).message_listener = listen
    send_texts(other_session, queue, "question")
    assert running.wait(PATIENCE_MS / 1000)
    stopping = in_thread(connection.stop)
    with pytest.raises(TimeoutError):
        finish(stopping, 100)
    stopping_begun.set()
    finish(stopping)
    assert outcome == [None]
    assert receive_text(other_session.create_consumer(answers)) == "answer"


@requirement("4.3.4-9", "B.5.18-1")
def test_a_listener_that_stops_its_own_connection_does_not_deadlock(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    outcome: list[BaseException | None] = []
    session.create_consumer(queue).message_listener = lambda _: outcome.append(outcome_of(connection.stop))
    send_texts(other_session, queue, "text")
    eventually(lambda: outcome, "stop returned in the listener")
    # The final text lets it succeed instead; then the connection is stopped.
    assert outcome == [None] or isinstance(outcome[0], IllegalStateException)
    connection.start()
    send_texts(other_session, queue, "more")
    eventually(lambda: len(outcome) == 2, "the connection goes on")


@requirement("4.3.4-2")
def test_a_context_is_stopped_and_started_like_a_connection(context: JMSContext, names: Names) -> None:
    queue = context.create_queue(names.queue())
    consumer = context.create_consumer(queue)
    context.stop()
    context.create_producer().send(queue, "text")
    expect_nothing_for(consumer)
    context.start()
    assert receive_text(consumer) == "text"
