"""8.2.7 Who acknowledges what a server session runs (ASF-48, ASF-49); pools on subscriptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from jmsapi import Connection, ConnectionConsumer, IllegalStateException, Message, Queue, Session, Topic
from jmsapi.asf import SampleServerSessionPool
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Recorder,
    eventually,
    expect_nothing_for,
    finish,
    in_thread,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._facilities import Nobody, RecordingPool, duck, serving
from jmsapi_conformance.suite._subscriptions import each_named_kind, each_shared_kind, subscribe

# ---- acknowledgement


@requirement("ASF-48", "8.2.7-1")
def test_a_message_is_acknowledged_by_the_sessions_mode_after_its_listener_and_comes_again_when_that_raises(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    def raise_first(message: Message) -> None:
        if not message.jms_redelivered:
            raise ValueError("not yet")

    listener = Recorder(then=raise_first)
    with serving(connection, queue, lambda: listener):
        send_texts(other_session, queue, "text")
        messages = listener.wait_for(2)
    assert [message.jms_redelivered for message in messages] == [False, True]
    assert [message.get_int_property("JMSXDeliveryCount") for message in messages] == [1, 2]
    consumer = other_session.create_consumer(queue)
    assert consumer.receive(QUIET_MS) is None


@requirement("ASF-48", "8.2.7-1")
@pytest.mark.parametrize(
    "mode", [Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE, pytest.param(0, marks=needs("transactions"))]
)
def test_every_mode_keeps_its_rules_in_a_server_session(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    connection = connect()
    session = connection.create_session(mode)
    pool: Any = RecordingPool(connection, None, 1, make=lambda _: session)
    listener = Recorder()
    session.message_listener = listener
    consumer = connection.create_connection_consumer(queue, None, pool, 2)
    send_texts(other_session, queue, "1", "2")
    assert listener.wait_for_texts(2) == ["1", "2"]
    eventually(lambda: pool.made[0].free.is_set() and "ran" in pool.log, "the run ends")
    consumer.close()
    if mode == Session.DUPS_OK_ACKNOWLEDGE:
        session.close()
        assert other_session.create_consumer(queue).receive(QUIET_MS) is None
        return
    if mode == Session.CLIENT_ACKNOWLEDGE:
        listener.messages[-1].acknowledge()
    else:
        session.commit()
    session.close()
    assert other_session.create_consumer(queue).receive(QUIET_MS) is None


@requirement("ASF-48")
@pytest.mark.parametrize("mode", [Session.CLIENT_ACKNOWLEDGE, pytest.param(0, marks=needs("transactions"))])
def test_what_a_server_session_has_not_acknowledged_comes_again_when_it_is_closed(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    connection = connect()
    listener = Recorder()
    pool: Any = RecordingPool(connection, listener, 1, mode)
    consumer = connection.create_connection_consumer(queue, None, pool, 2)
    send_texts(other_session, queue, "1", "2")
    listener.wait_for(2)
    consumer.close()
    connection.close()
    assert sorted(map(str, receive_texts(other_session.create_consumer(queue), 2))) == ["1", "2"]


@requirement("ASF-49")
def test_nothing_is_lost_and_nothing_processed_twice_with_more_messages_than_server_sessions(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    texts = [str(number) for number in range(500)]
    with serving(connection, queue, capacity=4, max_messages=5) as listener:
        send_texts(other_session, queue, *texts)
        seen = listener.wait_for_texts(500, 3 * PATIENCE_MS)
    assert sorted(map(str, seen)) == sorted(texts)
    assert other_session.create_consumer(queue).receive(QUIET_MS) is None


# ---- subscriptions

TEXTS = [str(number) for number in range(20)]


@contextmanager
def served(
    connection: Connection, kind: str, topic: Topic, name: str, selector: str | None = None, most: int = 3
) -> Generator[Recorder]:
    """Have a named subscription served by a pool."""
    listener = Recorder()
    create: Callable[..., ConnectionConsumer] = getattr(connection, f"create_{kind.replace(' ', '_')}_connection_consumer")
    with SampleServerSessionPool(connection, 2, lambda: listener) as pool, create(topic, name, selector, pool, most):
        yield listener


@requirement("SHS-46", "SHS-47", "8.2-1")
@each_named_kind
def test_a_subscription_can_be_served_by_a_pool(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    connection = connect(client_id=names.client_id())
    name = names.subscription()
    with served(connection, kind, topic, name) as listener:
        send_texts(other_session, topic, "1", "2")
        assert sorted(map(str, listener.wait_for_texts(2))) == ["1", "2"]
    send_texts(other_session, topic, "meanwhile")
    with served(connection, kind, topic, name, most=1) as listener:
        send_texts(other_session, topic, "later")
        expected = ["meanwhile", "later"] if "durable" in kind else ["later"]
        assert sorted(map(str, listener.wait_for_texts(len(expected)))) == sorted(expected)


@requirement("SHS-46", "SHS-47", "8.2-1")
@needs("topic_selector")
@each_named_kind
def test_a_pool_gets_of_a_subscription_what_its_selector_selects(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    with served(connect(client_id=names.client_id()), kind, topic, names.subscription(), "a = 1", 1) as listener:
        for number, text in ((2, "before"), (1, "1"), (2, "between"), (1, "2")):
            send_texts(other_session, topic, text, a=number)
        assert sorted(map(str, listener.wait_for_texts(2))) == ["1", "2"]
        send_texts(other_session, topic, "3", a=1)
        assert sorted(map(str, listener.wait_for_texts(3))) == ["1", "2", "3"]


@requirement("SHS-48")
@each_shared_kind
def test_a_pool_and_a_consumer_of_one_subscription_share_its_messages(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    ordinary = subscribe(connect(prefetch=1).create_session(), kind, topic, name)
    received: list[str] = []
    with served(connect(prefetch=1), kind, topic, name, most=1) as listener:
        send_texts(other_session, topic, *TEXTS)
        end = time.monotonic() + PATIENCE_MS / 1000
        while len(received) + len(listener.messages) < len(TEXTS) and time.monotonic() < end:
            if (message := ordinary.receive(20)) is not None:
                received.append(str(text_of(message)))
        expect_nothing_for(ordinary)
    assert sorted(received + list(map(str, listener.texts))) == sorted(TEXTS)
    assert received
    assert listener.texts
    ordinary.close()


@requirement("SHS-46", "SHS-47")
@each_shared_kind
def test_pools_of_one_subscription_share_its_messages_and_those_of_another_get_them_all(
    connect: Connect, topic: Topic, other_session: Session, names: Names, kind: str
) -> None:
    name = names.subscription()
    with (
        served(connect(prefetch=1), kind, topic, name, most=1) as first,
        served(connect(prefetch=1), kind, topic, name, most=1) as second,
        served(connect(), kind, topic, names.subscription()) as other,
    ):
        send_texts(other_session, topic, *TEXTS)
        assert sorted(map(str, other.wait_for_texts(len(TEXTS)))) == sorted(TEXTS)
        eventually(lambda: len(first.messages) + len(second.messages) >= len(TEXTS), "all is handled")
        time.sleep(QUIET_MS / 1000)
    assert sorted(map(str, first.texts + second.texts)) == sorted(TEXTS)


@requirement("ASF-17")
def test_a_listener_may_close_its_connection_consumer(connection: Connection, queue: Queue, other_session: Session) -> None:
    consumers: list[ConnectionConsumer] = []
    listener = Recorder(then=lambda _: consumers[0].close())
    with SampleServerSessionPool(connection, 1, lambda: listener) as pool:
        consumers.append(connection.create_connection_consumer(queue, None, pool, 1))
        send_texts(other_session, queue, "1", "2")
        listener.wait_for(1)
        assert receive_texts(other_session.create_consumer(queue), 1) == ["2"]
    assert listener.texts == ["1"]


@requirement("8.1-1", "10.2-3")
def test_a_closed_connection_makes_no_connection_consumer(connect: Connect, queue: Queue) -> None:
    connection = connect()
    connection.close()
    with pytest.raises(IllegalStateException):
        finish(in_thread(lambda: connection.create_connection_consumer(queue, None, duck(Nobody()), 1)))
