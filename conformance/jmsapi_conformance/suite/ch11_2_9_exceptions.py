"""11.2.9 Exceptions of the simplified API."""

from collections.abc import Callable

import pytest

import jmsapi
from jmsapi import (
    JMSContext,
    JMSException,
    JMSRuntimeException,
    MessageNotWriteableException,
    Queue,
    Session,
    TextMessage,
    Topic,
)
from jmsapi_conformance.kit import receive, send_texts
from jmsapi_conformance.marks import requirement


@requirement("11.2.9-1")
@pytest.mark.parametrize(
    "name",
    [
        "IllegalState",
        "InvalidClientID",
        "InvalidDestination",
        "InvalidSelector",
        "JMSSecurity",
        "MessageFormat",
        "MessageNotWriteable",
        "ResourceAllocation",
        "TransactionRolledBack",
    ],
)
def test_a_checked_exception_has_an_unchecked_twin(name: str) -> None:
    assert issubclass(getattr(jmsapi, f"{name}Exception"), JMSException)
    assert issubclass(getattr(jmsapi, f"{name}RuntimeException"), JMSRuntimeException)


ClassicCall = Callable[[Session, Queue, Topic], object]
SimplifiedCall = Callable[[JMSContext, Queue, Topic], object]
NOTHING: Queue = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
CALLS: dict[str, tuple[ClassicCall, SimplifiedCall]] = {
    "commit without a transaction": (lambda session, _, __: session.commit(), lambda context, _, __: context.commit()),
    "a selector that is none": (
        lambda session, queue, _: session.create_consumer(queue, "a ="),
        lambda context, queue, _: context.create_consumer(queue, "a ="),
    ),
    "no destination to consume from": (
        lambda session, _, __: session.create_consumer(NOTHING),
        lambda context, _, __: context.create_consumer(NOTHING),
    ),
    "no destination to send to": (
        lambda session, _, __: session.create_producer().send(NOTHING, session.create_message()),
        lambda context, _, __: context.create_producer().send(NOTHING, context.create_message()),
    ),
    "a browser of a topic": (
        lambda session, _, topic: session.create_browser(topic),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda context, _, topic: context.create_browser(topic),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ),
    "a priority that is none": (
        lambda session, queue, _: setattr(session.create_producer(queue), "priority", 10),
        lambda context, _, __: setattr(context.create_producer(), "priority", 10),
    ),
    "a property of no type": (
        lambda session, _, __: session.create_message().set_object_property("p", []),
        lambda context, _, __: context.create_producer().set_property("p", []),
    ),
    "an object that nobody can serialise": (
        lambda session, _, __: session.create_object_message(object()),
        lambda context, _, __: context.create_object_message(object()),
    ),
    "a closed session": (
        lambda session, queue, _: (session.close(), session.create_consumer(queue)),
        lambda context, queue, _: (context.close(), context.create_consumer(queue)),
    ),
    "an empty subscription name": (
        lambda session, _, topic: session.create_shared_consumer(topic, ""),
        lambda context, _, topic: context.create_shared_consumer(topic, ""),
    ),
}


@requirement("11.2.9-2")
@pytest.mark.parametrize("what", CALLS)
def test_the_same_fault_raises_twins_in_the_two_apis(
    session: Session, context: JMSContext, queue: Queue, topic: Topic, what: str
) -> None:
    classic, simplified = CALLS[what]
    with pytest.raises(JMSException) as checked:
        classic(session, queue, topic)
    with pytest.raises(JMSRuntimeException) as unchecked:
        simplified(context, queue, topic)
    assert type(unchecked.value).__name__ == type(checked.value).__name__.replace("Exception", "RuntimeException")
    assert unchecked.value.error_code == checked.value.error_code


@requirement("11.2.9-3")
def test_messages_keep_raising_checked_exceptions(context: JMSContext, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    message = receive(context.create_consumer(queue))
    assert isinstance(message, TextMessage)
    with pytest.raises(MessageNotWriteableException):
        message.text = "other"
    with pytest.raises(MessageNotWriteableException):
        message.set_int_property("p", 1)
    assert message.text == "text"
