"""4.4.14 Serial execution of client code and 4.4.15 Concurrent message delivery."""

import threading

import pytest

from jmsapi import Connection, Message, Queue, Session
from jmsapi_conformance.fixtures import Names
from jmsapi_conformance.kit import (
    PATIENCE_MS,
    QUIET_MS,
    HeldRecorder,
    Recorder,
    eventually,
    expect_nothing_for,
    send_texts,
)
from jmsapi_conformance.marks import needs, requirement


@requirement("4.4.14-1")
@pytest.mark.parametrize(
    "mode", [Session.AUTO_ACKNOWLEDGE, pytest.param(Session.SESSION_TRANSACTED, marks=needs("transactions"))]
)
def test_a_session_runs_its_listeners_one_at_a_time(
    connection: Connection, other_session: Session, names: Names, mode: int
) -> None:
    session = connection.create_session(mode)
    alone = Alone()
    listeners = [Recorder(then=alone) for _ in range(4)]
    queues = [session.create_queue(names.queue()) for _ in listeners]
    for queue, listener in zip(queues, listeners, strict=True):
        session.create_consumer(queue).message_listener = listener
    producer = other_session.create_producer(None)
    for number in range(1000):
        producer.send(queues[number % 4], other_session.create_text_message(str(number)))
    for first, listener in enumerate(listeners):
        assert listener.wait_for_texts(250) == [str(number) for number in range(first, 1000, 4)]
    assert alone.overlaps == 0


@requirement("4.4.14-2")
def test_while_a_listener_runs_all_other_deliveries_to_its_session_wait(
    session: Session, queue: Queue, other_session: Session, names: Names
) -> None:
    other_queue = session.create_queue(names.queue())
    held, waiting = HeldRecorder(), Recorder()
    session.create_consumer(queue).message_listener = held
    session.create_consumer(other_queue).message_listener = waiting
    send_texts(other_session, queue, "first", "third")
    held.started()
    send_texts(other_session, other_queue, "second")
    # A receive elsewhere spends the time in which the listeners must not be called.
    expect_nothing_for(other_session.create_consumer(other_session.create_queue(names.queue())), 2 * QUIET_MS)
    assert waiting.messages == []
    assert held.texts == ["first"]
    held.go_on()
    assert waiting.wait_for_texts(1) == ["second"]
    assert held.wait_for_texts(2) == ["first", "third"]


@requirement("4.4.15-1")
def test_listeners_of_different_sessions_run_at_the_same_time(
    connection: Connection, other_session: Session, names: Names
) -> None:
    together = threading.Barrier(2)
    passed: list[int] = []

    def meet(_: Message) -> None:
        passed.append(together.wait(PATIENCE_MS / 1000))

    for _ in range(2):
        session = connection.create_session()
        queue = session.create_queue(names.queue())
        session.create_consumer(queue).message_listener = meet
        send_texts(other_session, queue, "text")
    eventually(lambda: len(passed) == 2, "both listeners met")
    assert sorted(passed) == [0, 1]


class Alone:
    """Counts how often it is called while it runs."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self.overlaps = 0

    def __call__(self, _: Message) -> None:
        if not self._inside.acquire(blocking=False):
            self.overlaps += 1
            return
        # Let other threads run, so that they get the chance to come in.
        threading.Event().wait(0)
        self._inside.release()
