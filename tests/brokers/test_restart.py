"""What a broker that is ended with kill -9 has when it is back: the requirements that no single process can show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsapi import Connection, DeliveryMode, JMSException, Message, MessageConsumer, Session, TextMessage, connection_factory
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

COUNT = 200
PATIENCE_MS = 20_000
END = "end"

PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("amqp", "classic"), ("stomp", "classic"), ("amqp", "rabbitmq")]
# Where a durable subscription can be shared, by the broker's own means.
SHARING: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("stomp", "artemis")]

pytestmark = pytest.mark.timeout(300)


def named(pairs: list[tuple[Wire, BrokerKind]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("wire", "kind"), pairs, ids=[f"{wire}-{kind}" for wire, kind in pairs])


def connect(url: str, client_id: str | None = None) -> Connection:
    connection = connection_factory(url).create_connection()
    if client_id is not None:
        connection.client_id = client_id
    connection.start()
    return connection


def texts_up_to_end(consumer: MessageConsumer) -> list[str]:
    """Return the bodies before the marker; every message there is lies before it."""
    found: list[str] = []
    while True:
        message = consumer.receive(PATIENCE_MS)
        assert isinstance(message, TextMessage), f"no marker; before it came {len(found)}"
        if message.text == END:
            return found
        found.append(message.text or "")


def text(message: Message | None) -> str:
    assert isinstance(message, TextMessage)
    return message.text or ""


@named(PAIRS)
def test_persistent_messages_come_once_and_others_at_most_once(
    wire: Wire, kind: BrokerKind, own_broker: Callable[[BrokerKind], Broker]
) -> None:
    """4.7-2, 4.7-3, 4.10-1, B.5.12-3: both modes mixed on one queue, and a durable subscription, over a restart."""
    broker = own_broker(kind)
    url = broker.url(wire)
    with connect(url, "restart") as connection, connection.create_session() as session:
        topic, queue = session.create_topic("restart.topic"), session.create_queue("restart.queue")
        session.create_durable_consumer(topic, "kept").close()
        producer = session.create_producer(None)
        for i in range(COUNT):
            mode = DeliveryMode.PERSISTENT if i % 2 else DeliveryMode.NON_PERSISTENT
            producer.send(queue, session.create_text_message(str(i)), delivery_mode=mode, priority=4, time_to_live_ms=0)
            producer.send(topic, session.create_text_message(str(i)))
        holding = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        # Handed out, never acknowledged; messages of two modes may overtake each other (4.4.10.2-2).
        assert text(holding.create_consumer(queue).receive(PATIENCE_MS)) in ("0", "1")
        broker.kill()

    broker.restart()
    with connect(url, "restart") as connection, connection.create_session() as session:
        topic, queue = session.create_topic("restart.topic"), session.create_queue("restart.queue")
        producer = session.create_producer(None)
        for destination in (queue, topic):
            producer.send(destination, session.create_text_message(END))
        with session.create_consumer(queue) as consumer:
            on_queue = texts_up_to_end(consumer)
        on_topic = texts_up_to_end(session.create_durable_consumer(topic, "kept"))
        producer.send(queue, session.create_text_message("counted"))
        counted = session.create_consumer(queue).receive(PATIENCE_MS)
        assert counted is not None
        assert (counted.get_int_property("JMSXDeliveryCount") or 0) >= 1
    assert sorted(on_topic, key=int) == [str(i) for i in range(COUNT)]
    assert len(set(on_queue)) == len(on_queue), "a message came twice"
    assert {str(i) for i in range(1, COUNT, 2)} <= set(on_queue), "a persistent message was lost"


@named(SHARING)
def test_a_shared_durable_subscription_is_there_again_with_all_it_kept(
    wire: Wire, kind: BrokerKind, own_broker: Callable[[BrokerKind], Broker]
) -> None:
    """SHS-20, SHS-21, SHS-22, SHS-23, SHS-58."""
    broker = own_broker(kind)
    url = broker.url(wire)
    with connect(url) as connection:
        session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        topic = session.create_topic("restart.shared")
        consumer = session.create_shared_durable_consumer(topic, "kept")
        producer = session.create_producer(topic)
        for i in range(20):
            producer.send(session.create_text_message(str(i)))
        assert [text(consumer.receive(PATIENCE_MS)) for _ in range(2)] == ["0", "1"]  # handed out, never acknowledged
        broker.kill()

    broker.restart()
    with connect(url) as one, connect(url) as other:
        sessions = [one.create_session(), other.create_session()]
        topic = sessions[0].create_topic("restart.shared")
        first = sessions[0].create_shared_durable_consumer(topic, "kept")
        kept = [text(first.receive(PATIENCE_MS)) for _ in range(20)]
        assert sorted(kept, key=int) == [str(i) for i in range(20)]

        second = sessions[1].create_shared_durable_consumer(topic, "kept")
        with pytest.raises(JMSException):  # it is shared and has consumers: nobody else has it alone
            sessions[1].create_durable_consumer(topic, "kept")
        producer = sessions[0].create_producer(topic)
        for i in range(20):
            producer.send(sessions[0].create_text_message(str(i)))
        found = [[], []]  # type: list[list[str]]
        while sum(map(len, found)) < 20:
            for got, consumer in zip(found, (first, second), strict=True):
                message = consumer.receive(100)
                if message is not None:
                    got.append(text(message))
        assert sorted(found[0] + found[1], key=int) == [str(i) for i in range(20)]
        assert found[0], "the first consumer had no share"
        assert found[1], "the second consumer had no share"


def test_transfers_lose_and_double_nothing_over_kills_of_the_broker(own_broker: Callable[[BrokerKind], Broker]) -> None:
    """4.10-3: queue to queue in transactions, the broker ended twice; a commit in doubt is found out from the target."""
    broker = own_broker("artemis")
    url = broker.url("amqp")
    with connect(url) as connection, connection.create_session() as session:
        producer = session.create_producer(session.create_queue("transfer.from"))
        for i in range(COUNT):
            producer.send(session.create_text_message(str(i)))
    for kill_at in (COUNT // 4, COUNT // 2, None):
        with connect(url) as connection:
            session = connection.create_session(Session.SESSION_TRANSACTED)
            source = session.create_consumer(session.create_queue("transfer.from"))
            target = session.create_producer(session.create_queue("transfer.to"))
            moved = 0
            try:
                while (message := source.receive(2000)) is not None:
                    target.send(session.create_text_message(text(message)))
                    moved += 1
                    if moved == kill_at:
                        broker.kill()
                    if moved % 10 == 0:
                        session.commit()
                session.commit()
                assert kill_at is None
            except JMSException:
                assert kill_at is not None
        if kill_at is not None:
            broker.restart()
    with connect(url) as connection, connection.create_session() as session:
        queue = session.create_queue("transfer.to")
        session.create_producer(queue).send(session.create_text_message(END))
        found = texts_up_to_end(session.create_consumer(queue))
    assert sorted(found, key=int) == [str(i) for i in range(COUNT)]
