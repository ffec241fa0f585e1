"""2.8 Multi-threading."""

import threading
from collections.abc import Callable
from typing import TypeVar

from jmsapi import Connection, ConnectionFactory, JMSContext, Queue, Session, Topic
from jmsapi_conformance.fixtures import Connect, Names
from jmsapi_conformance.kit import finish, in_thread, receive_text, receive_texts, send_texts
from jmsapi_conformance.marks import requirement
from jmsapi_conformance.suite._two_apis import client_of, each_api

T = TypeVar("T")
THREADS = 16


@requirement("2.8-1")
def test_threads_share_one_queue_object(connection: Connection, queue: Queue) -> None:
    def work(number: int) -> list[str | None]:
        with connection.create_session() as session:
            send_texts(session, queue, *(f"{number}.{count}" for count in range(10)))
            return receive_texts(session.create_consumer(queue), 10)

    received = [text for texts in at_once(work) for text in texts]
    assert sorted(map(str, received)) == sorted(f"{number}.{count}" for number in range(THREADS) for count in range(10))


@requirement("2.8-1")
def test_threads_share_one_topic_object(connection: Connection, topic: Topic) -> None:
    all_subscribed = threading.Barrier(THREADS, timeout=30)

    def work(number: int) -> set[str | None]:
        with connection.create_session() as session:
            consumer = session.create_consumer(topic)
            all_subscribed.wait()
            send_texts(session, topic, f"from {number}")
            return set(receive_texts(consumer, THREADS))

    assert at_once(work) == [{f"from {number}" for number in range(THREADS)}] * THREADS


@requirement("2.8-2")
def test_threads_share_one_factory(factory: ConnectionFactory, names: Names) -> None:
    queues = [names.queue() for _ in range(THREADS)]

    def work(number: int) -> list[str | None]:
        with factory.create_connection() as connection:
            connection.start()
            session = connection.create_session()
            queue = session.create_queue(queues[number])
            send_texts(session, queue, f"connection {number}")
            received = [receive_text(session.create_consumer(queue))]
        with factory.create_context() as context:
            context.create_producer().send(queue, f"context {number}")
            return [*received, receive_text(context.create_consumer(queue))]

    assert at_once(work) == [[f"connection {number}", f"context {number}"] for number in range(THREADS)]


@requirement("2.8-3")
def test_threads_share_one_connection(connection: Connection, queue: Queue, other_session: Session) -> None:
    def work(number: int) -> str:
        for count in range(5):
            with connection.create_session() as session:
                connection.stop()
                send_texts(session, queue, f"{number}.{count}")
                connection.start()
        return connection.meta_data.jms_version

    assert at_once(work) == ["2.0"] * THREADS
    consumer = other_session.create_consumer(queue)
    received = receive_texts(consumer, THREADS * 5)
    assert sorted(map(str, received)) == sorted(f"{number}.{count}" for number in range(THREADS) for count in range(5))
    consumer.close()
    connection.start()
    session = connection.create_session()
    send_texts(session, queue, "still works")
    assert receive_text(session.create_consumer(queue)) == "still works"


@requirement("2.8-4")
@each_api
def test_sessions_producers_and_consumers_are_handed_from_thread_to_thread(connect: Connect, queue: Queue, api: str) -> None:
    client = client_of(connect, api)
    consumer = client.create_consumer(queue)
    for turn in range(5):
        if isinstance(client, JMSContext):
            producer = finish(in_thread(client.create_producer))
            finish(in_thread(lambda: producer.send(queue, f"{turn}")))  # noqa: B023 - it is over before the next turn
        else:
            session = client
            finish(in_thread(lambda: send_texts(session, queue, f"{turn}")))  # noqa: B023
        assert finish(in_thread(lambda: receive_text(consumer))) == str(turn)
    finish(in_thread(consumer.close))
    finish(in_thread(client.close))


def at_once(work: Callable[[int], T]) -> list[T]:
    """Run the work in many threads that begin together, and return their results in order."""
    together = threading.Barrier(THREADS, timeout=30)

    def run(number: int) -> T:
        together.wait()
        return work(number)

    running = [in_thread(lambda number=number: run(number)) for number in range(THREADS)]  # type: ignore[misc]
    return [finish(one, 40_000) for one in running]
