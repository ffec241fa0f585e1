"""4.4.11 Message acknowledgment."""

import threading
import time

import pytest

from jmsapi import Connection, Message, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    Recorder,
    eventually,
    expect_nothing,
    expect_nothing_for,
    finish,
    in_thread,
    receive,
    receive_all,
    receive_text,
    receive_texts,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.11-1")
@needs("transactions")
def test_in_a_transacted_session_acknowledge_does_nothing_and_rollback_recovers(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    consumer = session.create_consumer(queue)
    send_texts(other_session, queue, "text")
    receive(consumer).acknowledge()
    session.rollback()
    assert receive_text(consumer) == "text"
    session.commit()
    session.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.11-2")
def test_a_dups_ok_session_acknowledges_by_itself(connect: Connect, queue: Queue, other_session: Session) -> None:
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    connection = connect()
    consumer = connection.create_session(Session.DUPS_OK_ACKNOWLEDGE).create_consumer(queue)
    assert receive_texts(consumer, 10) == expected
    connection.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.11-2")
def test_a_dups_ok_session_acknowledges_what_it_has_handed_out_when_it_closes(
    connect: Connect, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, *map(str, range(10)))
    connection = connect()
    consumer = connection.create_session(Session.DUPS_OK_ACKNOWLEDGE).create_consumer(queue)
    assert receive_texts(consumer, 4) == ["0", "1", "2", "3"]
    connection.close()
    assert receive_texts(other_session.create_consumer(queue), 6) == ["4", "5", "6", "7", "8", "9"]


@requirement("4.4.11-3")
def test_an_auto_session_acknowledges_what_receive_has_returned(connect: Connect, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "first", "second")
    connection = connect()
    session = connection.create_session(Session.AUTO_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    assert receive_text(consumer) == "first"
    session.recover()
    assert receive_text(consumer) == "second"
    connection.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.11-4")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_message_is_acknowledged_when_its_listener_has_returned_and_not_before(
    connect: Connect, queue: Queue, other_session: Session, mode: int
) -> None:
    running, go_on = threading.Event(), threading.Event()

    def listen(_: Message) -> None:
        running.set()
        go_on.wait(PATIENCE_MS / 1000)
        # A listener that raises has not handled its message: had it been acknowledged before, it would be lost now.
        raise RuntimeError("not handled")

    connection = connect()
    connection.create_session(mode).create_consumer(queue).message_listener = listen
    send_texts(other_session, queue, "text")
    assert running.wait(PATIENCE_MS / 1000)
    closing = in_thread(connection.close)
    with pytest.raises(TimeoutError):
        finish(closing, 200)
    go_on.set()
    finish(closing)
    consumer = other_session.create_consumer(queue)
    assert receive_text(consumer) == "text"

    handled = connect()
    listener = Recorder()
    consumer.close()
    handled.create_session(mode).create_consumer(queue).message_listener = listener
    send_texts(other_session, queue, "handled")
    listener.wait_for(1)
    handled.close()
    expect_nothing(other_session.create_consumer(queue), other_session, queue)


@requirement("4.4.11-5", "B.2.21-2", "B.3.2-2")
def test_acknowledge_on_one_message_acknowledges_all_that_the_session_has_delivered(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    other_queue = other_session.create_queue(names.queue())
    send_texts(other_session, queue, "m1", "m2", "m3")
    send_texts(other_session, other_queue, "m4", "m5")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer, other_consumer = session.create_consumer(queue), session.create_consumer(other_queue)
    messages = receive_all(consumer, 3)
    assert receive_text(other_consumer) == "m4"
    messages[1].acknowledge()
    assert receive_text(other_consumer) == "m5"
    session.recover()
    assert receive_text(other_consumer) == "m5"
    expect_nothing(consumer, other_session, queue)


@requirement("4.4.11-6")
def test_the_number_of_unacknowledged_messages_can_be_limited(connect: Connect, queue: Queue, other_session: Session) -> None:
    connection = connect(max_unacknowledged=3)
    consumer = connection.create_session(Session.CLIENT_ACKNOWLEDGE).create_consumer(queue)
    expected = [str(number) for number in range(10)]
    send_texts(other_session, queue, *expected)
    messages = receive_all(consumer, 3)
    assert [text_of(message) for message in messages] == expected[:3]
    expect_nothing_for(consumer)
    # Had more than the limit been on their way to the first consumer, the second would miss them.
    with other_session.create_consumer(queue) as second:
        assert receive_texts(second, 7) == expected[3:]
    messages[-1].acknowledge()
    send_texts(other_session, queue, "room again")
    assert receive_text(consumer) == "room again"


@requirement("4.4.11-7")
def test_recover_restarts_at_the_first_unacknowledged_message(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    send_texts(other_session, queue, "1", "2", "3", "4", "5")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    receive_all(consumer, 2)[1].acknowledge()
    assert receive_texts(consumer, 3) == ["3", "4", "5"]
    session.recover()
    assert receive_texts(consumer, 3) == ["3", "4", "5"]
    send_texts(other_session, queue, "6")
    assert receive_text(consumer) == "6"


@requirement("4.4.11-9", "B.3.1-1")
def test_recover_marks_what_it_delivers_again(connection: Connection, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    for count in (1, 2, 3):
        message = receive(consumer)
        assert text_of(message) == "text"
        assert message.jms_redelivered is (count > 1)
        assert message.get_int_property("JMSXDeliveryCount") == count
        session.recover()
    receive(consumer).acknowledge()
    send_texts(other_session, queue, "new")
    fresh = receive(consumer)
    assert (fresh.jms_redelivered, fresh.get_int_property("JMSXDeliveryCount")) == (False, 1)


@requirement("4.4.11-8")
def test_what_recover_delivers_may_leave_out_what_has_expired(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    short_lived = other_session.create_text_message("short-lived")
    other_session.create_producer(queue).send(short_lived, delivery_mode=2, priority=4, time_to_live_ms=2000)
    send_texts(other_session, queue, "lives on")
    assert receive_texts(consumer, 2) == ["short-lived", "lives on"]
    eventually(lambda: time.time() * 1000 > short_lived.jms_expiration, "the time to live is over")
    session.recover()
    again = [receive_text(consumer)]
    if again == ["short-lived"]:
        again.append(receive_text(consumer))
    assert again[-1] == "lives on"
