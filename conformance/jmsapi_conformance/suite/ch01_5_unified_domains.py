"""1.3 What is required and 1.5 Unified domains."""

import pytest

from jmsapi import Connection, JMSContext, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("1.3-1")
def test_one_session_has_queues_and_topics(session: Session, queue: Queue, topic: Topic) -> None:
    consumers = [session.create_consumer(queue), session.create_consumer(queue)]
    subscribers = [session.create_consumer(topic), session.create_consumer(topic)]
    send_texts(session, topic, "to all")
    assert [receive_text(subscriber) for subscriber in subscribers] == ["to all", "to all"]
    consumers[0].close()
    send_texts(session, queue, "to one")
    assert receive_text(consumers[1]) == "to one"
    expect_nothing(consumers[1], session, queue)


@requirement("1.3-1")
def test_one_context_has_queues_and_topics(context: JMSContext, names: Names) -> None:
    queue, topic = context.create_queue(names.queue()), context.create_topic(names.topic())
    subscribers = [context.create_consumer(topic), context.create_consumer(topic)]
    producer = context.create_producer()
    producer.send(topic, "to all").send(queue, "to one")
    assert [receive_text(subscriber) for subscriber in subscribers] == ["to all", "to all"]
    assert receive_text(context.create_consumer(queue)) == "to one"


@requirement("1.5-1")
def test_a_client_of_the_queue_interfaces_alone_works(connect: Connect, names: Names) -> None:
    session = connect.queues().create_queue_session(False, Session.CLIENT_ACKNOWLEDGE)
    queue = session.create_queue(names.queue())
    with session.create_sender(queue) as sender:
        for text in ("1", "2"):
            sender.send(session.create_text_message(text))
    receiver = session.create_receiver(queue)
    assert receive_texts(receiver, 2) == ["1", "2"]
    session.recover()
    assert receive_texts(receiver, 2) == ["1", "2"]


@requirement("1.5-1")
def test_a_client_of_the_topic_interfaces_alone_works(connect: Connect, names: Names) -> None:
    session = connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    topic = session.create_topic(names.topic())
    subscribers = [session.create_subscriber(topic), session.create_subscriber(topic)]
    with session.create_publisher(topic) as publisher:
        for text in ("1", "2"):
            publisher.publish(session.create_text_message(text))
    assert [receive_texts(subscriber, 2) for subscriber in subscribers] == [["1", "2"], ["1", "2"]]


@requirement("1.5-2")
@needs("transactions")
@pytest.mark.parametrize("forward", [True, False], ids=["queue to topic", "topic to queue"])
def test_queues_and_topics_take_part_in_one_transaction(
    connection: Connection, queue: Queue, topic: Topic, other_session: Session, forward: bool
) -> None:
    source, target = (queue, topic) if forward else (topic, queue)
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer, producer = session.create_consumer(source), session.create_producer(target)
    watcher = other_session.create_consumer(target)
    send_texts(other_session, source, "request")

    assert receive_text(consumer) == "request"
    producer.send(session.create_text_message("rolled back"))
    session.rollback()
    expect_nothing(watcher, other_session, target)

    assert receive_text(consumer) == "request"
    producer.send(session.create_text_message("committed"))
    expect_nothing(watcher, other_session, target)
    session.commit()
    assert receive_text(watcher) == "committed"
    expect_nothing(watcher, other_session, target)
    session.rollback()
    send_texts(other_session, source, "next")
    assert receive_text(consumer) == "next"
    session.commit()
