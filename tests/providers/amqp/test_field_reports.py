"""What went wrong for users of other clients (the field reports B01 to B25), where the wire decides: AMQP, on each broker.

Those whose recipe is the same for every wire are in ``tests/field_reports``: B03, B05, B06, B07, B09, B10, B11, B12, B19, B20,
B21, B23. B25 is in ``test_connections_on_brokers`` (chain and name, each switched off by itself, client certificate), and B07's
password in ``test_a_password_with_special_characters_is_refused_and_not_shown`` below. B17 is no matter of a wire.
"""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jmsapi
from jmsapi import CompletionListener, DeliveryMode, JMSException, Message, MessageListener
from jmsapi.spi import Address, ErrorKind, ProviderError
from jmsapi_conformance.brokers import Broker

Dial = Callable[..., Any]


def connect(broker: Broker, port: int | None = None, **options: Any) -> jmsapi.Connection:
    url = broker.url("amqp") if port is None else f"amqp://{broker.user}:{broker.password}@127.0.0.1:{port}"
    connection = jmsapi.connection_factory(url, **options).create_connection()
    connection.start()
    return connection


class Answers(CompletionListener):
    """Counts completions and failures."""

    def __init__(self) -> None:
        self.completed = 0
        self.failed: list[Exception] = []

    def on_completion(self, message: Message) -> None:
        self.completed += 1

    def on_exception(self, message: Message, exception: Exception) -> None:
        self.failed.append(exception)


def test_b01_a_slow_listener_does_not_stop_the_heartbeats(each_broker: Broker, queue: Address) -> None:
    got: list[bool] = []
    done = threading.Event()
    trouble: list[JMSException] = []

    class Slow(MessageListener):
        def on_message(self, message: Message) -> None:
            if not got:
                time.sleep(5)  # the work itself; longer than two silences
            got.append(message.jms_redelivered)
            if len(got) == 2:
                done.set()

    class Heard(jmsapi.ExceptionListener):
        def on_exception(self, exception: JMSException) -> None:
            trouble.append(exception)

    with connect(each_broker, idle_timeout_ms=2000) as connection, connection.create_session() as session:
        connection.exception_listener = Heard()
        destination = session.create_queue(queue.name)
        producer = session.create_producer(destination)
        for text in ("1", "2"):
            producer.send(session.create_text_message(text))
        with connection.create_session() as listening:
            listening.create_consumer(destination).message_listener = Slow()
            assert done.wait(30)
    assert got == [False, False]
    assert trouble == []


def test_b04_close_right_after_a_send_returns_and_loses_nothing(each_broker: Broker, queue: Address) -> None:
    for number in range(20):
        with connect(each_broker) as connection, connection.create_session() as session:
            producer = session.create_producer(session.create_queue(queue.name))
            producer.delivery_mode = DeliveryMode.NON_PERSISTENT if number % 2 else DeliveryMode.PERSISTENT
            producer.send(session.create_text_message(str(number)))
            begun = time.monotonic()
        assert time.monotonic() - begun < 20
    with connect(each_broker) as connection, connection.create_session() as session:
        consumer = session.create_consumer(session.create_queue(queue.name))
        assert [consumer.receive(5000) is not None for _ in range(20)] == [True] * 20
        assert consumer.receive_no_wait() is None


def test_b13_close_answers_every_asynchronous_send_once(each_broker: Broker, queue: Address, relay: Callable[..., Any]) -> None:
    between = relay(each_broker)
    for frozen in (False, True):
        answers = Answers()
        with connect(each_broker, between.port, close_timeout_ms=1500) as connection:
            session = connection.create_session()
            producer = session.create_producer(session.create_queue(queue.name))
            if frozen:
                between.stall()
            for number in range(20):
                producer.send(session.create_text_message(str(number)), completion_listener=answers)
        assert answers.completed + len(answers.failed) == 20
        assert (answers.completed == 20) is not frozen


