"""Owners whose names look alike once they are joined have subscriptions of their own, on the brokers, over AMQP."""

from __future__ import annotations

import uuid

import pytest

import jmsapi
from jmsapi_conformance.brokers import Broker

pytestmark = pytest.mark.broker


def connect(broker: Broker, wire: str, client_id: str | None = None) -> jmsapi.Connection:
    given = {} if client_id is None else {"client_id": client_id}
    factory = jmsapi.connection_factory(broker.url(wire), user=broker.user, password=broker.password, **given)
    connection = factory.create_connection()
    connection.start()
    return connection


def text_of(message: jmsapi.Message | None) -> str | None:
    return None if message is None else message.get_body(str)


@pytest.mark.parametrize("kind", ["artemis", "classic", "rabbitmq"])
def test_client_ids_and_names_that_join_to_one_text_are_two_subscriptions(kind: str, request: pytest.FixtureRequest) -> None:
    broker: Broker = request.getfixturevalue(kind)
    word = uuid.uuid4().hex[:12]
    owners = [(f"{word}.b", "c"), (word, "b.c")]
    topics = [f"names.{word}.1", f"names.{word}.2"]
    for (client_id, name), topic in zip(owners, topics, strict=True):
        with connect(broker, "amqp", client_id) as connection:
            session = connection.create_session()
            session.create_durable_subscriber(session.create_topic(topic), name)
    with connect(broker, "amqp") as connection:
        session = connection.create_session()
        for topic in topics:
            session.create_producer(session.create_topic(topic)).send(session.create_text_message(topic))
    try:
        for (client_id, name), topic in zip(owners, topics, strict=True):
            with connect(broker, "amqp", client_id) as connection:
                session = connection.create_session()
                subscriber = session.create_durable_subscriber(session.create_topic(topic), name)
                assert text_of(subscriber.receive(10_000)) == topic
                assert subscriber.receive_no_wait() is None
    finally:
        for client_id, name in owners:
            with connect(broker, "amqp", client_id) as connection:
                connection.create_session().unsubscribe(name)


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_a_delayed_message_for_a_queue_does_not_go_to_the_topic_whose_delay_queue_looked_like_its_own(
    rabbitmq: Broker, wire: str
) -> None:
    word = uuid.uuid4().hex[:12]
    with connect(rabbitmq, wire) as connection:
        session = connection.create_session()
        queue, topic = session.create_queue(f"topic.{word}"), session.create_topic(word)
        by_queue, by_topic = session.create_consumer(queue), session.create_consumer(topic)
        for destination in (topic, queue):
            producer = session.create_producer(destination)
            producer.delivery_delay = 300
            producer.send(session.create_text_message(type(destination).__name__))
        assert text_of(by_queue.receive(10_000)) == type(queue).__name__
        assert text_of(by_topic.receive(10_000)) == type(topic).__name__
        assert (by_queue.receive(500), by_topic.receive_no_wait()) == (None, None)


@pytest.mark.parametrize(("kind", "name"), [("rabbitmq", "jms.s..{}"), ("artemis", "{topic}::{}:global")])
def test_the_messages_of_a_shared_subscription_cannot_be_taken_by_the_name_of_its_queue(
    kind: str, name: str, request: pytest.FixtureRequest
) -> None:
    broker: Broker = request.getfixturevalue(kind)
    word = uuid.uuid4().hex[:12]
    with connect(broker, "amqp") as connection:
        session = connection.create_session()
        topic = session.create_topic(f"names.{word}")
        shared = session.create_shared_durable_consumer(topic, word)
        try:
            with pytest.raises(jmsapi.InvalidDestinationException):
                session.create_consumer(session.create_queue(name.format(word, topic=f"names.{word}")))
        finally:
            shared.close()
            session.unsubscribe(word)
