"""A process that is forked while it has connections to a broker of its own: the child has none of them, and is told so."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.program, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

# Threads send, receive and commit while children are forked off, so that any lock may be held at that moment.
BUSY = """
import os, sys, threading, time
import jmsapi
from jmsapi import JMSContext

url, children, deadline = sys.argv[1], int(sys.argv[2]), 20
factory = jmsapi.connection_factory(url, close_timeout_ms=600_000)
connection = factory.create_connection()
connection.start()
session = connection.create_session()
producer, consumer = session.create_producer(session.create_queue("mine")), session.create_consumer(session.create_queue("mine"))
shared = connection.create_session()
to_all = shared.create_producer(shared.create_queue("q"))
waiting_session = connection.create_session()
waiting = waiting_session.create_consumer(waiting_session.create_queue("never"))
stop = threading.Event()

room = threading.Semaphore(100)

def send():
    while not stop.is_set():
        if room.acquire(timeout=0.1):
            to_all.send(shared.create_text_message("x"))

def receive():
    with factory.create_context(JMSContext.SESSION_TRANSACTED) as context:
        taker = context.create_consumer(context.create_queue("q"))
        while not stop.is_set():
            if taker.receive(10) is not None:
                room.release()
            context.create_producer().send(context.create_queue("r"), "y")
            context.commit()

def bind():
    while not stop.is_set():
        jmsapi.register_object("here", session.create_queue("q"))

def wait():
    while not stop.is_set():
        waiting.receive(50)

threads = [threading.Thread(target=each) for each in (send, receive, bind, wait)]
for thread in threads:
    thread.start()


def calls():
    def anew():
        with jmsapi.connection_factory(url).create_context() as context:
            context.create_producer().send(context.create_queue("mine"), "of the child")
            print("anew", context.create_consumer(context.create_queue("mine")).receive_body(str, 5000))

    jmsapi.register_object("here", None)
    for name, call in (
        ("session", connection.create_session),
        ("send", lambda: producer.send(session.create_text_message("twice"))),
        ("shared", lambda: to_all.send(shared.create_text_message("twice"))),
        ("receive", lambda: consumer.receive(1000)),
        ("close consumer", consumer.close),
        ("close waiting", waiting.close),
        ("close session", shared.close),
        ("close", connection.close),
        ("anew", anew),
    ):
        try:
            print(name, call() or "done", flush=True)
        except jmsapi.JMSException as error:
            print(name, "REFUSED" if "this is its child" in str(error) else error, flush=True)
        except jmsapi.JMSRuntimeException as error:
            print(name, "IN USE" if "it is open in process" in str(error) else error, flush=True)


hung = 0
for _ in range(children):
    child = os.fork()
    if not child:
        calls()
        os._exit(0)
    end = time.monotonic() + deadline
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            hung += 1
            break
        time.sleep(0.002)
stop.set()
for thread in threads:
    thread.join()
producer.send(session.create_text_message("of the parent"))
print("parent", consumer.receive(20_000).get_body(str))
connection.close()
print("hung", hung)
"""
REFUSED = ["session", "send", "shared", "receive"]


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_children_forked_amid_traffic_do_not_hang_and_have_nothing_of_the_parents_broker(tmp_path, stored):
    children = 30
    url = f"inproc://{tmp_path}/broker.db" if stored else "inproc://forked"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUSY, url, str(children)], capture_output=True, text=True, timeout=100, check=True
    )
    told = done.stdout.splitlines()
    assert told[-2:] == ["parent of the parent", "hung 0"], done.stdout
    expected = [f"{name} REFUSED" for name in REFUSED]
    expected += [f"{name} done" for name in ("close consumer", "close waiting", "close session", "close")]
    expected += ["anew IN USE"] if stored else ["anew of the child", "anew done"]
    assert told[:-2] == expected * children
    assert done.stderr == ""
