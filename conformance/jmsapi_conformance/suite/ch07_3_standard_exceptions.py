"""7.3 Standard exceptions, of calls that need a provider."""

from collections.abc import Callable

import pytest

from jmsapi import (
    ConnectionFactory,
    IllegalStateException,
    IllegalStateRuntimeException,
    InvalidDestinationException,
    InvalidDestinationRuntimeException,
    JMSContext,
    MessageFormatException,
    MessageNotWriteableException,
    Queue,
    Session,
    TextMessage,
    Topic,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("7.3-4")
def test_commit_on_a_session_that_is_not_transacted_is_illegal(session: Session) -> None:
    with pytest.raises(IllegalStateException):
        session.commit()


@requirement("7.3-5")
def test_commit_on_a_context_that_is_not_transacted_is_illegal(context: JMSContext) -> None:
    with pytest.raises(IllegalStateRuntimeException):
        context.commit()


CALLS: dict[str, Callable[[Session, Queue], object]] = {
    "create_producer": lambda session, queue: session.create_producer(queue),
    "create_consumer": lambda session, queue: session.create_consumer(queue),
    "create_text_message": lambda session, _: session.create_text_message("text"),
    "recover": lambda session, _: session.recover(),
}


@requirement("7.3-7")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_on_a_closed_session_is_illegal(session: Session, queue: Queue, call: Callable[[Session, Queue], object]) -> None:
    session.close()
    with pytest.raises(IllegalStateException):
        call(session, queue)


@requirement("7.3-7")
def test_a_call_on_a_closed_context_is_illegal(factory: ConnectionFactory, names: Names) -> None:
    context = factory.create_context()
    queue = context.create_queue(names.queue())
    context.close()
    with pytest.raises(IllegalStateRuntimeException):
        context.create_consumer(queue)


@requirement("7.3-13")
@pytest.mark.parametrize("destination", [None, "a name", object()], ids=["None", "str", "object"])
def test_what_is_no_destination_is_invalid(session: Session, destination: Topic) -> None:
    with pytest.raises(InvalidDestinationException):
        session.create_consumer(destination)
    with pytest.raises(InvalidDestinationException):
        session.create_producer(None).send(destination, session.create_text_message("text"))


@requirement("7.3-15")
def test_what_is_no_destination_is_invalid_in_the_simplified_api(context: JMSContext) -> None:
    nothing: Queue = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    with pytest.raises(InvalidDestinationRuntimeException):
        context.create_consumer(nothing)
    with pytest.raises(InvalidDestinationRuntimeException):
        context.create_producer().send(nothing, "text")


@requirement("7.3-14")
@needs("temporary_queue")
def test_a_deleted_temporary_queue_is_invalid(connect: Connect) -> None:
    session = connect().create_session()
    temporary = session.create_temporary_queue()
    temporary.delete()
    with pytest.raises(InvalidDestinationException):
        session.create_consumer(temporary)
    with pytest.raises(InvalidDestinationException):
        send_texts(session, temporary, "text")


@requirement("7.3-22")
@pytest.mark.parametrize("message", [None, "text", object()], ids=["None", "str", "object"])
def test_what_is_no_message_cannot_be_sent(session: Session, queue: Queue, message: TextMessage) -> None:
    with pytest.raises(MessageFormatException):
        session.create_producer(queue).send(message)


@requirement("7.3-25")
def test_a_received_message_is_read_only(session: Session, queue: Queue) -> None:
    send_texts(session, queue, "text", colour="red")
    message = receive(session.create_consumer(queue))
    assert isinstance(message, TextMessage)
    with pytest.raises(MessageNotWriteableException):
        message.text = "other"
    with pytest.raises(MessageNotWriteableException):
        message.set_string_property("colour", "blue")
    assert (message.text, message.get_string_property("colour")) == ("text", "red")
