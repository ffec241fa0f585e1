"""Borrowed sessions: nothing of one borrower reaches the next, nobody waits for ever, a lost connection is replaced."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi import (
    ConnectionFactory,
    DeliveryMode,
    IllegalArgumentException,
    IllegalStateException,
    JMSException,
    Session,
    TextMessage,
)
from jmsapi.pool import SessionPool
from jmsapi.values import Timeout


@pytest.fixture
def broker() -> Iterator[str]:
    """Give the name of an in-process broker of the test's own."""
    name = f"pool-{uuid.uuid4().hex}"
    yield name
    jmsapi_inproc.discard(name)


@pytest.fixture
def factory(broker: str) -> ConnectionFactory:
    return jmsapi.connection_factory(f"inproc://{broker}")


def text_from(session: Session, queue: str = "q") -> str | None:
    message = session.create_consumer(session.create_queue(queue)).receive(500)
    return message.text if isinstance(message, TextMessage) else None


def test_each_borrower_starts_with_defaults(factory: ConnectionFactory) -> None:
    with SessionPool(factory, sessions=1) as pool:
        with pool.session() as session:
            producer = session.create_producer(session.create_queue("q"))
            producer.priority, producer.delivery_delay, producer.delivery_mode = 9, 60_000, DeliveryMode.NON_PERSISTENT
            producer.disable_message_id = True
        with pool.session() as session:
            session.create_producer(session.create_queue("q")).send(session.create_text_message("text"))
            message = session.create_consumer(session.create_queue("q")).receive(1000)
            assert message is not None
            assert (message.jms_priority, message.jms_delivery_mode) == (4, DeliveryMode.PERSISTENT)
            assert message.jms_message_id is not None
        assert pool.open_connections == 1


def test_what_a_borrower_leaves_unfinished_is_undone(factory: ConnectionFactory) -> None:
    with SessionPool(factory, sessions=1) as pool:
        with pool.session() as session:
            session.create_producer(session.create_queue("q")).send(session.create_text_message("kept"))
        with pytest.raises(ZeroDivisionError), pool.session(Session.SESSION_TRANSACTED) as session:
            session.create_producer(session.create_queue("q")).send(session.create_text_message("not sent"))
            assert text_from(session) == "kept"
            raise ZeroDivisionError
        with pool.session(Session.CLIENT_ACKNOWLEDGE) as session:
            assert text_from(session) == "kept"
        with pool.session() as session:
            assert (text_from(session), text_from(session)) == ("kept", None)


def test_a_session_is_of_no_use_after_its_block(factory: ConnectionFactory) -> None:
    with SessionPool(factory) as pool:
        with pool.session() as session:
            producer = session.create_producer(session.create_queue("q"))
        with pytest.raises(IllegalStateException):
            session.create_message()
        with pytest.raises(IllegalStateException):
            producer.send(jmsapi_message(pool))
        assert pool.borrowed == 0


def jmsapi_message(pool: SessionPool) -> Any:
    with pool.session() as session:
        return session.create_message()


@pytest.mark.parametrize("wait", [100, timedelta(milliseconds=100)])
def test_who_comes_while_all_are_out_waits_and_is_told_when_that_is_too_long(factory: ConnectionFactory, wait: Timeout) -> None:
    with SessionPool(factory, sessions=1, wait_ms=wait) as pool, pool.session():
        with pytest.raises(JMSException) as caught, pool.session():
            pass
        assert caught.value.error_code == "timeout"
    with SessionPool(factory, sessions=1) as pool, ThreadPoolExecutor(1) as threads:
        with pool.session() as session:
            session.create_producer(session.create_queue("q")).send(session.create_text_message("text"))
            waiting = threads.submit(lambda: borrowed_text(pool))
            assert not waiting.done()
        assert waiting.result(30) == "text"


def borrowed_text(pool: SessionPool) -> str | None:
    with pool.session() as session:
        return text_from(session)


def test_a_closed_pool_tells_who_waits_and_who_comes(factory: ConnectionFactory) -> None:
    pool = SessionPool(factory, sessions=1)
    with ThreadPoolExecutor(1) as threads, pool.session() as session:
        waiting = threads.submit(lambda: borrowed_text(pool))
        pool.close()
        pool.close()
        with pytest.raises(IllegalStateException):
            waiting.result(30)
        with pytest.raises(IllegalStateException):
            session.create_message()
    with pytest.raises(IllegalStateException), pool.session():
        pass
    assert (pool.borrowed, pool.open_connections) == (0, 0)


def test_a_hundred_threads_share_a_few_connections_and_lose_nothing(factory: ConnectionFactory) -> None:
    most = 0
    lock = threading.Lock()
    out = 0

    def send(number: int) -> None:
        nonlocal most, out
        with pool.session() as session:
            with lock:
                out += 1
                most = max(most, out)
            session.create_producer(session.create_queue("q")).send(session.create_text_message(str(number)))
            with lock:
                out -= 1

    with SessionPool(factory, sessions=8, connections=3) as pool:
        with ThreadPoolExecutor(100) as threads:
            list(threads.map(send, range(500)))
        assert pool.open_connections <= 3
        assert (pool.borrowed, most <= 8) == (0, True)
        with pool.session() as session:
            consumer = session.create_consumer(session.create_queue("q"))
            texts = [message.get_body(str) for message in iter(consumer.receive_no_wait, None) if message is not None]
    assert sorted(map(int, texts)) == list(range(500))


def test_a_lost_connection_is_replaced_and_its_borrower_told(factory: ConnectionFactory, broker: str) -> None:
    with SessionPool(factory, sessions=2) as pool:
        with pool.session() as session:
            jmsapi_inproc.discard(broker)
            with pytest.raises(JMSException):
                session.create_producer(session.create_queue("q")).send(session.create_message())
        with pool.session() as session:
            session.create_producer(session.create_queue("q")).send(session.create_text_message("after"))
            assert text_from(session) == "after"
        assert pool.open_connections == 1


def test_a_refused_mode_leaves_the_connection_as_it_was(factory: ConnectionFactory) -> None:
    with SessionPool(factory, sessions=1) as pool:
        wrong: Any = "auto"
        with pytest.raises(JMSException), pool.session(wrong):
            pass
        with pool.session() as session:
            assert session.acknowledge_mode == Session.AUTO_ACKNOWLEDGE
        assert (pool.open_connections, pool.borrowed) == (1, 0)


@pytest.mark.parametrize(
    "wrong", [{"sessions": 0}, {"sessions": "8"}, {"sessions": True}, {"connections": 0}, {"connections": 9}, {"wait_ms": -1},
              {"wait_ms": timedelta(-1)}, {"wait_ms": float("nan")}, {"wait_ms": None}],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(factory: ConnectionFactory, wrong: dict[str, Any]) -> None:
    with pytest.raises(IllegalArgumentException):
        SessionPool(factory, **wrong)
