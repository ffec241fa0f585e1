"""A fourth broker, Apache Qpid Broker-J, needs a module for each of its two sides and is held to the suite like the others."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import jmsapi
from broker_j import launch, why_not

# What a module for the broker decides: names, subscriptions, temporary destinations, redelivery, selectors, browsers.
PART = "ch04_2 or ch04_4_3 or ch04_5_2 or ch05_9 or ch06_3 or ch06_11 or shs or ch03_8_1_message"

pytestmark = [
    pytest.mark.broker,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("broker-j"),
]


@pytest.fixture(scope="module")
def url(leave_out: Callable[[str], NoReturn]) -> Iterator[str]:
    if reason := why_not():
        leave_out(f"Broker-J: {reason}")
    with launch() as found:
        yield found


def test_the_installed_suite_certifies_it(url: str, tmp_path: Path) -> None:
    report = tmp_path / "broker-j.json"
    command = [sys.executable, "-m", "jmsapi_conformance", url, "-n", "2", "-k", PART, "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=560, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(report.read_text())["certificates"]
    assert (found["provider"], found["broker"]) == ("amqp", "broker-j")
    verdicts = Counter(found["requirements"].values())
    assert "fail" not in verdicts
    assert verdicts["pass"] > 80
    assert found["requirements"]["6.11.4-5"] == "pass"
    assert found["requirements"]["3.8.1-1"] == "refused"
    on = {test["test"].partition("[")[2]: test for test in found["tests"] if "a_consumer_gets_what_its_selector" in test["test"]}
    assert (on["topic]"]["verdict"], on["queue]"]["verdict"]) == ("emulated", "refused")
    assert "know no third value" in on["queue]"]["reason"]


def test_what_the_broker_sends_while_a_session_ends_is_not_lost(url: str) -> None:
    with jmsapi.connection_factory(url).create_connection() as connection:
        connection.start()
        sender = connection.create_session()
        queue = sender.create_queue("broker-j.given-back")
        producer = sender.create_producer(queue)
        for number in range(20):
            producer.send(sender.create_text_message(str(number)))
        for _ in range(10):
            # What it does not acknowledge comes back to its consumer at once, since that still has credit, and then it is closed.
            session = connection.create_session(jmsapi.Session.CLIENT_ACKNOWLEDGE)
            first = session.create_consumer(queue).receive(timeout_ms=5000)
            assert isinstance(first, jmsapi.TextMessage)
            session.close()
        consumer = sender.create_consumer(queue)
        received = iter(lambda: consumer.receive(timeout_ms=2000), None)
        texts = [message.text for message in received if isinstance(message, jmsapi.TextMessage)]
    assert sorted(texts, key=str) == sorted(map(str, range(20)))


def test_a_message_that_is_given_up_stays_for_other_consumers(url: str) -> None:
    attempts: list[str] = []
    given_up = threading.Event()

    def fail(message: jmsapi.Message) -> None:
        attempts.append(message.get_body(str))
        if attempts[-1] == "good":
            given_up.set()
        else:
            raise ValueError("a bad message")

    with jmsapi.connection_factory(f"{url}?max_redeliveries=1").create_connection() as connection:
        session = connection.create_session()
        queue = session.create_queue("broker-j.given-up")
        consumer = session.create_consumer(queue)
        consumer.message_listener = fail
        sender = connection.create_session()
        for text in ("bad", "good"):
            sender.create_producer(queue).send(sender.create_text_message(text))
        connection.start()
        assert given_up.wait(20)
        session.close()
        other = sender.create_consumer(queue).receive(timeout_ms=10_000)
        assert isinstance(other, jmsapi.TextMessage)
        assert other.text == "bad"
    assert attempts == ["bad", "bad", "good"]


def test_a_slash_in_a_name_parts_nothing(url: str) -> None:
    with jmsapi.connection_factory(url).create_context() as context:
        names = ["direct/orders", "orders%2F", "orders/", "/orders"]
        for name in names:
            context.create_producer().send(context.create_queue(name), name)
        for name in names:
            consumer = context.create_consumer(context.create_queue(name))
            assert consumer.receive_body(str, timeout_ms=5000) == name
            assert consumer.receive_no_wait() is None
            consumer.close()
