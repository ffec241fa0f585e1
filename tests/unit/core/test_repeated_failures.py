"""What is rolled back or recovered again and again: the calls take longer, and a close ends their wait."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import jmsapi.aio
from jmsapi import Connection, Message, Session
from jmsapi.testing import EmbeddedBroker


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.url


def connect(url: str, **options: Any) -> Connection:
    connection = jmsapi.connection_factory(url, **options).create_connection()
    connection.start()
    return connection


def poisoned(connection: Connection, mode: int) -> tuple[Session, jmsapi.MessageConsumer]:
    session, sending = connection.create_session(mode), connection.create_session()
    queue = session.create_queue(uuid.uuid4().hex)
    sending.create_producer(queue).send(sending.create_text_message("poison"))
    return session, session.create_consumer(queue)


def times_of_rollbacks(session: Session, consumer: jmsapi.MessageConsumer, count: int) -> list[float]:
    took: list[float] = []
    for _ in range(count):
        assert consumer.receive(10_000) is not None
        began = time.monotonic()
        session.rollback()
        took.append(time.monotonic() - began)
    return took


def test_the_first_failure_costs_nothing_and_each_further_one_twice_the_wait_up_to_the_option(url: str) -> None:
    with connect(url, max_redeliveries=-1, redelivery_delay_ms=150) as connection:
        took = times_of_rollbacks(*poisoned(connection, Session.SESSION_TRANSACTED), 5)
    assert took[0] < took[-1]
    assert [round(one, 2) >= wait for one, wait in zip(took[1:], (0.05, 0.1, 0.15, 0.15), strict=True)] == [True] * 4
    assert took[4] < 1.0


def test_an_option_of_0_turns_the_waits_off(url: str) -> None:
    with connect(url, max_redeliveries=-1, redelivery_delay_ms=0) as connection:
        assert sum(times_of_rollbacks(*poisoned(connection, Session.SESSION_TRANSACTED), 20)) < 0.5


def test_a_close_ends_the_wait(url: str) -> None:
    with connect(url, max_redeliveries=-1, redelivery_delay_ms=600_000) as connection:
        session, consumer = poisoned(connection, Session.CLIENT_ACKNOWLEDGE)
        waiting = threading.Event()

        def listen(_: Message) -> None:
            waiting.set()
            session.recover()

        consumer.message_listener = listen
        assert waiting.wait(10)
        time.sleep(2)  # the waits are 50, 100, 200, 400, 800, 1,600 ms
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < 1.0


def test_a_listener_that_always_fails_does_not_turn_in_a_fast_loop_where_there_is_no_limit(url: str) -> None:
    with connect(url, max_redeliveries=-1) as connection:
        _, consumer = poisoned(connection, Session.AUTO_ACKNOWLEDGE)
        calls: list[Message] = []

        def listen(message: Message) -> None:
            calls.append(message)
            raise ValueError("on purpose")

        consumer.message_listener = listen
        time.sleep(0.5)
        assert 3 <= len(calls) <= 6


def test_nothing_of_a_broker_that_may_lose_it_is_put_away(url: str) -> None:
    with connect(url, max_redeliveries=1, redelivery_delay_ms=0) as connection:
        session, sending = connection.create_session(Session.SESSION_TRANSACTED), connection.create_session()
        queue = session.create_queue("volatile")
        producer = sending.create_producer(queue)
        producer.delivery_mode = jmsapi.DeliveryMode.NON_PERSISTENT
        producer.send(sending.create_text_message("x"))
        assert len(times_of_rollbacks(session, session.create_consumer(queue), 10)) == 10


def test_a_rollback_that_is_awaited_takes_longer_as_well(url: str) -> None:
    async def rollbacks(count: int) -> list[float]:
        took: list[float] = []
        async with jmsapi.aio.connection_factory(url).create_context(Session.SESSION_TRANSACTED) as context:
            queue = context.create_queue("q")
            await context.create_producer().send(queue, "poison")
            await context.commit()
            consumer = await context.create_consumer(queue)
            for _ in range(count):
                assert await consumer.receive(timeout_ms=10_000) is not None
                began = time.monotonic()
                await context.rollback()
                took.append(time.monotonic() - began)
        return took

    took = asyncio.run(rollbacks(3))
    assert took[0] < took[-1]
    assert took[2] >= 0.09
