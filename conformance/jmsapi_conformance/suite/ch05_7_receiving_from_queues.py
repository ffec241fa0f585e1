"""5.7, 5.8 and 5.11 What becomes of messages in a queue."""

import itertools

import pytest

from jmsapi import Queue, Session, TextMessage
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import (
    expect_nothing,
    in_second_process,
    receive_all,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._domains import each_interface, queue_consumer, queue_session, session_of

DEFERRED = pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Session.CLIENT_ACKNOWLEDGE, id="client"),
        pytest.param(Session.SESSION_TRANSACTED, id="transacted", marks=needs("transactions")),
    ],
)
ENDS = pytest.mark.parametrize("ended", ["session", "connection"])


@requirement("5.7-2")
@DEFERRED
@ENDS
@each_interface
def test_what_a_session_leaves_unacknowledged_stays_for_the_next_consumer(
    connect: Connect, queue: Queue, other_session: Session, mode: int, ended: str, interface: str
) -> None:
    leave_unacknowledged(connect, queue, other_session, mode, ended, interface)
    consumer = other_session.create_consumer(queue)
    assert receive_texts(consumer, 4) == ["1", "2", "3", "4"]
    expect_nothing(consumer, other_session, queue)


@requirement("5.7-2")
@needs("redelivered_flag")
@DEFERRED
@ENDS
@each_interface
def test_what_a_session_leaves_unacknowledged_is_marked_redelivered(
    connect: Connect, queue: Queue, other_session: Session, mode: int, ended: str, interface: str
) -> None:
    leave_unacknowledged(connect, queue, other_session, mode, ended, interface)
    messages = receive_all(other_session.create_consumer(queue), 3)
    assert [message.jms_redelivered for message in messages] == [True] * 3
    assert all(message.get_int_property("JMSXDeliveryCount") >= 2 for message in messages)


@requirement("5.7-2")
@needs("second_process")
@DEFERRED
def test_what_a_killed_client_had_not_acknowledged_goes_to_the_next_consumer(
    backend: Backend, queue: Queue, connect: Connect, other_session: Session, mode: int
) -> None:
    connect().create_session(mode).close()  # refused here, if it is
    send_texts(other_session, queue, "1", "2", "3")
    printed = in_second_process(backend.url, CLIENT_THAT_DIES, queue.queue_name, str(mode))
    assert printed.split() == ["1", "2", "3"]
    # Whether they are marked after a death is 4.10-2.
    assert receive_texts(other_session.create_consumer(queue), 3) == ["1", "2", "3"]


@requirement("5.8-2")
@each_interface
def test_two_receivers_get_each_message_once_between_them(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    consumers = [queue_consumer(queue_session(connect, interface, Session.AUTO_ACKNOWLEDGE), queue) for _ in range(2)]
    expected = [str(number) for number in range(100)]
    send_texts(other_session, queue, *expected)
    received: list[str] = []
    for consumer in itertools.cycle(consumers):
        # How they are spread is free, so a receiver may have nothing when the other one has.
        message = consumer.receive_no_wait()
        if message is not None:
            assert isinstance(message, TextMessage)
            received.append(str(message.text))
        if len(received) == 100:
            break
    assert sorted(received) == sorted(expected)
    consumers[0].close()
    expect_nothing(consumers[1], other_session, queue)


@requirement("5.8-3")
@needs("queue_selector")
@each_interface
def test_what_a_receiver_does_not_select_stays_for_others(
    backend: Backend, connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    for number in range(10):
        send_texts(other_session, queue, str(number), colour="blue" if number % 2 else "red")
    session = queue_session(connect, interface)
    choosy = queue_consumer(session, queue, "colour = 'red'")
    assert choosy.message_selector == "colour = 'red'"
    assert receive_texts(choosy, 5) == ["0", "2", "4", "6", "8"]
    expect_nothing(choosy, other_session, queue, colour="red")
    choosy.close()
    messages = receive_all(queue_consumer(session, queue), 5)
    assert [text_of(message) for message in messages] == ["1", "3", "5", "7", "9"]
    if backend.capabilities.redelivered_flag:
        assert not any(message.jms_redelivered for message in messages)


@requirement("5.8-4")
@needs("queue_selector")
@each_interface
def test_each_read_of_a_queue_is_in_the_order_of_sending(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    for number in range(1, 11):
        send_texts(other_session, queue, str(number), even=number % 2 == 0)
    session = queue_session(connect, interface)
    with queue_consumer(session, queue, "even = TRUE") as choosy:
        assert receive_texts(choosy, 5) == ["2", "4", "6", "8", "10"]
    assert receive_texts(queue_consumer(session, queue), 5) == ["1", "3", "5", "7", "9"]


@requirement("5.8-4")
@each_interface
def test_without_a_selector_messages_come_in_the_order_of_sending(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    expected = [str(number) for number in range(200)]
    send_texts(other_session, queue, *expected)
    assert receive_texts(queue_consumer(queue_session(connect, interface), queue), 200) == expected


@requirement("5.11-1")
@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["NON_PERSISTENT", "PERSISTENT"])
def test_a_queue_holds_messages_while_it_has_no_consumer(connect: Connect, queue: Queue, delivery_mode: int) -> None:
    expected = [str(number) for number in range(10)]
    with connect() as connection:
        session = connection.create_session()
        with session.create_producer(queue) as producer:
            producer.delivery_mode = delivery_mode
            for text in expected:
                producer.send(session.create_text_message(text))
    session = connect().create_session()
    consumer = session.create_consumer(queue)
    assert receive_texts(consumer, 5) == expected[:5]
    consumer.close()
    send_texts(session, queue, "10")
    consumer = connect().create_session().create_consumer(queue)
    assert receive_texts(consumer, 6) == [*expected[5:], "10"]


def leave_unacknowledged(connect: Connect, queue: Queue, sender: Session, mode: int, ended: str, interface: str) -> None:
    """Receive three messages of four and end the session, or its connection, without acknowledging them."""
    send_texts(sender, queue, "1", "2", "3", "4")
    connection = connect.queues() if interface == "own" else connect()
    session = session_of(connection, mode)
    consumer = queue_consumer(session, queue)
    assert receive_texts(consumer, 3) == ["1", "2", "3"]
    (session if ended == "session" else connection).close()


CLIENT_THAT_DIES = """
import os, sys, jmsapi
name, mode = sys.argv[1], int(sys.argv[2])
connection = jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection()
connection.start()
session = connection.create_session(mode)
consumer = session.create_consumer(session.create_queue(name))
for _ in range(3):
    print(consumer.receive(10_000).text, flush=True)
os._exit(1)
"""
