"""Shared subscriptions: who receives what."""

import time

from jmsapi import MessageConsumer, Session, Topic
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    QUIET_MS,
    Recorder,
    eventually,
    finish,
    in_second_process,
    must_wait,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._subscriptions import each_shared_kind, in_total, received_between, subscribe


@requirement("SHS-1")
@needs("shared_durable_subscription")
def test_threads_sessions_and_connections_share_a_durable_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    share_in_threads("shared durable", connect, topic, other_session, names)


@requirement("SHS-2")
@needs("shared_subscription")
def test_threads_sessions_and_connections_share_a_non_durable_subscription(
    connect: Connect, topic: Topic, other_session: Session, names: Names
) -> None:
    share_in_threads("shared", connect, topic, other_session, names)


@requirement("SHS-1")
@needs("shared_durable_subscription", "second_process")
def test_processes_share_a_durable_subscription(backend: Backend, connect: Connect, topic: Topic, names: Names) -> None:
    name = names.subscription()
    consumer = connect(prefetch=1).create_session().create_shared_durable_consumer(topic, name)
    there = in_second_process(backend.url, CLIENT_THAT_SHARES, topic.topic_name, name).split()
    here = received_between([consumer], 30 - len(there))
    assert there
    assert in_total([there, *here]) == sorted(map(str, range(30)))
    consumer.close()


@requirement("SHS-4")
@each_shared_kind
def test_other_subscriptions_of_the_topic_get_their_own_copies(
    connect: Connect, topic: Topic, session: Session, other_session: Session, names: Names, kind: str
) -> None:
    consumers = share(connect, kind, topic, names.subscription(), 2)
    plain = session.create_consumer(topic)
    elsewhere = share(connect, kind, topic, names.subscription(), 1)
    expected = [str(number) for number in range(10)]
    send_texts(other_session, topic, *expected)
    assert in_total(received_between(consumers, 10)) == expected
    assert receive_texts(plain, 10) == expected
    assert in_total(received_between(elsewhere, 10)) == expected
    close_all(*consumers, *elsewhere)


