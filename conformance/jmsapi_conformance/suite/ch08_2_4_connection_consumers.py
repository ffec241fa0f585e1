"""8.1, 8.2.4 Connection consumers: what they take, how much at once, and when (ASF-1 to ASF-18)."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import pytest

from jmsapi import (
    Connection,
    ConnectionConsumer,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Message,
    Queue,
    Session,
)
from jmsapi.asf import SampleServerSessionPool
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Recorder,
    eventually,
    finish,
    in_thread,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._facilities import TEXTS, Nobody, RecordingPool, duck, serving


def runs_are(pool: Any, count: int) -> bool:
    """Whether a pool has seen so many runs."""
    return len(pool.calls) == count


@requirement("8.1-1", "8.2.4-6", "ASF-4", "ASF-10")
def test_a_connection_consumer_tells_its_pool(connection: Connection, queue: Queue) -> None:
    pool = duck(Nobody())
    consumer = connection.create_connection_consumer(queue, None, pool, 5)
    assert isinstance(consumer, ConnectionConsumer)
    assert consumer.server_session_pool is pool
    consumer.close()
    consumer.close()
    with pytest.raises(JMSException):
        _ = consumer.server_session_pool


@requirement("8.2.4-2", "ASF-14")
def test_a_connection_consumer_needs_a_pool_and_takes_at_least_one_message(connection: Connection, queue: Queue) -> None:
    nothing: Any = None
    with pytest.raises(JMSException):
        connection.create_connection_consumer(queue, None, nothing, 1)
    wrong: list[Any] = [0, -1, None, "5"]
    for count in wrong:
        with pytest.raises(JMSException):
            connection.create_connection_consumer(queue, None, duck(Nobody()), count)


@requirement("8.2.4-7")
def test_an_invalid_destination_or_selector_is_refused(connection: Connection, queue: Queue) -> None:
    nothing: Any = None
    with pytest.raises(InvalidDestinationException):
        connection.create_connection_consumer(nothing, None, duck(Nobody()), 1)
    with pytest.raises(InvalidSelectorException):
        connection.create_connection_consumer(queue, "a =", duck(Nobody()), 1)


@requirement("ASF-1", "8.2.4-1", "ASF-12")
@needs("queue_selector")
def test_only_messages_that_match_the_selector_are_taken(connection: Connection, queue: Queue, other_session: Session) -> None:
    with serving(connection, queue, selector="a = 1") as listener:
        send_texts(other_session, queue, "1", "2", "3", a=1)
        send_texts(other_session, queue, "other", a=2)
        assert sorted(map(str, listener.wait_for_texts(3))) == ["1", "2", "3"]
    assert receive_texts(other_session.create_consumer(queue), 1) == ["other"]
    assert len(listener.messages) == 3


@requirement("ASF-11")
@pytest.mark.parametrize("selector", [None, ""])
def test_without_a_selector_all_messages_are_taken(
    connection: Connection, queue: Queue, other_session: Session, selector: str | None
) -> None:
    with serving(connection, queue, selector=selector) as listener:
        send_texts(other_session, queue, "1", a=1)
        send_texts(other_session, queue, "2", a=2)
        assert sorted(map(str, listener.wait_for_texts(2))) == ["1", "2"]


@requirement("ASF-3")
@needs("queue_selector")
def test_several_destinations_and_selectors_are_watched_at_once(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    second = other_session.create_queue(names.queue())
    with (
        serving(connection, queue, selector="a = 1", capacity=1) as ones,
        serving(connection, queue, selector="a = 2", capacity=1) as twos,
        serving(connection, second, capacity=1) as others,
    ):
        send_texts(other_session, queue, "1", a=1)
        send_texts(other_session, queue, "2", a=2)
        send_texts(other_session, second, "3")
        assert [one.wait_for_texts(1) for one in (ones, twos, others)] == [["1"], ["2"], ["3"]]


@requirement("ASF-13", "8.2.4-3", "8.2.4-5")
def test_no_run_has_more_messages_than_asked_for_and_several_may_be_loaded_at_once(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    connection.stop()
    running = threading.Lock()

    def alone(_: Message) -> None:
        assert running.acquire(blocking=False), "two messages of one session at a time"
        time.sleep(0.02)
        running.release()

    listener = Recorder(then=alone)
    pool: Any = RecordingPool(connection, listener, 1)
    send_texts(other_session, queue, *TEXTS)
    with connection.create_connection_consumer(queue, None, pool, 3):
        connection.start()
        assert listener.wait_for_texts(7) == TEXTS
        eventually(lambda: sum(pool.calls) == 7, "the last run ends")
    assert max(pool.calls) <= 3
    assert len(listener.messages) == 7


@requirement("8.2.4-4")
def test_with_light_traffic_each_message_is_run_at_once(connection: Connection, queue: Queue, other_session: Session) -> None:
    listener = Recorder()
    pool: Any = RecordingPool(connection, listener, 1)
    with connection.create_connection_consumer(queue, None, pool, 5):
        for number in range(3):
            send_texts(other_session, queue, str(number))
            listener.wait_for(number + 1)
            eventually(partial(runs_are, pool, number + 1), "the run ends")
    assert pool.calls == [1, 1, 1]


@requirement("ASF-15", "ASF-16")
def test_a_stopped_connection_runs_nothing_until_started(connection: Connection, queue: Queue, other_session: Session) -> None:
    connection.stop()
    with serving(connection, queue) as listener:
        send_texts(other_session, queue, "1")
        time.sleep(QUIET_MS / 1000)
        assert listener.messages == []
        connection.start()
        listener.wait_for(1)
        connection.stop()
        send_texts(other_session, queue, "2", "3")
        time.sleep(QUIET_MS / 1000)
        assert listener.texts == ["1"]
        connection.start()
        assert sorted(map(str, listener.wait_for_texts(3))) == ["1", "2", "3"]


@requirement("ASF-17")
@pytest.mark.parametrize("which", ["consumer", "connection"])
def test_closing_ends_the_delivery_and_keeps_what_is_not_delivered(
    connect: Connect, queue: Queue, other_session: Session, which: str
) -> None:
    connection = connect()
    listener = Recorder()
    pool = SampleServerSessionPool(connection, 1, lambda: listener)
    consumer = connection.create_connection_consumer(queue, None, pool, 1)
    (consumer if which == "consumer" else connection).close()
    send_texts(other_session, queue, "text")
    assert receive_texts(other_session.create_consumer(queue), 1) == ["text"]
    assert listener.messages == []
    pool.close()


@requirement("ASF-17", "8.2.3-4")
def test_what_waits_for_a_server_session_is_not_lost_when_its_consumer_is_closed(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    going = threading.Event()
    listener = Recorder(then=lambda _: going.wait(PATIENCE_MS / 1000))
    with SampleServerSessionPool(connection, 1, lambda: listener) as pool:
        consumer = connection.create_connection_consumer(queue, None, pool, 1)
        send_texts(other_session, queue, "1", "2", "3")
        listener.wait_for(1)
        closing = in_thread(consumer.close)
        going.set()
        finish(closing)
        received = receive_texts(other_session.create_consumer(queue), 2)
    assert (listener.texts, sorted(map(str, received))) == (["1"], ["2", "3"])
