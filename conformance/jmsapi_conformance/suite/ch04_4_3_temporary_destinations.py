"""4.4.3 Temporary destinations."""

import copy
import gc
import pickle
from collections.abc import Callable

import pytest

from jmsapi import (
    Connection,
    InvalidDestinationException,
    JMSException,
    Queue,
    Session,
    TemporaryQueue,
    TemporaryTopic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect
from jmsapi_conformance.kit import (
    QUIET_MS,
    expect_nothing_for,
    outcome_of,
    receive,
    receive_text,
    send_texts,
    skip_unless_native,
    text_of,
)
from jmsapi_conformance.marks import needs, requirement

KINDS = pytest.mark.parametrize(
    "kind", [pytest.param("queue", marks=needs("temporary_queue")), pytest.param("topic", marks=needs("temporary_topic"))]
)


DUPLICATES: dict[str, Callable[[object], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


@requirement("4.4.3-1")
@KINDS
def test_a_temporary_destination_belongs_to_the_connection(connection: Connection, other_session: Session, kind: str) -> None:
    creator, consuming = connection.create_session(), connection.create_session()
    destination = temporary(creator, kind)
    creator.close()
    consumer = consuming.create_consumer(destination)
    send_texts(other_session, destination, "text")
    assert receive_text(consumer) == "text"


@requirement("4.4.3-2")
@KINDS
def test_temporary_destinations_have_names_of_their_own(connect: Connect, kind: str) -> None:
    sessions = [connect().create_session() for _ in range(3)]
    made = [name_of(temporary(session, kind)) for session in sessions for _ in range(20)]
    assert all(made)
    assert len(set(made)) == 60


@requirement("4.4.3-3")
@needs("temporary_queue")
def test_another_connection_may_not_consume_from_a_temporary_queue(
    session: Session, queue: Queue, other_session: Session
) -> None:
    temporary_queue = session.create_temporary_queue()
    request = session.create_message()
    request.jms_reply_to = temporary_queue
    session.create_producer(queue).send(request)
    answer_to = receive(other_session.create_consumer(queue)).jms_reply_to
    assert answer_to == temporary_queue
    assert answer_to is not None
    with pytest.raises(JMSException):
        other_session.create_consumer(answer_to)


@requirement("4.4.3-3")
@needs("temporary_topic")
def test_another_connection_may_not_consume_from_a_temporary_topic(session: Session, other_session: Session) -> None:
    with pytest.raises(JMSException):
        other_session.create_consumer(session.create_temporary_topic())


@requirement("4.4.3-3")
@needs("temporary_queue", "temporary_owner_only")
def test_another_connection_may_not_consume_by_the_name_of_a_temporary_queue(
    backend: Backend, session: Session, other_session: Session
) -> None:
    skip_unless_native(backend, "temporary_owner_only")
    temporary_queue = session.create_temporary_queue()
    with pytest.raises(JMSException):
        other_session.create_consumer(other_session.create_queue(temporary_queue.queue_name))


@requirement("4.4.3-4")
@KINDS
def test_another_connection_answers_to_a_temporary_destination(
    session: Session, queue: Queue, other_session: Session, kind: str
) -> None:
    answers = temporary(session, kind)
    consumer = session.create_consumer(answers)
    request = session.create_text_message("question")
    request.jms_reply_to = answers
    session.create_producer(queue).send(request)
    received = receive(other_session.create_consumer(queue))
    assert received.jms_reply_to is not None
    send_texts(other_session, received.jms_reply_to, "answer")
    assert receive_text(consumer) == "answer"


@requirement("4.4.3-5")
@KINDS
def test_a_temporary_destination_goes_with_its_connection(connect: Connect, other_session: Session, kind: str) -> None:
    connection = connect()
    destination = temporary(connection.create_session(), kind)
    send_texts(other_session, destination, "while it is there")
    connection.close()
    # Sending may be refused, or the message goes nowhere.
    try:
        send_texts(other_session, destination, "to nobody")
    except JMSException as error:
        assert isinstance(error, InvalidDestinationException)
    with pytest.raises(JMSException):
        connect().create_session().create_consumer(destination)
    # That is refused to any other connection; so see by its bare name, where the broker lets us, that what it held is gone.
    if kind == "queue":
        assert first_under(name_of(destination), connect().create_session()) != "while it is there"


@requirement("4.4.3-5")
@KINDS
def test_what_is_sent_to_a_temporary_destination_without_its_connection_fares_no_better_than_to_a_deleted_one(
    connect: Connect, session: Session, other_session: Session, kind: str
) -> None:
    deleted, connection = temporary(session, kind), connect()
    orphan = temporary(connection.create_session(), kind)
    producers = [other_session.create_producer(one) for one in (deleted, orphan)]
    for one in (deleted, orphan):
        send_texts(other_session, one, "while it is there")
    deleted.delete()
    connection.close()
    # By a new producer, and by one that there was before.
    new = [type(outcome_of(lambda one=one: send_texts(other_session, one, "late"))) for one in (deleted, orphan)]  # type: ignore[misc]
    old = [type(outcome_of(lambda one=one: one.send(other_session.create_message()))) for one in producers]  # type: ignore[misc]
    # What the broker refuses for the one it refuses for the other.
    for of_deleted, of_orphan in (new, old):
        assert of_deleted in (type(None), of_orphan)


@requirement("4.4.3-6", "B.3.2-1")
@KINDS
def test_a_deleted_temporary_destination_is_no_longer_valid(connection: Connection, kind: str) -> None:
    session = connection.create_session()
    destination = temporary(session, kind)
    producer = session.create_producer(destination)
    consumer = session.create_consumer(destination)
    with pytest.raises(JMSException):
        destination.delete()
    producer.send(session.create_text_message("still there"))
    assert receive_text(consumer) == "still there"
    consumer.close()
    destination.delete()
    for call in (
        lambda: session.create_consumer(destination),
        lambda: session.create_producer(destination),
        lambda: session.create_producer(None).send(destination, session.create_message()),
        lambda: producer.send(session.create_message()),
    ):
        with pytest.raises(InvalidDestinationException):
            call()


@requirement("4.4.3-6", "B.3.2-1")
@needs("temporary_queue")
def test_a_deleted_temporary_queue_is_gone_with_what_it_held(connect: Connect, session: Session) -> None:
    destination = session.create_temporary_queue()
    send_texts(session, destination, "held")
    destination.delete()
    for one in (session, connect().create_session()):
        assert first_under(name_of(destination), one) != "held"


@requirement("4.4.3-7")
@KINDS
def test_a_temporary_destination_with_a_consumer_outlives_its_object(
    session: Session, queue: Queue, other_session: Session, kind: str
) -> None:
    consumer = session.create_consumer(temporary(session, kind))
    request = session.create_message()
    request.jms_reply_to = other = temporary(session, kind)
    session.create_producer(queue).send(request)
    send_texts_to = receive(other_session.create_consumer(queue)).jms_reply_to
    del request
    gc.collect()
    assert send_texts_to == other
    expect_nothing_for(consumer)
    second = session.create_consumer(other)
    del other
    gc.collect()
    assert send_texts_to is not None
    send_texts(other_session, send_texts_to, "text")
    assert receive_text(second) == "text"


@requirement("4.4.3-8")
@KINDS
@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_a_temporary_destination_cannot_be_copied(session: Session, kind: str, duplicate: Callable[[object], object]) -> None:
    destination = temporary(session, kind)
    try:
        again = duplicate(destination)
    except (TypeError, JMSException):
        pass
    else:
        # A copy is allowed if it has no rights and no life of its own.
        assert again == destination
        if again is not destination and isinstance(again, TemporaryQueue | TemporaryTopic):
            with pytest.raises(JMSException):
                again.delete()
    consumer = session.create_consumer(destination)
    send_texts(session, destination, "text")
    assert receive_text(consumer) == "text"


def temporary(session: Session, kind: str) -> TemporaryQueue | TemporaryTopic:
    """Create a temporary queue or topic."""
    return session.create_temporary_queue() if kind == "queue" else session.create_temporary_topic()


def name_of(destination: TemporaryQueue | TemporaryTopic) -> str:
    """Return the name of either kind."""
    return destination.queue_name if isinstance(destination, TemporaryQueue) else destination.topic_name


def first_under(name: str, session: Session) -> str | None:
    """Return the first text in a queue of this name; None where there is none, or the broker keeps strangers off."""
    try:
        with session.create_consumer(session.create_queue(name)) as consumer:
            message = consumer.receive(QUIET_MS)
    except JMSException:
        return None
    return None if message is None else text_of(message)
