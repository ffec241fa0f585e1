"""6.3 and 6.11.1 Unshared non-durable subscriptions."""

from jmsapi import JMSContext, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("6.11.1-1", "6.11-1", "B.2.1-1", "B.5.7.1-1")
def test_each_consumer_of_a_topic_is_a_subscription_of_its_own(session: Session, topic: Topic, other_session: Session) -> None:
    consumers = [session.create_consumer(topic) for _ in range(3)]
    expected = [str(number) for number in range(100)]
    send_texts(other_session, topic, *expected)
    for consumer in consumers:
        assert receive_texts(consumer, 100) == expected


@requirement("6.11.1-1")
def test_each_consumer_that_a_context_makes_on_a_topic_is_a_subscription_of_its_own(context: JMSContext, names: Names) -> None:
    topic = context.create_topic(names.topic())
    consumers = [context.create_consumer(topic) for _ in range(2)]
    context.create_producer().send(topic, "text")
    assert [receive_text(consumer) for consumer in consumers] == ["text", "text"]


@requirement("6.3-1", "6.11.1-2")
def test_what_is_published_while_a_topic_has_no_consumer_is_missed(
    session: Session, topic: Topic, other_session: Session
) -> None:
    send_texts(other_session, topic, "before")
    first = session.create_consumer(topic)
    send_texts(other_session, topic, "to the first")
    assert receive_text(first) == "to the first"
    first.close()
    send_texts(other_session, topic, "in the gap")
    second = session.create_consumer(topic)
    send_texts(other_session, topic, "to the second")
    assert receive_text(second) == "to the second"


@requirement("6.11.1-3")
def test_closing_the_consumer_drops_what_it_has_not_received(session: Session, topic: Topic, other_session: Session) -> None:
    first = session.create_consumer(topic)
    send_texts(other_session, topic, *map(str, range(10)))
    assert receive_texts(first, 2) == ["0", "1"]
    first.close()
    expect_nothing(session.create_consumer(topic), other_session, topic)


@requirement("6.11.1-4")
@needs("no_local")
def test_no_local_leaves_out_what_the_own_connection_publishes(connect: Connect, topic: Topic, other_session: Session) -> None:
    connection = connect()
    consumer = connection.create_session().create_consumer(topic, None, True)
    send_texts(connection.create_session(), topic, "own")
    send_texts(other_session, topic, "from another")
    assert receive_text(consumer) == "from another"


@requirement("6.11-5")
def test_without_no_local_a_connection_receives_its_own_messages(session: Session, topic: Topic) -> None:
    consumer = session.create_consumer(topic)
    send_texts(session, topic, "own")
    assert receive_text(consumer) == "own"


@requirement("6.1-2")
def test_publishing_without_subscribers_succeeds_and_subscribers_come_and_go(
    session: Session, topic: Topic, other_session: Session
) -> None:
    send_texts(other_session, topic, "to nobody")
    stays = session.create_consumer(topic)
    for number in range(5):
        passes_by = session.create_consumer(topic)
        send_texts(other_session, topic, str(number))
        assert receive_text(passes_by) == str(number)
        passes_by.close()
    assert receive_texts(stays, 5) == ["0", "1", "2", "3", "4"]
