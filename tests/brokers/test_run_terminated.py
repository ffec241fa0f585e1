"""``jmsapi run`` under load is told to end: nothing is lost, nothing comes twice, and what no callback has seen is as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import jmsapi
from jmsapi import Message, Session, TextMessage
from jmsapi_conformance.brokers import Broker, Wire

MESSAGES = 300
HANDLED = 40
"""So many are handled before the signal."""
WAIT_S = 120
PROGRAM = r"""
import os, time
from jmsapi.listener import *

done = os.environ["TEST_QUEUE"] + ".done"
handled = []


@JMSQueueListener()
@JMSListenerProperty("destination", os.environ["TEST_QUEUE"])
@JMSListenerProperty("concurrency", "2-6")
@JMSListenerProperty("prefetch", "20")
def on_order(text: str, context: MessageDrivenContext):
    session = context.session
    with session.create_producer(session.create_queue(done)) as producer:
        producer.send(session.create_text_message(text))
    # Slowly at last, so that there is something left whenever the signal comes.
    time.sleep(0.01 if len(handled) < 40 else 0.3)
    handled.append(text)
    os.write(1, b"handled\n")
"""


def take_all(session: Session, name: str, most: int) -> list[Message]:
    """Return what is on a queue, up to a marker that is sent behind it."""
    queue = session.create_queue(name)
    session.create_producer(queue).send(session.create_text_message("marker"))
    found: list[Message] = []
    with session.create_consumer(queue) as consumer:
        while len(found) <= most:
            message = consumer.receive(WAIT_S * 1000)
            assert message is not None, f"{name}: the marker did not come, after {len(found)} messages"
            if text_of(message) == "marker":
                return found
            found.append(message)
    raise AssertionError(f"{name}: more than {most} messages")


def text_of(message: Message) -> str:
    assert isinstance(message, TextMessage)
    return str(message.text)


@pytest.mark.parametrize("wire", ["amqp", "stomp"])
def test_a_termination_under_load_loses_and_doubles_nothing_and_spends_no_counts(
    artemis: Broker, wire: Wire, tmp_path: Path
) -> None:
    # What is sent and consumed goes in one transaction by the broker; over STOMP Artemis has none for acknowledgements.
    url = artemis.url(wire) + ("?emulate=tx" if wire == "stomp" else "")
    name = f"terminated.{uuid.uuid4().hex}"
    texts = [f"{number:04}" for number in range(MESSAGES)]
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    with jmsapi.connection_factory(url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        with session.create_producer(session.create_queue(name)) as producer:
            for text in texts:
                producer.send(session.create_text_message(text))
        with subprocess.Popen(
            [sys.executable, "-m", "jmsapi.cli", "run", "shop:on_order"],
            cwd=tmp_path,
            env={**os.environ, "TEST_QUEUE": name, "JMSAPI_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            try:
                assert program.stdout is not None
                for _ in range(HANDLED):
                    assert program.stdout.readline() == "handled\n"
                program.send_signal(signal.SIGTERM)
                program.wait(WAIT_S)
                # communicate() would read past what readline() has taken from the pipe and not yet given out.
                assert program.stderr is not None
                out, err = program.stdout.read(), program.stderr.read()
            finally:
                program.kill()
        assert program.returncode == 0, err
        assert "has stopped" in err
        done = [text_of(message) for message in take_all(session, f"{name}.done", MESSAGES)]
        left = take_all(session, name, MESSAGES)
    assert sorted([*done, *map(text_of, left)]) == texts
    assert len(done) == HANDLED + out.count("handled")
    assert left, "all was handled before the signal came"
    assert {message.get_int_property("JMSXDeliveryCount") for message in left} == {1}
    assert not any(message.jms_redelivered for message in left)