def test_b15_prefetch_0_keeps_the_limit_of_receive_and_loses_nothing(each_broker: Broker, queue: Address) -> None:
    with connect(each_broker, prefetch=0) as connection, connection.create_session() as session:
        destination = session.create_queue(queue.name)
        consumer = session.create_consumer(destination)
        begun = time.monotonic()
        assert consumer.receive(500) is None
        assert 0.4 < time.monotonic() - begun < 4
        producer = session.create_producer(destination)
        for text in ("1", "2"):
            producer.send(session.create_text_message(text))
        with connect(each_broker) as other, other.create_session() as idle:
            first = consumer.receive(5000)
            assert first is not None
            assert first.get_body(str) == "1"
            # Nothing is held ahead: the other consumer gets the second at once.
            second = idle.create_consumer(destination).receive(5000)
            assert second is not None
            assert second.get_body(str) == "2"


def test_b18_a_slow_consumer_with_a_prefetch_of_1_hoards_nothing(each_broker: Broker, queue: Address) -> None:
    with connect(each_broker, prefetch=1) as connection:
        slow, quick = connection.create_session(), connection.create_session()
        destination = slow.create_queue(queue.name)
        from_slow, from_quick = slow.create_consumer(destination), quick.create_consumer(destination)
        producer = quick.create_producer(destination)
        for number in range(21):
            producer.send(quick.create_text_message(str(number) * 2000))
        held = from_slow.receive(5000)
        assert held is not None
        got = 0
        while from_quick.receive(1000) is not None:
            got += 1
        assert got >= 19  # one is at work, one may wait for it


def _resources() -> tuple[int, int, float]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell what a process holds")
def test_b22_connections_leave_nothing_behind(artemis: Broker, dial: Dial, queue: Address) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed_port = server.getsockname()[1]

    def cycle() -> None:
        line = dial(artemis)
        line.send(queue)
        line.receive(line.consumer(queue))
        line.close()
        with pytest.raises(ProviderError) as refused:
            dial(f"amqp://127.0.0.1:{closed_port}")
        assert refused.value.kind is ErrorKind.CONNECTION

    for _ in range(20):
        cycle()
    files, threads, memory = _resources()
    for _ in range(100):
        cycle()
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    now_files, now_threads, now_memory = _resources()
    assert now_files <= files + 2
    assert now_threads <= threads
    assert now_memory - memory < 10


def test_b24_members_of_a_shared_durable_subscription_share_over_connections(artemis: Broker) -> None:
    name, topic_name = f"s{uuid.uuid4().hex}", f"t{uuid.uuid4().hex}"
    with connect(artemis) as one, connect(artemis) as two, connect(artemis, client_id=f"c{name}") as scoped:
        sessions = [one.create_session(), two.create_session()]
        topic = sessions[0].create_topic(topic_name)
        members = [session.create_shared_durable_consumer(topic, name) for session in sessions]
        own_session = scoped.create_session()
        own = own_session.create_shared_durable_consumer(topic, name)
        producer = sessions[0].create_producer(topic)
        for number in range(20):
            producer.send(sessions[0].create_text_message(str(number)))
        counts = [0, 0]
        while sum(counts) < 20:
            for index, member in enumerate(members):
                counts[index] += member.receive(100) is not None
        assert min(counts) > 0
        assert [own.receive(5000) is not None for _ in range(20)] == [True] * 20
        for member in members:
            member.close()
        for number in range(5):
            producer.send(sessions[0].create_text_message(str(number)))
        again = sessions[1].create_shared_durable_consumer(topic, name)
        assert [again.receive(5000) is not None for _ in range(5)] == [True] * 5
        again.close()
        sessions[1].unsubscribe(name)
        own.close()
        own_session.unsubscribe(name)


def test_b07_a_password_with_special_characters_is_refused_and_not_shown(each_broker: Broker) -> None:
    secret = "p:w\\d\u00fc %2F@/"
    factory = jmsapi.connection_factory(each_broker.url("amqp"))
    with pytest.raises(jmsapi.JMSSecurityException) as caught:
        factory.create_connection(each_broker.user, secret)
    cause = caught.value.__cause__
    assert secret not in f"{caught.value} {cause} {cause.__cause__ if cause is not None else None}"
