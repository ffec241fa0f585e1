"""A broker is killed and started again while a program, and the command, go on."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import jmsapi
from jmsapi import Session
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("stomp", "classic")]
WAIT_MS = 240_000
OPTIONS = f"maxReconnectDelay=500&send_timeout_ms={WAIT_MS}&request_timeout_ms={WAIT_MS}"

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("wire", "kind"),
    [pytest.param(wire, kind, id=f"{wire}-{kind}", marks=pytest.mark.xdist_group(f"restarts of {kind}")) for wire, kind in PAIRS],
)
def test_a_program_goes_on_over_a_restart_of_its_broker(
    wire: Wire, kind: BrokerKind, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = restarted_broker(kind)
    factory = jmsapi.connection_factory(f"failover:({broker.url(wire)})?{OPTIONS}", client_id="restarted", checked=True)
    listened: list[str | None] = []
    heard = threading.Condition()

    def listen(message: jmsapi.Message) -> None:
        with heard:
            listened.append(message.text if isinstance(message, jmsapi.TextMessage) else None)
            heard.notify_all()

    with factory.create_connection() as connection, ThreadPoolExecutor(1) as pool:
        connection.start()
        listening, session = connection.create_session(), connection.create_session(Session.CLIENT_ACKNOWLEDGE)
        topic, queue = session.create_topic("restart.topic"), session.create_queue("restart.queue")
        listening.create_durable_consumer(topic, "durable").message_listener = listen
        consumer = session.create_consumer(queue)
        to_queue, to_topic = session.create_producer(queue), session.create_producer(topic)
        to_queue.send(session.create_text_message("kept"))
        before = consumer.receive(WAIT_MS)
        assert before is not None
        broker.kill()
        restarting = pool.submit(broker.restart, ready_s=240)
        to_topic.send(session.create_text_message("while it is away"))
        with pytest.raises(jmsapi.JMSException) as raised:
            before.acknowledge()
        assert raised.value.error_code == "redelivered"
        restarting.result()
        again = consumer.receive(WAIT_MS)
        assert isinstance(again, jmsapi.TextMessage)
        assert again.text == "kept"
        again.acknowledge()
        to_topic.send(session.create_text_message("afterwards"))
        with heard:
            assert heard.wait_for(lambda: listened == ["while it is away", "afterwards"], WAIT_MS / 1000)


@pytest.mark.xdist_group("restarts of artemis")
def test_the_command_sends_on_over_a_restart_and_says_so(restarted_broker: Callable[[BrokerKind], Broker]) -> None:
    broker = restarted_broker("artemis")
    url = f"failover:({broker.url('amqp')})?{OPTIONS}"
    lines = "".join(f"{number}\n" for number in range(20_000))
    with subprocess.Popen(
        [sys.executable, "-m", "jmsapi.cli", "send", "restart.lines", "--lines", "--url", url],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdin is not None
        assert command.stderr is not None
        command.stdin.write(lines)
        command.stdin.close()
        with jmsapi.connection_factory(broker.url("amqp")).create_context() as context:
            # It is under way once something has arrived.
            assert context.create_consumer(context.create_queue("restart.lines")).receive(WAIT_MS) is not None
        broker.kill()
        broker.restart(ready_s=240)
        said = command.stderr.read()
        assert command.wait(WAIT_MS / 1000) == 0, said
    assert "interrupted" in said
    assert "resumed at amqp://127.0.0.1" in said
    with jmsapi.connection_factory(broker.url("amqp")).create_context() as context:
        consumer = context.create_consumer(context.create_queue("restart.lines"))
        context.create_producer().send(context.create_queue("restart.lines"), "the end")
        found: set[str | None] = set()
        while (body := consumer.receive_body(str, WAIT_MS)) != "the end":
            found.add(body)
    # The first was taken before the kill; that acknowledgement may be lost or not.
    assert {str(number) for number in range(1, 20_000)} <= found
