"""4.3.5 Closing a connection: what is closed with it, and what may still be used."""

import threading
from collections.abc import Callable

import pytest

from jmsapi import (
    BytesMessage,
    Connection,
    ConnectionFactory,
    IllegalStateException,
    Message,
    MessageConsumer,
    MessageProducer,
    Queue,
    Session,
    TextMessage,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import Problems, Recorder, eventually, finish, in_thread, receive, receive_text, send_texts, text_of
from jmsapi_conformance.marks import needs, requirement


@requirement("4.3.5-5", "B.2.12-1")
def test_closing_a_connection_closes_all_that_was_made_from_it(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    # The other fixtures have threads of their own already.
    other_session.create_producer(queue).close()
    threads = set(threading.enumerate())
    connection = connect()
    session, with_listener = connection.create_session(), connection.create_session()
    consumer, producer = session.create_consumer(queue), session.create_producer(queue)
    listener = Recorder()
    quiet = with_listener.create_consumer(with_listener.create_queue(names.queue()))
    quiet.message_listener = listener
    producer.send(session.create_text_message("sent"))
    assert receive_text(consumer) == "sent"
    connection.close()
    for call in (
        lambda: session.create_message(),
        lambda: with_listener.create_message(),
        lambda: consumer.receive_no_wait(),
        lambda: quiet.message_listener,
        lambda: producer.send(other_session.create_text_message("late")),
    ):
        with pytest.raises(IllegalStateException):
            call()
    eventually(lambda: set(threading.enumerate()) <= threads, "the connection's threads have ended")
    # A consumer that the broker still knew would be given every second message.
    send_texts(other_session, queue, "1", "2", "3", "4")
    remaining = other_session.create_consumer(queue)
    assert [receive_text(remaining) for _ in range(4)] == ["1", "2", "3", "4"]


@requirement("4.3.5-5", "4.3.5-12", "B.2.12-1")
@needs("browser")
def test_closing_a_connection_closes_its_browsers(connect: Connect, queue: Queue) -> None:
    connection = connect()
    browser = connection.create_session().create_browser(queue)
    assert list(browser) == []
    connection.close()
    with pytest.raises(IllegalStateException):
        _ = browser.enumeration
    browser.close()


@requirement("4.3.5-9")
@pytest.mark.parametrize("mode", [Session.CLIENT_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE])
def test_a_message_of_a_closed_connection_cannot_be_acknowledged(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    send_texts(other_session, queue, "text")
    connection = connect()
    message = receive(connection.create_session(mode).create_consumer(queue))
    connection.close()
    with pytest.raises(IllegalStateException):
        message.acknowledge()


USES_OF_A_CONNECTION: dict[str, Callable[[Connection], object]] = {
    "create_session": lambda connection: connection.create_session(),
    "create_session transacted": lambda connection: connection.create_session(True, Session.SESSION_TRANSACTED),
    "start": lambda connection: connection.start(),
    "stop": lambda connection: connection.stop(),
    "meta_data": lambda connection: connection.meta_data,
    "client_id": lambda connection: connection.client_id,
    "set client_id": lambda connection: setattr(connection, "client_id", "late"),
    "exception_listener": lambda connection: connection.exception_listener,
    "set exception_listener": lambda connection: setattr(connection, "exception_listener", Problems()),
}


@requirement("4.3.5-10", "B.2.21-13")
@pytest.mark.parametrize("use", USES_OF_A_CONNECTION.values(), ids=USES_OF_A_CONNECTION)
def test_a_closed_connection_cannot_be_used(factory: ConnectionFactory, use: Callable[[Connection], object]) -> None:
    connection = factory.create_connection()
    connection.close()
    with pytest.raises(IllegalStateException):
        use(connection)
    connection.close()


USES_OF_A_SESSION: dict[str, Callable[[Session, Queue], object]] = {
    "create_text_message": lambda session, queue: session.create_text_message("text"),
    "create_consumer": lambda session, queue: session.create_consumer(queue),
    "create_producer": lambda session, queue: session.create_producer(queue),
    "create_browser": lambda session, queue: session.create_browser(queue),
    "create_queue": lambda session, queue: session.create_queue("name"),
    "create_topic": lambda session, queue: session.create_topic("name"),
    "create_temporary_queue": lambda session, queue: session.create_temporary_queue(),
    "create_temporary_topic": lambda session, queue: session.create_temporary_topic(),
    "unsubscribe": lambda session, queue: session.unsubscribe("name"),
    "commit": lambda session, queue: session.commit(),
    "rollback": lambda session, queue: session.rollback(),
    "recover": lambda session, queue: session.recover(),
    "transacted": lambda session, queue: session.transacted,
    "acknowledge_mode": lambda session, queue: session.acknowledge_mode,
}


@requirement("4.3.5-11")
@pytest.mark.parametrize("use", USES_OF_A_SESSION.values(), ids=USES_OF_A_SESSION)
def test_a_session_of_a_closed_connection_cannot_be_used(
    connect: Connect, queue: Queue, use: Callable[[Session, Queue], object]
) -> None:
    connection = connect()
    session = connection.create_session()
    connection.close()
    with pytest.raises(IllegalStateException):
        use(session, queue)
    session.close()


USES_OF_A_CONSUMER: dict[str, Callable[[MessageConsumer], object]] = {
    "receive": lambda consumer: consumer.receive(),
    "receive timeout": lambda consumer: consumer.receive(100),
    "receive_no_wait": lambda consumer: consumer.receive_no_wait(),
    "message_selector": lambda consumer: consumer.message_selector,
    "message_listener": lambda consumer: consumer.message_listener,
    "set message_listener": lambda consumer: setattr(consumer, "message_listener", Recorder()),
}


@requirement("4.3.5-11")
@pytest.mark.parametrize("use", USES_OF_A_CONSUMER.values(), ids=USES_OF_A_CONSUMER)
def test_a_consumer_of_a_closed_connection_cannot_be_used(
    connect: Connect, queue: Queue, use: Callable[[MessageConsumer], object]
) -> None:
    connection = connect()
    consumer = connection.create_session().create_consumer(queue)
    connection.close()
    with pytest.raises(IllegalStateException):
        use(consumer)


USES_OF_A_PRODUCER: dict[str, Callable[[MessageProducer, Message], object]] = {
    "send": lambda producer, message: producer.send(message),
    "destination": lambda producer, message: producer.destination,
    "priority": lambda producer, message: producer.priority,
    "set priority": lambda producer, message: setattr(producer, "priority", 5),
    "set delivery_mode": lambda producer, message: setattr(producer, "delivery_mode", 1),
    "set time_to_live": lambda producer, message: setattr(producer, "time_to_live", 1),
    "set disable_message_id": lambda producer, message: setattr(producer, "disable_message_id", True),
    "set disable_message_timestamp": lambda producer, message: setattr(producer, "disable_message_timestamp", True),
}


@requirement("4.3.5-11")
@pytest.mark.parametrize("use", USES_OF_A_PRODUCER.values(), ids=USES_OF_A_PRODUCER)
def test_a_producer_of_a_closed_connection_cannot_be_used(
    connect: Connect, session: Session, queue: Queue, use: Callable[[MessageProducer, Message], object]
) -> None:
    connection = connect()
    producer = connection.create_session().create_producer(queue)
    connection.close()
    with pytest.raises(IllegalStateException):
        use(producer, session.create_text_message("text"))


@requirement("4.3.5-12")
def test_close_on_the_children_of_a_closed_connection_is_ignored(connect: Connect, queue: Queue) -> None:
    connection = connect()
    session = connection.create_session()
    consumer, producer = session.create_consumer(queue), session.create_producer(queue)
    connection.close()
    for child in (session, consumer, producer):
        child.close()
        child.close()


@requirement("4.3.5-13")
def test_messages_of_a_closed_connection_stay_usable(connect: Connect, queue: Queue, other_session: Session) -> None:
    connection = connect()
    session = connection.create_session()
    made, made_bytes = session.create_text_message("made"), session.create_bytes_message()
    send_texts(other_session, queue, "received", colour="red")
    received = receive(session.create_consumer(queue))
    connection.close()

    assert isinstance(received, TextMessage)
    assert (received.text, received.get_string_property("colour"), received.jms_destination) == ("received", "red", queue)
    received.clear_properties()
    received.clear_body()
    received.set_int_property("number", 1)
    received.text = "written anew"
    made.jms_type = "kind"
    made.set_string_property("colour", "green")
    made_bytes.write_bytes(b"\x00\xff")

    producer, consumer = other_session.create_producer(queue), other_session.create_consumer(queue)
    for message in (received, made, made_bytes):
        producer.send(message)
    first, second, third = receive(consumer), receive(consumer), receive(consumer)
    assert (text_of(first), first.get_int_property("number")) == ("written anew", 1)
    assert (text_of(second), second.jms_type, second.get_string_property("colour")) == ("made", "kind", "green")
    assert isinstance(third, BytesMessage)
    assert third.get_body(bytes) == b"\x00\xff"


@requirement("4.3.5-14", "B.2.21-13")
def test_closing_a_closed_connection_raises_nothing(factory: ConnectionFactory) -> None:
    connection, context = factory.create_connection(), factory.create_context()
    connection.create_session()
    context.create_message()
    for one in (connection, context):
        one.close()
        one.close()


@requirement("4.3.5-14")
def test_a_connection_may_be_closed_by_several_threads_at_once(factory: ConnectionFactory) -> None:
    for _ in range(10):
        connection = factory.create_connection()
        connection.create_session()
        together = threading.Barrier(4)

        def close(connection: Connection = connection, together: threading.Barrier = together) -> None:
            together.wait(10)
            connection.close()

        closing = [in_thread(close) for _ in range(4)]
        for one in closing:
            finish(one)
