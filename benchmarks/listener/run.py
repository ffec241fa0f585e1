"""What a listener container costs on the in-process provider.

    python benchmarks/listener/run.py [--messages N] [--idle N] [--seconds N]

| row | what is measured |
|---|---|
| bare listener | processor time of one message from a full queue to a message listener of a session, in the mode of the row |
| container | the same to a callback; the difference is what the container adds |
| ten workers | 1,000 messages for callbacks that take 10 ms, ten at a time |
| idle | processor time of listeners that have nothing to do, as a part of the time that passes |
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import jmsapi
from jmsapi import ConnectionFactory, DeliveryMode, Message, Session
from jmsapi.listener import JMSListener, JMSListenerProperty, deploy

_RUNS: Final = 5
_WAIT_S: Final = 300.0


def main() -> int:
    """Measure and print the table, and which bounds are missed: on a busy machine that says nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    factory = jmsapi.connection_factory("inproc://benchmark")
    missed: list[str] = []
    for attribute, mode in (("NotSupported", Session.AUTO_ACKNOWLEDGE), ("Required", Session.SESSION_TRANSACTED)):
        pairs = [
            (through_bare_listener(factory, given.messages, mode), through_container(factory, given.messages, attribute))
            for _ in range(_RUNS)
        ]
        bare, contained = (statistics.median(pair[n] for pair in pairs) * 1e6 for n in (0, 1))
        added = statistics.median(contained - bare for bare, contained in pairs) * 1e6
        print(
            f"{attribute:<13} bare listener {bare:6.1f} us, container {contained:6.1f} us a message: adds {added:5.1f} us (< 25)"
        )
        if added >= 25:
            missed.append(attribute)
    took = ten_workers(factory)
    print(f"ten workers of 10 ms: 1,000 messages in {took:.2f} s (< 1.3)")
    if took >= 1.3:
        missed.append("ten workers")
    share, threads = idle(factory, given.idle, given.seconds)
    print(f"{given.idle} idle listeners, {threads} threads: {share:.3%} of a processor (< 1 %)")
    if share >= 0.01:
        missed.append("idle")
    for name in missed:
        print(f"MISSED: {name}")
    return 0


def fill(factory: ConnectionFactory, name: str, messages: int) -> None:
    """Put texts on a queue."""
    with factory.create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(session.create_queue(name))
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        for _ in range(messages):
            producer.send(session.create_text_message("x" * 100))


class Counted:
    """Counts calls, and tells when there were enough, and what they took. Without a lock: the callers of a row are one thread."""

    def __init__(self, most: int) -> None:
        self._left = most
        self.done = threading.Event()
        self.began = 0.0
        self.took = 0.0

    def __call__(self) -> None:
        if not self.began:
            self.began = time.process_time()
        self._left -= 1
        if not self._left:
            self.took = time.process_time() - self.began
            self.done.set()


def through_bare_listener(factory: ConnectionFactory, messages: int, mode: int) -> float:
    """Return the seconds of processor time for one message to a message listener, which commits if the session is transacted."""
    fill(factory, "bare", messages)
    counted = Counted(messages)
    with factory.create_connection() as connection, connection.create_session(mode) as session:
        commit: Callable[[], None] = session.commit if mode == Session.SESSION_TRANSACTED else lambda: None

        def on_message(message: Message) -> None:
            commit()
            counted()

        session.create_consumer(session.create_queue("bare")).message_listener = on_message
        connection.start()
        assert counted.done.wait(_WAIT_S)
    return counted.took / messages


def listener(name: str, call: Callable[[Message], None], **properties: str) -> Any:
    """Return a function to deploy."""

    def on_message(message: Message) -> None:
        call(message)

    on_message.__qualname__ = f"on_{name}"
    made: Any = JMSListener(type=JMSListener.Type.QUEUE)(on_message)
    for key, value in {"destination": name, **properties}.items():
        made = JMSListenerProperty(key, value)(made)
    return made


def through_container(factory: ConnectionFactory, messages: int, attribute: str) -> float:
    """Return the seconds of processor time for one message to a callback."""
    fill(factory, "contained", messages)
    counted = Counted(messages)
    target = listener("contained", lambda _: counted(), transactionAttribute=attribute, prefetch="1000")
    with deploy(target, factory=factory):
        assert counted.done.wait(_WAIT_S)
    return counted.took / messages


def ten_workers(factory: ConnectionFactory) -> float:
    """Return the seconds in which ten workers handle a thousand messages of 10 ms."""
    fill(factory, "slow", 1000)
    left, lock, done = [1000], threading.Lock(), threading.Event()

    def call(_: Message) -> None:
        time.sleep(0.01)
        with lock:
            left[0] -= 1
            if not left[0]:
                done.set()

    deployment = deploy(listener("slow", call, concurrency="10"), factory=factory, start=False)
    begin = time.perf_counter()
    deployment.start()
    assert done.wait(_WAIT_S)
    took = time.perf_counter() - begin
    deployment.stop()
    return took


def idle(factory: ConnectionFactory, listeners: int, seconds: float) -> tuple[float, int]:
    """Return the part of a processor that idle listeners take, and how many threads there are."""
    targets = [listener(f"idle-{number}", lambda _: None) for number in range(listeners)]
    with deploy(*targets, factory=factory):
        before, begin = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        share = (time.process_time() - before) / (time.perf_counter() - begin)
        return share, threading.active_count()


if __name__ == "__main__":
    raise SystemExit(main())
