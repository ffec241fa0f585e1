"""3.5.9 JMS defined properties, 3.5.10 provider-specific ones, 3.5.11 JMSXDeliveryCount."""

from typing import Any

import pytest

from jmsapi import Connection, JMSContext, Message, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import receive, receive_all, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import passed

TABLE_3_3: dict[str, type[Any]] = {
    "JMSXUserID": str,
    "JMSXAppID": str,
    "JMSXDeliveryCount": int,
    "JMSXGroupID": str,
    "JMSXGroupSeq": int,
    "JMSXProducerTXID": str,
    "JMSXConsumerTXID": str,
    "JMSXRcvTimestamp": int,
    "JMSXState": int,
}
SET_ON_SEND = ("JMSXUserID", "JMSXAppID", "JMSXProducerTXID")
SET_ON_RECEIVE = ("JMSXDeliveryCount", "JMSXConsumerTXID", "JMSXRcvTimestamp")


def supported(connection: Connection) -> set[str]:
    """Return the JMSX properties that the connection lists."""
    return set(connection.meta_data.jmsx_property_names)


@requirement("3.5.9-1")
def test_only_the_specification_makes_jmsx_names(session: Session, other_session: Session, queue: Queue) -> None:
    received = passed(session.create_text_message("text"), session, queue, other_session)
    assert {name for name in received.property_names if name.startswith("JMSX")} <= TABLE_3_3.keys()


@requirement("3.5.9-2", "3.5.9-16")
def test_the_connection_lists_what_it_supports(connection: Connection, context: JMSContext) -> None:
    for names in (supported(connection), set(context.meta_data.jmsx_property_names)):
        assert {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} <= names <= TABLE_3_3.keys()


@requirement("3.5.9-3")
@needs("queue_selector")
def test_a_selector_may_name_any_jmsx_property(session: Session, other_session: Session, queue: Queue) -> None:
    consumer = other_session.create_consumer(queue, "JMSXAppID IS NULL OR JMSXAppID = 'x'")
    send_texts(session, queue, "text")
    assert receive_text(consumer) == "text"


@requirement("3.5.9-4", "B.5.12-2")
@needs("queue_selector")
def test_a_selector_on_what_is_set_on_receive_does_not_break_the_session(
    session: Session, other_session: Session, queue: Queue, names: Names
) -> None:
    undefined = other_session.create_consumer(queue, "JMSXDeliveryCount = 1")
    elsewhere = other_session.create_queue(names.queue())
    consumer = other_session.create_consumer(elsewhere)
    send_texts(session, elsewhere, "text")
    assert receive_text(consumer) == "text"
    undefined.close()


@requirement("3.5.9-5")
def test_a_user_id_is_text_if_there_is_one(connection: Connection, other_session: Session, queue: Queue) -> None:
    check_set_on_send("JMSXUserID", connection, other_session, queue)


@requirement("3.5.9-6")
def test_an_application_id_is_text_if_there_is_one(connection: Connection, other_session: Session, queue: Queue) -> None:
    check_set_on_send("JMSXAppID", connection, other_session, queue)


@requirement("3.5.9-10")
@needs("transactions")
def test_a_producers_transaction_id_is_text_if_there_is_one(connection: Connection, other_session: Session, queue: Queue) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    transacted.create_producer(queue).send(transacted.create_text_message("text"))
    transacted.commit()
    check_listed("JMSXProducerTXID", receive(other_session.create_consumer(queue)), connection)


@requirement("3.5.9-11")
@needs("transactions")
def test_a_consumers_transaction_id_is_text_if_there_is_one(connection: Connection, other_session: Session, queue: Queue) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    send_texts(other_session, queue, "text")
    check_listed("JMSXConsumerTXID", receive(transacted.create_consumer(queue)), connection)
    transacted.commit()


@requirement("3.5.9-12")
def test_a_time_of_receipt_is_a_long_if_there_is_one(connection: Connection, other_session: Session, queue: Queue) -> None:
    send_texts(other_session, queue, "text")
    received = receive(connection.create_session().create_consumer(queue))
    check_listed("JMSXRcvTimestamp", received, connection)


def check_listed(name: str, message: Message, connection: Connection) -> None:
    """A property that the connection lists is there, of its type; one that it does not list is not."""
    value = message.get_object_property(name)
    if name in supported(connection):
        assert isinstance(value, TABLE_3_3[name])
    else:
        assert value is None


def check_set_on_send(name: str, connection: Connection, receiver: Session, queue: Queue) -> None:
    """As ``check_listed``, on both sides, with one value."""
    session = connection.create_session()
    message = session.create_text_message("text")
    received = passed(message, session, queue, receiver)
    check_listed(name, message, connection)
    check_listed(name, received, connection)
    assert message.get_object_property(name) == received.get_object_property(name)


