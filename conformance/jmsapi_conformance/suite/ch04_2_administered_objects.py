"""4.2 Administered objects, 4.2.1 Destination and 4.2.2 ConnectionFactory."""

import pickle
import threading

import pytest

from jmsapi import ConnectionFactory, Queue, Session, Topic, register_object
from jmsapi import lookup as look_up
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import receive, receive_text, send_texts
from jmsapi_conformance.marks import requirement


@requirement("4.2-1")
def test_making_or_looking_up_a_factory_or_a_destination_opens_nothing(
    interceptor: Interceptor, queue: Queue, backend: Backend
) -> None:
    threads = set(threading.enumerate())
    factory = interceptor.factory(client_id="unused")
    names = [backend.unique("lookup") for _ in range(2)]
    register_object(names[0], factory)
    register_object(names[1], queue)
    try:
        assert look_up(names[0], ConnectionFactory) is factory
        assert look_up(names[1], Queue) == queue
    finally:
        for name in names:
            register_object(name, None)
    assert interceptor.providers == []
    assert set(threading.enumerate()) <= threads


@requirement("4.2-2")
def test_destinations_can_be_stored_and_rebuilt(queue: Queue, topic: Topic) -> None:
    again: list[object] = pickle.loads(pickle.dumps([queue, topic]))
    assert again == [queue, topic]
    assert isinstance(again[0], Queue)
    assert again[0].queue_name == queue.queue_name
    assert isinstance(again[1], Topic)
    assert again[1].topic_name == topic.topic_name


@requirement("4.2-2")
def test_a_factory_can_be_stored_and_rebuilt_and_its_text_tells_no_password(
    backend: Backend, queue: Queue, other_session: Session, names: Names
) -> None:
    client_id = names.client_id()
    again = pickle.loads(pickle.dumps(backend.factory(client_id=client_id)))
    assert isinstance(again, ConnectionFactory)
    with again.create_connection() as connection:
        assert connection.client_id == client_id
        send_texts(connection.create_session(), queue, "text")
    assert receive_text(other_session.create_consumer(queue)) == "text"
    secret = backend.factory(user="somebody", password="not to be seen")
    assert "not to be seen" not in repr(secret) + str(secret)


@requirement("4.2.1-1")
@pytest.mark.parametrize("special", [" with blanks", "/with/slashes", ".with.dots", "-Grüße-日本"])
def test_a_destination_is_reached_by_any_name(session: Session, names: Names, special: str, other_session: Session) -> None:
    queue_name, topic_name = names.queue() + special, names.topic() + special
    names.queues.append(queue_name)
    queue, topic = session.create_queue(queue_name), session.create_topic(topic_name)
    assert queue.queue_name == queue_name
    assert topic.topic_name == topic_name
    for destination in (queue, topic):
        consumer = session.create_consumer(destination)
        send_texts(other_session, destination, special)
        message = receive(consumer)
        assert message.get_body(str) == special
        assert message.jms_destination == destination


@requirement("4.2.2-1")
def test_a_factory_makes_connections_and_contexts_from_its_settings(
    backend: Backend, names: Names, queue: Queue, other_session: Session
) -> None:
    client_id = names.client_id()
    factory = backend.factory(client_id=client_id)
    with factory.create_connection() as connection:
        assert connection.client_id == client_id
        send_texts(connection.create_session(), queue, "from a connection")
    with factory.create_context() as context:
        assert context.client_id == client_id
        context.create_producer().send(queue, "from a context")
    consumer = other_session.create_consumer(queue)
    assert [receive_text(consumer), receive_text(consumer)] == ["from a connection", "from a context"]
