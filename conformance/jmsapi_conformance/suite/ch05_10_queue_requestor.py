"""5.10 QueueRequestor."""

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    Message,
    Queue,
    QueueRequestor,
    QueueSession,
    Session,
    TemporaryQueue,
)
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import Recorder, finish, in_thread, must_wait, receive, text_of
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("temporary_queue")


@requirement("5.10-1")
def test_a_requestor_makes_a_temporary_queue_of_its_own_for_the_replies(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    consumer = other_session.create_consumer(queue)
    seen: list[Message] = []
    for _ in range(2):
        requestor = QueueRequestor(requesting_session(connect), queue)
        pending = in_thread(lambda asked=requestor: asked.request(other_session.create_message()))  # type: ignore[misc]
        seen.append(receive(consumer))
        answer(other_session, seen[-1], "answer")
        finish(pending)
        requestor.close()
    first, second = (message.jms_reply_to for message in seen)
    assert isinstance(first, TemporaryQueue)
    assert isinstance(second, TemporaryQueue)
    assert first.queue_name != second.queue_name
    # It belongs to the connection of the requestor.
    with pytest.raises(JMSException):
        other_session.create_consumer(second)


@requirement("5.10-1")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_requestor_takes_a_session_that_acknowledges_by_itself(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    responder = Recorder(then=lambda request: answer(other_session, request, f"answer to {text_of(request)}"))
    other_session.create_consumer(queue).message_listener = responder
    session = requesting_session(connect, mode)
    requestor = QueueRequestor(session, queue)
    assert text_of(finish(in_thread(lambda: requestor.request(session.create_text_message("question"))))) == "answer to question"


@requirement("5.10-1")
@needs("transactions")
def test_a_requestor_refuses_a_transacted_session(connect: Connect, queue: Queue) -> None:
    session = requesting_session(connect, Session.SESSION_TRANSACTED)
    with pytest.raises(IllegalStateException):
        QueueRequestor(session, queue)


@requirement("5.10-1", "B.3.3-1")
def test_a_requestor_needs_a_queue(connect: Connect, other_session: Session) -> None:
    session = requesting_session(connect)
    nothing: Queue = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    with pytest.raises(InvalidDestinationException):
        QueueRequestor(session, nothing)
    assert session.create_temporary_queue().queue_name


@requirement("5.10-2")
def test_each_request_waits_for_its_own_reply(connect: Connect, queue: Queue, other_session: Session) -> None:
    session = requesting_session(connect)
    requestor = QueueRequestor(session, queue)
    consumer = other_session.create_consumer(queue)
    for number in range(3):
        question = session.create_text_message(f"question {number}")
        pending = must_wait(lambda question=question: requestor.request(question))  # type: ignore[misc]
        request = receive(consumer)
        assert text_of(request) == f"question {number}"
        assert not pending.done()
        answer(other_session, request, f"answer {number}")
        reply = finish(pending)
        assert text_of(reply) == f"answer {number}"
        assert reply is not None
        assert reply.jms_correlation_id == question.jms_message_id


@requirement("5.10-2", "B.2.19-3")
def test_closing_a_requestor_closes_its_session_and_deletes_its_queue(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    connection = connect.queues()
    session = connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    requestor = QueueRequestor(session, queue)
    consumer = other_session.create_consumer(queue)
    pending = in_thread(lambda: requestor.request(session.create_text_message("question")))
    request = receive(consumer)
    answer(other_session, request, "answer")
    finish(pending)
    requestor.close()
    with pytest.raises(IllegalStateException):
        session.create_message()
    assert still_open(connection)
    assert isinstance(request.jms_reply_to, TemporaryQueue)
    with pytest.raises(JMSException):
        connection.create_session().create_consumer(request.jms_reply_to)
    requestor.close()


@requirement("4.3.5-12", "B.2.19-3")
def test_closing_a_requestor_does_nothing_when_its_connection_is_closed(connect: Connect, queue: Queue) -> None:
    connection = connect.queues()
    requestor = QueueRequestor(connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE), queue)
    connection.close()
    requestor.close()


def requesting_session(connect: Connect, mode: int = Session.AUTO_ACKNOWLEDGE) -> QueueSession:
    """Create a session for queues on a connection of its own."""
    return connect.queues().create_queue_session(mode == Session.SESSION_TRANSACTED, mode)


def answer(session: Session, request: Message, text: str) -> None:
    """Send a reply to where the request wants it, referring to the request."""
    assert request.jms_reply_to is not None
    reply = session.create_text_message(text)
    reply.jms_correlation_id = request.jms_message_id
    with session.create_producer(request.jms_reply_to) as producer:
        producer.send(reply)


def still_open(connection: Connection) -> bool:
    """Whether the connection has not been closed with one of its sessions."""
    return bool(connection.meta_data.jms_version)
