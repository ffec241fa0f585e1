"""9.1 Preparing to send and receive messages: administered objects, connection, session, producer, consumer."""

from collections.abc import Callable, Iterator

import pytest

import jmsapi
from jmsapi import Connection, ConnectionFactory, IllegalStateException, JMSException, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import Recorder, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement

MODES = [
    pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions")),
    Session.AUTO_ACKNOWLEDGE,
    Session.CLIENT_ACKNOWLEDGE,
    Session.DUPS_OK_ACKNOWLEDGE,
]


@pytest.fixture
def bind(names: Names) -> Iterator[Callable[[ConnectionFactory | Queue | Topic], str]]:
    """Bind objects to names of their own, for the time of the test."""
    bound: list[str] = []

    def bind_one(found: ConnectionFactory | Queue | Topic) -> str:
        name = names.topic()
        bound.append(name)
        jmsapi.register_object(name, found)
        return name

    yield bind_one
    for name in bound:
        jmsapi.register_object(name, None)


@requirement("9.1.1-1")
def test_a_connection_factory_is_found_by_its_name(
    bind: Callable[[ConnectionFactory], str], factory: ConnectionFactory, queue: Queue, other_session: Session
) -> None:
    name = bind(factory)
    with jmsapi.lookup(name, ConnectionFactory).create_connection() as connection:
        send_texts(connection.create_session(), queue, "text")
    assert receive_text(other_session.create_consumer(queue)) == "text"
    with pytest.raises(JMSException) as caught:
        jmsapi.lookup(f"not {name}")
    assert name in str(caught.value)


@requirement("9.1.2-1")
def test_a_destination_is_found_by_its_name(bind: Callable[[Queue | Topic], str], queue: Queue, topic: Topic) -> None:
    assert jmsapi.lookup(bind(queue), Queue).queue_name == queue.queue_name
    assert jmsapi.lookup(bind(topic), Topic).topic_name == topic.topic_name
    with pytest.raises(JMSException):
        jmsapi.lookup(bind(queue), Topic)


@requirement("9.1.3-1")
@pytest.mark.parametrize("how", ["close", "with", "with that raises"])
def test_a_connection_is_closed_by_its_method_or_at_the_end_of_a_block(connect: Connect, how: str) -> None:
    connection = connect()
    if how == "close":
        connection.close()
    elif how == "with":
        with connection as same:
            assert same is connection
    else:
        with pytest.raises(KeyError), connection:
            raise KeyError("from the block")
    with pytest.raises(IllegalStateException):
        connection.create_session()


@requirement("9.1.4-1", "9.1.4-2", "B.5.5-1", "B.4.5.1-2")
@pytest.mark.parametrize("mode", MODES)
def test_one_mode_says_whether_a_session_is_transacted_and_how_it_acknowledges(connection: Connection, mode: int) -> None:
    transacted = mode == Session.SESSION_TRANSACTED
    for session in (connection.create_session(mode), connection.create_session(transacted, mode)):
        assert session.transacted is transacted
        assert session.acknowledge_mode == mode


@requirement("9.1.4-2", "B.5.5-1")
@needs("transactions")
@pytest.mark.parametrize("ignored", [Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_the_acknowledge_mode_of_a_transacted_session_is_ignored(connection: Connection, ignored: int) -> None:
    session = connection.create_session(True, ignored)
    assert session.transacted is True
    assert session.acknowledge_mode == Session.SESSION_TRANSACTED


@requirement("9.1.4-2", "B.5.5-2")
def test_a_session_without_arguments_acknowledges_automatically(connection: Connection, queue: Queue) -> None:
    session = connection.create_session()
    assert session.transacted is False
    assert session.acknowledge_mode == Session.AUTO_ACKNOWLEDGE
    send_texts(session, queue, "text")
    assert receive_text(session.create_consumer(queue)) == "text"


@requirement("9.1.6-1", "B.5.2-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_consumer_is_used_synchronously_or_asynchronously(
    session: Session, other_session: Session, queue: Queue, topic: Topic, kind: str
) -> None:
    destination = queue if kind == "queue" else topic
    with session.create_consumer(destination) as consumer:
        send_texts(other_session, destination, "received")
        assert receive_text(consumer) == "received"
    recorder = Recorder()
    session.create_consumer(destination).message_listener = recorder
    send_texts(other_session, destination, "listened to")
    assert recorder.wait_for_texts(1) == ["listened to"]
