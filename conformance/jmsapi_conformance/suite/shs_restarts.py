"""Shared durable subscriptions over a restart of the broker."""

import pytest

from jmsapi import JMSException, Session
from jmsapi_conformance.backend import Restart
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import PATIENCE_MS, Recorder, eventually, receive, receive_texts, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("broker_restart", "shared_durable_subscription")

COUNT = 20
TEXTS = [str(number) for number in range(COUNT)]


@requirement("SHS-20", "SHS-21", "SHS-58")
def test_a_subscription_is_there_again_with_all_that_was_not_acknowledged_and_is_shared(
    connect: Connect, names: Names, restart: Restart
) -> None:
    name, subscription = names.topic(), names.subscription()
    session = connect().create_session(Session.CLIENT_ACKNOWLEDGE)
    topic = session.create_topic(name)
    consumer = session.create_shared_durable_consumer(topic, subscription)
    send_texts(session, topic, *TEXTS)
    assert receive_texts(consumer, 2) == TEXTS[:2]  # handed out, never acknowledged
    restart(True)

    sessions = [connect().create_session() for _ in range(2)]
    topics = [one.create_topic(name) for one in sessions]
    first = sessions[0].create_shared_durable_consumer(topics[0], subscription)
    kept = [text_of(receive(first, 2 * PATIENCE_MS)) or "" for _ in TEXTS]
    assert sorted(kept, key=int) == TEXTS

    consumers = [first, sessions[1].create_shared_durable_consumer(topics[1], subscription)]
    recorders = [Recorder(), Recorder()]
    for consumer, recorder in zip(consumers, recorders, strict=True):
        consumer.message_listener = recorder
    sender = connect().create_session()
    send_texts(sender, sender.create_topic(name), *TEXTS)
    eventually(lambda: sum(len(recorder.messages) for recorder in recorders) >= COUNT, "all messages")
    assert sorted((text or "" for recorder in recorders for text in recorder.texts), key=int) == TEXTS
    assert all(recorder.messages for recorder in recorders), "one consumer had no share"
    for consumer in consumers:
        consumer.close()


@requirement("SHS-22", "SHS-23")
@needs("durable_subscription")
def test_an_unshared_consumer_of_a_restored_subscription_has_it_alone_or_is_refused_and_nothing_is_lost(
    connect: Connect, names: Names, restart: Restart
) -> None:
    name, subscription, client_id = names.topic(), names.subscription(), names.client_id()
    session = connect(client_id=client_id).create_session()
    topic = session.create_topic(name)
    session.create_shared_durable_consumer(topic, subscription).close()
    send_texts(session, topic, *TEXTS)
    restart(True)

    after = connect(client_id=client_id)
    one, other = after.create_session(), after.create_session()
    topic = one.create_topic(name)
    try:
        consumer = one.create_durable_consumer(topic, subscription)
    except JMSException:  # the stricter rule of SHS-14: it stays shared, and it is the unshared consumer that is refused
        consumer = one.create_shared_durable_consumer(topic, subscription)
        with pytest.raises(JMSException):
            other.create_durable_consumer(topic, subscription)
    else:
        with pytest.raises(JMSException):
            other.create_shared_durable_consumer(topic, subscription)
    assert [text_of(receive(consumer, 2 * PATIENCE_MS)) for _ in TEXTS] == TEXTS
    consumer.close()
