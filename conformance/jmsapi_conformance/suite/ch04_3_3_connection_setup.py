"""4.3.3 Connection setup."""

from jmsapi import Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import Recorder, expect_nothing_for, receive_text, send_texts
from jmsapi_conformance.marks import requirement


@requirement("4.3.3-1", "9.1.7-1", "B.2.21-10")
def test_a_new_connection_delivers_nothing_until_it_is_started(connect: Connect, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "early")
    connection = connect(started=False)
    consumer = connection.create_session().create_consumer(queue)
    expect_nothing_for(consumer)
    assert consumer.receive_no_wait() is None
    connection.start()
    assert receive_text(consumer) == "early"


@requirement("4.3.3-1", "9.1.7-1", "B.2.21-10")
def test_a_new_connection_calls_no_listener_until_it_is_started(
    connect: Connect, queue: Queue, other_session: Session, names: Names
) -> None:
    empty = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "early")
    connection = connect(started=False)
    listener = Recorder()
    connection.create_session().create_consumer(queue).message_listener = listener
    # A receive on the same stopped connection spends the time in which the listener must stay silent.
    expect_nothing_for(connection.create_session().create_consumer(empty))
    assert listener.messages == []
    connection.start()
    assert listener.wait_for_texts(1) == ["early"]


@requirement("4.3.3-2")
def test_start_makes_messages_flow_to_consumers_made_before_and_after_it(
    connect: Connect, other_session: Session, names: Names
) -> None:
    queues = [other_session.create_queue(names.queue()) for _ in range(4)]
    connection = connect(started=False)
    session, with_listener = connection.create_session(), connection.create_session()
    early, late = Recorder(), Recorder()
    consumer = session.create_consumer(queues[0])
    with_listener.create_consumer(queues[1]).message_listener = early
    connection.start()
    late_consumer = session.create_consumer(queues[2])
    with_listener.create_consumer(queues[3]).message_listener = late
    for number, destination in enumerate(queues):
        send_texts(other_session, destination, str(number))
    assert receive_text(consumer) == "0"
    assert early.wait_for_texts(1) == ["1"]
    assert receive_text(late_consumer) == "2"
    assert late.wait_for_texts(1) == ["3"]


@requirement("4.3.3-3")
def test_producers_work_on_a_connection_that_is_not_started(connect: Connect, queue: Queue, other_session: Session) -> None:
    never_started, stopped = connect(started=False), connect()
    stopped.stop()
    consumer = other_session.create_consumer(queue)
    for connection in (never_started, stopped):
        send_texts(connection.create_session(), queue, "sent")
        assert receive_text(consumer) == "sent"
