"""6.11.3 Unshared durable subscriptions: how they are replaced and ended."""

import pytest

from jmsapi import JMSContext, Message, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import end_of
from jmsapi_conformance.suite._two_apis import Client, client_of, client_within, each_api, refused

pytestmark = needs("durable_subscription")
DEFERRED = pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)


@requirement("6.11.3-5")
@needs("unsubscribe")
@each_api
def test_it_collects_messages_until_it_is_unsubscribed(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    with client_within(connect, api, client_id) as first:
        first.create_durable_consumer(topic, name)
    send_texts(other_session, topic, "kept")
    second = client_of(connect, api, client_id)
    consumer = second.create_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"
    consumer.close()
    send_texts(other_session, topic, "dropped")
    second.unsubscribe(name)
    send_texts(other_session, topic, "to nobody")
    expect_nothing(second.create_durable_consumer(topic, name), other_session, topic)


@requirement("6.11.3-6")
@needs("unsubscribe")
@each_api
def test_unsubscribing_is_an_error_while_it_has_a_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    consumer = client.create_durable_consumer(topic, name)
    send_texts(other_session, topic, "before")
    with refused(client):
        client.unsubscribe(name)
    if isinstance(client, JMSContext):
        with client.create_context(JMSContext.AUTO_ACKNOWLEDGE) as sibling, refused(sibling):
            sibling.unsubscribe(name)
    send_texts(other_session, topic, "after")
    assert receive_text(consumer) == "before"
    consumer.close()
    consumer = client.create_durable_consumer(topic, name)
    assert receive_text(consumer) == "after"
    consumer.close()
    client.unsubscribe(name)


@requirement("6.11.3-6")
@needs("unsubscribe")
def test_unsubscribing_is_an_error_while_another_session_has_a_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    connection = connect(client_id=names.client_id())
    consumer = connection.create_session().create_durable_consumer(topic, name)
    second = connection.create_session()
    with refused(second):
        second.unsubscribe(name)
    send_texts(other_session, topic, "text")
    assert receive_text(consumer) == "text"
    consumer.close()
    second.unsubscribe(name)
    send_texts(other_session, topic, "old")
    expect_nothing(second.create_durable_consumer(topic, name), other_session, topic)


@requirement("6.11.3-7")
@needs("unsubscribe")
@DEFERRED
@pytest.mark.parametrize("settled_by", ["acknowledging", "closing the session"])
def test_unsubscribing_is_an_error_while_a_message_is_not_acknowledged(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int, settled_by: str
) -> None:
    name = names.subscription()
    connection = connect(client_id=names.client_id())
    session, second = connection.create_session(mode), connection.create_session()
    consumer = session.create_durable_consumer(topic, name)
    bystander = other_session.create_consumer(topic)
    send_texts(other_session, topic, "1", "2")
    message = receive(consumer)
    consumer.close()
    for one in (session, second):
        with refused(one):
            one.unsubscribe(name)
    if settled_by == "acknowledging":
        settle(session, message)
    else:
        session.close()
    second.unsubscribe(name)
    expect_nothing(second.create_durable_consumer(topic, name), other_session, topic)
    assert receive_texts(bystander, 2) == ["1", "2"]


@requirement("6.11.3-8")
@needs("subscription_change_detected")
@each_api
def test_without_a_consumer_another_topic_replaces_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name, other_topic = names.subscription(), other_session.create_topic(names.topic())
    client = client_of(connect, api, names.client_id())
    client.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "1", "2", "3", "4", "5")
    consumer = client.create_durable_consumer(other_topic, name)
    send_texts(other_session, topic, "6")
    send_texts(other_session, other_topic, "of the other topic")
    assert receive_text(consumer) == "of the other topic"
    expect_nothing(consumer, other_session, other_topic)
    consumer.close()
    # Back again: what it collected at first is gone for good.
    consumer = client.create_durable_consumer(topic, name)
    assert end_of(consumer, other_session, topic) == []


@requirement("6.11.3-9")
@needs("topic_selector", "subscription_change_detected")
@pytest.mark.parametrize(("first", "then"), [(None, "n = 1"), ("n = 1", None), ("n = 1", "n < 2")])
@each_api
def test_without_a_consumer_another_selector_replaces_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, first: str | None, then: str | None
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    client.create_durable_consumer(topic, name, first).close()
    send_texts(other_session, topic, "old", n=1)
    consumer = client.create_durable_consumer(topic, name, then)
    assert consumer.message_selector == then
    assert end_of(consumer, other_session, topic, n=1) == []
    send_texts(other_session, topic, "0", n=0)
    send_texts(other_session, topic, "2", n=2)
    matches = {None: ["0", "2"], "n = 1": [], "n < 2": ["0"]}[then]
    assert end_of(consumer, other_session, topic, n=1) == matches


@requirement("6.11.3-9")
@needs("topic_selector")
@each_api
def test_the_same_selector_does_not_replace_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    client.create_durable_consumer(topic, name, "n = 1").close()
    send_texts(other_session, topic, "kept", n=1)
    assert receive_text(client.create_durable_consumer(topic, name, "n = 1")) == "kept"


@requirement("6.11.3-10")
@needs("no_local", "subscription_change_detected")
@pytest.mark.parametrize("no_local", [True, False], ids=["to no_local", "from no_local"])
@each_api
def test_without_a_consumer_another_no_local_value_replaces_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, no_local: bool
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    client.create_durable_consumer(topic, name, None, not no_local).close()
    send_texts(other_session, topic, "old")
    consumer = client.create_durable_consumer(topic, name, None, no_local)
    assert end_of(consumer, other_session, topic) == []
    publish(client, topic, "own")
    assert end_of(consumer, other_session, topic) == ([] if no_local else ["own"])


@requirement("6.11.3-11", "SHS-14")
@needs("shared_durable_subscription")
@pytest.mark.parametrize("active", [True, False], ids=["active", "inactive"])
@each_api
def test_the_name_of_a_shared_durable_subscription_is_taken(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, active: bool
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    consumer = client.create_shared_durable_consumer(topic, name)
    if not active:
        consumer.close()
    with refused(client):
        client.create_durable_consumer(topic, name)
    if isinstance(client, Session):
        with refused(client):
            client.create_durable_subscriber(topic, name)
    send_texts(other_session, topic, "kept")
    if not active:
        consumer = client.create_shared_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"


def settle(session: Session, message: Message) -> None:
    """Acknowledge or commit."""
    if session.transacted:
        session.commit()
    else:
        message.acknowledge()


def publish(client: Client, topic: Topic, text: str) -> None:
    """Publish over the client's own connection."""
    if isinstance(client, JMSContext):
        client.create_producer().send(topic, text)
    else:
        send_texts(client, topic, text)
