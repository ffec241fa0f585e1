"""4.4.4 Creating destination objects."""

from jmsapi import JMSContext, Queue, Session, Topic
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import expect_nothing, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.4-1")
def test_destination_objects_are_made_from_names(session: Session, context: JMSContext, names: Names) -> None:
    name = names.queue()
    for maker in (session, context):
        queue, topic = maker.create_queue(name), maker.create_topic(name)
        assert isinstance(queue, Queue)
        assert isinstance(topic, Topic)
        assert queue.queue_name == name
        assert topic.topic_name == name
        assert queue != topic  # type: ignore[comparison-overlap]
    assert session.create_queue(name) == context.create_queue(name)


@requirement("4.4.4-1")
@needs("same_name_queue_and_topic")
def test_a_queue_and_a_topic_of_one_name_are_two_destinations(session: Session, names: Names, other_session: Session) -> None:
    name = names.queue()
    queue, topic = session.create_queue(name), session.create_topic(name)
    from_queue, from_topic = session.create_consumer(queue), session.create_consumer(topic)
    send_texts(other_session, queue, "to the queue")
    send_texts(other_session, topic, "to the topic")
    assert (receive_text(from_queue), receive_text(from_topic)) == ("to the queue", "to the topic")
    expect_nothing(from_queue, other_session, queue)
    expect_nothing(from_topic, other_session, topic)


@requirement("4.4.4-2", "B.2.21-8")
def test_making_a_destination_object_asks_nothing_of_the_broker(interceptor: Interceptor, names: Names) -> None:
    session = interceptor.connect().create_session()
    before = list(interceptor.calls)
    queue, topic = session.create_queue(names.queue()), session.create_topic(names.topic())
    assert interceptor.calls == before
    for destination in (queue, topic):
        consumer = session.create_consumer(destination)
        send_texts(session, destination, "used")
        assert receive_text(consumer) == "used"
    assert "open_consumer" in interceptor.calls
