"""4.4.7 Transactions."""

import pytest

from jmsapi import Connection, IllegalStateException, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_all, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.7-1")
@needs("transactions")
def test_a_session_can_be_created_as_transacted(connection: Connection) -> None:
    for session in (
        connection.create_session(True, 0),
        connection.create_session(Session.SESSION_TRANSACTED),
        connection.create_session(transacted=True),
    ):
        assert session.transacted is True
        assert session.acknowledge_mode == Session.SESSION_TRANSACTED


@requirement("4.4.7-2")
@needs("transactions")
def test_commit_acknowledges_what_was_consumed_and_sends_what_was_produced(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "1", "2", "3")
    connection = connect()
    session = connection.create_session(Session.SESSION_TRANSACTED)
    assert receive_texts(session.create_consumer(queue), 3) == ["1", "2", "3"]
    send_texts(session, target, "a", "b", "c")
    session.commit()
    connection.close()
    assert receive_texts(other_session.create_consumer(target), 3) == ["a", "b", "c"]
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.7-3")
@needs("transactions")
def test_messages_of_a_transaction_are_invisible_until_commit(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = other_session.create_consumer(queue)
    send_texts(session, queue, "a", "b")
    expect_nothing(consumer, other_session, queue)
    session.commit()
    assert receive_texts(consumer, 2) == ["a", "b"]


@requirement("4.4.7-3")
@needs("transactions", "browser")
def test_a_browser_does_not_show_messages_of_a_transaction(connection: Connection, queue: Queue, other_session: Session) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    send_texts(session, queue, "hidden")
    assert list(other_session.create_browser(queue)) == []
    session.commit()
    assert [text_of(message) for message in other_session.create_browser(queue)] == ["hidden"]


@requirement("4.4.7-4")
@needs("transactions")
def test_rollback_destroys_what_was_produced_and_recovers_what_was_consumed_in_order(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    target = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "1", "2", "3")
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = session.create_consumer(queue)
    assert receive_texts(consumer, 3) == ["1", "2", "3"]
    send_texts(session, target, "never")
    session.rollback()
    again = receive_all(consumer, 3)
    assert [text_of(message) for message in again] == ["1", "2", "3"]
    assert [message.jms_redelivered for message in again] == [True] * 3
    assert [message.get_int_property("JMSXDeliveryCount") for message in again] == [2] * 3
    session.commit()
    expect_nothing(other_session.create_consumer(target), other_session, target)


@requirement("4.4.7-5")
@needs("transactions")
def test_the_end_of_a_transaction_begins_the_next(connection: Connection, queue: Queue, other_session: Session) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = other_session.create_consumer(queue)
    session.commit()
    session.rollback()
    for number in range(3):
        send_texts(session, queue, f"dropped {number}")
        session.rollback()
        send_texts(session, queue, f"kept {number}")
        expect_nothing(consumer, other_session, queue)
        session.commit()
        assert receive_text(consumer) == f"kept {number}"


@requirement("4.4.7-6")
@needs("transactions", "durable_subscription")
def test_one_transaction_spans_all_producers_and_consumers_of_its_session(
    connect: Connect, other_session: Session, names: Names
) -> None:
    queue, topic = other_session.create_queue(names.queue()), other_session.create_topic(names.topic())
    to_queue, to_topic = other_session.create_queue(names.queue()), other_session.create_topic(names.topic())
    watch_queue, watch_topic = other_session.create_consumer(to_queue), other_session.create_consumer(to_topic)
    session = connect(client_id=names.client_id()).create_session(Session.SESSION_TRANSACTED)
    from_queue = session.create_consumer(queue)
    from_topic = session.create_durable_consumer(topic, names.subscription())
    send_texts(other_session, queue, "q")
    send_texts(other_session, topic, "t")

    for end in (session.rollback, session.commit):
        assert (receive_text(from_queue), receive_text(from_topic)) == ("q", "t")
        send_texts(session, to_queue, "to queue")
        send_texts(session, to_topic, "to topic")
        expect_nothing(watch_queue, other_session, to_queue)
        expect_nothing(watch_topic, other_session, to_topic)
        end()

    assert (receive_text(watch_queue), receive_text(watch_topic)) == ("to queue", "to topic")
    expect_nothing(from_queue, other_session, queue)
    expect_nothing(from_topic, other_session, topic)
    session.commit()
    from_topic.close()


@requirement("4.4.7-7")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_session_that_is_not_transacted_refuses_commit_and_rollback(connection: Connection, mode: int) -> None:
    session = connection.create_session(mode)
    with pytest.raises(IllegalStateException):
        session.commit()
    with pytest.raises(IllegalStateException):
        session.rollback()
