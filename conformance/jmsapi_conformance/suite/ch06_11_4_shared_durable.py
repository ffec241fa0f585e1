"""6.11.4 Shared durable subscriptions."""

from collections.abc import Sequence

import pytest

from jmsapi import (
    InvalidDestinationException,
    InvalidDestinationRuntimeException,
    JMSConsumer,
    JMSContext,
    MessageConsumer,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import AnyConsumer, end_of, in_total, received_between
from jmsapi_conformance.suite._two_apis import client_of, client_within, each_api, refused

pytestmark = needs("shared_durable_subscription")


@requirement("6.11.4-1", "SHS-18")
@pytest.mark.parametrize("second_api", ["Session", "JMSContext", "same Session"])
@each_api
def test_later_calls_add_consumers_to_the_subscription_that_the_first_has_created(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, second_api: str
) -> None:
    name = names.subscription()
    first = client_of(connect, api)
    second = first if second_api == "same Session" else client_of(connect, second_api)
    consumers = [client.create_shared_durable_consumer(topic, name) for client in (first, second)]
    expected = [str(number) for number in range(20)]
    send_texts(other_session, topic, *expected)
    assert in_total(received_between(consumers, 20)) == sorted(expected)
    close_all(consumers)


@requirement("6.11.4-1", "SHS-42", "SHS-44")
@needs("topic_selector")
def test_each_api_returns_its_own_kind_of_consumer(
    connect: Connect, session: Session, context: JMSContext, topic: Topic, names: Names
) -> None:
    topic_session = connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    for client, kind in ((session, MessageConsumer), (topic_session, MessageConsumer), (context, JMSConsumer)):
        for selector in (None, "n = 1"):
            consumer = client.create_shared_durable_consumer(topic, names.subscription(), selector)
            assert isinstance(consumer, kind)
            assert consumer.message_selector == selector
            consumer.close()


@requirement("6.11.4-2", "SHS-33")
def test_messages_are_kept_with_and_without_consumers(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    with connect() as connection:
        connection.create_session().create_shared_durable_consumer(topic, name)
    expected = [str(number) for number in range(40)]
    send_texts(other_session, topic, *expected[:20])
    consumers = [connect(prefetch=5).create_session().create_shared_durable_consumer(topic, name) for _ in range(2)]
    send_texts(other_session, topic, *expected[20:])
    assert in_total(received_between(consumers, 40)) == sorted(expected)
    close_all(consumers)


@requirement("6.11.4-2")
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)
def test_messages_are_kept_until_they_are_acknowledged(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int
) -> None:
    name = names.subscription()
    with connect() as connection:
        consumer = connection.create_session(mode).create_shared_durable_consumer(topic, name)
        send_texts(other_session, topic, "1", "2", "3")
        assert receive_texts(consumer, 2) == ["1", "2"]
    consumer = connect().create_session().create_shared_durable_consumer(topic, name)
    assert in_total(received_between([consumer], 3)) == ["1", "2", "3"]
    consumer.close()


@requirement("6.11.4-3", "SHS-3")
def test_each_message_goes_to_one_of_several_consumers(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    consumers = [connect(prefetch=10).create_session().create_shared_durable_consumer(topic, name) for _ in range(3)]
    expected = [str(number) for number in range(300)]
    send_texts(other_session, topic, *expected)
    received = received_between(consumers, 300)
    assert in_total(received) == sorted(expected)
    assert all(received)
    close_all(consumers)


@requirement("6.11.4-3")
def test_what_a_consumer_leaves_unacknowledged_goes_to_another(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    leaving = connect().create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = leaving.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2", "3")
    assert receive_texts(consumer, 2) == ["1", "2"]
    staying = connect().create_session().create_shared_durable_consumer(topic, name)
    leaving.close()
    assert in_total(received_between([staying], 3)) == ["1", "2", "3"]
    staying.close()


@requirement("6.11.4-4", "SHS-8")
@each_api
def test_the_name_and_the_client_id_if_any_tell_one_from_another(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    ids = [None, names.client_id(), names.client_id()]
    for client_id in ids:
        with client_within(connect, api, client_id) as client:
            client.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2")
    for client_id in ids:
        with client_within(connect, api, client_id) as client:
            assert receive_texts(client.create_shared_durable_consumer(topic, name), 2) == ["1", "2"]
    # An id that is not among them finds nothing.
    with client_within(connect, api, names.client_id()) as client:
        expect_nothing(client.create_shared_durable_consumer(topic, name), other_session, topic)


@requirement("6.11.4-5", "SHS-35")
@needs("unsubscribe", "shared_unsubscribe")
@pytest.mark.parametrize("with_id", [True, False], ids=["with client id", "without client id"])
@each_api
def test_it_collects_messages_until_it_is_unsubscribed(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, with_id: bool
) -> None:
    client_id, name = names.client_id() if with_id else None, names.subscription()
    with client_within(connect, api, client_id) as client:
        client.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "kept")
    client = client_of(connect, api, client_id)
    consumer = client.create_shared_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"
    consumer.close()
    send_texts(other_session, topic, "dropped")
    client.unsubscribe(name)
    consumer = client.create_shared_durable_consumer(topic, name)
    expect_nothing(consumer, other_session, topic)
    consumer.close()


@requirement("6.11.4-5")
@needs("unsubscribe", "unknown_subscription_reported")
@pytest.mark.parametrize("with_id", [True, False], ids=["with client id", "without client id"])
@each_api
def test_another_client_id_cannot_unsubscribe_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, with_id: bool
) -> None:
    client_id, name = names.client_id() if with_id else None, names.subscription()
    client = client_of(connect, api, client_id)
    client.create_shared_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "kept")
    unknown = InvalidDestinationException if api == "Session" else InvalidDestinationRuntimeException
    for stranger in (names.client_id(), None if with_id else names.client_id()):
        with client_within(connect, api, stranger) as other, pytest.raises(unknown):
            other.unsubscribe(name)
    consumer = client.create_shared_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"
    consumer.close()


@requirement("6.11.4-6", "SHS-36")
@needs("unsubscribe", "shared_unsubscribe")
@each_api
def test_unsubscribing_is_an_error_while_another_connection_has_a_consumer(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name = names.subscription()
    consumer = connect().create_session().create_shared_durable_consumer(topic, name)
    client = client_of(connect, api)
    own = client.create_shared_durable_consumer(topic, name)
    own.close()
    send_texts(other_session, topic, "before")
    with refused(client):
        client.unsubscribe(name)
    send_texts(other_session, topic, "after")
    assert receive_texts(consumer, 2) == ["before", "after"]
    consumer.close()
    client.unsubscribe(name)


@requirement("6.11.4-6")
@needs("unsubscribe", "shared_unsubscribe")
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)
def test_unsubscribing_is_an_error_while_a_message_is_not_acknowledged(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int
) -> None:
    name = names.subscription()
    connection = connect()
    session, second = connection.create_session(mode), connection.create_session()
    consumer = session.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2")
    message = receive(consumer)
    consumer.close()
    for one in (session, second):
        with refused(one):
            one.unsubscribe(name)
    session.commit() if mode == Session.SESSION_TRANSACTED else message.acknowledge()
    consumer = second.create_shared_durable_consumer(topic, name)
    assert receive_text(consumer) == "2"
    consumer.close()
    second.unsubscribe(name)


@requirement("6.11.4-6")
@needs("shared_unsubscribe")
@pytest.mark.parametrize("end", ["close", "commit"])
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)
def test_unsubscribing_is_an_error_while_another_connection_holds_a_message(
    connect: Connect, topic: Topic, other_session: Session, names: Names, mode: int, end: str
) -> None:
    name = names.subscription()
    holding, second = connect(prefetch=1).create_session(mode), connect().create_session()
    consumer = holding.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "1", "2")
    message = receive(consumer)
    consumer.close()
    with refused(second):
        second.unsubscribe(name)
    if end == "commit":
        holding.commit() if mode == Session.SESSION_TRANSACTED else message.acknowledge()
    holding.close()
    consumer = second.create_shared_durable_consumer(topic, name)
    assert receive_texts(consumer, 1 if end == "commit" else 2) == (["2"] if end == "commit" else ["1", "2"])
    consumer.close()
    second.unsubscribe(name)


