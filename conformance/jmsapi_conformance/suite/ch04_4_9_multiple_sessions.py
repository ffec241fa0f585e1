"""4.4.9 Multiple sessions."""

import functools

import pytest

from jmsapi import Connection, DeliveryMode, Message, MessageConsumer, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    HeldRecorder,
    Recorder,
    eventually,
    expect_nothing,
    finish,
    in_thread,
    receive,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.9-1")
def test_recover_and_acknowledge_touch_one_session_only(connection: Connection, topic: Topic, other_session: Session) -> None:
    sessions = [connection.create_session(Session.CLIENT_ACKNOWLEDGE) for _ in range(3)]
    consumers = [session.create_consumer(topic) for session in sessions]
    send_texts(other_session, topic, "1", "2")
    messages = [receive_all(consumer, 2) for consumer in consumers]
    sessions[0].recover()
    messages[1][0].acknowledge()
    assert receive_texts(consumers[0], 2) == ["1", "2"]
    send_texts(other_session, topic, "3")
    assert [receive_text(consumer) for consumer in consumers] == ["3", "3", "3"]
    for session in sessions[1:]:
        session.recover()
    assert receive_text(consumers[1]) == "3"
    assert receive_texts(consumers[2], 3) == ["1", "2", "3"]


@requirement("4.4.9-1")
def test_closing_a_session_gives_back_its_own_messages_only(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    other_queue = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "of the first")
    send_texts(other_session, other_queue, "of the second")
    first, second = (connection.create_session(Session.CLIENT_ACKNOWLEDGE) for _ in range(2))
    assert receive_text(first.create_consumer(queue)) == "of the first"
    consumer = second.create_consumer(other_queue)
    message = receive(consumer)
    first.close()
    assert receive_text(other_session.create_consumer(queue)) == "of the first"
    expect_nothing(consumer, other_session, other_queue)
    message.acknowledge()
    second.close()
    expect_nothing(other_session.create_consumer(other_queue), other_session, other_queue)


@requirement("4.4.9-1")
@needs("transactions")
def test_a_commit_touches_its_own_session_only(connection: Connection, queue: Queue, other_session: Session) -> None:
    first, second = (connection.create_session(Session.SESSION_TRANSACTED) for _ in range(2))
    consumer = other_session.create_consumer(queue)
    send_texts(first, queue, "of the first")
    send_texts(second, queue, "of the second")
    second.commit()
    assert receive_text(consumer) == "of the second"
    expect_nothing(consumer, other_session, queue)
    first.rollback()
    second.rollback()
    expect_nothing(consumer, other_session, queue)


@requirement("4.4.9-2")
def test_sessions_that_subscribe_to_one_topic_each_get_every_message(
    connection: Connection, topic: Topic, other_session: Session
) -> None:
    consumers = [connection.create_session().create_consumer(topic) for _ in range(2)]
    expected = [str(number) for number in range(100)]
    send_texts(other_session, topic, *expected)
    for consumer in consumers:
        assert receive_texts(consumer, 100) == expected


@requirement("4.4.9-3")
@pytest.mark.parametrize("own_connection", [False, True], ids=["same connection", "own connection"])
def test_a_slow_subscriber_does_not_hold_up_others(
    connection: Connection, connect: Connect, topic: Topic, other_session: Session, own_connection: bool
) -> None:
    slow, quick = HeldRecorder(), Recorder()
    connection.create_session().create_consumer(topic).message_listener = slow
    (connect() if own_connection else connection).create_session().create_consumer(topic).message_listener = quick
    expected = [str(number) for number in range(1000)]
    producer = other_session.create_producer(topic)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT  # the slow one is held for a limited time only
    for text in expected:
        producer.send(other_session.create_text_message(text))
    slow.started()
    assert quick.wait_for_texts(1000) == expected
    assert slow.texts == ["0"]
    slow.go_on()
    assert slow.wait_for_texts(1000) == expected


@requirement("4.4.9-4")
def test_receivers_on_one_queue_get_each_message_once(connection: Connection, queue: Queue, other_session: Session) -> None:
    consumers = [connection.create_session().create_consumer(queue) for _ in range(2)]
    expected = [str(number) for number in range(100)]
    taken: list[str | None] = []

    def take(consumer: MessageConsumer) -> None:
        while len(taken) < 100:
            message: Message | None = consumer.receive(100)
            if message is not None:
                taken.append(text_of(message))

    taking = [in_thread(functools.partial(take, consumer)) for consumer in consumers]
    send_texts(other_session, queue, *expected)
    eventually(lambda: len(taken) >= 100, "all messages were received")
    for one in taking:
        finish(one)
    assert sorted(map(str, taken)) == sorted(expected)
    for consumer in consumers:
        consumer.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)
