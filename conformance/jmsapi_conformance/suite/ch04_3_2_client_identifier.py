"""4.3.2 Client identifier."""

from collections.abc import Callable

import pytest

from jmsapi import (
    Connection,
    IllegalStateException,
    IllegalStateRuntimeException,
    InvalidClientIDException,
    JMSContext,
    Queue,
    Session,
    Topic,
)
from jmsapi_conformance.backend import Backend
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import expect_nothing, finish, in_second_process, in_thread, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("4.3.2-1")
def test_each_connection_has_the_client_id_of_its_factory(backend: Backend, names: Names) -> None:
    client_id = names.client_id()
    factory = backend.factory(client_id=client_id)
    for _ in range(2):
        with factory.create_connection() as connection:
            assert connection.client_id == client_id
    with factory.create_context() as context:
        assert context.client_id == client_id
    with backend.factory().create_connection() as connection:
        assert connection.client_id is None


@requirement("4.3.2-2")
def test_a_client_id_can_be_set_on_a_new_connection(connect: Connect, names: Names, queue: Queue) -> None:
    connection = connect(started=False)
    connection.client_id = client_id = names.client_id()
    assert connection.client_id == client_id
    connection.start()
    session = connection.create_session()
    send_texts(session, queue, "text")
    assert receive_text(session.create_consumer(queue)) == "text"


@requirement("4.3.2-2")
def test_a_client_id_can_be_set_on_a_new_context(context: JMSContext, names: Names) -> None:
    context.client_id = client_id = names.client_id()
    assert context.client_id == client_id
    queue = context.create_queue(names.queue())
    context.create_producer().send(queue, "text")
    assert receive_text(context.create_consumer(queue)) == "text"


@requirement("4.3.2-3", "B.2.21-14")
def test_a_client_id_of_the_factory_cannot_be_replaced(backend: Backend, names: Names) -> None:
    client_id = names.client_id()
    factory = backend.factory(client_id=client_id)
    with factory.create_connection() as connection:
        with pytest.raises(IllegalStateException):
            connection.client_id = names.client_id()
        assert connection.client_id == client_id
    with factory.create_context() as context:
        with pytest.raises(IllegalStateRuntimeException):
            context.client_id = names.client_id()
        assert context.client_id == client_id


USES_OF_A_CONNECTION: dict[str, Callable[[Connection], object]] = {
    "create_session": lambda connection: connection.create_session(),
    "start": lambda connection: connection.start(),
    "stop": lambda connection: connection.stop(),
}


@requirement("4.3.2-4", "B.2.21-14")
@pytest.mark.parametrize("use", USES_OF_A_CONNECTION.values(), ids=USES_OF_A_CONNECTION)
def test_a_connection_in_use_takes_no_client_id(connect: Connect, names: Names, use: Callable[[Connection], object]) -> None:
    connection, late = connect(started=False), names.client_id()
    use(connection)
    with pytest.raises(IllegalStateException):
        connection.client_id = late
    assert connection.client_id != late


USES_OF_A_CONTEXT: dict[str, Callable[[JMSContext], object]] = {
    "create_producer": lambda context: context.create_producer(),
    "create_message": lambda context: context.create_message(),
    "create_context": lambda context: context.create_context(JMSContext.AUTO_ACKNOWLEDGE).close(),
    "start": lambda context: context.start(),
    "stop": lambda context: context.stop(),
}


@requirement("4.3.2-4")
@pytest.mark.parametrize("use", USES_OF_A_CONTEXT.values(), ids=USES_OF_A_CONTEXT)
def test_a_context_in_use_takes_no_client_id(context: JMSContext, names: Names, use: Callable[[JMSContext], object]) -> None:
    use(context)
    late = names.client_id()
    with pytest.raises(IllegalStateRuntimeException):
        context.client_id = late
    assert context.client_id != late


@requirement("4.3.2-4")
def test_a_client_id_is_set_once(connect: Connect, names: Names) -> None:
    client_id = names.client_id()
    connection = connect(client_id=client_id, started=False)
    with pytest.raises(IllegalStateException):
        connection.client_id = names.client_id()
    assert connection.client_id == client_id


