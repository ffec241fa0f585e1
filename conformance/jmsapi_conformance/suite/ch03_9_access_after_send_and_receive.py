"""3.9 Access to sent messages, 3.10 Changing the value of a received message."""

from typing import Any

import pytest

from jmsapi import Connection, Message, MessageNotWriteableException, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import own_names, receive, receive_all
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import body_of, each_body, each_kind_sent, fill, filled, passed

HEADER: dict[str, Any] = {
    "jms_correlation_id": "changed",
    "jms_type": "changed",
    "jms_message_id": "ID:changed",
    "jms_timestamp": 5,
    "jms_delivery_mode": 1,
    "jms_redelivered": True,
    "jms_expiration": 6,
    "jms_delivery_time": 7,
    "jms_priority": 8,
}


def spoil(message: Message) -> None:
    """Change everything that can be changed."""
    message.clear_properties()
    message.set_string_property("colour", "changed")
    message.clear_body()
    fill(message, "changed")
    message.jms_type = "changed"
    message.jms_correlation_id = "changed"
    message.jms_priority = 9


def check_original(received: Message, session: Session, kind: str) -> None:
    """Nothing of what ``spoil`` does is seen."""
    assert body_of(received) == body_of(filled(session, kind))
    assert received.get_string_property("colour") == "red"
    assert (received.jms_type, received.jms_correlation_id, received.jms_priority) == ("type", "correlation", 4)


def original(session: Session, kind: str) -> Message:
    """Create a message with something in each part."""
    message = filled(session, kind)
    message.set_string_property("colour", "red")
    message.jms_type = "type"
    message.jms_correlation_id = "correlation"
    return message


@requirement("3.9-1")
@each_kind_sent
def test_changes_after_the_send_are_not_sent(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    message = original(session, kind)
    session.create_producer(queue).send(message)
    spoil(message)
    check_original(receive(other_session.create_consumer(queue)), session, kind)


@requirement("3.9-1")
@needs("transactions")
@each_kind_sent
def test_changes_between_send_and_commit_are_not_sent(
    connection: Connection, other_session: Session, queue: Queue, kind: str
) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    message = original(transacted, kind)
    transacted.create_producer(queue).send(message)
    spoil(message)
    transacted.commit()
    check_original(receive(other_session.create_consumer(queue)), other_session, kind)


@requirement("3.9-2")
def test_a_message_can_be_sent_again_and_again(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message()
    producer = session.create_producer(queue)
    ids: list[str | None] = []
    for number in range(3):
        message.text = f"text {number}"
        message.set_int_property("number", number)
        producer.send(message)
        ids.append(message.jms_message_id)
    received = receive_all(other_session.create_consumer(queue), 3)
    assert [body_of(one) for one in received] == ["text 0", "text 1", "text 2"]
    assert [one.get_int_property("number") for one in received] == [0, 1, 2]
    assert [one.jms_message_id for one in received] == ids
    assert len(set(ids)) == 3


@requirement("3.10-1", "B.2.17-1")
@each_kind_sent
def test_a_receiver_may_overwrite_the_header(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    received = passed(filled(session, kind), session, queue, other_session)
    received.jms_reply_to = received.jms_destination = queue
    for name, value in HEADER.items():
        setattr(received, name, value)
    assert {name: getattr(received, name) for name in HEADER} == HEADER
    assert received.jms_reply_to == queue


@requirement("3.12-1", "3.10-1")
@each_kind_sent
@pytest.mark.parametrize("look", [False, True], ids=["unread", "read"])
def test_a_received_message_is_sent_on_with_all_that_it_had(
    session: Session, other_session: Session, names: Names, kind: str, look: bool
) -> None:
    first, second, answers = (session.create_queue(names.queue()) for _ in range(3))
    message = original(session, kind)
    message.jms_reply_to = answers
    message.set_string_property("JMSXGroupID", "group")
    message.set_int_property("JMSXGroupSeq", 3)
    received = passed(message, session, first, other_session)
    if look:
        check_original(received, session, kind)
    on = passed(received, other_session, second, session)
    check_original(on, session, kind)
    assert on.jms_reply_to == answers
    assert on.jms_destination == second
    assert (on.get_string_property("JMSXGroupID"), on.get_int_property("JMSXGroupSeq")) == ("group", 3)
    assert own_names(on) == {"colour"}
    # The sender's own message knows nothing of it.
    assert (message.jms_destination, message.jms_reply_to) == (first, answers)


@requirement("3.10-2")
@each_body
def test_clearing_a_part_makes_that_part_writable(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    message = original(session, kind)
    first, second = (passed(message, session, queue, other_session) for _ in range(2))
    first.clear_body()
    fill(first, "new")
    with pytest.raises(MessageNotWriteableException):
        first.set_string_property("colour", "blue")
    assert body_of(first) == body_of(filled(session, kind, "new"))
    assert first.get_string_property("colour") == "red"
    second.clear_properties()
    second.set_string_property("colour", "blue")
    with pytest.raises(MessageNotWriteableException):
        fill(second, "new")
    assert body_of(second) == body_of(message)
    assert second.get_string_property("colour") == "blue"


@requirement("3.10-3", "B.3.1-7")
@each_kind_sent
@pytest.mark.parametrize(
    "mode", [Session.CLIENT_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_redelivery_shows_the_original(
    connection: Connection, other_session: Session, queue: Queue, kind: str, mode: int
) -> None:
    receiver = connection.create_session(mode)
    consumer = receiver.create_consumer(queue)
    other_session.create_producer(queue).send(original(other_session, kind))
    received = receive(consumer)
    first_id = received.jms_message_id
    spoil(received)
    received.jms_message_id = "ID:changed"
    if mode == Session.SESSION_TRANSACTED:
        receiver.rollback()
    else:
        receiver.recover()
    again = receive(consumer)
    check_original(again, other_session, kind)
    assert again.jms_message_id == first_id
    assert (again.jms_redelivered, again.get_int_property("JMSXDeliveryCount")) == (True, 2)
    again.acknowledge()
    if mode == Session.SESSION_TRANSACTED:
        receiver.commit()


@requirement("3.10-3")
def test_what_one_subscriber_changes_no_other_sees(connect: Connect, session: Session, names: Names) -> None:
    topic = session.create_topic(names.topic())
    consumers = [connect().create_session().create_consumer(topic) for _ in range(2)]
    session.create_producer(topic).send(original(session, "text"))
    first = receive(consumers[0])
    spoil(first)
    check_original(receive(consumers[1]), session, "text")
