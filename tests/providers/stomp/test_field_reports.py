"""What went wrong for other people's STOMP clients, tried with ours through the public API (field reports B01 to B25).

Reports whose recipe is a state of the SPI are tested there: B05, B06, B07 in ``test_messages_on_brokers``, B10 in
``test_transactions_on_brokers``, B09, B24 in ``test_subscriptions_on_brokers``, B25 in ``test_tls``.
"""

from __future__ import annotations

import gc
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import jmsapi
from jmsapi import BytesMessage, Connection, DeliveryMode, Message, Session, TextMessage
from jmsapi_conformance.brokers import Broker


@pytest.fixture
def name() -> str:
    return f"field.{uuid.uuid4().hex}"


@pytest.fixture
def connect(each_broker: Broker) -> Iterator[Callable[..., Connection]]:
    """Give a function that opens a started connection over STOMP."""
    connections: list[Connection] = []

    def open_one(**options: Any) -> Connection:
        connection = jmsapi.connection_factory(
            f"{each_broker.url('stomp')}?checked=true&emulate=tx", **options
        ).create_connection()
        connections.append(connection)
        connection.start()
        return connection

    yield open_one
    for connection in connections:
        connection.close()


def send(connection: Connection, name: str, *bodies: str | bytes) -> None:
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(name))
        for body in bodies:
            if isinstance(body, str):
                producer.send(session.create_text_message(body))
            else:
                message = session.create_bytes_message()
                message.write_bytes(body)
                producer.send(message)


def received(message: Message | None) -> Message:
    assert message is not None, "no message came"
    return message


def test_b01_a_slow_listener_does_not_stop_the_heart_beats(connect: Callable[..., Connection], name: str) -> None:
    connection = connect(heartbeat_ms=500)
    troubles: list[Exception] = []
    connection.exception_listener = troubles.append
    seen: list[tuple[str, bool]] = []
    both = threading.Event()

    def on_message(message: Message) -> None:
        if not seen:
            time.sleep(3)  # six intervals
        seen.append((message.get_body(str), message.jms_redelivered))
        if len(seen) == 2:
            both.set()

    with connection.create_session() as session:
        session.create_consumer(session.create_queue(name)).message_listener = on_message
        send(connection, name, "one", "two")
        assert both.wait(20)
    assert seen == [("one", False), ("two", False)]
    assert troubles == []


def test_b03_a_lock_of_the_application_around_send_and_in_a_listener_does_no_harm(
    connect: Callable[..., Connection], name: str
) -> None:
    connection = connect()
    lock, done = threading.Lock(), threading.Event()
    left = 200

    with connection.create_session() as listening, connection.create_session() as sending:
        answers = listening.create_producer(listening.create_queue(name + ".answers"))

        def on_message(message: Message) -> None:
            nonlocal left
            with lock:
                answers.send(listening.create_text_message("answer"))
            left -= 1
            if left == 0:
                done.set()

        listening.create_consumer(listening.create_queue(name)).message_listener = on_message
        producer = sending.create_producer(sending.create_queue(name))
        for _ in range(200):
            with lock:
                producer.send(sending.create_text_message("question"))
        assert done.wait(60)


def test_b04_close_right_after_a_send_returns_and_loses_nothing(each_broker: Broker, name: str) -> None:
    factory = jmsapi.connection_factory(each_broker.url("stomp"))
    for n in range(50):
        connection = factory.create_connection()
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(name))
        producer.delivery_mode = DeliveryMode.PERSISTENT if n % 2 else DeliveryMode.NON_PERSISTENT
        producer.send(session.create_text_message(str(n)))
        began = time.monotonic()
        connection.close()
        assert time.monotonic() - began < 20
    with factory.create_context() as context:
        consumer = context.create_consumer(context.create_queue(name))
        got = [consumer.receive_body(str, 10_000) for _ in range(50)]
    assert sorted(map(int, got)) == list(range(50))


def test_b05_a_body_that_is_no_text_does_not_stop_what_comes_after(connect: Callable[..., Connection], name: str) -> None:
    connection = connect()
    data = b"\xf0\x01\x41\x63\xff\x00\x1f\x8b"
    send(connection, name, data, "after")
    with connection.create_session() as session:
        consumer = session.create_consumer(session.create_queue(name))
        first = received(consumer.receive(10_000))
        assert isinstance(first, BytesMessage)
        assert (first.body_length, first.get_body(bytes)) == (8, data)
        second = received(consumer.receive(10_000))
        assert isinstance(second, TextMessage)
        assert second.text == "after"


