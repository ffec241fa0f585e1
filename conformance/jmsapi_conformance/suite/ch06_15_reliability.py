"""6.15 Reliability of topics."""

import pytest

from jmsapi import DeliveryMode, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_texts, send_texts
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._subscriptions import each_durable_kind, end_of, subscribe

COUNT = 1000


@pytest.mark.parametrize(
    "delivery_mode",
    [
        pytest.param(DeliveryMode.NON_PERSISTENT, id="NON_PERSISTENT", marks=requirement("6.15-1")),
        pytest.param(DeliveryMode.PERSISTENT, id="PERSISTENT", marks=requirement("6.15-3")),
    ],
)
def test_a_non_durable_subscriber_gets_what_is_sent_while_it_is_active(
    session: Session, topic: Topic, other_session: Session, delivery_mode: int
) -> None:
    publish(other_session, topic, delivery_mode, range(10))
    # Behind what nobody confirms, so that all of it is over.
    send_texts(other_session, topic, "confirmed")
    consumer = session.create_consumer(topic)
    publish(other_session, topic, delivery_mode, range(10, COUNT))
    check(end_of(consumer, other_session, topic), range(10, COUNT), delivery_mode)
    consumer.close()
    publish(other_session, topic, delivery_mode, range(COUNT, COUNT + 10))
    send_texts(other_session, topic, "confirmed")
    expect_nothing(session.create_consumer(topic), other_session, topic)


@pytest.mark.parametrize(
    "delivery_mode",
    [
        pytest.param(DeliveryMode.NON_PERSISTENT, id="NON_PERSISTENT", marks=requirement("6.15-2")),
        pytest.param(DeliveryMode.PERSISTENT, id="PERSISTENT", marks=requirement("6.15-4")),
    ],
)
@each_durable_kind
def test_a_durable_subscriber_gets_what_is_sent_while_it_is_active_and_while_it_is_not(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, delivery_mode: int
) -> None:
    client_id, name = names.client_id(), names.subscription()
    received: list[str | None] = []
    step = COUNT // 4
    for start in range(0, COUNT, step):
        with connect(client_id=client_id) as connection:
            consumer = subscribe(connection.create_session(), kind, topic, name)
            publish(other_session, topic, delivery_mode, range(start, start + step // 2))
            if delivery_mode == DeliveryMode.PERSISTENT:
                received += receive_texts(consumer, step // 4)
        publish(other_session, topic, delivery_mode, range(start + step // 2, start + step))
    with connect(client_id=client_id) as connection:
        consumer = subscribe(connection.create_session(), kind, topic, name)
        received += end_of(consumer, other_session, topic)
    check([str(text) for text in received], range(COUNT), delivery_mode)


def publish(session: Session, topic: Topic, delivery_mode: int, numbers: range) -> None:
    """Publish numbers as texts."""
    with session.create_producer(topic) as producer:
        producer.delivery_mode = delivery_mode
        for number in numbers:
            producer.send(session.create_text_message(str(number)))


def check(received: list[str], sent: range, delivery_mode: int) -> None:
    """See that each number came once and in its order; what is not persistent may be missing, but nothing may come twice."""
    expected = [str(number) for number in sent]
    if delivery_mode == DeliveryMode.PERSISTENT:
        assert received == expected
    else:
        assert received == [text for text in expected if text in set(received)]
        assert received
