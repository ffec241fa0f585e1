"""6.1 to 6.10 Publish/subscribe: the topic interfaces."""

from collections.abc import Callable

import pytest

from jmsapi import (
    InvalidDestinationException,
    JMSContext,
    JMSException,
    Session,
    TemporaryTopic,
    Topic,
    TopicConnection,
    TopicConnectionFactory,
    TopicPublisher,
    TopicSession,
    TopicSubscriber,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import (
    Recorder,
    expect_nothing,
    expect_nothing_for,
    in_thread,
    receive,
    receive_text,
    receive_texts,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._credentials import credentials_of
from jmsapi_conformance.suite._domains import each_interface, producer_for, session_of, topic_consumer, topic_session
from jmsapi_conformance.suite._subscriptions import each_durable_kind, subscribe

CREATORS = pytest.mark.parametrize("creator", ["Session", "TopicSession", "JMSContext"])
CREATING: dict[str, Callable[[TopicSession, Topic, str], object]] = {
    "create_publisher": lambda session, topic, _: session.create_publisher(topic),
    "create_publisher without a topic": lambda session, topic, _: session.create_publisher(None),
    "create_subscriber": lambda session, topic, _: session.create_subscriber(topic),
    "create_subscriber with a selector": lambda session, topic, _: session.create_subscriber(topic, "n = 1", False),
    "create_durable_subscriber": lambda session, topic, name: session.create_durable_subscriber(topic, name),
    "create_temporary_topic": lambda session, topic, _: session.create_temporary_topic(),
}


@requirement("6.1-1", "B.4.1-2")
@pytest.mark.parametrize("subscribing", ["own", "common"])
@pytest.mark.parametrize("publishing", ["own", "common"])
def test_topics_do_the_same_through_either_set_of_interfaces(
    connect: Connect, names: Names, publishing: str, subscribing: str
) -> None:
    publisher, session = topic_session(connect, publishing), topic_session(connect, subscribing, Session.CLIENT_ACKNOWLEDGE)
    topic = publisher.create_topic(names.topic())
    first, second = topic_consumer(session, topic), topic_consumer(session, topic)
    with producer_for(publisher, topic) as producer:
        for text in ("1", "2", "3"):
            producer.send(publisher.create_text_message(text))
    assert receive_texts(first, 3) == ["1", "2", "3"]
    assert receive_texts(second, 2) == ["1", "2"]
    session.recover()
    assert receive_texts(first, 3) == ["1", "2", "3"]
    assert receive_texts(second, 2) == ["1", "2"]
    receive(second).acknowledge()
    session.recover()
    expect_nothing(second, publisher, topic)
    listener = Recorder()
    second.message_listener = listener
    send_texts(publisher, topic, "4", "5")
    assert listener.wait_for_texts(2) == ["4", "5"]


@requirement("6.1-1", "B.4.1-2")
@needs("topic_selector", "no_local")
@each_interface
def test_selectors_and_no_local_do_the_same_through_either_set_of_interfaces(
    connect: Connect, topic: Topic, other_session: Session, interface: str
) -> None:
    session = topic_session(connect, interface)
    consumer = topic_consumer(session, topic, "n = 1", True)
    send_texts(session, topic, "own", n=1)
    send_texts(other_session, topic, "not selected", n=2)
    send_texts(other_session, topic, "selected", n=1)
    assert receive_text(consumer) == "selected"
    assert isinstance(consumer, TopicSubscriber) == (interface == "own")
    if isinstance(consumer, TopicSubscriber):
        assert (consumer.topic, consumer.no_local, consumer.message_selector) == (topic, True, "n = 1")
    expect_nothing(consumer, other_session, topic, n=1)


@requirement("6.2-1")
def test_a_subscription_made_amid_a_flow_of_messages_gets_all_that_follow_its_first(
    session: Session, topic: Topic, other_session: Session
) -> None:
    sender = other_session
    flowing = in_thread(lambda: send_texts(sender, topic, *map(str, range(300))))
    consumer = session.create_consumer(topic)
    flowing.result(30)
    send_texts(sender, topic, *map(str, range(300, 320)))
    first = receive_text(consumer)
    assert first is not None
    # Where it begins is free, but not behind what was sent once it was there.
    assert int(first) <= 300
    assert receive_texts(consumer, 319 - int(first)) == [str(number) for number in range(int(first) + 1, 320)]


@requirement("6.5-1")
@each_interface
def test_a_topic_is_known_by_its_name(connect: Connect, names: Names, interface: str) -> None:
    name = names.topic()
    first, second = topic_session(connect, interface), topic_session(connect, "common")
    topics = [first.create_topic(name), second.create_topic(name)]
    assert [topic.topic_name for topic in topics] == [name, name]
    consumer, elsewhere = topic_consumer(first, topics[0]), first.create_topic(names.topic())
    stranger = first.create_consumer(elsewhere)
    send_texts(first, topics[0], "1")
    send_texts(second, topics[1], "2")
    assert receive_texts(consumer, 2) == ["1", "2"]
    expect_nothing(stranger, second, elsewhere)


@requirement("6.6-1")
@needs("temporary_topic")
@CREATORS
def test_a_temporary_topic_has_a_name_of_its_own_and_is_consumed_by_its_connection_only(
    connect: Connect, other_session: Session, creator: str
) -> None:
    client, topic = temporary_topic(connect, creator)
    _, another = temporary_topic(connect, creator)
    assert isinstance(topic, TemporaryTopic)
    assert topic.topic_name
    assert topic.topic_name != another.topic_name
    with pytest.raises(JMSException):
        other_session.create_consumer(topic)
    with pytest.raises(JMSException):
        connect.topics().create_topic_session(False, Session.AUTO_ACKNOWLEDGE).create_subscriber(topic)
    consumer = client.create_subscriber(topic) if isinstance(client, TopicSession) else client.create_consumer(topic)
    send_through(client, topic, "text")
    assert receive_text(consumer) == "text"


@requirement("6.6-1")
@needs("temporary_topic")
@CREATORS
def test_a_temporary_topic_lives_as_long_as_its_connection(connect: Connect, creator: str) -> None:
    if creator == "JMSContext":
        context = connect.context()
        sibling = context.create_context(JMSContext.AUTO_ACKNOWLEDGE)
        topic = context.create_temporary_topic()
        context.close()
        of_context = sibling.create_consumer(topic)
        send_through(sibling, topic, "still there")
        assert receive_text(of_context) == "still there"
        sibling.close()
    else:
        connection = connect.topics() if creator == "TopicSession" else connect()
        session = session_of(connection)
        topic = session.create_temporary_topic()
        session.close()
        session = session_of(connection)
        consumer = topic_consumer(session, topic)
        send_through(session, topic, "still there")
        assert receive_text(consumer) == "still there"
        connection.close()
    with pytest.raises(JMSException):
        connect().create_session().create_consumer(topic)


@requirement("6.6-2")
@needs("temporary_topic")
@each_durable_kind
def test_a_durable_subscription_on_a_temporary_topic_is_refused_or_ends_with_it(
    connect: Connect, names: Names, kind: str
) -> None:
    client_id, name = names.client_id(), names.subscription()
    connection = connect(client_id=client_id)
    session = connection.create_session()
    # Shows at once where the kind is not there at all.
    subscribe(session, kind, session.create_topic(names.topic()), names.subscription()).close()
    topic = session.create_temporary_topic()
    try:
        consumer = subscribe(session, kind, topic, name)
    except InvalidDestinationException:
        return
    send_texts(session, topic, "text")
    assert receive_text(consumer) == "text"
    connection.close()
    with pytest.raises(InvalidDestinationException):
        connect(client_id=client_id).create_session().unsubscribe(name)


@requirement("6.7-1")
@pytest.mark.parametrize("credentials", [False, True], ids=["configured", "given"])
def test_a_topic_connection_factory_creates_stopped_topic_connections(
    backend: Backend, topic: Topic, other_session: Session, credentials: bool
) -> None:
    factory = backend.factory(**({"user": None, "password": None} if credentials else {}))
    assert isinstance(factory, TopicConnectionFactory)
    made = factory.create_topic_connection(*credentials_of(backend)) if credentials else factory.create_topic_connection()
    with made as connection:
        assert isinstance(connection, TopicConnection)
        subscriber = connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE).create_subscriber(topic)
        send_texts(other_session, topic, "text")
        expect_nothing_for(subscriber)
        connection.start()
        assert receive_text(subscriber) == "text"


@requirement("6.8-1")
@pytest.mark.parametrize(
    ("transacted", "acknowledge_mode", "mode"),
    [
        (False, Session.AUTO_ACKNOWLEDGE, Session.AUTO_ACKNOWLEDGE),
        (False, Session.CLIENT_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE),
        (False, Session.DUPS_OK_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE),
        pytest.param(True, Session.AUTO_ACKNOWLEDGE, Session.SESSION_TRANSACTED, marks=needs("transactions")),
    ],
)
def test_a_topic_connection_creates_topic_sessions_of_every_mode(
    connect: Connect, transacted: bool, acknowledge_mode: int, mode: int
) -> None:
    connection = connect.topics()
    sessions = [connection.create_topic_session(transacted, acknowledge_mode) for _ in range(2)]
    assert sessions[0] is not sessions[1]
    for session in sessions:
        assert isinstance(session, TopicSession)
        assert (session.transacted, session.acknowledge_mode) == (transacted, mode)


@requirement("6.9-1")
@pytest.mark.parametrize(
    ("create", "kind"),
    [
        ("create_publisher", TopicPublisher),
        ("create_publisher without a topic", TopicPublisher),
        ("create_subscriber", TopicSubscriber),
        pytest.param("create_subscriber with a selector", TopicSubscriber, marks=needs("topic_selector")),
        pytest.param("create_durable_subscriber", TopicSubscriber, marks=needs("durable_subscription")),
        pytest.param("create_temporary_topic", TemporaryTopic, marks=needs("temporary_topic")),
    ],
)
def test_a_topic_session_creates_the_objects_of_its_domain(
    connect: Connect, topic: Topic, names: Names, create: str, kind: type
) -> None:
    connection = connect.topics(client_id=names.client_id())
    session = connection.create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    assert isinstance(CREATING[create](session, topic, names.subscription()), kind)
    connection.close()


@requirement("6.9-1")
@needs("durable_subscription", "unsubscribe")
def test_a_topic_session_ends_durable_subscriptions(connect: Connect, topic: Topic, other_session: Session, names: Names) -> None:
    name = names.subscription()
    session = connect.topics(client_id=names.client_id()).create_topic_session(False, Session.AUTO_ACKNOWLEDGE)
    session.create_durable_subscriber(topic, name).close()
    send_texts(other_session, topic, "old")
    session.unsubscribe(name)
    expect_nothing(session.create_durable_subscriber(topic, name), other_session, topic)


@requirement("6.10-1")
@each_interface
def test_publishers_and_producers_send_to_the_topic_they_have_or_are_given(
    connect: Connect, topic: Topic, other_session: Session, interface: str
) -> None:
    session, consumer = topic_session(connect, interface), other_session.create_consumer(topic)
    fixed = producer_for(session, topic)
    anonymous = session.create_publisher(None) if isinstance(session, TopicSession) else session.create_producer(None)
    fixed.send(session.create_text_message("to its own"))
    anonymous.send(topic, session.create_text_message("to the one given"))
    assert receive_texts(consumer, 2) == ["to its own", "to the one given"]
    assert isinstance(fixed, TopicPublisher) == (interface == "own")
    if isinstance(fixed, TopicPublisher) and isinstance(anonymous, TopicPublisher):
        assert (fixed.topic, anonymous.topic) == (topic, None)
        fixed.publish(session.create_text_message("published to its own"))
        anonymous.publish(topic, session.create_text_message("published to the one given"))
        assert receive_texts(consumer, 2) == ["published to its own", "published to the one given"]
        fixed.publish(session.create_text_message("urgent"), delivery_mode=1, priority=9, time_to_live_ms=60_000)
        urgent = receive(consumer)
        assert (urgent.jms_delivery_mode, urgent.jms_priority) == (1, 9)


def temporary_topic(connect: Connect, creator: str) -> tuple[Session | JMSContext, TemporaryTopic]:
    """Create a temporary topic by one of the three methods, on a connection of its own."""
    client: Session | JMSContext
    if creator == "JMSContext":
        client = connect.context()
    else:
        client = topic_session(connect, "own" if creator == "TopicSession" else "common")
    return client, client.create_temporary_topic()


def send_through(client: Session | JMSContext, topic: Topic, text: str) -> None:
    """Send over the client's own connection."""
    if isinstance(client, JMSContext):
        client.create_producer().send(topic, text)
    else:
        send_texts(client, topic, text)
