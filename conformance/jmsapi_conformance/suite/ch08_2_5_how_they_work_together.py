"""8.2.3, 8.2.5 Connection consumer, pool and server sessions together (ASF-19 to ASF-22, ASF-45, ASF-47, ASF-50)."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from jmsapi import (
    Connection,
    JMSException,
    Message,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Problems,
    Recorder,
    eventually,
    send_texts,
)
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._facilities import TEXTS, RecordingPool, duck, serving


@requirement("ASF-19", "8.2.5-1", "ASF-18")
def test_a_server_session_is_taken_asked_for_its_session_loaded_and_started_in_this_order(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    listener = Recorder()
    pool: Any = RecordingPool(connection, listener, 1)
    with connection.create_connection_consumer(queue, None, pool, 1):
        send_texts(other_session, queue, "text")
        listener.wait_for(1)
        eventually(lambda: "ran" in pool.log, "the run ends")
    assert pool.log[:6] == ["get", "session", "start", "run", "on_message", "ran"]
    assert threading.get_ident() not in listener.threads


@requirement("8.2.3-2", "ASF-4", "ASF-27")
def test_a_pool_may_make_server_sessions_on_demand(connection: Connection, queue: Queue, other_session: Session) -> None:
    listener = Recorder()
    pool: Any = RecordingPool(connection, listener)
    with connection.create_connection_consumer(queue, None, pool, 1):
        send_texts(other_session, queue, *TEXTS[:5])
        assert sorted(map(str, listener.wait_for_texts(5))) == TEXTS[:5]
    assert len(pool.made) >= 5


@requirement("8.2-1", "ASF-2", "ASF-22")
def test_messages_of_one_destination_are_processed_at_the_same_time(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    together = threading.Barrier(3)
    listener = Recorder(then=lambda _: together.wait(PATIENCE_MS / 1000))
    with serving(connection, queue, lambda: listener, capacity=3, max_messages=1):
        send_texts(other_session, queue, "1", "2", "3")
        listener.wait_for(3)
        eventually(lambda: not together.n_waiting and not together.broken, "all pass the barrier")
    assert not together.broken
    assert len(listener.threads) == 3


@requirement("8.2.3-4")
def test_while_the_pool_blocks_nothing_is_delivered_and_then_delivery_goes_on(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    going = threading.Event()
    listener = Recorder(then=lambda _: going.wait(PATIENCE_MS / 1000))
    with serving(connection, queue, lambda: listener, capacity=1, max_messages=1):
        send_texts(other_session, queue, "1", "2", "3")
        listener.wait_for(1)
        time.sleep(QUIET_MS / 1000)
        assert len(listener.messages) == 1
        going.set()
        assert listener.wait_for_texts(3) == ["1", "2", "3"]


@requirement("8.2.5-2")
def test_queue_and_topic_connections_load_sessions_of_their_kind(
    connect: Connect, queue: Queue, topic: Topic, other_session: Session
) -> None:
    queues, topics = connect.queues(), connect.topics()
    cases: list[tuple[Any, Any, Callable[[int], Session]]] = [
        (queues, queue, partial(queues.create_queue_session, False)),
        (topics, topic, partial(topics.create_topic_session, False)),
    ]
    for connection, destination, make in cases:
        listener = Recorder()
        pool: Any = RecordingPool(connection, listener, 1, make=make)
        with connection.create_connection_consumer(destination, None, pool, 1):
            send_texts(other_session, destination, "text")
            assert listener.wait_for_texts(1) == ["text"]


@requirement("8.2.5-3")
def test_a_session_of_another_connection_is_reported_and_loses_nothing(
    connection: Connection, connect: Connect, queue: Queue, other_session: Session
) -> None:
    problems = Problems()
    connection.exception_listener = problems
    listener = Recorder()
    wrong: Any = RecordingPool(connect(), listener, 1)
    right: Any = RecordingPool(connection, listener, 1)
    turns = [wrong, right]

    class Pool:
        def get_server_session(self) -> Any:
            return (turns.pop(0) if len(turns) > 1 else turns[0]).get_server_session()

    with connection.create_connection_consumer(queue, None, duck(Pool()), 1):
        send_texts(other_session, queue, "text")
        problems.wait_for(1)
        assert listener.wait_for_texts(1) == ["text"]
        eventually(lambda: right.calls == [1], "the run ends")
    assert wrong.calls == []


@requirement("ASF-50")
def test_what_a_pool_raises_goes_to_the_exception_listener_and_the_message_stays(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    problems = Problems()
    connection.exception_listener = problems
    listener = Recorder()
    good: Any = RecordingPool(connection, listener, 1)
    raises: list[Exception] = [JMSException("no session today"), ValueError("a fault")]

    class Pool:
        def get_server_session(self) -> Any:
            if raises:
                raise raises.pop(0)
            return good.get_server_session()

    with connection.create_connection_consumer(queue, None, duck(Pool()), 1):
        send_texts(other_session, queue, "text")
        assert [type(problem) for problem in problems.wait_for(2)] == [JMSException, JMSException]
        assert listener.wait_for_texts(1) == ["text"]
        eventually(lambda: good.calls == [1], "the run ends")
    assert listener.messages[0].jms_redelivered is False


@requirement("ASF-50")
def test_a_server_session_that_does_not_start_keeps_nothing(connection: Connection, queue: Queue, other_session: Session) -> None:
    problems = Problems()
    connection.exception_listener = problems
    listener = Recorder()
    good: Any = RecordingPool(connection, listener, 1)
    broken = connection.create_session()
    broken.message_listener = listener

    class Broken:
        session = broken

        def start(self) -> None:
            raise JMSException("no thread")

    turns: list[Any] = [Broken()]

    class Pool:
        def get_server_session(self) -> Any:
            return turns.pop() if turns else good.get_server_session()

    with connection.create_connection_consumer(queue, None, duck(Pool()), 1):
        send_texts(other_session, queue, "text")
        problems.wait_for(1)
        assert listener.wait_for_texts(1) == ["text"]
        eventually(lambda: good.calls == [1], "the run ends")
    broken.run()
    assert len(listener.messages) == 1


@requirement("ASF-47")
def test_the_listener_is_the_pools_and_not_the_connection_consumers(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    assert not [name for name in inspect.signature(connection.create_connection_consumer).parameters if "listener" in name]
    second = other_session.create_queue(names.queue())
    with serving(connection, queue) as first, serving(connection, second) as other:
        send_texts(other_session, queue, "1")
        send_texts(other_session, second, "2")
        assert (first.wait_for_texts(1), other.wait_for_texts(1)) == (["1"], ["2"])


@requirement("ASF-45")
def test_a_shared_listener_is_called_at_the_same_time_and_one_of_each_session_never(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    made: list[Overlaps] = []

    class Overlaps:
        def __init__(self, linger_ms: float = 20) -> None:
            self.inside = self.most = self.calls = 0
            self.lock = threading.Lock()
            self.met = threading.Event()
            self.linger_ms = linger_ms
            made.append(self)

        def on_message(self, message: Message) -> None:
            with self.lock:
                self.inside += 1
                self.calls += 1
                self.most = max(self.most, self.inside)
                if self.inside > 1:
                    self.met.set()
            self.met.wait(self.linger_ms / 1000)
            with self.lock:
                self.inside -= 1

    shared = Overlaps(PATIENCE_MS)
    with serving(connection, queue, lambda: shared, capacity=3, max_messages=1):
        send_texts(other_session, queue, *TEXTS)
        eventually(lambda: shared.calls == 7 and not shared.inside, "all are processed")
    assert shared.most > 1
    made.clear()
    with serving(connection, queue, Overlaps, capacity=3, max_messages=1):
        send_texts(other_session, queue, *TEXTS)
        eventually(lambda: sum(one.calls for one in made) == 7, "all are processed")
    assert {one.most for one in made if one.calls} == {1}
