"""Iterating over a consumer: ``for message in consumer``."""

import threading
from collections.abc import Iterator

import pytest

import jmsapi
from jmsapi import Connection, IllegalStateException, IllegalStateRuntimeException, Message, TextMessage
from jmsapi_conformance.kit import PATIENCE_MS, HeldRecorder, finish, in_thread, must_wait, send_texts


@pytest.fixture
def connection() -> Iterator[Connection]:
    with jmsapi.connection_factory("inproc://iterating", checked=True).create_connection() as made:
        made.start()
        yield made


def texts(messages: Iterator[Message]) -> list[str | None]:
    found: list[str | None] = []
    for message in messages:
        assert isinstance(message, TextMessage)
        found.append(message.text)
    return found


def test_an_iteration_gives_messages_until_its_consumer_is_closed(connection: Connection) -> None:
    session = connection.create_session()
    queue = session.create_queue("until its consumer is closed")
    send_texts(connection.create_session(), queue, "1", "2", "3")
    consumer = session.create_consumer(queue)
    iterating = must_wait(lambda: texts(iter(consumer)))
    consumer.close()
    assert finish(iterating) == ["1", "2", "3"]
    assert texts(iter(consumer)) == []


@pytest.mark.parametrize("api", ["session", "context"])
def test_an_iteration_that_is_between_two_messages_ends_when_its_connection_is_closed(api: str) -> None:
    listener = HeldRecorder()
    arrived, going = threading.Event(), threading.Event()

    def iterate(messages: Iterator[Message]) -> list[Message]:
        found: list[Message] = []
        for message in messages:
            found.append(message)
            arrived.set()
            going.wait(PATIENCE_MS / 1000)
        return found

    factory = jmsapi.connection_factory("inproc://iterating", checked=True)
    with factory.create_connection() as connection, factory.create_context() as context:
        connection.start()
        session, other = connection.create_session(), connection.create_session()
        client = session if api == "session" else context
        queue, held = session.create_queue(f"closed amid {api}"), session.create_queue(f"listened to amid {api}")
        send_texts(other, queue, "1")
        send_texts(other, held, "1")
        consumer = client.create_consumer(queue)
        if api == "session":
            other.create_consumer(held).message_listener = listener
            close = connection.close
        else:
            second = context.create_context(context.session_mode)
            second.create_consumer(held).message_listener = listener
            second.create_message()
            close = context.connection.close  # type: ignore[attr-defined]
        listener.started()
        iterating = in_thread(lambda: iterate(iter(consumer)))
        assert arrived.wait(PATIENCE_MS / 1000)
        # It waits for the listener; the consumer is not marked closed before that.
        closing = must_wait(close)
        going.set()
        assert len(finish(iterating)) == 1
        listener.go_on()
        finish(closing)


def test_an_iteration_over_a_consumer_of_a_session_with_a_listener_is_an_error(connection: Connection) -> None:
    session = connection.create_session()
    consumer = session.create_consumer(session.create_queue("with a listener"))
    session.create_consumer(session.create_queue("of the listener")).message_listener = HeldRecorder()
    with pytest.raises(IllegalStateException):
        texts(iter(consumer))


def test_an_error_of_an_iteration_of_the_simplified_api_is_unchecked() -> None:
    with jmsapi.connection_factory("inproc://iterating", checked=True).create_context() as context:
        consumer = context.create_consumer(context.create_queue("unchecked"))
        context.create_consumer(context.create_queue("of the listener")).message_listener = HeldRecorder()
        with pytest.raises(IllegalStateRuntimeException):
            texts(iter(consumer))
