"""8.2.1 The session of a server session: its listener, and run (ASF-5 to ASF-9, ASF-51)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    JMSException,
    Message,
    Queue,
    Session,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    Recorder,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._facilities import TEXTS, RecordingPool, loaded


@requirement("8.2.1-1", "ASF-5")
def test_a_session_has_a_listener_of_its_own_that_can_be_set_and_read_back(session: Session) -> None:
    assert session.message_listener is None
    listener = Recorder()
    session.message_listener = listener
    assert session.message_listener is listener
    session.message_listener = None
    assert session.message_listener is None


@requirement("8.2.1-2", "8.2.1-3", "ASF-6", "ASF-7", "ASF-8")
def test_run_gives_what_was_loaded_to_the_sessions_listener_one_after_the_other_and_returns_after_the_last(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session()
    running: list[str | None] = []
    overlaps: list[int] = []

    def slow(message: Message) -> None:
        running.append(text_of(message))
        overlaps.append(len(running))
        time.sleep(0.05)
        running.pop()

    listener = Recorder(then=slow)
    session.message_listener = listener
    with loaded(connection, queue, session, TEXTS[:3], other_session):
        time.sleep(QUIET_MS / 1000)
        assert listener.texts == []
        begun = time.monotonic()
        while len(listener.texts) < 3:
            # Not all need have come before the first was taken; then the rest is loaded in its turn.
            session.run()
            assert time.monotonic() - begun < PATIENCE_MS / 1000
        assert time.monotonic() - begun >= 0.15
    assert listener.texts == TEXTS[:3]
    assert (running, set(overlaps)) == ([], {1})
    assert len(listener.threads) == 1


@requirement("8.2.1-4", "ASF-51")
def test_the_sessions_own_listener_can_use_the_session_to_send(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    answers = other_session.create_queue(names.queue())
    with connection.create_session() as session:
        producer = session.create_producer(answers)
        pool: Any = RecordingPool(connection, None, 1, make=lambda mode: session)
        session.message_listener = lambda message: producer.send(session.create_text_message(f"re: {text_of(message)}"))
        with connection.create_connection_consumer(queue, None, pool, 1):
            send_texts(other_session, queue, "text")
            assert receive_texts(other_session.create_consumer(answers), 1) == ["re: text"]


@requirement("ASF-9")
def test_run_without_messages_or_without_a_listener_calls_nothing_and_loses_nothing(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session()
    session.run()
    listener = Recorder()
    session.message_listener = listener
    session.run()
    assert listener.messages == []
    session.message_listener = None
    with loaded(connection, queue, session, ["text"], other_session):
        session.run()
        session.close()
    assert receive_texts(other_session.create_consumer(queue), 1) == ["text"]


@requirement("ASF-51")
def test_a_session_with_a_listener_of_its_own_receives_in_no_other_way(session: Session, queue: Queue) -> None:
    session.message_listener = Recorder()
    with pytest.raises(JMSException):
        session.create_consumer(queue).receive(100)
    session.create_producer(queue).send(session.create_message())
    session.message_listener = None
    with session.create_consumer(queue) as consumer:
        with pytest.raises(IllegalStateException):
            session.message_listener = Recorder()
        assert consumer.receive(PATIENCE_MS) is not None
