"""9.3.3 Durable subscriptions: what is kept for a client that is away, and what continues a subscription."""

import pytest

from jmsapi import Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_all, receive_text, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("durable_subscription")


@requirement("9.3.3-1", "B.5.23-1")
def test_a_client_that_connects_again_gets_what_was_published_in_its_absence(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    client_id, name = names.client_id(), names.subscription()
    first = connect(client_id=client_id)
    first.create_session().create_durable_consumer(topic, name)
    first.close()
    send_texts(other_session, topic, "1", "2")
    second = connect(client_id=client_id)
    consumer = second.create_session().create_durable_consumer(topic, name)
    assert receive_texts(consumer, 2) == ["1", "2"]
    expect_nothing(consumer, other_session, topic)
    second.close()


@requirement("9.3.3.2-1")
@needs("unsubscribe")
def test_a_subscription_collects_messages_until_it_is_unsubscribed(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    session.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "1", "2")
    with session.create_durable_consumer(topic, name) as consumer:
        assert receive_texts(consumer, 2) == ["1", "2"]
    send_texts(other_session, topic, "3")
    session.unsubscribe(name)
    send_texts(other_session, topic, "4")
    with session.create_durable_consumer(topic, name) as consumer:
        expect_nothing(consumer, other_session, topic)


@requirement("9.3.3.2-2")
@pytest.mark.parametrize("selector", [None, pytest.param("k = 1", marks=needs("topic_selector"))])
def test_either_durable_method_continues_what_the_other_has_made(
    connect: Connect, topic: Topic, other_session: Session, names: Names, selector: str | None
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    session.create_durable_subscriber(topic, name, selector, False).close()
    send_texts(other_session, topic, "for the consumer", k=1)
    with session.create_durable_consumer(topic, name, selector, False) as consumer:
        assert receive_text(consumer) == "for the consumer"
    send_texts(other_session, topic, "for the subscriber", k=1)
    with session.create_durable_subscriber(topic, name, selector, False) as subscriber:
        assert receive_text(subscriber) == "for the subscriber"


@requirement("9.3.3.2-3")
@needs("shared_durable_subscription")
def test_each_message_of_a_subscription_goes_to_one_of_its_consumers(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    one = connect(prefetch=1).create_session().create_shared_durable_consumer(topic, name)
    other = connect(prefetch=1).create_session().create_shared_durable_consumer(topic, name)
    sent = [str(number) for number in range(10)]
    send_texts(other_session, topic, *sent)
    received: list[str | None] = []
    while len(received) < len(sent):
        for consumer in (one, other):
            message = consumer.receive(200)
            if message is not None:
                received.append(text_of(message))
    assert sorted(received, key=str) == sent
    one.close()
    expect_nothing(other, other_session, topic)
    other.close()


@requirement("B.5.7.2-2")
@needs("subscription_change_detected")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param("topic", marks=requirement("9.3.3.2-4")),
        pytest.param("selector", marks=[requirement("9.3.3.2-6"), needs("topic_selector")]),
        pytest.param("no_local", marks=needs("no_local")),
    ],
)
def test_a_subscription_with_a_changed_parameter_is_a_new_one(
    connect: Connect, topic: Topic, other_session: Session, names: Names, change: str
) -> None:
    name = names.subscription()
    session = connect(client_id=names.client_id()).create_session()
    session.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "old", k=1)
    now = session.create_topic(names.topic()) if change == "topic" else topic
    selector = "k = 1" if change == "selector" else None
    with session.create_durable_consumer(now, name, selector, change == "no_local") as consumer:
        expect_nothing(consumer, other_session, now, k=1)
        if change == "topic":
            send_texts(other_session, topic, "to the former topic", k=1)
        if change == "selector":
            send_texts(other_session, now, "does not match", k=2)
        expect_nothing(consumer, other_session, now, k=1)


@requirement("9.3.3.2-5")
def test_the_same_name_with_another_client_id_is_another_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    one, other = (connect(client_id=names.client_id()).create_session() for _ in range(2))
    one.create_durable_consumer(topic, name).close()
    send_texts(other_session, topic, "kept for the first client")
    with other.create_durable_consumer(topic, name) as consumer:
        expect_nothing(consumer, other_session, topic)
    with one.create_durable_consumer(topic, name) as consumer:
        assert text_of(receive_all(consumer, 1)[0]) == "kept for the first client"
