"""5.1 to 5.8 Point-to-point: the queue interfaces."""

from collections.abc import Callable

import pytest

from jmsapi import (
    JMSContext,
    JMSException,
    Queue,
    QueueBrowser,
    QueueConnection,
    QueueConnectionFactory,
    QueueReceiver,
    QueueSender,
    QueueSession,
    Session,
    TemporaryQueue,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing,
    expect_nothing_for,
    receive,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._credentials import credentials_of
from jmsapi_conformance.suite._domains import each_interface, producer_for, queue_consumer, queue_session, session_of

MODES = pytest.mark.parametrize(
    ("transacted", "acknowledge_mode", "mode"),
    [
        (False, Session.AUTO_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE),
        (False, Session.CLIENT_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE),
        (False, Session.DUPS_OK_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE),
        pytest.param(True, Session.AUTO_ACKNOWLEDGE, Session.SESSION_TRANSACTED, marks=needs("transactions")),
    ],
)
CREATING: dict[str, Callable[[QueueSession, Queue], object]] = {
    "create_receiver": lambda session, queue: session.create_receiver(queue),
    "create_receiver with a selector": lambda session, queue: session.create_receiver(queue, "n = 1"),
    "create_sender": lambda session, queue: session.create_sender(queue),
    "create_sender without a queue": lambda session, queue: session.create_sender(None),
    "create_browser": lambda session, queue: session.create_browser(queue),
    "create_temporary_queue": lambda session, _: session.create_temporary_queue(),
}
CREATORS = pytest.mark.parametrize("creator", ["Session", "QueueSession", "JMSContext"])


@requirement("5.1-1", "B.4.1-2")
@pytest.mark.parametrize("receiving", ["own", "common"])
@pytest.mark.parametrize("sending", ["own", "common"])
def test_queues_do_the_same_through_either_set_of_interfaces(
    connect: Connect, names: Names, sending: str, receiving: str
) -> None:
    sender, session = queue_session(connect, sending), queue_session(connect, receiving, Session.CLIENT_ACKNOWLEDGE)
    queue = sender.create_queue(names.queue())
    first, second = queue_consumer(session, queue), queue_consumer(session, queue)
    first.close()
    with producer_for(sender, queue) as producer:
        for text in ("1", "2", "3"):
            producer.send(sender.create_text_message(text))
    assert receive_texts(second, 2) == ["1", "2"]
    session.recover()
    assert receive_texts(second, 2) == ["1", "2"]
    last = receive(second)
    last.acknowledge()
    expect_nothing(second, sender, queue)
    listener = Recorder()
    second.message_listener = listener
    send_texts(sender, queue, "4", "5")
    assert listener.wait_for_texts(2) == ["4", "5"]


@requirement("5.1-1", "B.4.1-2")
@needs("transactions")
@each_interface
def test_transactions_on_queues_do_the_same_through_either_set_of_interfaces(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    session = queue_session(connect, interface, Session.SESSION_TRANSACTED)
    producer, consumer = producer_for(session, queue), other_session.create_consumer(queue)
    producer.send(session.create_text_message("rolled back"))
    session.rollback()
    producer.send(session.create_text_message("committed"))
    session.commit()
    assert receive_text(consumer) == "committed"
    expect_nothing(consumer, other_session, queue)


@requirement("5.3-1")
@each_interface
def test_a_queue_is_known_by_its_name(connect: Connect, names: Names, interface: str) -> None:
    name = names.queue()
    first, second = queue_session(connect, interface), queue_session(connect, "common")
    queues = [first.create_queue(name), second.create_queue(name)]
    assert [queue.queue_name for queue in queues] == [name, name]
    send_texts(first, queues[0], "1")
    send_texts(second, queues[1], "2")
    assert receive_texts(queue_consumer(first, queues[0]), 2) == ["1", "2"]
    other = first.create_queue(names.queue())
    assert other.queue_name != name
    send_texts(second, queues[1], "3")
    expect_nothing(first.create_consumer(other), second, other)


@requirement("5.4-1")
@needs("temporary_queue")
@CREATORS
def test_a_temporary_queue_has_a_name_of_its_own_and_is_consumed_by_its_connection_only(
    connect: Connect, other_session: Session, creator: str
) -> None:
    client, queue = temporary_queue(connect, creator)
    _, another = temporary_queue(connect, creator)
    assert isinstance(queue, TemporaryQueue)
    assert queue.queue_name
    assert queue.queue_name != another.queue_name
    with pytest.raises(JMSException):
        other_session.create_consumer(queue)
    with pytest.raises(JMSException):
        connect.queues().create_queue_session(False, Session.AUTO_ACKNOWLEDGE).create_receiver(queue)
    consumer = client.create_receiver(queue) if isinstance(client, QueueSession) else client.create_consumer(queue)
    send_through(client, queue, "text")
    assert receive_text(consumer) == "text"


@requirement("5.4-1")
@needs("temporary_queue")
@CREATORS
def test_a_temporary_queue_lives_as_long_as_its_connection(connect: Connect, creator: str) -> None:
    if creator == "JMSContext":
        context = connect.context()
        queue = context.create_temporary_queue()
        sibling = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
        context.close()
        send_through(sibling, queue, "still there")
        assert receive_text(sibling.create_consumer(queue)) == "still there"
        sibling.close()
    else:
        connection = connect.queues() if creator == "QueueSession" else connect()
        session = session_of(connection)
        queue = session.create_temporary_queue()
        session.close()
        session = session_of(connection)
        send_through(session, queue, "still there")
        assert receive_text(queue_consumer(session, queue)) == "still there"
        connection.close()
    with pytest.raises(JMSException):
        connect().create_session().create_consumer(queue)


@requirement("5.5-1")
@pytest.mark.parametrize("credentials", [False, True], ids=["configured", "given"])
def test_a_queue_connection_factory_creates_stopped_queue_connections(backend: Backend, names: Names, credentials: bool) -> None:
    factory = backend.factory(**({"user": None, "password": None} if credentials else {}))
    assert isinstance(factory, QueueConnectionFactory)
    made = factory.create_queue_connection(*credentials_of(backend)) if credentials else factory.create_queue_connection()
    with made as connection:
        assert isinstance(connection, QueueConnection)
        session = connection.create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
        queue = session.create_queue(names.queue())
        send_texts(session, queue, "text")
        receiver = session.create_receiver(queue)
        expect_nothing_for(receiver)
        connection.start()
        assert receive_text(receiver) == "text"


@requirement("5.6-1")
@MODES
def test_a_queue_connection_creates_queue_sessions_of_every_mode(
    connect: Connect, transacted: bool, acknowledge_mode: int, mode: int
) -> None:
    connection = connect.queues()
    sessions = [connection.create_queue_session(transacted, acknowledge_mode) for _ in range(2)]
    assert sessions[0] is not sessions[1]
    for session in sessions:
        assert isinstance(session, QueueSession)
        assert (session.transacted, session.acknowledge_mode) == (transacted, mode)


@requirement("5.7-1")
@pytest.mark.parametrize(
    ("create", "kind"),
    [
        ("create_receiver", QueueReceiver),
        pytest.param("create_receiver with a selector", QueueReceiver, marks=needs("queue_selector")),
        ("create_sender", QueueSender),
        ("create_sender without a queue", QueueSender),
        pytest.param("create_browser", QueueBrowser, marks=needs("browser")),
        pytest.param("create_temporary_queue", TemporaryQueue, marks=needs("temporary_queue")),
    ],
)
def test_a_queue_session_creates_the_objects_of_its_domain(connect: Connect, names: Names, create: str, kind: type) -> None:
    session = connect.queues().create_queue_session(False, Session.AUTO_ACKNOWLEDGE)
    assert isinstance(CREATING[create](session, session.create_queue(names.queue())), kind)


@requirement("5.8-1")
@each_interface
def test_a_receiver_is_a_consumer_that_knows_its_queue(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    session = queue_session(connect, interface)
    consumer = queue_consumer(session, queue)
    send_texts(other_session, queue, "1", "2", "3")
    assert receive_texts(consumer, 2) == ["1", "2"]
    last = consumer.receive_no_wait() or receive(consumer)
    assert last.jms_destination == queue
    assert isinstance(consumer, QueueReceiver) == (interface == "own")
    if isinstance(consumer, QueueReceiver):
        assert consumer.queue == queue
        assert consumer.message_selector is None
    expect_nothing(consumer, other_session, queue)


@requirement("5.8-5")
@each_interface
def test_senders_and_producers_send_to_the_queue_they_have_or_are_given(
    connect: Connect, queue: Queue, other_session: Session, interface: str
) -> None:
    session, consumer = queue_session(connect, interface), other_session.create_consumer(queue)
    fixed = producer_for(session, queue)
    fixed.send(session.create_text_message("to its own"))
    anonymous = session.create_sender(None) if isinstance(session, QueueSession) else session.create_producer(None)
    anonymous.send(queue, session.create_text_message("to the one given"))
    assert receive_texts(consumer, 2) == ["to its own", "to the one given"]
    assert isinstance(fixed, QueueSender) == (interface == "own")
    if isinstance(fixed, QueueSender) and isinstance(anonymous, QueueSender):
        assert fixed.queue == queue
        assert anonymous.queue is None


def temporary_queue(connect: Connect, creator: str) -> tuple[Session | JMSContext, TemporaryQueue]:
    """Create a temporary queue by one of the three methods, on a connection of its own."""
    client: Session | JMSContext
    if creator == "JMSContext":
        client = connect.context()
    else:
        client = queue_session(connect, "own" if creator == "QueueSession" else "common")
    return client, client.create_temporary_queue()


def send_through(client: Session | JMSContext, queue: Queue, text: str) -> None:
    """Send over the client's own connection."""
    if isinstance(client, JMSContext):
        client.create_producer().send(queue, text)
    else:
        send_texts(client, queue, text)
