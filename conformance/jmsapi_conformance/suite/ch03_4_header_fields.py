"""3.4 Message header fields, from JMSDestination to JMSType (3.4.1 to 3.4.8)."""

import time
from typing import Any, cast

import pytest

from jmsapi import (
    Connection,
    DeliveryMode,
    Destination,
    JMSContext,
    Message,
    Queue,
    Session,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    UnsupportedOperationException,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import in_second_process, receive, receive_all, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._kinds import each_kind_sent, filled, passed

AT_SEND = (
    *("jms_destination", "jms_delivery_mode", "jms_message_id", "jms_timestamp", "jms_correlation_id", "jms_reply_to"),
    *("jms_type", "jms_expiration", "jms_priority", "jms_delivery_time"),
)
EACH_DESTINATION = pytest.mark.parametrize(
    "where",
    [
        "queue",
        "topic",
        pytest.param("temporary queue", marks=needs("temporary_queue")),
        pytest.param("temporary topic", marks=needs("temporary_topic")),
    ],
)
INTERFACES: dict[str, type[Any]] = {
    "queue": Queue,
    "topic": Topic,
    "temporary queue": TemporaryQueue,
    "temporary topic": TemporaryTopic,
}


def destination(session: Session, names: Names, where: str) -> Destination:
    """Return a destination of a kind; a temporary one is consumed by this session's connection only."""
    if where == "queue":
        return session.create_queue(names.queue())
    if where == "topic":
        return session.create_topic(names.topic())
    return session.create_temporary_queue() if where == "temporary queue" else session.create_temporary_topic()


def now_ms() -> int:
    """Return the time as a timestamp has it."""
    return time.time_ns() // 1_000_000


@requirement("3.4-1")
@pytest.mark.parametrize("delay_ms", [0, pytest.param(50, marks=needs("delivery_delay"))])
def test_the_whole_header_reaches_the_receiver(
    session: Session, other_session: Session, queue: Queue, names: Names, delay_ms: int
) -> None:
    message = session.create_text_message("text")
    message.jms_correlation_id = "correlation"
    message.jms_reply_to = session.create_queue(names.queue())
    message.jms_type = "type"
    producer = session.create_producer(queue)
    producer.delivery_delay = delay_ms
    producer.send(message, delivery_mode=DeliveryMode.NON_PERSISTENT, priority=7, time_to_live_ms=60_000)
    received = receive(other_session.create_consumer(queue))
    sent = {name: getattr(message, name) for name in AT_SEND}
    assert {name: getattr(received, name) for name in AT_SEND} == sent
    assert None not in sent.values()


@requirement("3.4.1-1")
def test_the_destination_is_that_of_the_send(session: Session, queue: Queue, topic: Topic) -> None:
    for where in (queue, topic):
        bound, named = session.create_text_message("bound"), session.create_text_message("named")
        session.create_producer(where).send(bound)
        session.create_producer(None).send(where, named)
        assert bound.jms_destination == named.jms_destination == where


@requirement("3.4.1-2")
@EACH_DESTINATION
def test_the_receiver_sees_the_destination_of_the_send(
    session: Session, other_session: Session, names: Names, where: str
) -> None:
    target = destination(session, names, where)
    consumer = session.create_consumer(target)
    send_texts(other_session, target, "text")
    seen = receive(consumer).jms_destination
    assert seen == target
    assert isinstance(seen, INTERFACES[where])
    assert str(seen) == str(target)


@requirement("3.4.2-1")
def test_the_delivery_mode_is_that_of_the_send(session: Session, other_session: Session, queue: Queue) -> None:
    producer, consumer = session.create_producer(queue), other_session.create_consumer(queue)
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    message = session.create_text_message("text")
    producer.send(message)
    assert message.jms_delivery_mode == receive(consumer).jms_delivery_mode == DeliveryMode.NON_PERSISTENT
    producer.send(message, delivery_mode=DeliveryMode.PERSISTENT, priority=4, time_to_live_ms=0)
    assert message.jms_delivery_mode == receive(consumer).jms_delivery_mode == DeliveryMode.PERSISTENT


@requirement("3.4.3-1")
def test_ids_differ_between_messages_sessions_and_connections(connect: Connect, queue: Queue, session: Session) -> None:
    ids: list[str | None] = []
    for connection in (connect(), connect()):
        for one in (connection.create_session(), connection.create_session()):
            producer = one.create_producer(queue)
            message = one.create_text_message("text")
            for _ in range(100):
                producer.send(message, delivery_mode=DeliveryMode.NON_PERSISTENT, priority=4, time_to_live_ms=0)
                ids.append(message.jms_message_id)
    assert len(set(ids)) == len(ids) == 400
    consumer = session.create_consumer(queue)
    assert {receive(consumer).jms_message_id for _ in ids} == set(ids)


SENDER = """
import os, sys, jmsapi
with jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_context() as context:
    producer, queue = context.create_producer(), context.create_queue(sys.argv[1])
    for _ in range(20):
        producer.send(queue, message := context.create_text_message("text"))
        print(message.jms_message_id)
"""


@requirement("3.4.3-4")
@needs("second_process")
def test_ids_differ_between_processes(backend: Backend, session: Session, queue: Queue) -> None:
    ids = [one for _ in range(2) for one in in_second_process(backend.url, SENDER, queue.queue_name).split()]
    assert len(set(ids)) == len(ids) == 40
    assert [message.jms_message_id for message in receive_all(session.create_consumer(queue), 40)] == ids


@requirement("3.4.3-2", "3.4.3-3")
@each_kind_sent
def test_sender_and_receiver_see_the_same_id(session: Session, other_session: Session, queue: Queue, kind: str) -> None:
    message = filled(session, kind)
    received = passed(message, session, queue, other_session)
    assert message.jms_message_id is not None
    assert message.jms_message_id == received.jms_message_id
    assert message.jms_message_id.startswith("ID:")


@requirement("3.4.3-5")
def test_without_ids_they_are_null_or_normal(session: Session, other_session: Session, queue: Queue) -> None:
    producer, consumer = session.create_producer(queue), other_session.create_consumer(queue)
    assert producer.disable_message_id is False
    producer.disable_message_id = True
    assert producer.disable_message_id is True
    first, second = session.create_text_message("1"), session.create_text_message("2")
    producer.send(first)
    producer.send(second)
    check_ids(first, second)
    check_ids(*receive_all(consumer, 2))


@requirement("3.4.3-5")
def test_without_ids_they_are_null_or_normal_in_the_simplified_api(
    context: JMSContext, other_session: Session, queue: Queue
) -> None:
    producer, consumer = context.create_producer(), other_session.create_consumer(queue)
    assert producer.disable_message_id is False
    assert producer.set_disable_message_id(True) is producer
    assert producer.disable_message_id is True
    first, second = context.create_text_message("1"), context.create_text_message("2")
    producer.send(queue, first).send(queue, second)
    check_ids(first, second)
    check_ids(*receive_all(consumer, 2))


def check_ids(first: Message, second: Message) -> None:
    """Both ids are null, or both are ids."""
    ids = [first.jms_message_id, second.jms_message_id]
    if ids != [None, None]:
        assert ids[0] != ids[1]
        assert all(one is not None and one.startswith("ID:") for one in ids)


@requirement("3.4.3-2", "3.4.3-3")
@pytest.mark.parametrize(
    "transacted", [False, pytest.param(True, marks=needs("transactions"))], ids=["at once", "in a transaction"]
)
def test_sender_and_receiver_see_the_same_id_also_without_ids(
    connection: Connection, other_session: Session, queue: Queue, transacted: bool
) -> None:
    session = connection.create_session(Session.SESSION_TRANSACTED if transacted else Session.AUTO_ACKNOWLEDGE)
    consumer = other_session.create_consumer(queue)
    producer = session.create_producer(queue)
    producer.disable_message_id = True
    message = session.create_text_message("text")
    producer.send(message)
    if transacted:
        session.commit()
    assert receive(consumer).jms_message_id == message.jms_message_id


@requirement("3.4.4-1")
def test_the_timestamp_is_the_time_of_the_send(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    before = now_ms()
    session.create_producer(queue).send(message)
    after = now_ms()
    assert before <= message.jms_timestamp <= after
    assert receive(other_session.create_consumer(queue)).jms_timestamp == message.jms_timestamp


@requirement("3.4.4-2")
@needs("transactions")
def test_in_a_transaction_the_timestamp_is_that_of_the_send_call(
    connection: Connection, other_session: Session, queue: Queue
) -> None:
    transacted = connection.create_session(Session.SESSION_TRANSACTED)
    message = transacted.create_text_message("text")
    transacted.create_producer(queue).send(message)
    after_send = now_ms()
    while now_ms() <= after_send + 20:
        time.sleep(0.005)
    transacted.commit()
    assert message.jms_timestamp <= after_send
    assert receive(other_session.create_consumer(queue)).jms_timestamp == message.jms_timestamp


@requirement("3.4.4-3", "B.3.2-3")
def test_without_timestamps_they_are_0_or_normal(session: Session, other_session: Session, queue: Queue) -> None:
    producer = session.create_producer(queue)
    assert producer.disable_message_timestamp is False
    producer.disable_message_timestamp = True
    assert producer.disable_message_timestamp is True
    message = session.create_text_message("text")
    before = now_ms()
    producer.send(message)
    assert message.jms_timestamp == 0 or before <= message.jms_timestamp <= now_ms()
    assert receive(other_session.create_consumer(queue)).jms_timestamp == message.jms_timestamp


@requirement("3.4.5-1")
@pytest.mark.parametrize("text", ["id 1", "grün €", " blanks ", "a:b\\c", "", None])
def test_a_correlation_id_arrives_unchanged(session: Session, other_session: Session, queue: Queue, text: str | None) -> None:
    message = session.create_text_message("text")
    message.jms_correlation_id = text
    assert passed(message, session, queue, other_session).jms_correlation_id == text


@requirement("3.4.5-2")
def test_a_reply_refers_to_the_id_of_its_request(session: Session, other_session: Session, queue: Queue, names: Names) -> None:
    answers = session.create_queue(names.queue())
    request = session.create_text_message("request")
    received = passed(request, session, queue, other_session)
    reply = other_session.create_text_message("reply")
    reply.jms_correlation_id = received.jms_message_id
    answer = passed(reply, other_session, answers, session)
    assert answer.jms_correlation_id == request.jms_message_id


@requirement("3.4.5-3")
def test_a_correlation_id_of_bytes_arrives_or_is_refused(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    given = bytearray(b"\x00\xff\x80id")
    try:
        message.jms_correlation_id_as_bytes = cast(bytes, given)
    except UnsupportedOperationException:
        with pytest.raises(UnsupportedOperationException):
            _ = message.jms_correlation_id_as_bytes
        return
    given[0] = 9
    received = passed(message, session, queue, other_session)
    assert message.jms_correlation_id_as_bytes == received.jms_correlation_id_as_bytes == b"\x00\xff\x80id"


@requirement("3.4.6-1")
@EACH_DESTINATION
def test_an_answer_reaches_the_reply_destination(
    session: Session, other_session: Session, queue: Queue, names: Names, where: str
) -> None:
    answers = destination(session, names, where)
    consumer = session.create_consumer(answers)
    request = session.create_text_message("request")
    request.jms_reply_to = answers
    received = passed(request, session, queue, other_session)
    assert received.jms_reply_to == answers
    assert received.jms_reply_to is not None
    other_session.create_producer(None).send(received.jms_reply_to, other_session.create_text_message("answer"))
    assert receive_text(consumer) == "answer"


@requirement("3.4.6-2")
def test_without_a_reply_destination_the_receiver_sees_none(session: Session, other_session: Session, queue: Queue) -> None:
    assert passed(session.create_text_message("text"), session, queue, other_session).jms_reply_to is None


@requirement("3.4.7-1", "3.4.11-11", "B.3.1-1")
@pytest.mark.parametrize(
    "mode", [Session.CLIENT_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_message_delivered_again_says_so(connection: Connection, other_session: Session, queue: Queue, mode: int) -> None:
    receiver = connection.create_session(mode)
    consumer = receiver.create_consumer(queue)
    message = other_session.create_text_message("text")
    message.jms_redelivered = True
    other_session.create_producer(queue).send(message)
    assert receive(consumer).jms_redelivered is False
    if mode == Session.SESSION_TRANSACTED:
        receiver.rollback()
    else:
        receiver.recover()
    again = receive(consumer)
    assert again.jms_redelivered is True
    if mode == Session.SESSION_TRANSACTED:
        receiver.commit()
    else:
        again.acknowledge()


@requirement("3.4.7-2")
def test_a_first_delivery_is_not_marked(session: Session, other_session: Session, queue: Queue, topic: Topic) -> None:
    for where in (queue, topic):
        received = passed(session.create_text_message("text"), session, where, other_session)
        assert received.jms_redelivered is False
        assert received.get_int_property("JMSXDeliveryCount") == 1


@requirement("3.4.7-3")
def test_the_senders_redelivered_mark_stays_with_the_sender(session: Session, other_session: Session, queue: Queue) -> None:
    message = session.create_text_message("text")
    message.jms_redelivered = True
    received = passed(message, session, queue, other_session)
    assert message.jms_redelivered is True
    assert received.jms_redelivered is False


@requirement("3.4.8-1", "3.4.8-2")
@pytest.mark.parametrize("jms_type", ["order", "a b/c", "", "größe €", None])
def test_a_type_arrives_unchanged(session: Session, other_session: Session, queue: Queue, jms_type: str | None) -> None:
    message = session.create_text_message("text")
    message.jms_type = jms_type
    assert passed(message, session, queue, other_session).jms_type == jms_type