@requirement("3.5.9-14")
def test_what_is_set_on_send_is_alike_on_both_sides(connection: Connection, other_session: Session, queue: Queue) -> None:
    for name in SET_ON_SEND:
        check_set_on_send(name, connection, other_session, queue)


@requirement("3.5.9-7", "3.5.11-1", "B.5.12-1")
def test_every_received_message_has_a_delivery_count(
    session: Session, other_session: Session, queue: Queue, topic: Topic
) -> None:
    for where in (queue, topic):
        received = passed(session.create_text_message("text"), session, where, other_session)
        assert received.property_exists("JMSXDeliveryCount")
        assert "JMSXDeliveryCount" in set(received.property_names)
        assert received.get_int_property("JMSXDeliveryCount") == 1


@requirement("3.5.9-8", "3.5.9-9")
def test_the_group_properties_reach_the_receiver(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.set_string_property("JMSXGroupID", "a group")
    message.set_int_property("JMSXGroupSeq", 1)
    received = passed(message, session, queue, other_session)
    assert received.get_object_property("JMSXGroupID") == "a group"
    assert received.get_object_property("JMSXGroupSeq") == 1
    assert received.get_int_property("JMSXGroupSeq") == 1


@requirement("3.5.9-13")
def test_nobody_sees_the_state_of_a_message(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    received = passed(message, session, queue, other_session)
    assert not message.property_exists("JMSXState")
    assert not received.property_exists("JMSXState")


@requirement("3.5.9-15")
def test_what_is_set_on_receive_is_on_the_consumers_side_only(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    received = passed(message, session, queue, other_session)
    assert received.property_exists("JMSXDeliveryCount")
    assert [name for name in SET_ON_RECEIVE if message.property_exists(name)] == []


@requirement("3.5.9-16", "3.5.10-1")
def test_what_the_sender_did_not_set_is_spelled_as_the_specification_says(
    session: Session, other_session: Session, queue: Queue, topic: Topic
) -> None:
    for where in (queue, topic):
        message = session.create_text_message("text")
        message.set_string_property("mine", "text")
        message.set_string_property("JMSXGroupID", "group")
        added = set(passed(message, session, where, other_session).property_names) - {"mine"}
        assert {name for name in added if name.startswith("JMSX")} <= TABLE_3_3.keys()
        assert [name for name in added if not name.startswith(("JMSX", "JMS_"))] == []


def again(receiver: Session, mode: int) -> None:
    """Ask for what was received once more."""
    if mode == Session.SESSION_TRANSACTED:
        receiver.rollback()
    else:
        receiver.recover()


@requirement("3.5.11-2", "3.5.11-3", "B.5.12-1")
@pytest.mark.parametrize(
    "mode", [Session.CLIENT_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_each_delivery_counts_one_more(connection: Connection, other_session: Session, queue: Queue, mode: int) -> None:
    receiver = connection.create_session(mode)
    consumer = receiver.create_consumer(queue)
    send_texts(other_session, queue, "text")
    seen: list[tuple[int, bool]] = []
    for _ in range(4):
        message = receive(consumer)
        seen.append((message.get_int_property("JMSXDeliveryCount"), message.jms_redelivered))
        again(receiver, mode)
    assert seen == [(1, False), (2, True), (3, True), (4, True)]
    receive(consumer).acknowledge()
    if mode == Session.SESSION_TRANSACTED:
        receiver.commit()


@requirement("3.5.11-2", "3.5.11-3")
@needs("delivery_count_exact")
@pytest.mark.parametrize("ended", ["session", "connection"])
def test_each_delivery_counts_one_more_also_by_another_session_or_connection(
    connect: Connect, other_session: Session, queue: Queue, ended: str
) -> None:
    send_texts(other_session, queue, "1", "2")
    counts: list[list[int]] = []
    connection = connect()
    for _ in range(4):
        if ended == "connection":
            connection.close()
            connection = connect()
        with connection.create_session(Session.CLIENT_ACKNOWLEDGE) as receiver:
            messages = receive_all(receiver.create_consumer(queue), 2)
            counts.append([message.get_int_property("JMSXDeliveryCount") for message in messages])
    assert counts == [[1, 1], [2, 2], [3, 3], [4, 4]]


@requirement("3.5.11-3")
def test_redelivered_goes_with_a_count_of_at_least_2_also_on_another_connection(
    connect: Connect, session: Session, other_session: Session, queue: Queue
) -> None:
    first = connect()
    consumer = first.create_session(Session.CLIENT_ACKNOWLEDGE).create_consumer(queue)
    send_texts(session, queue, "1", "2")
    receive_all(consumer, 2)
    first.close()
    for message in receive_all(other_session.create_consumer(queue), 2):
        count = message.get_int_property("JMSXDeliveryCount")
        assert count >= 1
        assert count >= 2 or not message.jms_redelivered
