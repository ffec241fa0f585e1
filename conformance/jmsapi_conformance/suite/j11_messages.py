"""JMS 1.1: messages, header fields, redelivery and expiration."""

import time

import pytest

from jmsapi import (
    Connection,
    DeliveryMode,
    IllegalArgumentException,
    Message,
    Queue,
    Session,
    TextMessage,
)
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import (
    Recorder,
    eventually,
    expect_nothing,
    expect_nothing_for,
    finish,
    must_wait,
    receive,
    receive_all,
    receive_text,
    send_texts,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

OVERDUE_MS = 200
"""How far the clock of a broker may be behind ours."""


@requirement("J11-10")
def test_the_delivery_count_is_there_or_not_and_begins_with_one(session: Session, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    message = receive(session.create_consumer(queue))
    if message.property_exists("JMSXDeliveryCount"):
        assert message.get_int_property("JMSXDeliveryCount") == 1


@requirement("J11-11")
def test_the_group_properties_are_known_and_pass_unchanged(
    connection: Connection, session: Session, queue: Queue, other_session: Session
) -> None:
    assert {"JMSXGroupID", "JMSXGroupSeq"} <= set(connection.meta_data.jmsx_property_names)
    message = other_session.create_text_message("text")
    message.set_string_property("JMSXGroupID", "group one")
    message.set_int_property("JMSXGroupSeq", 7)
    other_session.create_producer(queue).send(message)
    received = receive(session.create_consumer(queue))
    assert received.get_string_property("JMSXGroupID") == "group one"
    assert received.get_int_property("JMSXGroupSeq") == 7


@requirement("J11-12")
def test_the_flag_tells_that_a_message_comes_again(connection: Connection, queue: Queue, other_session: Session) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    send_texts(other_session, queue, "text")
    assert receive(consumer).jms_redelivered is False
    session.recover()
    assert receive(consumer).jms_redelivered is True


@requirement("J11-13")
@pytest.mark.parametrize("life_ms", [1000, 60_000])
def test_the_expiration_is_the_time_of_sending_and_the_time_to_live(session: Session, queue: Queue, life_ms: int) -> None:
    message = session.create_message()
    before = now_ms()
    session.create_producer(queue).send(message, delivery_mode=1, priority=4, time_to_live_ms=life_ms)
    assert abs(message.jms_expiration - message.jms_timestamp - life_ms) <= 20
    assert before + life_ms - 1 <= message.jms_expiration <= now_ms() + life_ms


@requirement("J11-14")
def test_without_a_time_to_live_a_message_does_not_expire(session: Session, queue: Queue, other_session: Session) -> None:
    message = session.create_text_message("text")
    message.jms_expiration = 1
    session.create_producer(queue).send(message, delivery_mode=1, priority=4, time_to_live_ms=0)
    assert message.jms_expiration == 0
    received = receive(other_session.create_consumer(queue))
    assert (text_of(received), received.jms_expiration) == ("text", 0)


@requirement("J11-14")
def test_a_time_to_live_of_zero_goes_before_that_of_the_producer(session: Session, queue: Queue, other_session: Session) -> None:
    producer = session.create_producer(queue)
    producer.time_to_live = 50
    message = session.create_text_message("by its send")
    producer.send(message, delivery_mode=2, priority=4, time_to_live_ms=0)
    producer.send(session.create_text_message("expires"))
    producer.time_to_live = 0
    producer.send(session.create_text_message("by its producer"))
    time.sleep(0.2)
    consumer = other_session.create_consumer(queue)
    assert [(text_of(one), one.jms_expiration) for one in receive_all(consumer, 2)] == [
        ("by its send", 0),
        ("by its producer", 0),
    ]


@requirement("J11-15")
@needs("transactions")
def test_in_a_transaction_the_time_to_live_counts_from_the_send_call(
    connection: Connection, queue: Queue, other_session: Session, names: Names
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED)
    message = session.create_text_message("text")
    before = now_ms()
    session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=20_000)
    after = now_ms()
    # A receive elsewhere spends the time between send and commit.
    expect_nothing_for(other_session.create_consumer(other_session.create_queue(names.queue())), 500)
    session.commit()
    received = receive(other_session.create_consumer(queue))
    assert before + 20_000 - 1 <= message.jms_expiration <= after + 20_000
    assert abs(received.jms_expiration - message.jms_expiration) <= 20


@requirement("J11-18")
def test_send_returns_when_the_message_was_sent(interceptor: Interceptor, queue: Queue, other_session: Session) -> None:
    session = interceptor.connect().create_session()
    message = session.create_text_message("text")
    producer = session.create_producer(queue)
    interceptor.hold()
    pending = must_wait(lambda: producer.send(message))
    eventually(lambda: interceptor.held, "the broker has answered")
    interceptor.let_go()
    finish(pending)
    assert message.jms_message_id
    assert message.jms_destination == queue
    assert message.jms_timestamp > 0
    assert receive_text(other_session.create_consumer(queue)) == "text"


@requirement("J11-20")
def test_what_a_client_writes_into_fields_of_the_send_method_has_no_effect(
    session: Session, queue: Queue, other_session: Session
) -> None:
    message = session.create_text_message("text")
    message.jms_priority = 9
    message.jms_delivery_mode = DeliveryMode.PERSISTENT
    message.jms_expiration = 1
    message.jms_destination = session.create_queue("elsewhere")
    message.jms_message_id = "ID:chosen"
    session.create_producer(queue).send(message, delivery_mode=DeliveryMode.NON_PERSISTENT, priority=1, time_to_live_ms=0)
    received = receive(other_session.create_consumer(queue))
    for one in (message, received):
        assert (one.jms_priority, one.jms_delivery_mode, one.jms_expiration) == (1, DeliveryMode.NON_PERSISTENT, 0)
        assert one.jms_destination == queue
        assert one.jms_message_id not in (None, "ID:chosen")
    assert received.jms_message_id == message.jms_message_id


@requirement("J11-22")
@pytest.mark.parametrize("name", [None, ""])
def test_bytes_of_a_map_need_a_name(session: Session, name: str) -> None:
    message = session.create_map_message()
    with pytest.raises(IllegalArgumentException):
        message.set_bytes(name, b"a")
    assert list(message.map_names) == []


@requirement("J11-27")
def test_expired_messages_are_not_delivered_and_nobody_is_told(
    connection: Connection, queue: Queue, other_session: Session
) -> None:
    told: list[Exception] = []
    connection.exception_listener = told.append
    consumer = connection.create_session().create_consumer(queue)
    connection.stop()
    message = other_session.create_message()
    other_session.create_producer(queue).send(message, delivery_mode=2, priority=4, time_to_live_ms=100)
    eventually(lambda: now_ms() > message.jms_expiration + OVERDUE_MS, "the time to live is over")
    connection.start()
    expect_nothing_for(consumer, 200)
    expect_nothing(consumer, other_session, queue)
    assert told == []


@requirement("J11-28")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_listener_that_raises_gets_the_message_again_at_once(
    connection: Connection, queue: Queue, other_session: Session, mode: int
) -> None:
    def raise_once(message: Message) -> None:
        if not message.jms_redelivered:
            raise RuntimeError("not handled")

    listener = Recorder(then=raise_once)
    # Both are there before the first one fails: Artemis lets what is sent at that very moment overtake what is given back.
    send_texts(other_session, queue, "1", "2")
    connection.create_session(mode).create_consumer(queue).message_listener = listener
    messages = listener.wait_for(4)
    assert [(text_of(message), message.jms_redelivered) for message in messages] == [
        ("1", False),
        ("1", True),
        ("2", False),
        ("2", True),
    ]
    assert messages[0].jms_message_id == messages[1].jms_message_id


@requirement("J11-32")
def test_a_body_is_reached_through_its_type(session: Session, queue: Queue, other_session: Session) -> None:
    send_texts(other_session, queue, "text")
    message: Message = receive(session.create_consumer(queue))
    assert not hasattr(message, "map_names")
    assert isinstance(message, TextMessage)
    assert message.text == "text"


@requirement("J11-33")
def test_the_send_method_sets_the_timestamp(session: Session, queue: Queue, other_session: Session) -> None:
    message = session.create_message()
    message.jms_timestamp = 1
    before = now_ms()
    session.create_producer(queue).send(message)
    assert before - 1 <= message.jms_timestamp <= now_ms()
    assert abs(receive(other_session.create_consumer(queue)).jms_timestamp - message.jms_timestamp) <= 1


@requirement("J11-36")
def test_what_has_expired_meanwhile_is_not_recovered(connection: Connection, queue: Queue, other_session: Session) -> None:
    session = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    short_lived = other_session.create_text_message("short-lived")
    other_session.create_producer(queue).send(short_lived, delivery_mode=2, priority=4, time_to_live_ms=1000)
    send_texts(other_session, queue, "lasting")
    assert [receive_text(consumer), receive_text(consumer)] == ["short-lived", "lasting"]
    eventually(lambda: now_ms() > short_lived.jms_expiration + OVERDUE_MS, "the time to live is over")
    session.recover()
    assert receive_text(consumer) == "lasting"
    expect_nothing(consumer, other_session, queue)


def now_ms() -> int:
    """Return the time as messages tell it."""
    return int(time.time() * 1000)
