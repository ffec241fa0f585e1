"""A process that is forked while it has a connection: the connection stays its own, and its child is told so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jmsapi.testing import LoopbackServer

from ..peers.amqp_peer import AmqpPeer

pytestmark = [pytest.mark.program, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

FORK = """
import os, sys, threading, time
import jmsapi
from jmsapi import Session

url = sys.argv[1]
connection = jmsapi.connection_factory(url).create_connection()
connection.start()
session = connection.create_session()
transacted = connection.create_session(Session.SESSION_TRANSACTED)
client = connection.create_session(Session.CLIENT_ACKNOWLEDGE)
queue = session.create_queue("q")
producer = session.create_producer(queue)
taker = client.create_consumer(queue)
producer.send(session.create_text_message("taken"))
taken = taker.receive(20_000)
taken.acknowledge()
taker.close()
consumer = session.create_consumer(queue)
producer.send(session.create_text_message("transfer"))
while not consumer.inbox.buffer:
    time.sleep(0.01)

held, free = threading.Event(), threading.Event()
def hold():
    with session.parts.state.lock:
        held.set()
        free.wait(60)
holding = threading.Thread(target=hold)
holding.start()
held.wait(60)


def tell(what, call):
    try:
        print(what, call() or "done", flush=True)
    except jmsapi.JMSException as error:
        print(what, error, flush=True)


def anew():
    with jmsapi.connection_factory(url).create_context() as context:
        context.create_producer().send(context.create_queue("q"), "from the child")


if os.fork() == 0:
    tell("receive", lambda: consumer.receive(1000))
    tell("receive", lambda: consumer.receive_no_wait())
    tell("send", lambda: producer.send(session.create_text_message("twice")))
    tell("acknowledge", taken.acknowledge)
    tell("commit", transacted.commit)
    tell("rollback", transacted.rollback)
    tell("recover", client.recover)
    tell("session", connection.create_session)
    tell("close", consumer.close)
    tell("close", connection.close)
    tell("anew", anew)
    os._exit(0)
os.wait()
free.set()
holding.join()
for _ in range(2):
    print("parent", consumer.receive(20_000).get_body(str), flush=True)
connection.close()
"""


@pytest.fixture(params=["stomp", "amqp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a server's URL."""
    if request.param == "stomp":
        with LoopbackServer() as server:
            yield server.url
    else:
        peer = AmqpPeer()
        yield peer.url
        assert peer.told("accepted") == ["accepted taken", "accepted transfer", "accepted from the child"]
        peer.close()


def test_a_forked_child_gets_nothing_of_its_parents_connection_and_may_have_one_of_its_own(url: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = [line.split(" ", 1) for line in done.stdout.splitlines()]
    refused = [what for what, answer in told if "this is its child, which has to make one of its own" in answer]
    assert refused == ["receive", "receive", "send", "acknowledge", "commit", "rollback", "recover", "session"]
    assert told[len(refused) :] == [
        ["close", "done"],
        ["close", "done"],
        ["anew", "done"],
        ["parent", "transfer"],
        ["parent", "from the child"],
    ]
    assert done.stderr == ""
