"""4.5 MessageConsumer and 4.5.1 Synchronous delivery."""

import time

import pytest

from jmsapi import Connection, InvalidDestinationException, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import PATIENCE_MS, eventually, finish, in_thread, receive_text, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.5-1")
def test_a_consumer_is_made_for_a_queue_and_for_a_topic(
    session: Session, queue: Queue, topic: Topic, other_session: Session
) -> None:
    for destination in (queue, topic):
        consumer = session.create_consumer(destination)
        send_texts(other_session, destination, "text")
        assert receive_text(consumer) == "text"


@requirement("4.5-1")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("create_temporary_queue", marks=needs("temporary_queue")),
        pytest.param("create_temporary_topic", marks=needs("temporary_topic")),
    ],
)
def test_a_consumer_is_made_for_a_temporary_destination(session: Session, other_session: Session, kind: str) -> None:
    destination = getattr(session, kind)()
    consumer = session.create_consumer(destination)
    send_texts(other_session, destination, "text")
    assert receive_text(consumer) == "text"


@requirement("4.5-1")
def test_a_consumer_of_no_destination_is_refused(session: Session) -> None:
    with pytest.raises(InvalidDestinationException):
        session.create_consumer(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@requirement("4.5.1-1")
def test_receive_waits_until_a_message_comes(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = session.create_consumer(queue)
    pending = in_thread(consumer.receive)
    with pytest.raises(TimeoutError):
        finish(pending, 200)
    send_texts(other_session, queue, "text")
    assert text_of(finish(pending)) == "text"


@requirement("4.5.1-1")
def test_receive_waits_until_the_consumer_is_closed(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    pending = in_thread(consumer.receive)
    with pytest.raises(TimeoutError):
        finish(pending, 200)
    consumer.close()
    assert finish(pending) is None


@requirement("4.5.1-2", "9.2.2-2")
def test_receive_with_a_timeout_returns_none_when_time_is_up(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    begun = time.monotonic()
    assert consumer.receive(300) is None
    assert 0.29 <= time.monotonic() - begun < 3


@requirement("4.5.1-2")
def test_receive_with_a_timeout_returns_a_message_at_once(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = session.create_consumer(queue)
    pending = in_thread(lambda: consumer.receive(6 * PATIENCE_MS))
    send_texts(other_session, queue, "text")
    assert text_of(finish(pending)) == "text"


@requirement("4.5.1-2")
def test_receive_with_a_timeout_of_0_waits_for_ever(session: Session, queue: Queue, other_session: Session) -> None:
    consumer = session.create_consumer(queue)
    pending = in_thread(lambda: consumer.receive(0))
    with pytest.raises(TimeoutError):
        finish(pending, 200)
    send_texts(other_session, queue, "text")
    assert text_of(finish(pending)) == "text"


@requirement("4.5.1-3")
def test_receive_no_wait_returns_none_when_there_is_no_message(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    begun = time.monotonic()
    assert consumer.receive_no_wait() is None
    assert time.monotonic() - begun < 3


@requirement("4.5.1-3")
@needs("receive_no_wait_exact")
def test_receive_no_wait_returns_a_message_that_is_waiting(connect: Connect, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    consumer = connect().create_session().create_consumer(queue)
    assert text_of(consumer.receive_no_wait()) == "text"


@requirement("4.5.1-3")
def test_receive_no_wait_returns_a_message_that_has_arrived(connection: Connection, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    consumer = connection.create_session().create_consumer(queue)
    found: list[str | None] = []

    def look() -> bool:
        message = consumer.receive_no_wait()
        if message is not None:
            found.append(text_of(message))
        return bool(found)

    eventually(look, "receive_no_wait found the message")
    assert found == ["text"]
