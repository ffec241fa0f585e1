"""JMS 1.1: subscriptions."""

import pytest

from jmsapi import Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._domains import each_interface, session_of, topic_session
from jmsapi_conformance.suite._subscriptions import end_of
from jmsapi_conformance.suite._two_apis import refused


@requirement("J11-4")
@needs("durable_subscription", "durable_exclusive")
@each_interface
def test_a_durable_subscription_has_one_subscriber_at_a_time(
    connect: Connect, topic: Topic, other_session: Session, names: Names, interface: str
) -> None:
    name = names.subscription()
    session = topic_session(connect, interface, client_id=names.client_id())
    first = session.create_durable_subscriber(topic, name)
    with refused(session):
        session.create_durable_subscriber(topic, name)
    send_texts(other_session, topic, "1", "2")
    assert receive_text(first) == "1"
    first.close()
    assert receive_text(session.create_durable_subscriber(topic, name)) == "2"


@requirement("J11-5")
@needs("durable_subscription")
@each_interface
def test_a_durable_subscription_needs_a_client_id(connect: Connect, topic: Topic, names: Names, interface: str) -> None:
    session = topic_session(connect, interface)
    with refused(session):
        session.create_durable_subscriber(topic, names.subscription())


@requirement("J11-6", "J11-7")
@needs("durable_subscription", "subscription_change_detected")
@pytest.mark.parametrize(
    "changed",
    [
        "topic",
        "name",
        pytest.param("selector", marks=needs("topic_selector")),
        pytest.param("no_local", marks=needs("no_local")),
    ],
)
@each_interface
def test_another_topic_name_selector_or_no_local_is_not_the_same_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names, changed: str, interface: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    new_topic = other_session.create_topic(names.topic()) if changed == "topic" else topic
    new_name = names.subscription() if changed == "name" else name
    with connect.topics(client_id=client_id) if interface == "own" else connect(client_id=client_id) as connection:
        session_of(connection).create_durable_subscriber(topic, name)
    send_texts(other_session, topic, "kept", n=1)
    session = topic_session(connect, interface, client_id=client_id)
    if changed == "selector":
        subscriber = session.create_durable_subscriber(topic, name, "n = 1")
    elif changed == "no_local":
        subscriber = session.create_durable_subscriber(topic, name, None, True)
    else:
        subscriber = session.create_durable_subscriber(new_topic, new_name)
    assert end_of(subscriber, other_session, new_topic, n=1) == []


@requirement("J11-7")
@needs("durable_subscription")
@pytest.mark.parametrize("selector", [None, pytest.param("n = 1", marks=needs("topic_selector"))])
@each_interface
def test_the_same_arguments_continue_a_durable_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names, selector: str | None, interface: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with connect(client_id=client_id) as connection:
        connection.create_session().create_durable_subscriber(topic, name, selector)
    send_texts(other_session, topic, "kept", n=1)
    session = topic_session(connect, interface, client_id=client_id)
    assert receive_text(session.create_durable_subscriber(topic, name, selector)) == "kept"


@requirement("J11-8")
def test_a_non_durable_subscription_belongs_to_one_subscriber(connect: Connect, topic: Topic, other_session: Session) -> None:
    session = connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    first, second = session.create_subscriber(topic), session.create_subscriber(topic)
    send_texts(other_session, topic, "1")
    assert [receive_text(first), receive_text(second)] == ["1", "1"]
    first.close()
    send_texts(other_session, topic, "2")
    assert receive_text(second) == "2"
    expect_nothing(second, other_session, topic)


@requirement("J11-9")
@needs("no_local")
@pytest.mark.parametrize("kind", ["non-durable", pytest.param("durable", marks=needs("durable_subscription"))])
def test_no_local_stops_what_the_own_connection_publishes(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    connection = connect.topics(client_id=names.client_id())
    session = connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    if kind == "durable":
        subscriber = session.create_durable_subscriber(topic, names.subscription(), None, True)
        everything = session.create_durable_subscriber(topic, names.subscription())
    else:
        subscriber = session.create_subscriber(topic, None, True)
        everything = session.create_subscriber(topic)
    assert (subscriber.no_local, everything.no_local) == (True, False)
    send_texts(connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE), topic, "own")
    send_texts(other_session, topic, "another's")
    assert receive_text(subscriber) == "another's"
    assert receive_texts(everything, 2) == ["own", "another's"]
    expect_nothing(subscriber, other_session, topic)
