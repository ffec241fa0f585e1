"""7.3 Standard exceptions, of calls that need a provider."""

from collections.abc import Callable, Iterator

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    IllegalStateException,
    IllegalStateRuntimeException,
    InvalidClientIDException,
    InvalidClientIDRuntimeException,
    InvalidDestinationException,
    InvalidDestinationRuntimeException,
    InvalidSelectorException,
    InvalidSelectorRuntimeException,
    JMSContext,
    JMSException,
    JMSRuntimeException,
    Message,
    MessageConsumer,
    MessageFormatException,
    MessageNotWriteableException,
    MessageNotWriteableRuntimeException,
    MessageProducer,
    Queue,
    ResourceAllocationException,
    ResourceAllocationRuntimeException,
    Session,
    TextMessage,
    Topic,
    TransactionRolledBackException,
    TransactionRolledBackRuntimeException,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import expect_nothing, receive, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._foreign import foreign_message


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


class NoSuchQueueException(InvalidDestinationException):
    """An exception that a provider derived from a standard one."""


@requirement("7.3-2")
@needs("plain_message")
def test_an_exception_derived_from_a_standard_one_is_caught_as_that(session: Session, context: JMSContext, queue: Queue) -> None:
    def refuse(_: Message) -> Iterator[str]:
        raise NoSuchQueueException("no such queue")

    message = foreign_message("plain")
    type(message).property_names = property(refuse)
    with pytest.raises(InvalidDestinationException) as caught:
        session.create_producer(queue).send(message)
    assert isinstance(caught.value, NoSuchQueueException)
    with pytest.raises(InvalidDestinationRuntimeException):
        context.create_producer().send(queue, message)


CLOSED: dict[str, Callable[[Connection, Session, MessageProducer, MessageConsumer, Queue, Message], object]] = {
    "Connection.create_session": lambda c, s, p, r, q, m: c.create_session(),
    "Connection.start": lambda c, s, p, r, q, m: c.start(),
    "Connection.stop": lambda c, s, p, r, q, m: c.stop(),
    "Connection.client_id": lambda c, s, p, r, q, m: c.client_id,
    "Connection.meta_data": lambda c, s, p, r, q, m: c.meta_data,
    "Connection.exception_listener": lambda c, s, p, r, q, m: c.exception_listener,
    "Session.create_browser": lambda c, s, p, r, q, m: s.create_browser(q),
    "Session.create_consumer": lambda c, s, p, r, q, m: s.create_consumer(q),
    "Session.create_message": lambda c, s, p, r, q, m: s.create_message(),
    "Session.create_producer": lambda c, s, p, r, q, m: s.create_producer(q),
    "Session.create_queue": lambda c, s, p, r, q, m: s.create_queue("name"),
    "Session.create_temporary_topic": lambda c, s, p, r, q, m: s.create_temporary_topic(),
    "Session.commit": lambda c, s, p, r, q, m: s.commit(),
    "Session.recover": lambda c, s, p, r, q, m: s.recover(),
    "Session.unsubscribe": lambda c, s, p, r, q, m: s.unsubscribe("name"),
    "MessageProducer.send": lambda c, s, p, r, q, m: p.send(m),
    "MessageProducer.priority": lambda c, s, p, r, q, m: p.priority,
    "MessageConsumer.receive": lambda c, s, p, r, q, m: r.receive(1),
    "MessageConsumer.receive_no_wait": lambda c, s, p, r, q, m: r.receive_no_wait(),
    "MessageConsumer.message_listener": lambda c, s, p, r, q, m: r.message_listener,
    "Message.acknowledge": lambda c, s, p, r, q, m: m.acknowledge(),
    "Message.set_string_property": lambda c, s, p, r, q, m: m.set_string_property("name", "value"),
}


@requirement("7.3-3")
@pytest.mark.parametrize("call", CLOSED.values(), ids=CLOSED)
def test_the_classic_api_never_raises_an_unchecked_variant(
    connect: Connect,
    other_session: Session,
    queue: Queue,
    call: Callable[[Connection, Session, MessageProducer, MessageConsumer, Queue, Message], object],
) -> None:
    connection = connect()
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    producer, consumer = session.create_producer(queue), session.create_consumer(queue)
    send_texts(other_session, queue, "text")
    message = receive(consumer)
    connection.close()
    with pytest.raises(JMSException) as caught:
        call(connection, session, producer, consumer, queue, message)
    assert not isinstance(caught.value, JMSRuntimeException)


