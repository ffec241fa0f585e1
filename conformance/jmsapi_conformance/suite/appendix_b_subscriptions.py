"""B. Change history: subscriptions."""

import time

import pytest

from jmsapi import JMSException, JMSRuntimeException, MessageConsumer, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import eventually, expect_nothing, receive, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._two_apis import refused


@requirement("B.2.21-7")
@needs("durable_subscription", "unsubscribe")
def test_a_durable_subscription_with_an_active_consumer_is_not_deleted(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    connection, name = connect(client_id=names.client_id()), names.subscription()
    session, sibling = connection.create_session(), connection.create_session()
    consumer = session.create_durable_consumer(topic, name)
    for one in (session, sibling):
        with pytest.raises(JMSException):
            one.unsubscribe(name)
    send_texts(other_session, topic, "1")
    assert receive_text(consumer) == "1"
    consumer.close()
    send_texts(other_session, topic, "2")
    with session.create_durable_consumer(topic, name) as again:
        assert receive_text(again) == "2"
    session.unsubscribe(name)


@requirement("B.5.6-1")
@needs("durable_subscription")
def test_create_durable_consumer_gives_a_plain_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    with session.create_durable_consumer(topic, names.subscription()) as consumer:
        assert isinstance(consumer, MessageConsumer)
        send_texts(other_session, topic, "text")
        assert receive_text(consumer) == "text"


@requirement("B.5.7.1-2")
@needs("shared_subscription")
def test_a_shared_subscription_is_known_by_its_name_and_the_client_id(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    connections = [connect(client_id=names.client_id()), connect(client_id=names.client_id()), connect()]
    consumers = [one.create_session().create_shared_consumer(topic, name) for one in connections]
    send_texts(other_session, topic, "text")
    assert [receive_text(consumer) for consumer in consumers] == ["text"] * 3
    same = connect().create_session().create_shared_consumer(topic, name)
    consumers[-1].close()
    send_texts(other_session, topic, "more")
    assert [receive_text(consumer) for consumer in (*consumers[:-1], same)] == ["more"] * 3


@requirement("B.5.7.2-1")
@needs("durable_subscription", "durable_exclusive")
def test_an_unshared_durable_subscription_has_one_consumer_at_a_time(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    connection, name = connect(client_id=names.client_id()), names.subscription()
    session, sibling = connection.create_session(), connection.create_session()
    with session.create_durable_consumer(topic, name) as consumer:
        for one in (session, sibling):
            with pytest.raises(JMSException):
                one.create_durable_consumer(topic, name)
            with pytest.raises(JMSException):
                one.create_durable_subscriber(topic, name)
        send_texts(other_session, topic, "text")
        assert receive_text(consumer) == "text"
    sibling.create_durable_consumer(topic, name).close()


@requirement("B.5.7.2-1")
@needs("durable_subscription", "durable_exclusive")
def test_an_unshared_durable_subscription_has_one_consumer_among_contexts(connect: Connect, topic: Topic, names: Names) -> None:
    context, name = connect.context(client_id=names.client_id()), names.subscription()
    with context.create_context(Session.AUTO_ACKNOWLEDGE) as sibling, context.create_durable_consumer(topic, name):
        for one in (context, sibling):
            with pytest.raises(JMSRuntimeException):
                one.create_durable_consumer(topic, name)


@requirement("B.5.7.2-3")
@needs("durable_subscription", "shared_durable_subscription")
@pytest.mark.parametrize("first", ["shared", "unshared"])
@pytest.mark.parametrize("active", [True, False], ids=["active", "inactive"])
def test_a_shared_and_an_unshared_durable_subscription_have_different_names(
    connect: Connect, topic: Topic, names: Names, first: str, active: bool
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    create = {"shared": session.create_shared_durable_consumer, "unshared": session.create_durable_consumer}
    second = "unshared" if first == "shared" else "shared"
    consumer = create[first](topic, name)
    if not active:
        consumer.close()
    with refused(session):
        create[second](topic, name)
    consumer.close()


@requirement("B.5.7.2-4")
@needs("durable_subscription", "shared_subscription", "unsubscribe")
def test_a_durable_and_a_shared_non_durable_subscription_may_have_one_name(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    durable, shared = session.create_durable_consumer(topic, name), session.create_shared_consumer(topic, name)
    send_texts(other_session, topic, "1")
    assert (receive_text(durable), receive_text(shared)) == ("1", "1")
    durable.close()
    session.unsubscribe(name)
    send_texts(other_session, topic, "2")
    assert receive_text(shared) == "2"
    with session.create_durable_consumer(topic, name) as anew:
        expect_nothing(anew, other_session, topic)


@requirement("B.5.7.2-5")
@needs("durable_subscription")
def test_a_durable_subscription_keeps_messages_until_they_are_acknowledged_or_expire(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with connect(client_id=client_id) as connection:
        connection.create_session().create_durable_consumer(topic, name).close()
    expiring, lasting = other_session.create_text_message("expiring"), other_session.create_text_message("lasting")
    with other_session.create_producer(topic) as producer:
        producer.send(expiring, delivery_mode=2, priority=4, time_to_live_ms=200)
        producer.send(lasting)
    eventually(lambda: time.time() * 1000 > expiring.jms_expiration + 50, "the first message has expired")
    for last in (False, True):
        with connect(client_id=client_id) as connection:
            session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
            message = receive(session.create_durable_consumer(topic, name))
            assert text_of(message) == "lasting"
            if last:
                message.acknowledge()
    with connect(client_id=client_id) as connection:
        expect_nothing(connection.create_session().create_durable_consumer(topic, name), other_session, topic)


@requirement("B.5.7.2-6")
@needs("durable_subscription", "unsubscribe")
@pytest.mark.parametrize(
    "mode", [Session.CLIENT_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_durable_subscription_with_unfinished_messages_is_not_deleted(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int
) -> None:
    connection, name = connect(client_id=names.client_id()), names.subscription()
    session, sibling = connection.create_session(mode), connection.create_session()
    consumer = session.create_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2")
    messages = [receive(consumer), receive(consumer)]
    consumer.close()
    for one in (session, sibling):
        with pytest.raises(JMSException):
            one.unsubscribe(name)
    if mode == Session.SESSION_TRANSACTED:
        session.commit()
    else:
        messages[-1].acknowledge()
    session.unsubscribe(name)
    with sibling.create_durable_consumer(topic, name) as anew:
        expect_nothing(anew, other_session, topic)


@requirement("B.5.7.2-7")
@needs("durable_subscription", "topic_selector")
def test_only_messages_that_match_the_selector_are_added(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    session, name = connect(client_id=names.client_id()).create_session(), names.subscription()
    session.create_durable_consumer(topic, name, "k = 1").close()
    for text, k in (("1", 1), ("2", 2), ("3", 1)):
        send_texts(other_session, topic, text, k=k)
    with session.create_durable_consumer(topic, name, "k = 1") as consumer:
        assert receive_texts(consumer, 2) == ["1", "3"]
        expect_nothing(consumer, other_session, topic, k=1)


@requirement("B.5.8-1")
@needs("shared_durable_subscription")
def test_a_shared_durable_subscription_needs_no_client_id(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    with connect() as connection:
        connection.create_session().create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "kept")
    context = connect.context()
    with context.create_shared_durable_consumer(topic, name) as consumer:
        assert receive_text(consumer) == "kept"
