"""4.10 Reliability: what a broker that was ended has when it is back."""

from jmsapi import DeliveryMode, JMSException, Message, MessageConsumer, Queue, Session
from jmsapi_conformance.backend import Backend, Restart
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import PATIENCE_MS, receive, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("broker_restart")

COUNT = 200
END = "end"


@requirement("4.7-2", "4.7-3", "4.10-1", "B.5.12-3")
def test_persistent_messages_come_once_and_others_at_most_once(
    backend: Backend, connect: Connect, names: Names, restart: Restart
) -> None:
    queue_name, topic_name, client_id, subscription = names.queue(), names.topic(), names.client_id(), names.subscription()
    durable = bool(backend.capabilities.durable_subscription)
    if durable:
        with connect(client_id=client_id) as connection:
            session = connection.create_session()
            session.create_durable_consumer(session.create_topic(topic_name), subscription).close()
    # In order first: the queue itself is an administrator's work, and RabbitMQ 4.0.5 forgets one that is seconds old when killed.
    for kill in (False, True):
        before = connect()
        session = before.create_session()
        queue = session.create_queue(queue_name)
        producer = session.create_producer(queue)
        for number in range(COUNT):
            producer.delivery_mode = DeliveryMode.PERSISTENT if number % 2 else DeliveryMode.NON_PERSISTENT
            producer.send(session.create_text_message(str(number)))
        if durable:
            send_texts(session, session.create_topic(topic_name), *(str(number) for number in range(COUNT)))
        holding = before.create_session(Session.CLIENT_ACKNOWLEDGE)
        # Handed out, never acknowledged; messages of two modes may overtake each other (4.4.10.2-2).
        assert text_of(receive(holding.create_consumer(queue))) in ("0", "1")
        restart(kill)

        after = connect(client_id=client_id if durable else None)
        session = after.create_session()
        queue = session.create_queue(queue_name)
        send_texts(session, queue, END)
        found = _up_to_end(session.create_consumer(queue))
        texts = [text_of(message) for message in found]
        assert len(set(texts)) == len(texts), "a message came twice"
        assert {str(number) for number in range(1, COUNT, 2)} <= set(texts), "a persistent message was lost"
        assert all((message.get_int_property("JMSXDeliveryCount") or 0) >= 1 for message in found)
        if durable:
            topic = session.create_topic(topic_name)
            consumer = session.create_durable_consumer(topic, subscription)
            send_texts(session, topic, END)
            assert [text_of(message) for message in _up_to_end(consumer)] == [str(number) for number in range(COUNT)]
        after.close()


@needs("transactions", "transactions_atomic")
@requirement("4.10-3")
def test_transfers_in_transactions_lose_and_double_nothing_over_kills(connect: Connect, names: Names, restart: Restart) -> None:
    source, target = names.queue(), names.queue()
    # What is not there is refused here, before anything is sent or restarted.
    connect().create_session(Session.SESSION_TRANSACTED).close()
    session = connect().create_session()
    send_texts(session, session.create_queue(source), *(str(number) for number in range(COUNT)), END)
    for kill_at in (COUNT // 4, COUNT // 2, None):
        transacted = connect().create_session(Session.SESSION_TRANSACTED)
        _transfer(transacted, transacted.create_queue(source), transacted.create_queue(target), kill_at, restart)

    session = connect().create_session()
    texts = [text_of(message) for message in _up_to_end(session.create_consumer(session.create_queue(target)))]
    assert sorted(texts, key=lambda text: int(text or "")) == [str(number) for number in range(COUNT)]


def _transfer(session: Session, source: Queue, target: Queue, kill_at: int | None, restart: Restart) -> None:
    """Move messages in transactions of ten until the last is moved, or until the broker is killed under one that is open.

    A commit whose answer was lost shows its outcome in the queues: the next round goes on from there.
    """
    consumer, producer = session.create_consumer(source), session.create_producer(target)
    moved = 0
    while True:
        try:
            message = consumer.receive(2 * PATIENCE_MS)
            if kill_at is None or moved < kill_at:
                assert message is not None, f"nothing more came after {moved}"
            text = text_of(message)
            producer.send(session.create_text_message(text))
            moved += 1
            if moved == kill_at:
                restart(True)
            if moved % 10 == 0 or text == END:
                session.commit()
        except JMSException:
            assert kill_at is not None
            assert moved >= kill_at
            return
        if text == END:
            assert kill_at is None, "a transaction went on over a kill of the broker"
            return


def _up_to_end(consumer: MessageConsumer) -> list[Message]:
    """Return the messages before the marker, behind all that was there before."""
    found: list[Message] = []
    while text_of(message := receive(consumer, 2 * PATIENCE_MS)) != END:
        found.append(message)
    return found
