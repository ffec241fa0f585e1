"""4.4.6 Conventions for using a session."""

import threading

from jmsapi import IllegalStateException, JMSException, Message, MessageProducer, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing_for,
    finish,
    must_wait,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import requirement


@requirement("4.4.6-1")
def test_two_threads_that_receive_in_one_session_lose_nothing(
    session: Session, queue: Queue, other_session: Session, names: Names
) -> None:
    other_queue = session.create_queue(names.queue())
    first, second = session.create_consumer(queue), session.create_consumer(other_queue)
    pending = must_wait(first.receive)
    # It may be detected; else the result is an orderly one.
    try:
        assert second.receive_no_wait() is None
    except JMSException as error:
        assert isinstance(error, IllegalStateException)
    send_texts(other_session, other_queue, "to the second")
    send_texts(other_session, queue, "to the first")
    assert text_of(finish(pending)) == "to the first"
    assert receive_text(second) == "to the second"


@requirement("4.4.6-2")
def test_a_receive_beside_a_listener_of_the_session_is_detected_or_orderly(
    session: Session, queue: Queue, other_session: Session, names: Names
) -> None:
    other_queue = session.create_queue(names.queue())
    listener = Recorder()
    session.create_consumer(queue).message_listener = listener
    consumer = session.create_consumer(other_queue)
    send_texts(other_session, other_queue, "received")
    send_texts(other_session, queue, "heard")
    try:
        assert receive_text(consumer) == "received"
    except JMSException:
        consumer.close()
        assert receive_text(other_session.create_consumer(other_queue)) == "received"
    assert listener.wait_for_texts(1) == ["heard"]


@requirement("4.4.6-3")
def test_listeners_of_a_session_share_a_producer_without_locking(session: Session, other_session: Session, names: Names) -> None:
    sources = [session.create_queue(names.queue()) for _ in range(3)]
    target = session.create_queue(names.queue())
    producer = session.create_producer(target)
    sender = Unlocked(session, producer)
    for source in sources:
        session.create_consumer(source).message_listener = sender.pass_on
    expected = [f"{number}, {turn}" for turn in range(100) for number in range(3)]
    for turn in range(100):
        for number, source in enumerate(sources):
            send_texts(other_session, source, f"{number}, {turn}")
    received = receive_texts(other_session.create_consumer(target), 300)
    assert sorted(map(str, received)) == sorted(expected)
    assert sender.overlaps == 0


@requirement("4.4.6-4", "B.2.4-1")
def test_listeners_are_set_up_while_the_connection_is_stopped(connect: Connect, other_session: Session, names: Names) -> None:
    connection = connect(started=False)
    session = connection.create_session()
    queues = [session.create_queue(names.queue()) for _ in range(3)]
    for number, queue in enumerate(queues):
        send_texts(other_session, queue, str(number))
    listeners = [Recorder() for _ in queues]
    for queue, listener in zip(queues, listeners, strict=True):
        session.create_consumer(queue).message_listener = listener
    # A receive on the same stopped connection spends the time in which the listeners must stay silent.
    expect_nothing_for(connection.create_session().create_consumer(session.create_queue(names.queue())))
    assert [listener.messages for listener in listeners] == [[], [], []]
    connection.start()
    assert [listener.wait_for_texts(1) for listener in listeners] == [["0"], ["1"], ["2"]]


@requirement("4.4.6-5", "B.2.4-1")
def test_a_session_gets_its_first_listener_on_a_started_connection(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "before")
    listener = Recorder()
    connect().create_session().create_consumer(queue).message_listener = listener
    assert listener.wait_for_texts(1) == ["before"]
    send_texts(other_session, queue, "after")
    assert listener.wait_for_texts(2) == ["before", "after"]


class Unlocked:
    """Sends on what it is given, and counts how often two threads were in it."""

    def __init__(self, session: Session, producer: MessageProducer) -> None:
        self._session = session
        self._producer = producer
        self._inside = threading.Lock()
        self.overlaps = 0

    def pass_on(self, message: Message) -> None:
        """Send a copy of the text."""
        if not self._inside.acquire(blocking=False):
            self.overlaps += 1
            return
        try:
            self._producer.send(self._session.create_text_message(text_of(message)))
        finally:
            self._inside.release()