FITTING: dict[str, Callable[[Session, Queue, Topic], object]] = {
    "commit without a transaction": lambda session, _, __: session.commit(),
    "a selector that is none": lambda session, queue, _: session.create_consumer(queue, "a ="),
    "no destination": lambda session, queue, _: session.create_producer().send(None, session.create_message()),  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    "no message": lambda session, queue, _: session.create_producer(queue).send(None),  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    "a value that no property takes": lambda session, _, __: session.create_message().set_object_property("p", []),
    "a second producer after close": lambda session, queue, _: (session.close(), session.create_producer(queue)),
}


@requirement("7.3-1")
@pytest.mark.parametrize("call", FITTING.values(), ids=FITTING)
def test_where_a_standard_exception_fits_it_is_used(
    session: Session, queue: Queue, topic: Topic, call: Callable[[Session, Queue, Topic], object]
) -> None:
    with pytest.raises(JMSException) as caught:
        call(session, queue, topic)
    assert type(caught.value) is not JMSException


@requirement("7.3-1")
@needs("temporary_queue")
def test_a_temporary_queue_of_another_connection_is_refused_with_a_standard_exception(
    session: Session, other_session: Session
) -> None:
    with pytest.raises(JMSException) as caught:
        other_session.create_consumer(session.create_temporary_queue())
    assert type(caught.value) is not JMSException


@requirement("7.3-11", "7.3-12", "B.2.21-3")
@pytest.mark.parametrize("client_id", ["", None], ids=["empty", "None"])
def test_a_client_id_that_can_be_none_is_invalid(connect: Connect, context: JMSContext, client_id: str | None) -> None:
    connection = connect(started=False)
    with pytest.raises(InvalidClientIDException):
        connection.client_id = client_id
    with pytest.raises(InvalidClientIDRuntimeException):
        context.client_id = client_id
    assert (connection.client_id, context.client_id) == (None, None)


@requirement("7.3-11", "7.3-12")
@needs("client_id_exclusive")
def test_a_client_id_that_is_in_use_is_invalid(connect: Connect, context: JMSContext, names: Names) -> None:
    client_id = names.client_id()
    holder, second = connect(client_id=client_id), connect(started=False)
    with pytest.raises(InvalidClientIDException):
        second.client_id = client_id
    with pytest.raises(InvalidClientIDRuntimeException):
        context.client_id = client_id
    assert holder.client_id == client_id


WITH_SELECTOR: dict[str, Callable[[Session, Queue, Topic], object]] = {
    "create_consumer on a queue": lambda session, queue, _: session.create_consumer(queue, "a ="),
    "create_consumer on a topic": lambda session, _, topic: session.create_consumer(topic, "a ="),
    "create_browser": lambda session, queue, _: session.create_browser(queue, "a ="),
    "create_durable_subscriber": lambda session, _, topic: session.create_durable_subscriber(topic, "name", "a ="),
    "create_durable_consumer": lambda session, _, topic: session.create_durable_consumer(topic, "name", "a ="),
    "create_shared_consumer": lambda session, _, topic: session.create_shared_consumer(topic, "name", "a ="),
    "create_shared_durable_consumer": lambda session, _, topic: session.create_shared_durable_consumer(topic, "name", "a ="),
}
IN_CONTEXT: dict[str, Callable[[JMSContext, Queue, Topic], object]] = {
    "create_consumer on a queue": lambda context, queue, _: context.create_consumer(queue, "a ="),
    "create_consumer on a topic": lambda context, _, topic: context.create_consumer(topic, "a ="),
    "create_browser": lambda context, queue, _: context.create_browser(queue, "a ="),
    "create_durable_consumer": lambda context, _, topic: context.create_durable_consumer(topic, "name", "a ="),
    "create_shared_consumer": lambda context, _, topic: context.create_shared_consumer(topic, "name", "a ="),
    "create_shared_durable_consumer": lambda context, _, topic: context.create_shared_durable_consumer(topic, "name", "a ="),
}
FEATURE = {
    "create_browser": "browser",
    "create_durable_subscriber": "durable_subscription",
    "create_durable_consumer": "durable_subscription",
    "create_shared_consumer": "shared_subscription",
    "create_shared_durable_consumer": "shared_durable_subscription",
}


