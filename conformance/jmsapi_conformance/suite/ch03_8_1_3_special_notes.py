"""3.8.1.3 Special notes."""

from jmsapi import DeliveryMode, Queue, Session, Topic
from jmsapi_conformance.kit import expect_nothing, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement
from jmsapi_conformance.suite._selecting import check, is_refused, one


@requirement("3.8.1.3-1")
@needs("queue_selector")
def test_the_delivery_mode_is_a_word(session: Session, other_session: Session, queue: Queue) -> None:
    producer = other_session.create_producer(queue)
    for mode, text in ((DeliveryMode.PERSISTENT, "kept"), (DeliveryMode.NON_PERSISTENT, "not kept")):
        producer.send(other_session.create_text_message(text), delivery_mode=mode)
    for selector, text in (("JMSDeliveryMode = 'NON_PERSISTENT'", "not kept"), ("JMSDeliveryMode = 'PERSISTENT'", "kept")):
        with session.create_consumer(queue, selector) as consumer:
            assert receive_text(consumer) == text
            assert consumer.receive_no_wait() is None


@requirement("3.8.1.3-1")
@needs("topic_selector")
def test_the_delivery_mode_is_no_number(session: Session, other_session: Session, topic: Topic) -> None:
    number = session.create_consumer(topic, "JMSDeliveryMode = 2 OR JMSDeliveryMode = 1 OR is_last = TRUE")
    negated = session.create_consumer(topic, "NOT (JMSDeliveryMode = 2)")
    send_texts(other_session, topic, "text")
    assert receive_text(negated) == "text"
    expect_nothing(number, other_session, topic, is_last=True)


@requirement("3.8.1.3-2")
@needs("queue_selector")
def test_a_time_is_a_number_of_milliseconds(session: Session, other_session: Session, queue: Queue) -> None:
    early = session.create_consumer(queue, "JMSTimestamp > 4102444800000")
    consumer = session.create_consumer(queue, "JMSTimestamp < 4102444800000")
    send_texts(other_session, queue, "text")
    assert receive_text(consumer) == "text"
    assert early.receive_no_wait() is None
    is_refused(session, queue, "DATE '2013-01-01' < JMSTimestamp")


@requirement("3.8.1.3-3")
@needs("topic_selector")
def test_a_literal_with_a_point_is_a_double(session: Session, other_session: Session, topic: Topic) -> None:
    answers = {"0.1 + 0.2 = 0.3": "F", "0.5 + 0.25 = 0.75": "T", "d + 0.2 = 0.3": "F", "d + 0.2 = 0.30000000000000004": "T"}
    check(session, other_session, topic, one({"d": 0.1}, answers))


@requirement("3.8.1.3-4")
@needs("topic_selector")
def test_there_are_no_comments(session: Session, other_session: Session, topic: Topic) -> None:
    for selector in ("a = 1 -- two words", "a = 1 /* x */", "a = 1 // x", "/* x */ a = 1"):
        is_refused(session, topic, selector)
    check(session, other_session, topic, one({"a": 1, "x": 0}, {"a = 1 -- x": "T", "a = 2 -- x": "F", "a = 1 -- y": "U"}))
