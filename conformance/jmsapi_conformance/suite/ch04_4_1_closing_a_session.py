"""4.4.1 Closing a session."""

from collections.abc import Callable

import pytest

from jmsapi import Connection, IllegalStateException, Queue, Session, TextMessage, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    HeldRecorder,
    Recorder,
    eventually,
    expect_nothing,
    finish,
    in_thread,
    must_wait,
    outcome_of,
    receive,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.1-1", "4.4.1-2", "B.2.13-1")
def test_close_ends_a_pending_receive(session: Session, queue: Queue) -> None:
    pending = must_wait(session.create_consumer(queue).receive)
    session.close()
    assert finish(pending) is None


@requirement("4.4.1-1", "4.4.1-2")
def test_a_receive_at_the_moment_of_close_takes_its_message_or_leaves_it(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    for turn in map(str, range(20)):
        send_texts(other_session, queue, turn)
        session = connection.create_session()
        pending = in_thread(session.create_consumer(queue).receive)
        session.close()
        try:
            taken = finish(pending)
        except IllegalStateException:
            # The call came when the session was closed already.
            taken = None
        if taken is None:
            with other_session.create_consumer(queue) as consumer:
                assert receive_text(consumer) == turn
        else:
            assert text_of(taken) == turn
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.1-1", "4.4.1-2")
@needs("transactions")
def test_a_listener_that_runs_when_its_session_is_closed_keeps_all_services(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    answers = other_session.create_queue(names.queue())
    session = connection.create_session(Session.SESSION_TRANSACTED)

    def answer() -> None:
        send_texts(session, answers, "answer")
        session.commit()

    listener = HeldRecorder(answer)
    session.create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "question")
    listener.started()
    closing = must_wait(session.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    assert receive_text(other_session.create_consumer(answers)) == "answer"
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.1-3", "B.2.3-2")
def test_close_returns_when_the_running_listener_has_returned(session: Session, queue: Queue, other_session: Session) -> None:
    listener = HeldRecorder()
    session.create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "first", "second")
    listener.started()
    closing = must_wait(session.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    assert receive_text(other_session.create_consumer(queue)) == "second"
    assert listener.texts == ["first"]


@requirement("4.4.1-4", "B.5.18-2")
def test_a_listener_that_closes_its_own_session_does_not_deadlock(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session()
    outcomes: list[BaseException | None] = []
    session.create_consumer(queue).message_listener = lambda _: outcomes.append(outcome_of(session.close))
    send_texts(other_session, queue, "text")
    eventually(lambda: outcomes, "close returned in the listener")
    # The final text lets close succeed instead; its message counts as handled then, too.
    if outcomes[0] is None:
        with pytest.raises(IllegalStateException):
            session.create_message()
    else:
        assert isinstance(outcomes[0], IllegalStateException)
        send_texts(other_session, queue, "more")
        eventually(lambda: len(outcomes) == 2, "the session goes on")
        session.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.1-5", "B.2.12-2")
def test_closing_a_session_closes_what_was_made_from_it_and_no_other(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session, sibling = connection.create_session(), connection.create_session()
    consumer, producer = session.create_consumer(queue), session.create_producer(queue)
    session.close()
    with pytest.raises(IllegalStateException):
        consumer.receive_no_wait()
    with pytest.raises(IllegalStateException):
        producer.send(other_session.create_text_message("late"))
    send_texts(sibling, queue, "1", "2")
    # A consumer that the broker still knew would be given every second message.
    assert receive_texts(sibling.create_consumer(queue), 2) == ["1", "2"]


@requirement("4.4.1-5")
@needs("browser")
def test_closing_a_session_closes_its_browsers(session: Session, queue: Queue) -> None:
    browser = session.create_browser(queue)
    session.close()
    with pytest.raises(IllegalStateException):
        _ = browser.enumeration
    browser.close()


@requirement("4.4.1-5")
def test_closing_a_connection_closes_its_sessions(connection: Connection) -> None:
    sessions = [connection.create_session(mode) for mode in (Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE)]
    connection.close()
    for session in sessions:
        with pytest.raises(IllegalStateException):
            session.create_message()


@requirement("4.4.1-6", "B.5.11-1")
def test_a_session_is_a_resource_of_a_with_statement(connection: Connection) -> None:
    with connection.create_session() as orderly:
        orderly.create_message()
    with pytest.raises(IllegalStateException):
        orderly.create_message()
    with pytest.raises(LookupError, match="of the block"), connection.create_session() as failing:
        raise LookupError("of the block")
    with pytest.raises(IllegalStateException):
        failing.create_message()


@requirement("4.4.1-7")
@needs("transactions")
def test_closing_a_transacted_session_rolls_back(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "received")
    session = connection.create_session(Session.SESSION_TRANSACTED)
    assert receive_text(session.create_consumer(queue)) == "received"
    send_texts(session, target, "never")
    session.close()
    assert receive_text(other_session.create_consumer(queue)) == "received"
    expect_nothing(other_session.create_consumer(target), other_session, target)


@requirement("4.4.1-8")
def test_closing_a_client_acknowledge_session_does_not_acknowledge(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "0", "1", "2", "3")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    receive(consumer).acknowledge()
    assert receive_texts(consumer, 3) == ["1", "2", "3"]
    session.close()
    again = connection.create_session(Session.CLIENT_ACKNOWLEDGE).create_consumer(queue)
    assert [text_of(message) for message in receive_all(again, 3)] == ["1", "2", "3"]


USES: dict[str, Callable[[Session, Queue], object]] = {
    "create_message": lambda session, queue: session.create_message(),
    "create_bytes_message": lambda session, queue: session.create_bytes_message(),
    "create_map_message": lambda session, queue: session.create_map_message(),
    "create_object_message": lambda session, queue: session.create_object_message(),
    "create_stream_message": lambda session, queue: session.create_stream_message(),
    "create_text_message": lambda session, queue: session.create_text_message(),
    "create_producer": lambda session, queue: session.create_producer(queue),
    "create_consumer": lambda session, queue: session.create_consumer(queue),
    "create_browser": lambda session, queue: session.create_browser(queue),
    "create_queue": lambda session, queue: session.create_queue("name"),
    "create_topic": lambda session, queue: session.create_topic("name"),
    "create_temporary_queue": lambda session, queue: session.create_temporary_queue(),
    "create_temporary_topic": lambda session, queue: session.create_temporary_topic(),
    "unsubscribe": lambda session, queue: session.unsubscribe("name"),
    "commit": lambda session, queue: session.commit(),
    "rollback": lambda session, queue: session.rollback(),
    "recover": lambda session, queue: session.recover(),
    "transacted": lambda session, queue: session.transacted,
    "acknowledge_mode": lambda session, queue: session.acknowledge_mode,
    "message_listener": lambda session, queue: session.message_listener,
}
SUBSCRIBES: dict[str, Callable[[Session, Topic], object]] = {
    "create_consumer": lambda session, topic: session.create_consumer(topic),
    "create_durable_consumer": lambda session, topic: session.create_durable_consumer(topic, "name"),
    "create_durable_subscriber": lambda session, topic: session.create_durable_subscriber(topic, "name"),
    "create_shared_consumer": lambda session, topic: session.create_shared_consumer(topic, "name"),
    "create_shared_durable_consumer": lambda session, topic: session.create_shared_durable_consumer(topic, "name"),
}


@requirement("4.4.1-9", "B.2.21-13")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_session_cannot_be_used(session: Session, queue: Queue, use: Callable[[Session, Queue], object]) -> None:
    session.close()
    with pytest.raises(IllegalStateException):
        use(session, queue)


@requirement("4.4.1-9", "B.2.21-13")
@pytest.mark.parametrize("subscribe", SUBSCRIBES.values(), ids=SUBSCRIBES)
def test_a_closed_session_makes_no_subscription(
    connect: Connect, names: Names, topic: Topic, subscribe: Callable[[Session, Topic], object]
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    session.close()
    with pytest.raises(IllegalStateException):
        subscribe(session, topic)


@requirement("4.4.1-9")
def test_consumers_and_producers_of_a_closed_session_can_only_be_closed(
    session: Session, queue: Queue, other_session: Session
) -> None:
    consumer, producer = session.create_consumer(queue), session.create_producer(queue)
    session.close()
    message = other_session.create_text_message("late")
    calls: list[Callable[[], object]] = [
        lambda: consumer.receive(),
        lambda: consumer.receive(100),
        lambda: consumer.receive_no_wait(),
        lambda: consumer.message_selector,
        lambda: setattr(consumer, "message_listener", Recorder()),
        lambda: producer.send(message),
        lambda: producer.destination,
        lambda: setattr(producer, "priority", 5),
    ]
    for call in calls:
        with pytest.raises(IllegalStateException):
            call()
    for child in (consumer, producer):
        child.close()
        child.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.1-10", "B.2.21-11")
def test_messages_of_a_closed_session_can_be_used_but_not_acknowledged(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text", colour="red")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    message = receive(session.create_consumer(queue))
    session.close()
    assert isinstance(message, TextMessage)
    assert (message.text, message.get_string_property("colour")) == ("text", "red")
    with pytest.raises(IllegalStateException):
        message.acknowledge()
    message.clear_body()
    message.text = "anew"
    assert message.text == "anew"


@requirement("4.4.1-11", "B.2.21-13")
def test_closing_a_closed_session_raises_nothing(session: Session) -> None:
    session.close()
    session.close()