@requirement("6.11.4-7", "SHS-24")
@needs("topic_selector", "subscription_change_detected")
@each_api
def test_without_a_consumer_another_topic_or_selector_replaces_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str
) -> None:
    name, other_topic = names.subscription(), other_session.create_topic(names.topic())
    client = client_of(connect, api)
    client.create_shared_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "old")
    consumer = client.create_shared_durable_consumer(other_topic, name)
    send_texts(other_session, topic, "of the first topic")
    send_texts(other_session, other_topic, "of the other topic")
    assert end_of(consumer, other_session, other_topic) == ["of the other topic"]
    consumer.close()
    send_texts(other_session, other_topic, "old", n=1)
    consumer = client.create_shared_durable_consumer(other_topic, name, "n = 1")
    send_texts(other_session, other_topic, "not selected", n=2)
    assert end_of(consumer, other_session, other_topic, n=1) == []
    consumer.close()


@requirement("6.11.4-8", "SHS-10", "SHS-11", "SHS-12")
@needs("topic_selector", "subscription_change_detected")
@pytest.mark.parametrize(("first", "then"), [(None, "n = 1"), ("n = 1", None), ("n = 1", "n = 2")])
@each_api
def test_with_a_consumer_another_topic_or_selector_is_refused(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, first: str | None, then: str | None
) -> None:
    name, other_topic = names.subscription(), other_session.create_topic(names.topic())
    consumer = client_of(connect, api).create_shared_durable_consumer(topic, name, first)
    client = client_of(connect, api)
    with refused(client):
        client.create_shared_durable_consumer(other_topic, name, first)
    with refused(client):
        client.create_shared_durable_consumer(topic, name, then)
    send_texts(other_session, other_topic, "of the other topic", n=1)
    expect_nothing(consumer, other_session, topic, n=1)
    second = client.create_shared_durable_consumer(topic, name, first)
    close_all([consumer, second])


