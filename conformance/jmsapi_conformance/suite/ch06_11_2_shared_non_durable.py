"""6.11.2 Shared non-durable subscriptions."""

import pytest

from jmsapi import JMSConsumer, JMSContext, MessageConsumer, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import (
    each_ended_kind,
    end_of,
    in_total,
    received_between,
    subscribe,
)
from jmsapi_conformance.suite._two_apis import client_of, each_api, refused

pytestmark = needs("shared_subscription")


@requirement("6.11.2-1", "SHS-18")
@pytest.mark.parametrize("second_api", ["Session", "JMSContext", "same Session"])
@each_api
def test_later_calls_add_consumers_to_the_subscription_that_the_first_has_created(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, second_api: str
) -> None:
    name = names.subscription()
    first = client_of(connect, api)
    second = first if second_api == "same Session" else client_of(connect, second_api)
    consumers = [client.create_shared_consumer(topic, name) for client in (first, second)]
    expected = [str(number) for number in range(20)]
    send_texts(other_session, topic, *expected)
    assert in_total(received_between(consumers, 20)) == sorted(expected)


@requirement("6.11.2-2", "SHS-42", "SHS-44")
@needs("topic_selector")
def test_each_api_returns_its_own_kind_of_consumer(
    connect: Connect, session: Session, context: JMSContext, topic: Topic, names: Names
) -> None:
    topic_session = connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    for client, kind in ((session, MessageConsumer), (topic_session, MessageConsumer), (context, JMSConsumer)):
        consumer = client.create_shared_consumer(topic, names.subscription())
        assert isinstance(consumer, kind)
        assert consumer.message_selector is None
        consumer = client.create_shared_consumer(topic, names.subscription(), "n = 1")
        assert isinstance(consumer, kind)
        assert consumer.message_selector == "n = 1"


@requirement("6.11.2-3", "SHS-2", "SHS-3")
def test_each_message_goes_to_one_consumer_of_several_connections(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    # With little credit none of them can take all for itself.
    consumers = [connect(prefetch=10).create_session().create_shared_consumer(topic, name) for _ in range(3)]
    expected = [str(number) for number in range(300)]
    send_texts(other_session, topic, *expected)
    received = received_between(consumers, 300)
    assert in_total(received) == sorted(expected)
    assert all(received)


@requirement("6.11.2-4", "SHS-8")
@each_api
def test_the_name_and_the_client_id_tell_one_from_another(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    clients = [client_of(connect, api, client_id) for client_id in (None, names.client_id(), names.client_id())]
    consumers = [client.create_shared_consumer(topic, name) for client in clients]
    other_name = clients[0].create_shared_consumer(topic, names.subscription())
    send_texts(other_session, topic, "1", "2")
    for consumer in (*consumers, other_name):
        assert receive_texts(consumer, 2) == ["1", "2"]
    for left, closed in enumerate(consumers[:-1], start=1):
        closed.close()
        send_texts(other_session, topic, f"{left}")
        for consumer in consumers[left:]:
            assert receive_text(consumer) == f"{left}"


@requirement("6.11.2-5", "SHS-38", "SHS-39", "SHS-50")
def test_it_lives_as_long_as_it_has_a_consumer(connect: Connect, topic: Topic, other_session: Session, names: Names) -> None:
    name = names.subscription()
    first, second = (connect().create_session().create_shared_consumer(topic, name) for _ in range(2))
    expected = [str(number) for number in range(10)]
    send_texts(other_session, topic, *expected)
    # What the one leaves unread is for the other.
    first.close()
    assert in_total(received_between([second], 10)) == expected
    send_texts(other_session, topic, "to the one that is left", "unread")
    assert receive_text(second) == "to the one that is left"
    second.close()
    send_texts(other_session, topic, "to nobody")
    expect_nothing(connect().create_session().create_shared_consumer(topic, name), other_session, topic)


@requirement("6.11.2-6", "SHS-10", "SHS-12")
@needs("subscription_change_detected")
@each_api
def test_another_topic_is_refused_while_it_has_a_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name, other_topic = names.subscription(), other_session.create_topic(names.topic())
    consumer = client_of(connect, api).create_shared_consumer(topic, name)
    for client in (client_of(connect, api), client_of(connect, api)):
        with refused(client):
            client.create_shared_consumer(other_topic, name)
    send_texts(other_session, other_topic, "of the other topic")
    expect_nothing(consumer, other_session, topic)


@requirement("6.11.2-7", "SHS-11", "SHS-12")
@needs("topic_selector", "subscription_change_detected")
@pytest.mark.parametrize(("first", "then"), [(None, "n = 1"), ("n = 1", None), ("n = 1", "n = 2")])
@each_api
def test_another_selector_is_refused_while_it_has_a_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, first: str | None, then: str | None
) -> None:
    name = names.subscription()
    consumer = client_of(connect, api).create_shared_consumer(topic, name, first)
    client = client_of(connect, api)
    with refused(client):
        client.create_shared_consumer(topic, name, then)
    if first is None:
        send_texts(other_session, topic, "2", n=2)
        assert receive_text(consumer) == "2"
    expect_nothing(consumer, other_session, topic, n=1)


@requirement("6.11.2-8")
@each_api
def test_it_receives_what_the_own_connection_publishes(connect: Connect, topic: Topic, names: Names, api: str) -> None:
    client = client_of(connect, api, names.client_id())
    consumer = client.create_shared_consumer(topic, names.subscription())
    if isinstance(client, JMSContext):
        client.create_producer().send(topic, "own")
    else:
        send_texts(client, topic, "own")
    assert receive_text(consumer) == "own"


@requirement("6.11.2-9", "SHS-15")
@pytest.mark.parametrize("durable_first", [True, False], ids=["durable first", "durable second"])
@pytest.mark.parametrize(
    ("kind", "with_id"),
    [
        pytest.param("durable", True, marks=needs("durable_subscription")),
        pytest.param("shared durable", True, marks=needs("shared_durable_subscription")),
        pytest.param("shared durable", False, marks=needs("shared_durable_subscription")),
    ],
)
def test_a_durable_subscription_of_the_same_name_is_another_one(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, durable_first: bool, with_id: bool
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id() if with_id else None).create_session()
    kinds = [kind, "shared"] if durable_first else ["shared", kind]
    consumers = {each: subscribe(session, each, topic, name) for each in kinds}
    send_texts(other_session, topic, "1", "2")
    for consumer in consumers.values():
        assert receive_texts(consumer, 2) == ["1", "2"]
    consumers["shared"].close()
    send_texts(other_session, topic, "3")
    assert receive_text(consumers[kind]) == "3"
    consumers[kind].close()
    send_texts(other_session, topic, "4")
    assert end_of(subscribe(session, "shared", topic, name), other_session, topic) == []
    assert receive_texts(subscribe(session, kind, topic, name), 2) == ["4", "the end"]


@requirement("6.11.2-9")
@needs("unsubscribe")
@each_ended_kind
def test_unsubscribing_ends_the_durable_subscription_of_the_name_only(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    subscribe(session, kind, topic, name).close()
    shared = subscribe(session, "shared", topic, name)
    send_texts(other_session, topic, "1")
    session.unsubscribe(name)
    send_texts(other_session, topic, "2")
    assert receive_texts(shared, 2) == ["1", "2"]
    assert end_of(subscribe(session, kind, topic, name), other_session, topic) == []
