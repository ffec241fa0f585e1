"""Shared subscriptions: who creates them, and what stands beside them."""

from collections.abc import Callable

import pytest

from jmsapi import (
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    JMSException,
    QueueConnection,
    QueueSession,
    ServerSession,
    ServerSessionPool,
    Session,
    Topic,
    UnsupportedFeatureException,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kept_subscriptions import queues_behind
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import each_shared_kind, in_total, received_between, subscribe

OnQueueSession = Callable[[QueueSession, Topic], object]
ON_A_QUEUE_SESSION: dict[str, OnQueueSession] = {
    "shared": lambda session, topic: session.create_shared_consumer(topic, "name"),
    "shared, selector": lambda session, topic: session.create_shared_consumer(topic, "name", "n = 1"),
    "shared durable": lambda session, topic: session.create_shared_durable_consumer(topic, "name"),
    "shared durable, selector": lambda session, topic: session.create_shared_durable_consumer(topic, "name", "n = 1"),
}


class Pool(ServerSessionPool):
    """A pool that nobody should ask."""

    def get_server_session(self) -> ServerSession:
        """Fail."""
        raise AssertionError("a pool was asked for a session")


OnQueueConnection = Callable[[QueueConnection, Topic], object]
ON_A_QUEUE_CONNECTION: dict[str, OnQueueConnection] = {
    "shared": lambda connection, topic: connection.create_shared_connection_consumer(topic, "name", None, Pool(), 1),
    "shared durable": lambda connection, topic: connection.create_shared_durable_connection_consumer(
        topic, "name", None, Pool(), 1
    ),
}


@requirement("SHS-43")
@pytest.mark.parametrize("call", ON_A_QUEUE_SESSION.values(), ids=ON_A_QUEUE_SESSION)
def test_a_queue_session_has_no_shared_consumers(connect: Connect, topic: Topic, call: OnQueueSession) -> None:
    session = connect.queues().create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    with pytest.raises(IllegalStateException):
        call(session, topic)
    assert session.create_message() is not None


@requirement("SHS-49")
@pytest.mark.parametrize("call", ON_A_QUEUE_CONNECTION.values(), ids=ON_A_QUEUE_CONNECTION)
def test_a_queue_connection_has_no_connection_consumers_on_shared_subscriptions(
    connect: Connect, topic: Topic, call: OnQueueConnection
) -> None:
    with pytest.raises(IllegalStateException):
        call(connect.queues(), topic)


@requirement("SHS-44")
@each_shared_kind
def test_a_topic_session_shares_like_any_other(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    first = subscribe(connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE), kind, topic, name)
    second = subscribe(connect().create_session(), kind, topic, name)
    send_texts(other_session, topic, *map(str, range(10)))
    assert in_total(received_between([first, second], 10)) == sorted(map(str, range(10)))
    first.close()
    second.close()


@requirement("SHS-51")
@needs("durable_subscription")
@each_shared_kind
def test_unshared_subscriptions_go_on_unchanged_beside_shared_ones(
    connect: Connect, topic: Topic, session: Session, other_session: Session, names: Names, kind: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    old = connect(client_id=client_id)
    durable = old.create_session().create_durable_consumer(topic, name)
    plain = session.create_consumer(topic)
    shared = [subscribe(connect().create_session(), kind, topic, name) for _ in range(2)]
    send_texts(other_session, topic, "1", "2", "3")
    assert receive_texts(durable, 3) == ["1", "2", "3"]
    assert receive_texts(plain, 3) == ["1", "2", "3"]
    assert in_total(received_between(shared, 3)) == ["1", "2", "3"]
    old.close()
    send_texts(other_session, topic, "4")
    assert in_total(received_between(shared, 1)) == ["4"]
    durable = connect(client_id=client_id).create_session().create_durable_consumer(topic, name)
    assert receive_text(durable) == "4"
    expect_nothing(durable, other_session, topic)
    for consumer in shared:
        consumer.close()


@requirement("SHS-52")
@each_shared_kind
def test_the_creators_share_or_fail_with_the_name_of_what_is_missing(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    session = connect().create_session()
    try:
        first = subscribe(session, kind, topic, name)
    except UnsupportedFeatureException as refusal:
        assert "shared" in str(refusal).lower()
        raise
    second = subscribe(session, kind, topic, name)
    send_texts(other_session, topic, "1", "2")
    assert in_total(received_between([first, second], 2)) == ["1", "2"]
    first.close()
    second.close()


@requirement("SHS-53")
@needs("shared_durable_subscription")
@pytest.mark.parametrize("with_id", [True, False], ids=["with client id", "without client id"])
def test_no_queue_of_a_similar_name_gives_what_a_subscription_holds(
    backend: Backend, connect: Connect, topic: Topic, other_session: Session, names: Names, with_id: bool
) -> None:
    client_id, name = names.client_id() if with_id else None, names.subscription()
    session = connect(client_id=client_id).create_session()
    session.create_shared_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "kept")
    for guess in (name, f"{topic.topic_name}.{name}", f"{client_id}.{name}", f"{client_id}:{name}", f"{name}|global"):
        names.queues.append(guess)
        try:
            consumer = other_session.create_consumer(other_session.create_queue(guess))
        except JMSException:
            continue
        assert consumer.receive(20) is None
        consumer.close()
    for real in queues_behind(backend.capabilities, client_id, name, topic.topic_name):
        with pytest.raises(InvalidDestinationException):
            other_session.create_consumer(other_session.create_queue(real))
        with pytest.raises(InvalidDestinationException):
            send_texts(other_session, other_session.create_queue(real), "not of the topic")
    consumer = session.create_shared_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"
    consumer.close()


@requirement("SHS-37")
@needs("shared_durable_subscription", "durable_subscription", "unsubscribe", "shared_unsubscribe")
@pytest.mark.parametrize("then", ["durable", "shared durable"])
def test_a_name_that_was_unsubscribed_can_be_used_again_in_either_way(
    connect: Connect, topic: Topic, other_session: Session, names: Names, then: str
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    session.create_shared_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "old")
    session.unsubscribe(name)
    consumer = subscribe(session, then, topic, name)
    expect_nothing(consumer, other_session, topic)
    consumer.close()
    session.unsubscribe(name)


@requirement("SHS-37")
@needs("shared_durable_subscription", "unsubscribe", "shared_unsubscribe", "unknown_subscription_reported")
def test_a_name_is_unsubscribed_once(connect: Connect, topic: Topic, names: Names) -> None:
    name = names.subscription()
    session = connect().create_session()
    session.create_shared_durable_consumer(topic, name).close()
    session.unsubscribe(name)
    with pytest.raises(InvalidDestinationException):
        session.unsubscribe(name)


@requirement("SHS-17")
@needs("client_id_exclusive")
@each_shared_kind
def test_a_shared_consumer_is_not_taken_over_by_another_connection_of_the_client_id(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    holder = connect(client_id=client_id)
    consumer = subscribe(holder.create_session(), kind, topic, name)
    with pytest.raises(InvalidClientIDException):
        connect(client_id=client_id)
    send_texts(other_session, topic, "still there")
    assert receive_text(consumer) == "still there"
    assert holder.client_id == client_id
    consumer.close()