@requirement("4.3.2-5")
@needs("client_id_exclusive")
@pytest.mark.parametrize("way", ["set", "configured"])
def test_a_client_id_in_use_is_not_given_to_a_second_connection(
    backend: Backend, connect: Connect, names: Names, way: str
) -> None:
    client_id = names.client_id()
    holder = connect(client_id=client_id)

    def second() -> str | None:
        with backend.factory(**{"client_id": client_id} if way == "configured" else {}).create_connection() as connection:
            if way == "set":
                connection.client_id = client_id
            return connection.client_id

    attempt = in_thread(second)
    # The form of prevention is free: an exception, or a wait until the id is free.
    try:
        with pytest.raises(InvalidClientIDException):
            finish(attempt, 2000)
    except TimeoutError:
        holder.close()
        assert finish(attempt) == client_id
    else:
        assert holder.client_id == client_id


@requirement("4.3.2-5")
@needs("client_id_exclusive", "second_process")
def test_a_client_id_in_use_is_not_given_to_a_second_process(backend: Backend, connect: Connect, names: Names) -> None:
    client_id = names.client_id()
    connect(client_id=client_id)
    assert in_second_process(backend.url, SECOND_PROCESS, client_id).split() == ["InvalidClientIDException"]


@requirement("4.3.2-6")
@needs("client_id_exclusive", "durable_subscription")
def test_an_attempt_to_use_a_client_id_twice_loses_and_doubles_nothing(
    connect: Connect, topic: Topic, names: Names, other_session: Session
) -> None:
    client_id, name = names.client_id(), names.subscription()
    consumer = connect(client_id=client_id).create_session().create_durable_consumer(topic, name)
    expected = [str(number) for number in range(100)]
    send_texts(other_session, topic, *expected[:50])
    assert receive_texts(consumer, 25) == expected[:25]
    with pytest.raises(InvalidClientIDException):
        connect(client_id=client_id)
    send_texts(other_session, topic, *expected[50:])
    assert receive_texts(consumer, 75) == expected[25:]
    expect_nothing(consumer, other_session, topic)


@requirement("4.3.2-7")
@needs("durable_subscription")
def test_a_client_id_is_free_again_when_its_connection_is_closed(
    connect: Connect, topic: Topic, names: Names, other_session: Session
) -> None:
    client_id, name = names.client_id(), names.subscription()
    first = connect(client_id=client_id)
    first.create_session().create_durable_consumer(topic, name)
    first.close()
    send_texts(other_session, topic, "meanwhile")
    second = connect(client_id=client_id)
    assert second.client_id == client_id
    consumer = second.create_session().create_durable_consumer(topic, name)
    assert receive_text(consumer) == "meanwhile"


@requirement("4.3.2-8")
@pytest.mark.parametrize(
    "kind",
    [
        "queue",
        "topic",
        pytest.param("shared", marks=needs("shared_subscription")),
        pytest.param("shared durable", marks=needs("shared_durable_subscription")),
    ],
)
def test_no_client_id_is_needed_for_all_else(session: Session, queue: Queue, topic: Topic, names: Names, kind: str) -> None:
    destination = queue if kind == "queue" else topic
    if kind == "shared":
        consumer = session.create_shared_consumer(topic, names.subscription())
    elif kind == "shared durable":
        consumer = session.create_shared_durable_consumer(topic, names.subscription())
    else:
        consumer = session.create_consumer(destination)
    send_texts(session, destination, "text")
    assert receive_text(consumer) == "text"
    consumer.close()


@requirement("4.3.2-8", "B.5.8-2")
@needs("durable_subscription")
def test_an_unshared_durable_subscription_needs_a_client_id(session: Session, topic: Topic, names: Names) -> None:
    with pytest.raises(IllegalStateException):
        session.create_durable_consumer(topic, names.subscription())


SECOND_PROCESS = """
import os, sys, jmsapi
with jmsapi.connection_factory(os.environ["CONFORMANCE_URL"]).create_connection() as connection:
    try:
        connection.client_id = sys.argv[1]
    except jmsapi.JMSException as error:
        print(type(error).__name__)
    else:
        print("accepted")
"""
