"""Shared subscriptions: what a consumer leaves to the others, and when the subscription ends."""

from collections.abc import Sequence
from functools import partial

import pytest

from jmsapi import Message, Session, Topic
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    QUIET_MS,
    eventually,
    expect_nothing,
    expect_nothing_for,
    in_second_process,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import AnyConsumer, each_shared_kind, end_of, in_total, received_between, subscribe


@requirement("SHS-29")
@each_shared_kind
def test_acknowledging_concerns_the_messages_of_the_own_session(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    sessions = [connect(prefetch=1).create_session(Session.CLIENT_ACKNOWLEDGE) for _ in range(2)]
    _, second = consumers = [subscribe(session, kind, topic, name) for session in sessions]
    # Whose turn it is, is the broker's affair.
    held: list[list[Message]] = [[], []]
    for number in range(20):
        send_texts(other_session, topic, str(number))
        eventually(partial(_took_one, consumers, held, number), "somebody gets it")
        if all(held):
            break
    of_first, of_second = held
    of_first[-1].acknowledge()
    for session in sessions:
        session.recover()
    again: list[Message] = []
    # Where the broker hands out again what is recovered, either of them may get it.
    eventually(lambda: _take(consumers, [again, again]) == len(of_second), "what the second one had comes again")
    assert sorted(str(text_of(one)) for one in again) == sorted(str(text_of(one)) for one in of_second)
    assert all(message.jms_redelivered for message in again)
    for message in again:
        message.acknowledge()
    # Whoever goes leaves nothing behind: what is not acknowledged would come to the other one.
    sessions[0].close()
    assert end_of(second, other_session, topic) == []
    expect_nothing_for(second)


def _take(consumers: Sequence[AnyConsumer], held: Sequence[list[Message]]) -> int:
    """Take what has come to consumers, and return how many messages are held in all."""
    for consumer, mine in zip(consumers, held, strict=True):
        if (message := consumer.receive(20)) is not None:
            mine.append(message)
    return sum(map(len, {id(mine): mine for mine in held}.values()))


def _took_one(consumers: Sequence[AnyConsumer], held: Sequence[list[Message]], before: int) -> bool:
    return _take(consumers, held) > before


@requirement("SHS-30")
@each_shared_kind
@pytest.mark.parametrize("ended", ["session", "connection"])
def test_what_a_consumer_takes_and_does_not_acknowledge_goes_to_those_that_remain(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, ended: str
) -> None:
    leave_three(connect, topic, other_session, names, kind, ended, check_flag=False)


@requirement("SHS-30")
@needs("redelivered_flag")
@each_shared_kind
@pytest.mark.parametrize("ended", ["session", "connection"])
def test_what_a_consumer_takes_and_does_not_acknowledge_comes_marked_redelivered(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str, ended: str
) -> None:
    leave_three(connect, topic, other_session, names, kind, ended, check_flag=True)


@requirement("SHS-31")
@needs("shared_durable_subscription", "second_process")
def test_what_a_client_that_dies_had_taken_goes_to_those_that_remain(
    backend: Backend, connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    consumer = connect(prefetch=1).create_session().create_shared_durable_consumer(topic, name)
    printed = in_second_process(backend.url, CLIENT_THAT_DIES, topic.topic_name, name, "shared durable", "10").split()
    assert printed
    assert in_total(received_between([consumer], 10)) == sorted(map(str, range(10)))
    consumer.close()


@requirement("SHS-32")
@needs("transactions")
@each_shared_kind
def test_what_one_consumer_rolls_back_is_delivered_again_to_one(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    session = connect().create_session(Session.SESSION_TRANSACTED)
    first = subscribe(session, kind, topic, name)
    send_texts(other_session, topic, "1", "2")
    assert receive_texts(first, 2) == ["1", "2"]
    second = subscribe(connect().create_session(), kind, topic, name)
    session.rollback()
    messages: list[Message] = []

    def both_have_come() -> bool:
        messages.extend(message for consumer in (first, second) if (message := consumer.receive(5)))
        return len(messages) >= 2

    eventually(both_have_come, "both messages have come again")
    assert sorted(str(text_of(message)) for message in messages) == ["1", "2"]
    assert all(message.jms_redelivered for message in messages)
    session.commit()
    assert in_total(received_between([first, second], 0)) == []
    first.close()
    second.close()


@requirement("SHS-34")
@needs("shared_durable_subscription")
def test_closing_consumers_leaves_a_durable_subscription_to_the_others_and_to_later_ones(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    first, second = (connect().create_session().create_shared_durable_consumer(topic, name) for _ in range(2))
    first.close()
    send_texts(other_session, topic, "to the second")
    assert receive_text(second) == "to the second"
    second.close()
    send_texts(other_session, topic, "to nobody yet")
    third = connect().create_session().create_shared_durable_consumer(topic, name)
    assert receive_text(third) == "to nobody yet"
    expect_nothing(third, other_session, topic)
    third.close()


@requirement("SHS-40")
@needs("shared_subscription", "second_process")
def test_the_death_of_its_only_client_ends_a_non_durable_subscription(
    backend: Backend, connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name = names.subscription()
    # A broker that has none of them refuses here.
    connect().create_session().create_shared_consumer(topic, name).close()
    printed = in_second_process(backend.url, CLIENT_THAT_DIES, topic.topic_name, name, "shared", "10").split()
    assert len(printed) == 2

    def nothing_old() -> bool:
        # Until the broker has noticed, the subscription is still there. What is not acknowledged here stays in it.
        with connect() as connection:
            session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
            return session.create_shared_consumer(topic, name).receive(QUIET_MS) is None

    eventually(nothing_old, "the subscription has ended with its client")
    expect_nothing(connect().create_session().create_shared_consumer(topic, name), other_session, topic)


@requirement("SHS-41")
@needs("shared_subscription", "topic_selector")
def test_the_name_of_a_non_durable_subscription_that_has_ended_is_free_for_another_topic_and_selector(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    name, other_topic = names.subscription(), other_session.create_topic(names.topic())
    session = connect().create_session()
    session.create_shared_consumer(topic, name).close()
    consumer = session.create_shared_consumer(other_topic, name, "n = 1")
    send_texts(other_session, topic, "of the first topic", n=1)
    send_texts(other_session, other_topic, "not selected", n=2)
    expect_nothing(consumer, other_session, other_topic, n=1)
    consumer.close()
    consumer = session.create_shared_consumer(topic, name)
    expect_nothing(consumer, other_session, topic)


def leave_three(
    connect: Connect, topic: Topic, sender: Session, names: Names, kind: str, ended: str, *, check_flag: bool
) -> None:
    """See that three messages of a session that ends go to the consumer of another connection."""
    name = names.subscription()
    connection = connect()
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    leaving = subscribe(session, kind, topic, name)
    send_texts(sender, topic, "1", "2", "3")
    assert receive_texts(leaving, 3) == ["1", "2", "3"]
    staying = subscribe(connect().create_session(), kind, topic, name)
    (session if ended == "session" else connection).close()
    messages = receive_all(staying, 3)
    assert sorted(str(text_of(message)) for message in messages) == ["1", "2", "3"]
    if check_flag:
        assert [message.jms_redelivered for message in messages] == [True] * 3
    expect_nothing(staying, sender, topic)
    staying.close()


CLIENT_THAT_DIES = """
import os, sys, jmsapi
topic_name, name, kind, count = sys.argv[1:5]
connection = jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection()
connection.start()
session = connection.create_session(jmsapi.Session.CLIENT_ACKNOWLEDGE)
topic = session.create_topic(topic_name)
create = session.create_shared_consumer if kind == "shared" else session.create_shared_durable_consumer
consumer = create(topic, name)
producer = session.create_producer(topic)
for number in range(int(count)):
    producer.send(session.create_text_message(str(number)))
for _ in range(2):
    print(consumer.receive(10_000).text, flush=True)
os._exit(1)
"""
