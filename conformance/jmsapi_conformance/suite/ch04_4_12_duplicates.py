"""4.4.12 Duplicate delivery of messages and 4.4.13 Duplicate production of messages."""

from collections.abc import Sequence

import pytest

from jmsapi import Connection, Message, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive, receive_all, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement

MODES = [
    Session.AUTO_ACKNOWLEDGE,
    Session.CLIENT_ACKNOWLEDGE,
    Session.DUPS_OK_ACKNOWLEDGE,
    pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions")),
]


@requirement("4.4.12-1")
@pytest.mark.parametrize("mode", MODES)
def test_an_acknowledged_message_is_not_delivered_again_from_a_queue(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    connection = connect()
    session = connection.create_session(mode)
    consumer = session.create_consumer(queue)
    send_texts(other_session, queue, "1", "2", "3")
    acknowledge(session, receive_all(consumer, 3))
    recover(session)
    connection.close()
    expect_nothing(connect().create_session().create_consumer(queue), other_session, queue)


@requirement("4.4.12-1")
@needs("durable_subscription")
@pytest.mark.parametrize("mode", MODES)
def test_an_acknowledged_message_is_not_delivered_again_from_a_durable_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int
) -> None:
    client_id, name = names.client_id(), names.subscription()
    connection = connect(client_id=client_id)
    session = connection.create_session(mode)
    consumer = session.create_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2", "3")
    acknowledge(session, receive_all(consumer, 3))
    recover(session)
    connection.close()
    consumer = connect(client_id=client_id).create_session().create_durable_consumer(topic, name)
    expect_nothing(consumer, other_session, topic)


@requirement("4.4.13-1")
@pytest.mark.parametrize(
    "mode", [Session.AUTO_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_message_is_produced_once(
    connection: Connection, queue: Queue, topic: Topic, other_session: Session, mode: int
) -> None:
    subscribers = [other_session.create_consumer(topic) for _ in range(2)]
    session = connection.create_session(mode)
    expected = [str(number) for number in range(1000)]
    for destination in (queue, topic):
        send_texts(session, destination, *expected)
        if session.transacted:
            session.commit()
    receiver = other_session.create_consumer(queue)
    for consumer in (receiver, *subscribers):
        assert receive_texts(consumer, 1000) == expected
    expect_nothing(receiver, other_session, queue)
    send_texts(other_session, topic, "the end")
    assert [text_of(receive(consumer)) for consumer in subscribers] == ["the end", "the end"]


@requirement("4.4.13-2")
def test_what_recover_delivers_again_is_the_same_message(connection: Connection, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    first = receive(consumer)
    session.recover()
    again = receive(consumer)
    assert first.jms_message_id is not None
    assert again.jms_message_id == first.jms_message_id
    assert (first.jms_redelivered, again.jms_redelivered) == (False, True)
    again.acknowledge()
    expect_nothing(consumer, other_session, queue)


def acknowledge(session: Session, messages: Sequence[Message]) -> None:
    """Acknowledge all that was received, in the way of the session's mode."""
    if session.transacted:
        session.commit()
    else:
        messages[-1].acknowledge()


def recover(session: Session) -> None:
    """Ask for what is not acknowledged, in the way of the session's mode."""
    if session.transacted:
        session.rollback()
    else:
        session.recover()
