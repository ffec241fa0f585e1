"""11 and 11.1 Goals of the simplified API: two whole APIs side by side."""

import warnings

import pytest

import jmsapi
from jmsapi import Connection, JMSContext, Queue, Session
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import PATIENCE_MS, receive_text, send_texts
from jmsapi_conformance.marks import requirement

CLASSIC = ("ConnectionFactory", "Connection", "Session", "MessageProducer", "MessageConsumer", "QueueBrowser", "JMSException")
SIMPLIFIED = ("ConnectionFactory", "JMSContext", "JMSProducer", "JMSConsumer", "QueueBrowser", "JMSRuntimeException")
ONLY_CLASSIC = {
    # A context has one session, and is itself what they are made from.
    "create_session",
    # Its counterpart is create_durable_consumer.
    "create_durable_subscriber",
    # Application server facilities.
    "create_connection_consumer",
    "create_shared_connection_consumer",
    "create_durable_connection_consumer",
    "create_shared_durable_connection_consumer",
    "message_listener",
    "run",
    # Its counterpart is session_mode.
    "acknowledge_mode",
}


@requirement("11-1")
@pytest.mark.parametrize("name", sorted({*CLASSIC, *SIMPLIFIED}))
def test_the_types_of_both_apis_are_there(name: str) -> None:
    assert isinstance(getattr(jmsapi, name), type)


@requirement("11-1")
def test_both_apis_reach_each_other(session: Session, context: JMSContext, queue: Queue, names: Names) -> None:
    context.create_producer().send(queue, "from the simplified API")
    assert receive_text(session.create_consumer(queue)) == "from the simplified API"
    other = session.create_queue(names.queue())
    send_texts(session, other, "from the classic API")
    assert context.create_consumer(other).receive_body(str, PATIENCE_MS) == "from the classic API"


@requirement("11.1-1")
def test_the_classic_api_is_not_deprecated(connect: Connect, queue: Queue) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection = connect()
        session = connection.create_session(False, Session.AUTO_ACKNOWLEDGE)
        with session.create_producer(queue) as producer, session.create_consumer(queue) as consumer:
            producer.send(session.create_text_message("text"))
            assert receive_text(consumer) == "text"
        session.close()
        connection.close()


@requirement("11.1-2")
def test_a_context_can_do_what_connection_and_session_can() -> None:
    classic = {name for kind in (Connection, Session) for name in dir(kind) if name[0].islower()}
    simplified = {name for name in dir(JMSContext) if name[0].islower()}
    assert classic - simplified == ONLY_CLASSIC


@requirement("11.1-3", "11.2.1-2")
def test_bodies_are_sent_and_received_without_messages(context: JMSContext, queue: Queue) -> None:
    producer = context.create_producer()
    assert isinstance(producer, jmsapi.JMSProducer)
    producer.send(queue, "text").send(queue, b"bytes")
    consumer = context.create_consumer(queue)
    assert consumer.receive_body(str, PATIENCE_MS) == "text"
    assert consumer.receive_body(bytes, PATIENCE_MS) == b"bytes"
