"""6.3 Durable subscription, 6.9 and 6.12 What becomes of unacknowledged messages of a topic."""

import time

import pytest

from jmsapi import Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    eventually,
    expect_nothing,
    receive,
    receive_all,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._domains import each_interface, session_of, topic_consumer
from jmsapi_conformance.suite._subscriptions import each_durable_kind, each_ended_kind, subscribe

DEFERRED = pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)
ENDS = pytest.mark.parametrize("ended", ["session", "connection"])


@requirement("6.3-2")
@each_durable_kind
def test_a_later_consumer_resumes_where_the_earlier_one_left_off(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with connect(client_id=client_id) as connection:
        consumer = subscribe(connection.create_session(), kind, topic, name)
        send_texts(other_session, topic, *map(str, range(1, 11)))
        assert receive_texts(consumer, 3) == ["1", "2", "3"]
    consumer = subscribe(connect(client_id=client_id).create_session(), kind, topic, name)
    assert receive_texts(consumer, 7) == ["4", "5", "6", "7", "8", "9", "10"]
    expect_nothing(consumer, other_session, topic)


@requirement("6.3-3")
@each_durable_kind
def test_messages_are_kept_without_a_consumer_until_they_expire(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    subscribe(session, kind, topic, name).close()
    short_lived = other_session.create_text_message("short-lived")
    with other_session.create_producer(topic) as producer:
        producer.send(short_lived, delivery_mode=2, priority=4, time_to_live_ms=300)
        producer.send(other_session.create_text_message("lasting"))
    eventually(lambda: time.time() * 1000 > short_lived.jms_expiration + 200, "the time to live is over")
    consumer = subscribe(session, kind, topic, name)
    assert text_of(receive(consumer)) == "lasting"
    expect_nothing(consumer, other_session, topic)


@requirement("6.3-4")
@needs("unsubscribe")
@each_ended_kind
def test_applications_create_and_delete_durable_subscriptions(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    for turn in range(3):
        consumer = subscribe(session, kind, topic, name)
        expect_nothing(consumer, other_session, topic)
        consumer.close()
        send_texts(other_session, topic, f"old {turn}")
        session.unsubscribe(name)


@requirement("6.9-2", "B.3.1-11")
@needs("durable_subscription")
@DEFERRED
@ENDS
@each_interface
def test_what_a_durable_subscriber_has_not_acknowledged_is_kept_when_its_session_ends(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int, ended: str, interface: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    leave_unacknowledged(connect, topic, other_session, client_id, name, mode, ended, interface)
    consumer = connect(client_id=client_id).create_session().create_durable_subscriber(topic, name)
    assert receive_texts(consumer, 4) == ["1", "2", "3", "4"]
    expect_nothing(consumer, other_session, topic)


@requirement("6.9-2")
@needs("durable_subscription", "redelivered_flag")
@DEFERRED
@ENDS
def test_what_a_durable_subscriber_has_not_acknowledged_is_marked_redelivered(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int, ended: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    leave_unacknowledged(connect, topic, other_session, client_id, name, mode, ended, "common")
    consumer = connect(client_id=client_id).create_session().create_durable_subscriber(topic, name)
    assert [message.jms_redelivered for message in receive_all(consumer, 3)] == [True] * 3


@requirement("6.9-3")
@DEFERRED
@ENDS
@each_interface
def test_what_a_non_durable_subscriber_has_not_acknowledged_ends_with_it(
    connect: Connect, topic: Topic, other_session: Session, mode: int, ended: str, interface: str
) -> None:
    connection = connect.topics() if interface == "own" else connect()
    session = session_of(connection, mode)
    consumer = topic_consumer(session, topic)
    send_texts(other_session, topic, "1", "2", "3")
    assert receive_texts(consumer, 2) == ["1", "2"]
    (session if ended == "session" else connection).close()
    expect_nothing(topic_consumer(session_of(connect()), topic), other_session, topic)


@requirement("6.12-1", "B.3.1-9")
@DEFERRED
@each_interface
def test_a_non_durable_subscriber_recovers_what_it_has_not_acknowledged(
    connect: Connect, topic: Topic, other_session: Session, mode: int, interface: str
) -> None:
    session = session_of(connect.topics() if interface == "own" else connect(), mode)
    consumer = topic_consumer(session, topic)
    send_texts(other_session, topic, "1", "2", "3", "4")
    for _ in range(3):
        assert receive_texts(consumer, 3) == ["1", "2", "3"]
        session.rollback() if mode == Session.SESSION_TRANSACTED else session.recover()
    messages = receive_all(consumer, 4)
    assert [text_of(message) for message in messages] == ["1", "2", "3", "4"]
    assert [message.jms_redelivered for message in messages[:3]] == [True] * 3
    session.commit() if mode == Session.SESSION_TRANSACTED else messages[-1].acknowledge()
    expect_nothing(consumer, other_session, topic)


@requirement("6.12-2", "B.4.3.2-3")
def test_a_persistent_message_is_not_kept_for_subscribers_that_are_not_there(
    session: Session, topic: Topic, other_session: Session
) -> None:
    with other_session.create_producer(topic) as producer:
        producer.delivery_mode = 2
        producer.send(other_session.create_text_message("before"))
        session.create_consumer(topic).close()
        producer.send(other_session.create_text_message("after"))
    expect_nothing(session.create_consumer(topic), other_session, topic)


def leave_unacknowledged(
    connect: Connect,
    topic: Topic,
    sender: Session,
    client_id: str,
    name: str,
    mode: int,
    ended: str,
    interface: str,
) -> None:
    """Receive three messages of four from a durable subscription, and end session and connection without acknowledging them."""
    connection = connect.topics(client_id=client_id) if interface == "own" else connect(client_id=client_id)
    session = session_of(connection, mode)
    consumer = session.create_durable_subscriber(topic, name)
    send_texts(sender, topic, "1", "2", "3", "4")
    assert receive_texts(consumer, 3) == ["1", "2", "3"]
    if ended == "session":
        session.close()
    connection.close()