@requirement("SHS-5")
@each_shared_kind
def test_messages_are_spread_over_consumers_of_equal_speed(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    consumers = share(connect, kind, topic, names.subscription(), 3, prefetch=10)
    send_texts(other_session, topic, *map(str, range(150)))
    received = received_between(consumers, 150, turn_ms=QUIET_MS)
    assert all(abs(len(texts) - 50) <= 10 for texts in received)
    close_all(*consumers)


@requirement("SHS-6")
@each_shared_kind
def test_a_consumer_that_is_full_is_passed_over(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    blocked, fast = share(connect, kind, topic, names.subscription(), 2, prefetch=1)
    listener = Recorder()
    fast.message_listener = listener
    send_texts(other_session, topic, *map(str, range(20)))
    # A broker whose windows are not in messages may hold back a few more for the one that does not read.
    listener.wait_for(15)
    time.sleep(QUIET_MS / 1000)
    assert len(listener.messages) < 20, "the one that does not read was never full"
    blocked.close()
    assert sorted(map(str, listener.wait_for_texts(20))) == sorted(map(str, range(20)))
    fast.close()


@requirement("SHS-7")
@each_shared_kind
def test_two_consumers_that_wait_get_one_message_each(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    consumers = share(connect, kind, topic, names.subscription(), 2, prefetch=1)
    waiting = [must_wait(lambda consumer=consumer: consumer.receive(10_000)) for consumer in consumers]  # type: ignore[misc]
    send_texts(other_session, topic, "1", "2")
    assert sorted(str(text_of(finish(one))) for one in waiting) == ["1", "2"]
    close_all(*consumers)


@requirement("SHS-9")
@each_shared_kind
def test_the_first_consumer_creates_the_subscription_and_later_ones_join_it(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    first = share(connect, kind, topic, name, 1, prefetch=1)
    send_texts(other_session, topic, *map(str, range(5)))
    # Only now: what was sent before is for both.
    second = share(connect, kind, topic, name, 1, prefetch=1)
    received = received_between([*first, *second], 5)
    assert in_total(received) == ["0", "1", "2", "3", "4"]
    close_all(*first, *second)


@requirement("SHS-19")
@each_shared_kind
def test_with_a_client_id_sessions_of_its_connection_share(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    connection = connect(client_id=names.client_id())
    consumers = [subscribe(connection.create_session(), kind, topic, name) for _ in range(2)]
    (stranger,) = share(connect, kind, topic, name, 1)
    send_texts(other_session, topic, *map(str, range(10)))
    assert in_total(received_between(consumers, 10)) == sorted(map(str, range(10)))
    assert in_total(received_between([stranger], 10)) == sorted(map(str, range(10)))
    close_all(*consumers, stranger)


@requirement("SHS-55")
@each_shared_kind
def test_each_consumer_gets_the_messages_of_a_producer_in_their_order(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    consumers = share(connect, kind, topic, names.subscription(), 2, prefetch=5)
    send_texts(other_session, topic, *map(str, range(1, 101)))
    received = received_between(consumers, 100)
    for texts in received:
        assert texts == sorted(texts, key=int)
    assert in_total(received) == sorted(map(str, range(1, 101)))
    close_all(*consumers)


@requirement("SHS-56")
@needs("topic_selector")
@each_shared_kind
def test_the_selector_decides_what_enters_for_all_consumers(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    consumers = [subscribe(connect(prefetch=2).create_session(), kind, topic, name, "k = 1") for _ in range(2)]
    for number in range(20):
        send_texts(other_session, topic, str(number), k=number % 2)
    assert in_total(received_between(consumers, 10)) == sorted(str(number) for number in range(1, 20, 2))
    close_all(*consumers)


@requirement("SHS-59")
@each_shared_kind
def test_who_joins_gets_a_share_and_who_leaves_no_longer_counts(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    expected = [str(number) for number in range(10)]
    (first,) = share(connect, kind, topic, name, 1, prefetch=1)
    send_texts(other_session, topic, *expected)
    assert received_between([first], 10) == [expected]
    (second,) = share(connect, kind, topic, name, 1, prefetch=1)
    send_texts(other_session, topic, *expected)
    received = received_between([first, second], 10)
    assert in_total(received) == expected
    assert all(received)
    first.close()
    send_texts(other_session, topic, *expected)
    assert received_between([second], 10) == [expected]
    second.close()


def share(connect: Connect, kind: str, topic: Topic, name: str, count: int, prefetch: int = 1000) -> list[MessageConsumer]:
    """Create consumers of one shared subscription, each on a connection of its own."""
    return [subscribe(connect(prefetch=prefetch).create_session(), kind, topic, name) for _ in range(count)]


def share_in_threads(kind: str, connect: Connect, topic: Topic, sender: Session, names: Names) -> None:
    """See that listeners of two sessions of one connection and of a second connection get each message once between them.

    Which threads a client calls them in is its own affair, as long as these are several.
    """
    name = names.subscription()
    connection = connect(prefetch=2)
    consumers = [subscribe(connection.create_session(), kind, topic, name) for _ in range(2)]
    consumers.append(subscribe(connect(prefetch=2).create_session(), kind, topic, name))
    listeners = [Recorder() for _ in consumers]
    for consumer, listener in zip(consumers, listeners, strict=True):
        consumer.message_listener = listener
    send_texts(sender, topic, *map(str, range(30)))
    eventually(lambda: sum(len(listener.messages) for listener in listeners) >= 30, "all messages have come")
    received = [[str(text) for text in listener.texts] for listener in listeners]
    for consumer in consumers:
        consumer.close()
    assert in_total(received) == sorted(map(str, range(30)))
    assert all(received)
    assert len(set[int]().union(*(listener.threads for listener in listeners))) > 1


def close_all(*consumers: MessageConsumer) -> None:
    """Close consumers: what is left of a name can be ended only when nobody uses it."""
    for consumer in consumers:
        consumer.close()


CLIENT_THAT_SHARES = """
import os, sys, jmsapi
topic_name, name = sys.argv[1:3]
with jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection() as connection:
    session = connection.create_session()
    topic = session.create_topic(topic_name)
    consumer = session.create_shared_durable_consumer(topic, name)
    connection.start()
    producer = session.create_producer(topic)
    for number in range(30):
        producer.send(session.create_text_message(str(number)))
    while (message := consumer.receive(2000)) is not None:
        print(message.text, flush=True)
"""