def each_method(methods: dict[str, Callable[..., object]]) -> list[object]:
    """Return the names as parameters, each with what it needs."""
    return [pytest.param(name, marks=needs(FEATURE[name])) if name in FEATURE else name for name in methods]


@requirement("7.3-16")
@pytest.mark.parametrize("method", each_method(WITH_SELECTOR))
def test_every_method_that_takes_a_selector_refuses_bad_syntax(
    connect: Connect, queue: Queue, topic: Topic, names: Names, method: str
) -> None:
    session = connect(client_id=names.client_id()).create_session()
    with pytest.raises(InvalidSelectorException):
        WITH_SELECTOR[method](session, queue, topic)


@requirement("7.3-17")
@pytest.mark.parametrize("method", each_method(IN_CONTEXT))
def test_every_method_of_a_context_that_takes_a_selector_refuses_bad_syntax(
    backend: Backend, queue: Queue, topic: Topic, names: Names, method: str
) -> None:
    with backend.factory(client_id=names.client_id()).create_context() as context, pytest.raises(InvalidSelectorRuntimeException):
        IN_CONTEXT[method](context, queue, topic)


@requirement("7.3-26")
def test_a_producer_cannot_add_properties_to_a_received_message(
    context: JMSContext, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "text")
    consumer = other_session.create_consumer(queue)
    message = receive(consumer)
    producer = context.create_producer().set_property("p", 1)
    with pytest.raises(MessageNotWriteableRuntimeException):
        producer.send(queue, message)
    expect_nothing(consumer, other_session, queue)


@requirement("7.3-27")
def test_a_broker_without_resources_is_reported_as_such(interceptor: Interceptor, queue: Queue) -> None:
    session, context = interceptor.connect().create_session(), interceptor.context()
    interceptor.refuse(lambda _: True)
    with pytest.raises(ResourceAllocationException):
        send_texts(session, queue, "text")
    with pytest.raises(ResourceAllocationRuntimeException):
        context.create_producer().send(queue, "text")


@requirement("7.3-29")
@needs("transactions")
def test_a_commit_that_the_broker_takes_nothing_of_says_that_it_was_rolled_back(
    interceptor: Interceptor, queue: Queue, other_session: Session
) -> None:
    session = interceptor.connect().create_session(Session.SESSION_TRANSACTED)
    interceptor.refuse(lambda number: number == 0)
    send_texts(session, queue, "1")
    with pytest.raises(TransactionRolledBackException):
        session.commit()


@requirement("7.3-29")
@needs("transactions", "transactions_atomic")
def test_a_commit_that_ends_in_a_rollback_says_so(interceptor: Interceptor, queue: Queue, other_session: Session) -> None:
    session = interceptor.connect().create_session(Session.SESSION_TRANSACTED)
    interceptor.refuse(lambda number: number == 1)
    send_texts(session, queue, "1", "2", "3")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("7.3-30")
@needs("transactions", "transactions_atomic")
def test_a_commit_of_a_context_that_ends_in_a_rollback_says_so(
    interceptor: Interceptor, queue: Queue, other_session: Session
) -> None:
    context = interceptor.context(JMSContext.SESSION_TRANSACTED)
    interceptor.refuse(lambda number: number == 1)
    context.create_producer().send(queue, "1").send(queue, "2").send(queue, "3")
    with pytest.raises(TransactionRolledBackRuntimeException):
        context.commit()
    consumer = other_session.create_consumer(queue)
    expect_nothing(consumer, other_session, queue)
    interceptor.refuse(lambda _: False)
    context.create_producer().send(queue, "of the next transaction")
    context.commit()
    assert receive_text(consumer) == "of the next transaction"
