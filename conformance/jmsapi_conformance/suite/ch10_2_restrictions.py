"""10.2 What applications may not do in a container."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jmsapi import (
    Connection,
    ConnectionFactory,
    JMSContext,
    JMSException,
    JMSRuntimeException,
    Queue,
    QueueConnectionFactory,
    Session,
    Topic,
    TopicConnectionFactory,
)
from jmsapi.asf import SampleServerSessionPool
from jmsapi.listener import container_mode
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import Completions, Recorder, finish, in_thread, receive_text
from jmsapi_conformance.marks import needs, requirement

pytestmark = needs("in_process")


@pytest.fixture
def contained(factory: ConnectionFactory) -> Iterator[Connection]:
    """Give a connection that an application in a container made, and run the test there."""
    with container_mode(), factory.create_connection() as connection:
        yield connection


@pytest.fixture
def contained_context(factory: ConnectionFactory) -> Iterator[JMSContext]:
    """Give a context that an application in a container made, and run the test there."""
    with container_mode(), factory.create_context() as context:
        yield context


@requirement("10.2-1")
def test_a_connection_has_one_session_at_a_time(contained: Connection) -> None:
    first = contained.create_session()
    with pytest.raises(JMSException) as caught:
        contained.create_session()
    assert caught.value.error_code == "container"
    first.close()
    contained.create_session().create_message()


@requirement("10.2-2", "10.3-10")
@pytest.mark.parametrize("mode", [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.SESSION_TRANSACTED])
def test_a_context_makes_no_other(contained_context: JMSContext, mode: int) -> None:
    with pytest.raises(JMSRuntimeException) as caught:
        contained_context.create_context(mode)
    assert caught.value.error_code == "container"


_CONSUMERS: list[Callable[[Any, Any, Any], object]] = [
    lambda connection, topic, pool: connection.create_connection_consumer(topic, None, pool, 1),
    lambda connection, topic, pool: connection.create_shared_connection_consumer(topic, "s", None, pool, 1),
    lambda connection, topic, pool: connection.create_durable_connection_consumer(topic, "s", None, pool, 1),
    lambda connection, topic, pool: connection.create_shared_durable_connection_consumer(topic, "s", None, pool, 1),
]


@requirement("10.2-3")
@pytest.mark.parametrize("create", _CONSUMERS, ids=["plain", "shared", "durable", "shared durable"])
def test_a_connection_makes_no_connection_consumers(
    factory: ConnectionFactory, connection: Connection, topic: Topic, create: Callable[[Any, Any, Any], object]
) -> None:
    with (
        SampleServerSessionPool(connection, 1, Recorder) as pool,
        container_mode(),
        factory.create_connection() as contained,
        pytest.raises(JMSException) as caught,
    ):
        create(contained, topic, pool)
    assert caught.value.error_code == "container"


@requirement("10.2-3", "10.2-4")
def test_a_session_has_no_listener_of_its_own_and_does_not_run(contained: Connection) -> None:
    session = contained.create_session()
    with pytest.raises(JMSException):
        session.message_listener = Recorder()
    with pytest.raises(JMSException):
        session.message_listener  # noqa: B018
    with pytest.raises(JMSRuntimeException) as caught:
        session.run()
    assert not isinstance(caught.value, JMSException)


@requirement("10.2-5", "11.2.1-4")
def test_consumers_have_no_listener(contained: Connection, contained_context: JMSContext, queue: Queue) -> None:
    consumer = contained.create_session().create_consumer(queue)
    with pytest.raises(JMSException):
        consumer.message_listener = Recorder()
    with pytest.raises(JMSException):
        consumer.message_listener  # noqa: B018
    simple = contained_context.create_consumer(queue)
    with pytest.raises(JMSRuntimeException):
        simple.message_listener = Recorder()
    with pytest.raises(JMSRuntimeException):
        simple.message_listener  # noqa: B018


@requirement("10.2-5")
def test_consumers_of_one_domain_have_no_listener_either(factory: ConnectionFactory, queue: Queue, topic: Topic) -> None:
    with container_mode():
        assert isinstance(factory, QueueConnectionFactory)
        assert isinstance(factory, TopicConnectionFactory)
        with factory.create_queue_connection() as queues, factory.create_topic_connection() as topics:
            receiver = queues.create_queue_session(False, Session.AUTO_ACKNOWLEDGE).create_receiver(queue)
            subscriber = topics.create_topic_session(False, Session.AUTO_ACKNOWLEDGE).create_subscriber(topic)
            assert (receiver.queue, subscriber.topic) == (queue, topic)
            for consumer in (receiver, subscriber):
                with pytest.raises(JMSException):
                    consumer.message_listener = Recorder()


@requirement("10.2-6")
def test_a_connection_is_not_set_up_or_stopped(contained: Connection, names: Names) -> None:
    with pytest.raises(JMSException) as caught:
        contained.client_id = names.client_id()
    assert caught.value.error_code == "container"
    with pytest.raises(JMSException):
        contained.exception_listener = lambda _: None
    with pytest.raises(JMSException):
        contained.stop()
    contained.start()
    assert contained.create_session()


@requirement("10.2-7")
def test_a_context_is_not_set_up_or_stopped(contained_context: JMSContext, names: Names) -> None:
    with pytest.raises(JMSRuntimeException):
        contained_context.client_id = names.client_id()
    with pytest.raises(JMSRuntimeException):
        contained_context.exception_listener = lambda _: None
    with pytest.raises(JMSRuntimeException):
        contained_context.stop()
    contained_context.start()


@requirement("10.2-8")
def test_the_client_id_comes_from_the_factory(backend: Backend, names: Names) -> None:
    client_id = names.client_id()
    with container_mode(), backend.factory(client_id=client_id).create_connection() as connection:
        assert connection.client_id == client_id


@requirement("10.2-9")
def test_outside_of_a_container_all_of_this_is_allowed(
    connect: Connect, connection: Connection, queue: Queue, names: Names
) -> None:
    other = connect(client_id=names.client_id())
    session, second = other.create_session(), other.create_session()
    other.exception_listener = lambda _: None
    other.stop()
    other.start()
    recorder = Recorder()
    session.create_consumer(queue).message_listener = recorder
    done = Completions()
    second.create_producer(queue).send(second.create_text_message("x"), completion_listener=done)
    recorder.wait_for(1)
    with SampleServerSessionPool(connection, 1, Recorder) as pool:
        connection.create_connection_consumer(queue, None, pool, 1).close()
    own = connection.create_session()
    own.message_listener = recorder
    own.run()
    context = connect.context(client_id=names.client_id())
    with context.create_context(JMSContext.CLIENT_ACKNOWLEDGE) as another:
        another.exception_listener = lambda _: None
        another.create_consumer(queue).message_listener = Recorder()
        another.stop()


@requirement("10.2-9")
def test_a_connection_made_outside_is_not_bound_by_the_container(connection: Connection, queue: Queue) -> None:
    with container_mode():
        first, second = connection.create_session(), connection.create_session()
        first.create_producer(queue).send(second.create_text_message("x"))
        assert receive_text(second.create_consumer(queue)) == "x"


@requirement("10.2-10")
def test_nothing_is_sent_asynchronously(contained: Connection, contained_context: JMSContext, queue: Queue) -> None:
    session = contained.create_session()
    producer = session.create_producer(queue)
    with pytest.raises(JMSException) as caught:
        producer.send(session.create_text_message("x"), completion_listener=Completions())
    assert caught.value.error_code == "container"
    simple = contained_context.create_producer()
    with pytest.raises(JMSRuntimeException):
        simple.async_ = Completions()
    with pytest.raises(JMSRuntimeException):
        simple.set_async(Completions())
    assert simple.async_ is None
    simple.async_ = None
    simple.send(queue, "y")
    contained.start()
    assert receive_text(session.create_consumer(queue)) == "y"


@requirement("10.2-1")
def test_a_thread_that_is_started_in_a_container_is_outside_of_it(factory: ConnectionFactory) -> None:
    with container_mode():
        connection = finish(in_thread(factory.create_connection))
        with connection:
            assert connection.create_session() is not connection.create_session()
