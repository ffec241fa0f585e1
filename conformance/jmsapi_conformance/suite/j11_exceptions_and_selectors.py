"""JMS 1.1: exceptions, the exception listener and selectors."""

import threading
from collections.abc import Callable

import pytest

from jmsapi import (
    Connection,
    JMSException,
    JMSRuntimeException,
    Queue,
    ResourceAllocationException,
    Session,
    Topic,
)
from jmsapi_conformance.interceptor import Interceptor
from jmsapi_conformance.kit import PATIENCE_MS, QUIET_MS, eventually, outcome_of, receive_text, send_texts
from jmsapi_conformance.marks import needs, requirement


@requirement("J11-25")
def test_calls_of_a_slow_exception_listener_do_not_overlap(interceptor: Interceptor, queue: Queue) -> None:
    entered, met, going, running = threading.Event(), threading.Event(), threading.Event(), threading.Lock()
    alone: list[bool] = []

    def listen(_: JMSException) -> None:
        free = running.acquire(blocking=False)
        (entered if free else met).set()
        going.wait(PATIENCE_MS / 1000)
        alone.append(free)
        if free:
            running.release()

    connection = interceptor.connect()
    connection.exception_listener = listen
    interceptor.hold()
    interceptor.refuse(lambda _: True)
    for _ in range(2):
        session = connection.create_session()
        session.create_producer(queue).send(session.create_message(), delivery_mode=1, priority=4, time_to_live_ms=0)
    eventually(lambda: interceptor.held == 2, "both answers are there")
    interceptor.let_go()
    assert entered.wait(PATIENCE_MS / 1000)
    # Time for a second call to come in while the first is held; only time can show that none does.
    assert not met.wait(QUIET_MS / 1000)
    going.set()
    eventually(lambda: len(alone) == 2, "the listener was told of both")
    assert alone == [True, True]


@requirement("J11-29")
def test_a_provider_without_resources_says_so(interceptor: Interceptor) -> None:
    interceptor.full = True
    factory = interceptor.factory()
    with pytest.raises(ResourceAllocationException):
        factory.create_connection()
    interceptor.full = False
    with factory.create_connection() as connection:
        assert connection.create_session() is not None


WRONG: dict[str, Callable[[Connection, Session, Queue], object]] = {
    "no destination": lambda _, session, queue: session.create_producer(None).send(None, session.create_message()),  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    "no queue": lambda _, session, queue: session.create_consumer(None),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    "no selector": lambda _, session, queue: session.create_consumer(queue, "= ="),
    "no message": lambda _, session, queue: session.create_producer(queue).send("text"),  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    "no mode": lambda connection, _, queue: connection.create_session(False, 77),
    "no transaction": lambda _, session, queue: session.commit(),
    "no subscription": lambda _, session, queue: session.unsubscribe(""),
    "no client id any more": lambda connection, _, queue: setattr(connection, "client_id", "late"),
    "no priority": lambda _, session, queue: session.create_producer(queue).send(
        session.create_message(), delivery_mode=2, priority=10, time_to_live_ms=0
    ),
    "not readable": lambda _, session, queue: session.create_bytes_message().read_byte(),
    "no conversion": lambda _, session, queue: misread(session),
    "closed": lambda _, session, queue: use_closed(session),
}


@requirement("J11-30")
@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_the_methods_of_the_classic_api_raise_one_family_of_exceptions(
    connection: Connection, queue: Queue, call: Callable[[Connection, Session, Queue], object]
) -> None:
    session = connection.create_session()
    error = outcome_of(lambda: call(connection, session, queue))
    assert isinstance(error, JMSException)
    assert not isinstance(error, JMSRuntimeException)


@requirement("J11-34")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("n between 1 and 3", True),
        ("n BeTwEeN 1 aNd 3", True),
        ("b = true", True),
        ("b = TRUE AND NOT b = False", True),
        ("s in ('x') or s is null", True),
        ("N = 2", False),
        ("n = 2 AND S = 'x'", False),
    ],
)
def test_reserved_words_are_not_case_sensitive_and_identifiers_are(
    session: Session, topic: Topic, other_session: Session, selector: str, matches: bool
) -> None:
    assert selects(session, topic, other_session, selector, n=2, b=True, s="x") == matches


@requirement("J11-35")
@needs("topic_selector")
@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("a = 1 OR b = 1 AND c = 1", True),
        ("(a = 1 OR b = 1) AND c = 1", False),
        ("a - 1 - 1 < 0", True),
        ("c / 2 * 2 = 2", True),
        ("a + c * 2 = 5", True),
        ("NOT a = 2 AND c = 2", True),
    ],
)
def test_selectors_are_evaluated_from_left_to_right_within_precedence(
    session: Session, topic: Topic, other_session: Session, selector: str, matches: bool
) -> None:
    assert selects(session, topic, other_session, selector, a=1, c=2) == matches


def selects(session: Session, topic: Topic, sender: Session, selector: str, **properties: object) -> bool:
    """Tell whether a consumer with the selector gets a message with the properties."""
    with session.create_consumer(topic, selector) as consumer, session.create_consumer(topic) as everything:
        send_texts(sender, topic, "text", **properties)
        assert receive_text(everything) == "text"
        message = consumer.receive_no_wait() or consumer.receive(100)
        return message is not None


def use_closed(session: Session) -> object:
    """Close a session and use it."""
    session.close()
    return session.create_message()


def misread(session: Session) -> int:
    """Read a property as something that it cannot be converted to."""
    message = session.create_message()
    message.set_boolean_property("flag", True)
    return message.get_int_property("flag")
