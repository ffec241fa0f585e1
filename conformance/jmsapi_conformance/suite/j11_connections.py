"""JMS 1.1: connections, sessions, domains and closing."""

import inspect
from collections.abc import Callable

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    JMSException,
    Queue,
    QueueConnection,
    QueueSession,
    ServerSession,
    ServerSessionPool,
    Session,
    Topic,
    TopicSession,
    XAConnection,
    XAConnectionFactory,
    XASession,
)
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    Recorder,
    eventually,
    expect_nothing_for,
    finish,
    in_thread,
    outcome_of,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement


class Pool(ServerSessionPool):
    """A pool that nobody should ask."""

    def get_server_session(self) -> ServerSession:
        """Fail."""
        raise AssertionError("a pool was asked for a session")


@requirement("J11-1")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_domain_works_or_is_refused(session: Session, names: Names, kind: str) -> None:
    try:
        destination = session.create_queue(names.queue()) if kind == "queue" else session.create_topic(names.topic())
        consumer = session.create_consumer(destination)
    except JMSException:
        return
    send_texts(session, destination, "text")
    assert receive_text(consumer) == "text"


@requirement("J11-2")
@pytest.mark.parametrize("mode", [Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE])
def test_a_session_is_created_with_two_arguments(connection: Connection, mode: int) -> None:
    session = connection.create_session(False, mode)
    assert (session.transacted, session.acknowledge_mode) == (False, mode)


@requirement("J11-3")
@needs("transactions")
@pytest.mark.parametrize("ignored", [Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE, 0])
def test_the_acknowledge_mode_of_a_transacted_session_is_ignored(
    connection: Connection, queue: Queue, other_session: Session, ignored: int
) -> None:
    session = connection.create_session(True, ignored)
    assert (session.transacted, session.acknowledge_mode) == (True, Session.SESSION_TRANSACTED)
    send_texts(session, queue, "rolled back")
    session.rollback()
    send_texts(session, queue, "committed")
    session.commit()
    assert receive_text(other_session.create_consumer(queue)) == "committed"


@requirement("J11-16")
@pytest.mark.parametrize("what", ["connection.stop", "connection.close", "session.close", "consumer.close"])
def test_a_listener_that_ends_what_it_runs_in_hangs_nothing(
    connect: Connect, queue: Queue, other_session: Session, what: str
) -> None:
    connection = connect(close_timeout_ms=2000)
    session = connection.create_session()
    consumer = session.create_consumer(queue)
    calls: dict[str, Callable[[], object]] = {
        "connection.stop": connection.stop,
        "connection.close": connection.close,
        "session.close": session.close,
        "consumer.close": consumer.close,
    }
    outcomes: list[BaseException | None] = []
    consumer.message_listener = Recorder(then=lambda _: outcomes.append(outcome_of(calls[what])))
    send_texts(other_session, queue, "text")
    eventually(lambda: outcomes, "the call in the listener has come back")
    assert outcomes[0] is None or isinstance(outcomes[0], JMSException)
    finish(in_thread(connection.close))


@requirement("J11-17")
def test_a_session_with_two_listeners_is_set_up_while_its_connection_is_stopped(
    connect: Connect, other_session: Session, names: Names
) -> None:
    connection = connect(started=False)
    session = connection.create_session()
    queues = [session.create_queue(names.queue()) for _ in range(2)]
    listeners = [Recorder(), Recorder()]
    for queue, listener in zip(queues, listeners, strict=True):
        send_texts(other_session, queue, "1", "2")
        session.create_consumer(queue).message_listener = listener
    with connection.create_session() as looking:
        expect_nothing_for(looking.create_consumer(queues[0]))
    assert [listener.messages for listener in listeners] == [[], []]
    connection.start()
    assert [listener.wait_for_texts(2) for listener in listeners] == [["1", "2"], ["1", "2"]]
    assert len(listeners[0].threads | listeners[1].threads) == 1


@requirement("J11-19")
def test_close_closes_each_object_and_nothing_else_does(connect: Connect, queue: Queue) -> None:
    connection = connect()
    sessions = [connection.create_session() for _ in range(2)]
    producers = [session.create_producer(queue) for session in sessions]
    consumers = [session.create_consumer(queue) for session in sessions]

    def send(number: int) -> None:
        producers[number].send(sessions[number].create_message())

    consumers[0].close()
    with pytest.raises(IllegalStateException):
        consumers[0].receive(1)
    send(0)
    assert consumers[1].receive(10_000) is not None
    producers[0].close()
    with pytest.raises(IllegalStateException):
        send(0)
    sessions[0].close()
    with pytest.raises(IllegalStateException):
        sessions[0].create_message()
    send(1)
    assert consumers[1].receive(10_000) is not None
    connection.close()
    with pytest.raises(IllegalStateException):
        connection.create_session()
    with pytest.raises(IllegalStateException):
        sessions[1].create_message()


