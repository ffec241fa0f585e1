"""What went wrong with other people's listener containers, tried with ours on every backend: B15, B16, B18, B21.

B17 is with the pool, in ``test_sessions.py``.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

import jmsapi
from jmsapi import JMSException, Message
from jmsapi.listener import Deployment, EndpointState, JMSQueueListener, MessageDriven, deploy

Backend = Any
WAIT_S = 30.0


@contextmanager
def listening(backend: Backend, call: Callable[[Message], object], **terms: Any) -> Generator[Deployment]:
    """Deploy a function on the backend's queue."""

    def on_message(message: Message) -> None:
        call(message)

    # RabbitMQ has no transactions over AMQP, and none of these reports is about them.
    terms = {"destination": backend.label, "transactionAttribute": "NotSupported", **terms}
    target = MessageDriven(terms, name="listener")(JMSQueueListener()(on_message))
    with deploy(target, factory=backend.factory(), on_error=lambda _, __: None) as deployment:
        yield deployment


def send(backend: Backend, *texts: str) -> None:
    with backend.connect() as connection, connection.create_session() as session:
        producer = session.create_producer(session.create_queue(backend.label))
        for text in texts:
            producer.send(session.create_text_message(text))


def wait_until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S:g} s: {what}"
        time.sleep(0.005)


def test_b15_a_container_with_prefetch_0_on_an_empty_queue_stops_at_once_and_loses_nothing(backend: Backend) -> None:
    seen: list[str] = []
    with listening(backend, lambda message: seen.append(str(message.get_body(str))), concurrency="2", prefetch=0) as deployment:
        wait_until(lambda: deployment.health.endpoints[0].consumers == 2, "both wait")
        assert deployment.stop(WAIT_S * 1000)
    send(backend, "afterwards")
    with listening(backend, lambda message: seen.append(str(message.get_body(str))), prefetch=0):
        wait_until(lambda: seen == ["afterwards"], "what was sent afterwards comes")


@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_b16_the_back_off_grows_over_all_attempts_and_the_log_has_a_line_for_each(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    def on_message(_: Message) -> None: ...

    errors: list[BaseException] = []
    terms = {
        "destination": "q",
        "connectionRetryDelayMs": 20,
        "connectionRetryBackoff": 2.0,
        "connectionRetryLimit": 4,
    }
    with socket.socket() as nobody, caplog.at_level(logging.INFO, "jmsapi"):
        # Bound and not listening: whoever connects is refused.
        nobody.bind(("127.0.0.1", 0))
        begin = time.monotonic()
        deployment = deploy(
            MessageDriven(terms, name="listener")(JMSQueueListener()(on_message)),
            factory=f"{scheme}://127.0.0.1:{nobody.getsockname()[1]}",
            on_error=lambda _, error: errors.append(error),
        )
        assert deployment.wait(WAIT_S * 1000)
    # Waits of 20, 40, 80 and 160 ms are between five attempts.
    assert time.monotonic() - begin >= 0.3
    (health,) = deployment.health.endpoints
    assert health.state is EndpointState.FAILED
    assert isinstance(errors[-1], JMSException)
    assert len([record for record in caplog.records if "attempt" in record.getMessage()]) == 5
    assert deployment.stop()


@pytest.mark.parametrize("size", [10, 20 * 1024])
def test_b18_a_slow_container_holds_one_message_and_no_more(backend: Backend, size: int) -> None:
    slow_has_one, go_on = threading.Event(), threading.Event()
    slow: list[int] = []
    fast: list[int] = []

    def slowly(message: Message) -> None:
        slow.append(len(str(message.get_body(str))))
        slow_has_one.set()
        go_on.wait(WAIT_S)

    def quickly(message: Message) -> None:
        fast.append(len(str(message.get_body(str))))

    send(backend, *["x" * size] * 21)
    with listening(backend, slowly, prefetch=1):
        assert slow_has_one.wait(WAIT_S)
        with listening(backend, quickly, prefetch=1):
            wait_until(lambda: len(fast) == 20, "all that the slow one does not have in its hand goes to the other")
            go_on.set()
    assert (slow, fast) == ([size], [size] * 20)


def test_b21_what_always_fails_is_tried_three_times_and_put_aside_and_the_next_one_is_handled(backend: Backend) -> None:
    seen: list[tuple[str, int]] = []

    def call(message: Message) -> None:
        text = str(message.get_body(str))
        seen.append((text, message.get_int_property("JMSXDeliveryCount")))
        if text == "bad":
            raise ValueError(text)

    send(backend, "bad", "good")
    dead = f"{backend.label}.dead"
    with listening(backend, call, redeliveryLimit=2, deadLetterDestination=dead):
        wait_until(lambda: ("good", 1) in seen, "the good one is handled")
        with backend.connect() as connection, connection.create_session() as session:
            letter = session.create_consumer(session.create_queue(dead)).receive(WAIT_S * 1000)
            assert isinstance(letter, jmsapi.TextMessage)
            assert letter.text == "bad"
            assert letter.get_string_property("jmsapi_dead_letter_cause") == "ValueError: bad"
    assert seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
