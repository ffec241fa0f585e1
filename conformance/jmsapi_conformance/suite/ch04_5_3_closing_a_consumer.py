"""4.5.3 Closing a consumer."""

import pytest

from jmsapi import Connection, IllegalStateException, JMSContext, Queue, Session
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import (
    HeldRecorder,
    eventually,
    expect_nothing,
    finish,
    must_wait,
    outcome_of,
    receive,
    receive_all,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.5.3-1")
def test_close_ends_a_pending_receive(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    pending = must_wait(consumer.receive)
    consumer.close()
    assert finish(pending) is None


@requirement("4.5.3-1")
def test_close_ends_a_pending_receive_of_a_context(context: JMSContext, names: Names) -> None:
    consumer = context.create_consumer(context.create_queue(names.queue()))
    pending = must_wait(consumer.receive)
    consumer.close()
    assert finish(pending) is None


@requirement("4.5.3-1")
def test_close_returns_when_the_running_listener_has_returned(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = session.create_consumer(queue)
    listener = HeldRecorder()
    consumer.message_listener = listener
    send_texts(other_session, queue, "first", "second")
    listener.started()
    closing = must_wait(consumer.close)
    listener.go_on()
    finish(closing)
    assert listener.outcomes == [None]
    assert receive_text(other_session.create_consumer(queue)) == "second"
    assert listener.texts == ["first"]


@requirement("4.5.3-1")
def test_each_close_waits_for_the_running_listener_also_the_second(
    session: Session, queue: Queue, other_session: Session
) -> None:
    consumer = session.create_consumer(queue)
    listener = HeldRecorder()
    consumer.message_listener = listener
    send_texts(other_session, queue, "text")
    listener.started()
    closing = [must_wait(consumer.close), must_wait(consumer.close)]
    listener.go_on()
    for close in closing:
        finish(close)
    assert listener.outcomes == [None]


@requirement("4.5.3-1")
def test_close_does_not_wait_for_the_listener_of_another_consumer(
    session: Session, queue: Queue, other_session: Session, names: Names
) -> None:
    consumer = session.create_consumer(session.create_queue(names.queue()))
    listener = HeldRecorder()
    session.create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "text")
    listener.started()
    consumer.close()
    assert listener.outcomes == []
    listener.go_on()
    eventually(lambda: listener.outcomes == [None], "the other listener returned")


@requirement("4.5.3-2", "B.5.18-3")
@pytest.mark.parametrize(
    "mode",
    [
        Session.AUTO_ACKNOWLEDGE,
        Session.CLIENT_ACKNOWLEDGE,
        Session.DUPS_OK_ACKNOWLEDGE,
        pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions")),
    ],
)
def test_a_listener_may_close_its_own_consumer(connection: Connection, queue: Queue, other_session: Session, mode: int) -> None:
    session = connection.create_session(mode)
    consumer = session.create_consumer(queue)

    def close_and_acknowledge() -> None:
        consumer.close()
        if mode == Session.SESSION_TRANSACTED:
            session.commit()
        else:
            listener.messages[0].acknowledge()

    listener = HeldRecorder(close_and_acknowledge)
    listener.go_on()
    send_texts(other_session, queue, "first", "second")
    consumer.message_listener = listener
    eventually(lambda: listener.outcomes, "close returned in the listener")
    assert listener.outcomes == [None]
    session.close()
    remaining = other_session.create_consumer(queue)
    assert receive_text(remaining) == "second"
    expect_nothing(remaining, other_session, queue)
    assert listener.texts == ["first"]


@requirement("4.5.3-2", "B.5.18-3")
def test_a_listener_may_close_its_own_consumer_of_a_context(context: JMSContext, names: Names, other_session: Session) -> None:
    queue = context.create_queue(names.queue())
    send_texts(other_session, queue, "first", "second")
    consumer = context.create_consumer(queue)
    outcomes: list[BaseException | None] = []
    consumer.message_listener = lambda _: outcomes.append(outcome_of(consumer.close))
    eventually(lambda: outcomes, "close returned in the listener")
    assert outcomes == [None]
    assert receive_text(other_session.create_consumer(queue)) == "second"


@requirement("4.5.3-3")
def test_what_a_closed_consumer_delivered_can_still_be_acknowledged(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    message = receive(consumer)
    consumer.close()
    message.acknowledge()
    session.recover()
    session.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.5.3-3")
def test_what_a_closed_consumer_delivered_is_not_acknowledged_by_that(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    receive_all(consumer, 2)
    consumer.close()
    session.close()
    again = receive_all(other_session.create_consumer(queue), 2)
    assert [text_of(message) for message in again] == ["1", "2"]


@requirement("4.5.3-3")
def test_recover_after_close_gives_the_message_to_the_next_consumer(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    receive(consumer)
    consumer.close()
    session.recover()
    again = receive(session.create_consumer(queue))
    assert text_of(again) == "text"
    again.acknowledge()


@requirement("4.5.3-3")
@needs("transactions")
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_closing_a_consumer_does_not_change_the_transaction(
    connection: Connection, queue: Queue, other_session: Session, names: Names, end: str
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "received")
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = session.create_consumer(queue)
    assert receive_text(consumer) == "received"
    send_texts(session, target, "sent")
    consumer.close()
    with other_session.create_consumer(target) as watch:
        expect_nothing(watch, other_session, target)
    getattr(session, end)()
    if end == "commit":
        assert receive_text(other_session.create_consumer(target)) == "sent"
        session.close()
        expect_nothing(other_session.create_consumer(queue), other_session, queue)
    else:
        assert receive_text(session.create_consumer(queue)) == "received"
        session.commit()
        expect_nothing(other_session.create_consumer(target), other_session, target)


@requirement("4.5.3-4", "B.5.11-1")
def test_consumers_and_producers_are_resources_of_a_with_statement(
    session: Session, context: JMSContext, queue: Queue, other_session: Session
) -> None:
    with session.create_consumer(queue) as consumer, other_session.create_producer(queue) as producer:
        producer.send(other_session.create_text_message("text"))
        assert receive_text(consumer) == "text"
    with pytest.raises(IllegalStateException):
        consumer.receive_no_wait()
    with pytest.raises(IllegalStateException):
        producer.send(other_session.create_text_message("late"))
    with pytest.raises(LookupError, match="of the block"), session.create_consumer(queue) as failing:
        raise LookupError("of the block")
    with pytest.raises(IllegalStateException):
        failing.receive_no_wait()
    with context.create_consumer(queue):
        pass
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.5.3-4", "B.5.11-1")
@needs("browser")
def test_browsers_are_resources_of_a_with_statement(session: Session, queue: Queue) -> None:
    with session.create_browser(queue) as browser:
        assert list(browser) == []
    with pytest.raises(IllegalStateException):
        _ = browser.enumeration
