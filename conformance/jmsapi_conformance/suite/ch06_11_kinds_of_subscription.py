"""6.11 Kinds of subscription: what holds for each."""

import inspect

import pytest

from jmsapi import JMSContext, Session, TextMessage, Topic, TopicSession
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import each_durable_kind, each_kind, subscribe
from jmsapi_conformance.suite._two_apis import client_of, each_api


@requirement("6.11-2")
@needs("topic_selector")
@each_kind
@each_api
def test_only_messages_that_match_the_selector_enter_the_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, api: str
) -> None:
    client = client_of(connect, api, names.client_id())
    consumer = subscribe(client, kind, topic, names.subscription(), "n > 5")
    assert consumer.message_selector == "n > 5"
    for number in range(1, 11):
        send_texts(other_session, topic, str(number), n=number)
    send_texts(other_session, topic, "without the property")
    assert receive_texts(consumer, 5) == ["6", "7", "8", "9", "10"]
    expect_nothing(consumer, other_session, topic, n=6)


@requirement("6.11-2")
@needs("topic_selector")
@each_durable_kind
@each_api
def test_only_messages_that_match_the_selector_enter_the_subscription_while_it_has_no_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, api: str
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    subscribe(client, kind, topic, name, "n > 5").close()
    for number in range(1, 11):
        send_texts(other_session, topic, str(number), n=number)
    consumer = subscribe(client, kind, topic, name, "n > 5")
    assert receive_texts(consumer, 5) == ["6", "7", "8", "9", "10"]
    expect_nothing(consumer, other_session, topic, n=6)


@requirement("6.11-3")
@each_kind
def test_acknowledging_and_recovering_touch_one_subscription_only(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    connection = connect(client_id=names.client_id())
    sessions = [connection.create_session(Session.CLIENT_ACKNOWLEDGE) for _ in range(2)]
    first, second = (subscribe(session, kind, topic, names.subscription()) for session in sessions)
    send_texts(other_session, topic, "1", "2")
    assert receive_texts(second, 2) == ["1", "2"]
    assert receive_text(first) == "1"
    receive(first).acknowledge()
    for session in sessions:
        session.recover()
    expect_nothing(first, other_session, topic)
    assert receive_texts(second, 2) == ["1", "2"]


@requirement("6.11-3")
@each_kind
def test_changing_a_copy_changes_no_other(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    first, second = (subscribe(session, kind, topic, names.subscription()) for _ in range(2))
    send_texts(other_session, topic, "as sent", colour="red")
    changed = receive(first)
    assert isinstance(changed, TextMessage)
    changed.clear_body()
    changed.text = "changed"
    changed.clear_properties()
    changed.set_string_property("colour", "blue")
    other = receive(second)
    assert isinstance(other, TextMessage)
    assert (other.text, other.get_string_property("colour")) == ("as sent", "red")
    assert (changed.text, changed.get_string_property("colour")) == ("changed", "blue")


@requirement("6.11-4")
@needs("durable_subscription", "shared_subscription", "shared_durable_subscription")
@each_api
def test_one_topic_has_subscriptions_of_all_four_kinds(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    client = client_of(connect, api, names.client_id())
    consumers = [
        subscribe(client, kind, topic, names.subscription()) for kind in ("plain", "shared", "durable", "shared durable")
    ]
    expected = [str(number) for number in range(10)]
    send_texts(other_session, topic, *expected)
    for consumer in consumers:
        assert receive_texts(consumer, 10) == expected


@requirement("6.11.1-5")
@pytest.mark.parametrize(
    ("owner", "method"),
    [(Session, "create_consumer"), (JMSContext, "create_consumer"), (TopicSession, "create_subscriber")],
)
def test_nothing_names_an_unshared_non_durable_subscription_for_a_second_consumer(owner: type, method: str) -> None:
    _, destination, *rest = inspect.signature(getattr(owner, method)).parameters
    assert destination in ("destination", "topic")
    assert rest == ["message_selector", "no_local"]


@requirement("6.11.2-8", "6.11.4-10")
@pytest.mark.parametrize("owner", [Session, TopicSession, JMSContext])
def test_shared_subscriptions_have_no_no_local(owner: type[Session] | type[JMSContext]) -> None:
    of_shared = list(inspect.signature(owner.create_shared_consumer).parameters)
    assert of_shared == ["self", "topic", "shared_subscription_name", "message_selector"]
    of_shared_durable = list(inspect.signature(owner.create_shared_durable_consumer).parameters)
    assert of_shared_durable == ["self", "topic", "name", "message_selector"]


@requirement("6.11.1-5")
def test_equal_requests_make_two_unshared_non_durable_subscriptions(
    session: Session, topic: Topic, other_session: Session
) -> None:
    first, second = (session.create_consumer(topic, None, False) for _ in range(2))
    send_texts(other_session, topic, "1")
    first.close()
    send_texts(other_session, topic, "2")
    assert receive_texts(second, 2) == ["1", "2"]
    expect_nothing(second, other_session, topic)