@requirement("6.11.4-9", "SHS-13")
@needs("durable_subscription")
@pytest.mark.parametrize("active", [True, False], ids=["active", "inactive"])
@each_api
def test_the_name_of_an_unshared_durable_subscription_is_taken(
    connect: Connect, topic: Topic, other_session: Session, names: Names, api: str, active: bool
) -> None:
    name = names.subscription()
    client = client_of(connect, api, names.client_id())
    consumer = client.create_durable_consumer(topic, name)
    if not active:
        consumer.close()
    with refused(client):
        client.create_shared_durable_consumer(topic, name)
    send_texts(other_session, topic, "kept")
    if not active:
        consumer = client.create_durable_consumer(topic, name)
    assert receive_text(consumer) == "kept"


@requirement("6.11.4-10")
@each_api
def test_it_receives_what_the_own_connection_publishes(connect: Connect, topic: Topic, names: Names, api: str) -> None:
    client = client_of(connect, api, names.client_id())
    consumer = client.create_shared_durable_consumer(topic, names.subscription())
    if isinstance(client, JMSContext):
        client.create_producer().send(topic, "own")
    else:
        send_texts(client, topic, "own")
    assert receive_text(consumer) == "own"


def close_all(consumers: Sequence[AnyConsumer]) -> None:
    """Close consumers: what is left of a name can be ended only when nobody uses it."""
    for consumer in consumers:
        consumer.close()
