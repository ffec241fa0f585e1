"""The window of an emulated transaction (``?emulate=tx``): its client is ended with kill -9 between the sends and the acks.

Duplicates are possible there, loss is not: what the transaction sent is in the queue, and what it received comes again.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

import pytest

import jmsapi
from jmsapi import JMSContext
from jmsapi.testing import FaultProxy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "rabbitmq"), ("stomp", "rabbitmq"), ("stomp", "artemis")]
INPUTS = [str(number) for number in range(20)]
WAIT_MS = 60_000
WAIT_S = 60.0
_SEND = 300
"""Fewer bytes than a SEND has here; all else that is written before COMMIT is shorter than three."""
PROGRAM = """
import sys
import jmsapi

url, name, n = sys.argv[1:]
with jmsapi.connection_factory(url, emulate="tx").create_connection() as connection:
    connection.start()
    session = connection.create_session(jmsapi.Session.SESSION_TRANSACTED)
    consumer = session.create_consumer(session.create_queue(name))
    producer = session.create_producer(session.create_queue(name + ".out"))
    for _ in range(int(n)):
        producer.send(session.create_text_message(consumer.receive(60_000).get_body(str)))
    print("ready", flush=True)
    sys.stdin.readline()
    session.commit()
    sys.stdin.readline()
"""

pytestmark = pytest.mark.broker


def everything_in(context: JMSContext, name: str) -> Counter[str | None]:
    """Empty a queue, by a marker behind what is there."""
    queue = context.create_queue(name)
    context.create_producer().send(queue, "the marker")
    found: Counter[str | None] = Counter()
    with context.create_consumer(queue) as consumer:
        while (body := consumer.receive_body(str, WAIT_MS)) != "the marker":
            assert body is not None, f"the marker did not come; before it came {found}"
            found[body] += 1
    return found


def until_in(url: str, name: str, n: int) -> Counter[str | None]:
    """Wait until so many messages are in a queue, by taking them."""
    found: Counter[str | None] = Counter()
    with jmsapi.connection_factory(url).create_context() as context:
        consumer = context.create_consumer(context.create_queue(name))
        while found.total() < n:
            body = consumer.receive_body(str, WAIT_MS)
            assert body is not None, f"{n} were to come, and there were {found}"
            found[body] += 1
    return found


@pytest.mark.parametrize(("wire", "kind"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("answered", [False, True], ids=["before the acks", "somewhere in the commit"])
def test_a_client_that_is_killed_between_the_sends_and_the_acks_repeats_messages_and_loses_none(
    wire: Wire, kind: BrokerKind, answered: bool, request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]
) -> None:
    broker: Broker = request.getfixturevalue(kind)
    if wire not in broker.wires:
        leave_out(f"{kind} was given without {wire}")
    url, name = broker.url(wire), f"jmsapi.killed.{uuid.uuid4().hex}"
    # Over STOMP Artemis answers each send, and nothing is committed before all its answers are here.
    sends_answered = (wire, kind) == ("stomp", "artemis")
    with jmsapi.connection_factory(url).create_context() as context:
        for body in INPUTS:
            context.create_producer().send(context.create_queue(name), body)
    with (
        FaultProxy(url) as proxy,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, proxy.url, name, str(len(INPUTS))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "ready\n"
            if not answered:
                # Its sends reach the broker, and no answer reaches it: so it sends no acknowledgement.
                proxy.stall("to_client")
            print("go on", file=program.stdin, flush=True)
            sent = Counter[str | None]()
            if answered or not sends_answered:
                sent = until_in(url, f"{name}.out", 1 if answered else len(INPUTS))
            else:
                assert proxy.wait_for(lambda: proxy.passed("to_broker") > len(INPUTS) * _SEND, WAIT_S)
        finally:
            program.kill()
            program.wait(WAIT_S)
    with jmsapi.connection_factory(url).create_context() as context:
        sent += everything_in(context, f"{name}.out")
        again = Counter[str | None]()
        # What the dead program held comes back when the broker has noticed.
        until = time.monotonic() + WAIT_S
        while not (sent + again).keys() >= set(INPUTS):
            assert time.monotonic() < until, f"lost: {set(INPUTS) - (sent + again).keys()}"
            again += everything_in(context, name)
        if not answered:
            while again.keys() < set(INPUTS):
                assert time.monotonic() < until, f"acknowledged, and never told so: {set(INPUTS) - again.keys()}"
                again += everything_in(context, name)
            assert again == Counter(INPUTS)
            assert sent == again or (sends_answered and not sent)
    assert max(sent.values(), default=1) == 1