def test_b10_rollback_brings_messages_back_marked_and_in_order(connect: Callable[..., Connection], name: str) -> None:
    connection = connect()
    send(connection, name, "1", "2", "3")
    with connection.create_session(Session.SESSION_TRANSACTED) as session:
        consumer = session.create_consumer(session.create_queue(name))
        for expected in "123":
            assert received(consumer.receive(10_000)).get_body(str) == expected
        session.create_producer(session.create_queue(name + ".out")).send(session.create_text_message("never"))
        session.rollback()
        again = [received(consumer.receive(10_000)) for _ in range(3)]
        assert [message.get_body(str) for message in again] == ["1", "2", "3"]
        assert all(message.jms_redelivered for message in again)
        assert [message.get_int_property("JMSXDeliveryCount") for message in again] == [2, 2, 2]
        session.commit()
    with connection.create_session() as session:
        for left in (name, name + ".out"):
            assert session.create_consumer(session.create_queue(left)).receive_no_wait() is None


def test_b18_prefetch_one_leaves_messages_to_the_quick(connect: Callable[..., Connection], name: str) -> None:
    slow, quick = connect(prefetch=1), connect(prefetch=1)
    counts = {"slow": 0, "quick": 0}
    done = threading.Event()

    def listener(who: str, pause: float) -> Callable[[Message], None]:
        def on_message(message: Message) -> None:
            time.sleep(pause)
            counts[who] += 1
            if sum(counts.values()) == 21:
                done.set()

        return on_message

    with slow.create_session() as first, quick.create_session() as second:
        first.create_consumer(first.create_queue(name)).message_listener = listener("slow", 0.5)
        second.create_consumer(second.create_queue(name)).message_listener = listener("quick", 0.01)
        send(quick, name, *["x" * (10 if n % 2 else 20_480) for n in range(21)])
        assert done.wait(20)
    assert counts["slow"] <= 5


def test_b20_a_delay_is_obeyed_without_an_option(classic: Broker, name: str) -> None:
    """Where the broker would ignore it, it is refused: ``tests/unit/core/test_delay_trial.py``."""
    with jmsapi.connection_factory(classic.url("stomp")).create_context() as context:
        queue, producer = context.create_queue(name), context.create_producer()
        producer.delivery_delay = 1500
        producer.send(queue, "x")
        producer.delivery_delay = 0
        producer.send(queue, "y")
        consumer = context.create_consumer(queue)
        assert [consumer.receive_body(str, timeout_ms=20_000) for _ in range(2)] == ["y", "x"]


def test_b21_a_message_a_listener_cannot_take_is_tried_again_and_then_put_away(
    connect: Callable[..., Connection], name: str
) -> None:
    connection = connect(max_redeliveries=2)
    seen: list[tuple[str, int]] = []
    good = threading.Event()

    def on_message(message: Message) -> None:
        body = message.get_body(str)
        seen.append((body, message.get_int_property("JMSXDeliveryCount")))
        if body == "bad":
            raise ValueError("on purpose")
        good.set()

    with connection.create_session() as session:
        session.create_consumer(session.create_queue(name)).message_listener = on_message
        send(connection, name, "bad", "good")
        assert good.wait(20)
    assert seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    with connection.create_session() as session:
        assert session.create_consumer(session.create_queue(name)).receive_no_wait() is None


def test_b22_connections_leave_nothing_behind(each_broker: Broker, name: str) -> None:
    factory = jmsapi.connection_factory(each_broker.url("stomp"))

    def use() -> None:
        with factory.create_context() as context:
            context.create_producer().send(context.create_queue(name), "x")
            assert context.create_consumer(context.create_queue(name)).receive_body(str, 10_000) == "x"

    def count() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    for _ in range(3):
        use()
    before = count()
    for _ in range(20):
        use()
    closed = jmsapi.connection_factory("stomp://127.0.0.1:1")
    for _ in range(20):
        with pytest.raises(jmsapi.JMSException):
            closed.create_connection()
    after = count()
    assert abs(after[0] - before[0]) <= 2
    assert abs(after[1] - before[1]) <= 2


def test_b07_a_wrong_password_with_every_special_character_is_refused_and_not_shown(each_broker: Broker) -> None:
    secret = "p:w\\d é"
    where = each_broker.url("stomp").rpartition("@")[2]
    factory = jmsapi.connection_factory(f"stomp://{each_broker.user}:{quote(secret)}@{where}", broker=each_broker.kind)
    with pytest.raises(jmsapi.JMSSecurityException) as caught:
        factory.create_connection()
    assert secret not in str(caught.value)
