"""6.11.3 Unshared durable subscriptions: what they keep, and for whom."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    IllegalStateRuntimeException,
    JMSConsumer,
    JMSContext,
    MessageConsumer,
    Session,
    Topic,
    TopicConnectionFactory,
    TopicSubscriber,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive, receive_all, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._two_apis import client_of, each_api, refused

pytestmark = needs("durable_subscription")

WAYS: dict[str, type] = {
    "Session.create_durable_subscriber": TopicSubscriber,
    "Session.create_durable_consumer": MessageConsumer,
    "TopicSession.create_durable_subscriber": TopicSubscriber,
    "TopicSession.create_durable_consumer": MessageConsumer,
    "JMSContext.create_durable_consumer": JMSConsumer,
}
DEFERRED = pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)


@requirement("6.11.3-1")
@pytest.mark.parametrize("first", WAYS)
def test_each_creating_method_resumes_what_another_has_created(
    backend: Backend, topic: Topic, other_session: Session, names: Names, first: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with durable_by(first, backend, client_id, topic, name) as consumer:
        assert isinstance(consumer, WAYS[first])
    for way in WAYS:
        send_texts(other_session, topic, f"before {way}")
        with durable_by(way, backend, client_id, topic, name) as consumer:
            assert isinstance(consumer, WAYS[way])
            assert receive_text(consumer) == f"before {way}"
            expect_nothing(consumer, other_session, topic)


@requirement("6.11.3-2")
def test_messages_are_kept_with_and_without_a_consumer_until_they_are_acknowledged(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    client_id, name = names.client_id(), names.subscription()
    expected = [str(number) for number in range(40)]
    received: list[str | None] = []
    with connect(client_id=client_id) as connection:
        connection.create_session().create_durable_consumer(topic, name)
    for start in range(0, 40, 20):
        send_texts(other_session, topic, *expected[start : start + 10])
        with connect(client_id=client_id) as connection:
            consumer = connection.create_session().create_durable_consumer(topic, name)
            send_texts(other_session, topic, *expected[start + 10 : start + 20])
            received += receive_texts(consumer, 15)
    with connect(client_id=client_id) as connection:
        consumer = connection.create_session().create_durable_consumer(topic, name)
        received += receive_texts(consumer, 10)
        expect_nothing(consumer, other_session, topic)
    assert received == expected


@requirement("6.11.3-2")
@DEFERRED
def test_what_was_not_acknowledged_comes_again(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with connect(client_id=client_id) as connection:
        consumer = connection.create_session(mode).create_durable_consumer(topic, name)
        send_texts(other_session, topic, "1", "2", "3")
        assert receive_texts(consumer, 2) == ["1", "2"]
    consumer = connect(client_id=client_id).create_session().create_durable_consumer(topic, name)
    assert receive_texts(consumer, 3) == ["1", "2", "3"]
    expect_nothing(consumer, other_session, topic)


@requirement("6.11.3-1", "6.11.3-2")
@DEFERRED
@pytest.mark.parametrize("again", [True, False], ids=["given again", "acknowledged"])
def test_a_session_goes_on_behind_what_it_has_not_acknowledged_when_it_opens_a_new_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int, again: bool
) -> None:
    client_id, name = names.client_id(), names.subscription()
    connection = connect(client_id=client_id)
    session = connection.create_session(mode)
    expected = ["1", "2", "3", "4", "5"]
    first = session.create_durable_consumer(topic, name)
    send_texts(other_session, topic, *expected[:4])
    assert receive_texts(first, 2) == ["1", "2"]
    first.close()
    send_texts(other_session, topic, "5")
    second = session.create_durable_subscriber(topic, name)
    assert receive_texts(second, 3) == ["3", "4", "5"]
    if again:
        session.rollback() if mode == Session.SESSION_TRANSACTED else session.recover()
        messages = receive_all(second, 5)
        assert [text_of(message) for message in messages] == expected
        assert all(message.jms_redelivered for message in messages)
        session.rollback() if mode == Session.SESSION_TRANSACTED else session.recover()
        messages = receive_all(second, 5)
        assert [text_of(message) for message in messages] == expected
    with pytest.raises(IllegalStateException):
        first.receive(1)
    send_texts(other_session, topic, "end")
    last = receive(second)
    assert text_of(last) == "end"
    session.commit() if mode == Session.SESSION_TRANSACTED else last.acknowledge()
    connection.close()
    third = connect(client_id=client_id).create_session().create_durable_consumer(topic, name)
    expect_nothing(third, other_session, topic)


@requirement("6.11.3-3", "B.5.7.2-1", "SHS-16")
@needs("durable_exclusive")
@each_api
def test_a_second_consumer_is_refused_while_one_is_active(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    consumer = client.create_durable_consumer(topic, name)
    send_texts(other_session, topic, "before")
    with refused(client):
        client.create_durable_consumer(topic, name)
    with refused(client):
        client.create_durable_consumer(topic, name, None, True)
    if isinstance(client, JMSContext):
        with client.create_context(JMSContext.AUTO_ACKNOWLEDGE) as sibling, refused(sibling):
            sibling.create_durable_consumer(topic, name)
    else:
        with refused(client):
            client.create_durable_subscriber(topic, name)
    send_texts(other_session, topic, "after")
    assert receive_texts(consumer, 2) == ["before", "after"]
    consumer.close()
    client.create_durable_consumer(topic, name).close()


@requirement("6.11.3-3", "SHS-16")
@needs("durable_exclusive")
def test_a_second_consumer_is_refused_in_another_session_of_the_connection(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    connection = connect(client_id=names.client_id())
    consumer = connection.create_session().create_durable_consumer(topic, name)
    second = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    send_texts(other_session, topic, "before")
    with refused(second):
        second.create_durable_consumer(topic, name)
    with refused(second):
        second.create_durable_subscriber(topic, name)
    send_texts(other_session, topic, "after")
    assert receive_texts(consumer, 2) == ["before", "after"]
    consumer.close()
    expect_nothing(second.create_durable_consumer(topic, name), other_session, topic)


@requirement("6.11.3-4", "B.5.8-2")
@each_api
def test_without_a_client_id_none_can_be_created(connect: Connect, topic: Topic, names: Names, api: str) -> None:
    client = client_of(connect, api)
    with pytest.raises(IllegalStateException if api == "Session" else IllegalStateRuntimeException):
        client.create_durable_consumer(topic, names.subscription())


@requirement("6.11.3-4")
@each_api
def test_one_name_under_two_client_ids_is_two_subscriptions(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    clients = [client_of(connect, api, names.client_id()) for _ in range(2)]
    first, second = (client.create_durable_consumer(topic, name) for client in clients)
    send_texts(other_session, topic, "1", "2")
    assert receive_texts(first, 2) == ["1", "2"]
    first.close()
    send_texts(other_session, topic, "3")
    assert receive_texts(second, 3) == ["1", "2", "3"]
    expect_nothing(second, other_session, topic)
    assert receive_text(clients[0].create_durable_consumer(topic, name)) == "3"


@requirement("6.11.3-12", "B.5.19-1")
@needs("no_local")
def test_no_local_leaves_out_what_is_published_under_the_own_client_id_now_and_later(
    connect: Connect, topic: Topic, names: Names
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with connect(client_id=client_id) as connection:
        session = connection.create_session()
        session.create_durable_consumer(topic, name, None, True)
        send_texts(connection.create_session(), topic, "by the own connection")
    with connect(client_id=client_id) as connection:
        send_texts(connection.create_session(), topic, "by a later connection of the client id")
    with connect(client_id=names.client_id()) as connection:
        send_texts(connection.create_session(), topic, "by another client")
    with connect() as connection:
        send_texts(connection.create_session(), topic, "by a client without id")
    consumer = connect(client_id=client_id).create_session().create_durable_consumer(topic, name, None, True)
    assert receive_texts(consumer, 2) == ["by another client", "by a client without id"]
    expect_nothing(consumer, connect().create_session(), topic)


@contextmanager
def durable_by(way: str, backend: Backend, client_id: str, topic: Topic, name: str) -> Generator[MessageConsumer | JMSConsumer]:
    """Open an unshared durable subscription by one of the five methods; its connection is closed at the end."""
    factory = backend.factory(client_id=client_id)
    owner, _, method = way.partition(".")
    if owner == "JMSContext":
        with factory.create_context() as context:
            yield context.create_durable_consumer(topic, name)
        return
    assert isinstance(factory, TopicConnectionFactory)
    connection: Connection
    session: Session
    if owner == "TopicSession":
        connection = topics = factory.create_topic_connection()
        session = topics.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    else:
        connection = factory.create_connection()
        session = connection.create_session()
    with connection:
        connection.start()
        if method == "create_durable_subscriber":
            yield session.create_durable_subscriber(topic, name)
        else:
            yield session.create_durable_consumer(topic, name)