@requirement("J11-19")
@needs("browser")
def test_close_closes_a_browser(session: Session, queue: Queue) -> None:
    first, second = session.create_browser(queue), session.create_browser(queue)
    first.close()
    with pytest.raises(IllegalStateException):
        list(first.enumeration)
    assert list(second.enumeration) == []


OnQueueSession = Callable[[QueueSession, Topic], object]
ON_A_QUEUE_SESSION: dict[str, OnQueueSession] = {
    "create_durable_subscriber": lambda session, topic: session.create_durable_subscriber(topic, "name"),
    "create_temporary_topic": lambda session, topic: session.create_temporary_topic(),
    "create_topic": lambda session, topic: session.create_topic("name"),
    "unsubscribe": lambda session, topic: session.unsubscribe("name"),
}
OnTopicSession = Callable[[TopicSession, Queue], object]
ON_A_TOPIC_SESSION: dict[str, OnTopicSession] = {
    "create_browser": lambda session, queue: session.create_browser(queue),
    "create_queue": lambda session, queue: session.create_queue("name"),
    "create_temporary_queue": lambda session, queue: session.create_temporary_queue(),
}


@requirement("J11-23")
@pytest.mark.parametrize("call", ON_A_QUEUE_SESSION.values(), ids=ON_A_QUEUE_SESSION)
def test_a_queue_session_has_nothing_of_topics(connect: Connect, topic: Topic, call: OnQueueSession) -> None:
    session = connect.queues().create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    with pytest.raises(IllegalStateException):
        call(session, topic)


@requirement("J11-23")
@pytest.mark.parametrize("call", ON_A_TOPIC_SESSION.values(), ids=ON_A_TOPIC_SESSION)
def test_a_topic_session_has_nothing_of_queues(connect: Connect, queue: Queue, call: OnTopicSession) -> None:
    session = connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    with pytest.raises(IllegalStateException):
        call(session, queue)


@requirement("J11-23")
def test_a_queue_connection_has_nothing_of_topics(connect: Connect, topic: Topic) -> None:
    with pytest.raises(IllegalStateException):
        connect.queues().create_durable_connection_consumer(topic, "name", None, Pool(), 1)


@requirement("J11-24")
def test_distributed_transactions_are_described_for_connections_and_sessions() -> None:
    assert inspect.isfunction(XAConnectionFactory.create_xa_connection)
    assert inspect.isfunction(XAConnection.create_xa_session)
    assert isinstance(XASession.xa_resource, property)
    assert issubclass(XASession, Session)


@requirement("J11-26")
@pytest.mark.parametrize("owner", [Connection, QueueConnection])
def test_connections_have_the_connection_consumers_of_destinations_and_durable_subscriptions(owner: type[Connection]) -> None:
    of_destination = list(inspect.signature(owner.create_connection_consumer).parameters)
    of_subscription = list(inspect.signature(owner.create_durable_connection_consumer).parameters)
    rest = ["message_selector", "session_pool", "max_messages"]
    assert of_destination == ["self", "destination", *rest]
    assert of_subscription[-3:] == rest


@requirement("J11-31")
def test_a_client_id_changes_nothing_for_queues_and_non_durable_subscribers(
    connect: Connect, other_session: Session, names: Names
) -> None:
    client_id = names.client_id()
    for turn, given in enumerate((client_id, None, client_id)):
        queue, topic = other_session.create_queue(names.queue()), other_session.create_topic(names.topic())
        with connect(client_id=given) as connection:
            session = connection.create_session()
            subscriber = session.create_consumer(topic)
            send_texts(other_session, topic, f"{turn}")
            send_texts(other_session, queue, f"{turn}", "left")
            assert receive_text(subscriber) == f"{turn}"
            assert receive_text(session.create_consumer(queue)) == f"{turn}"
            send_texts(other_session, topic, "to nobody")
        with connect(client_id=given) as connection:
            session = connection.create_session()
            subscriber = session.create_consumer(topic)
            send_texts(other_session, topic, "next")
            assert receive_text(subscriber) == "next"
            assert receive_texts(session.create_consumer(queue), 1) == ["left"]
