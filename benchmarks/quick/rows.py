"""One round of the quick benchmark: processor time a message for each row, with that of a fixed loop taken beside it.

    python benchmarks/quick/rows.py MESSAGES URL...

Prints one line of JSON: row to [microseconds a message, microseconds of the loop]. Uses only the public API, so that it runs on
the tree of another commit just as well. Processor time, not the clock: a loaded machine must not make a result.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

import jmsapi
from jmsapi import CompletionListener, Connection, DeliveryMode, Message, MessageListener, Session

TEXT = "x" * 1024
LOOP = 100_000
LIMIT_S = 120.0
_TRIES = 4


class Counter(CompletionListener, MessageListener):
    """Counts answers to sends, and messages."""

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._done = threading.Event()

    def _one(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._done.set()

    def on_completion(self, message: Message) -> None:
        """Count an answer."""
        self._one()

    def on_exception(self, message: Message, exception: Exception) -> None:
        """Fail the round."""
        raise exception

    def on_message(self, message: Message) -> None:
        """Read and count a message."""
        read(message)
        self._one()

    def wait(self) -> None:
        """Wait for the last."""
        if not self._done.wait(LIMIT_S):
            raise TimeoutError(f"{self._left} are missing")


def read(message: Message | None) -> None:
    """Read what was written."""
    if message is None or message.get_body(str) != TEXT or message.get_int_property("a") != 1:
        raise AssertionError("the wrong message")


def send(connection: Connection, queue: str, messages: int, mode: int) -> None:
    """Send with a completion listener."""
    with connection.create_session() as session:
        producer = session.create_producer(session.create_queue(queue))
        producer.delivery_mode = mode
        counter = Counter(messages)
        for _ in range(messages):
            message = session.create_text_message(TEXT)
            message.set_int_property("a", 1)
            message.set_string_property("b", "two")
            producer.send(message, completion_listener=counter)
        counter.wait()


def receive(connection: Connection, queue: str, messages: int, mode: int) -> None:
    """Receive in a loop."""
    with connection.create_session(mode) as session:
        consumer = session.create_consumer(session.create_queue(queue))
        for _ in range(messages):
            read(consumer.receive(30_000))


def listen(connection: Connection, queue: str, messages: int, mode: int) -> None:
    """Receive through a listener."""
    with connection.create_session(mode) as session:
        counter = Counter(messages)
        session.create_consumer(session.create_queue(queue)).message_listener = counter
        counter.wait()


def transact(connection: Connection, queue: str, messages: int, mode: int) -> None:
    """Send in transactions of 100, and receive in such."""
    with connection.create_session(mode) as session:
        destination = session.create_queue(queue)
        producer, consumer = session.create_producer(destination), session.create_consumer(destination)
        for first in range(0, messages, 100):
            for _ in range(min(100, messages - first)):
                message = session.create_text_message(TEXT)
                message.set_int_property("a", 1)
                producer.send(message)
            session.commit()
            for _ in range(min(100, messages - first)):
                read(consumer.receive(30_000))
            session.commit()


def loop() -> float:
    """Return the processor time of a fixed loop in pure Python, in microseconds: the least of some tries."""
    taken: list[float] = []
    for _ in range(_TRIES):
        began = time.thread_time()
        table: dict[int, str] = {}
        for number in range(LOOP):
            table[number & 1023] = str(number)
        taken.append((time.thread_time() - began) * 1e6)
    return min(taken)


def measured(name: str, url: str, messages: int) -> dict[str, tuple[float, float]]:
    """Return the rows of one backend."""
    found: dict[str, tuple[float, float]] = {}
    queue = f"benchmark.{uuid.uuid4().hex}"
    connection: Connection = jmsapi.connection_factory(url).create_connection()

    def row(label: str, work: Callable[[Connection, str, int, int], None], mode: int) -> None:
        before = loop()
        began = time.process_time()
        work(connection, queue, messages, mode)
        taken = (time.process_time() - began) / messages * 1e6
        found[f"{name} {label}"] = (taken, min(before, loop()))

    with connection:
        connection.start()
        send(connection, queue, 200, DeliveryMode.PERSISTENT)  # what is done for the first time
        receive(connection, queue, 200, Session.DUPS_OK_ACKNOWLEDGE)
        row("send", send, DeliveryMode.NON_PERSISTENT)
        row("receive AUTO", receive, Session.AUTO_ACKNOWLEDGE)
        send(connection, queue, messages, DeliveryMode.NON_PERSISTENT)
        row("listener AUTO", listen, Session.AUTO_ACKNOWLEDGE)
        send(connection, queue, messages, DeliveryMode.NON_PERSISTENT)
        row("receive DUPS_OK", receive, Session.DUPS_OK_ACKNOWLEDGE)
        if name != "stomp":  # Artemis has no transactions there that hold acknowledgements
            row("transacted", transact, Session.SESSION_TRANSACTED)
    return found


def main() -> None:
    """Measure every backend that is named."""
    messages = int(sys.argv[1])
    found: dict[str, tuple[float, float]] = {}
    for url in sys.argv[2:]:
        scheme = urlsplit(url).scheme
        found |= measured(scheme, url, messages * 4 if scheme == "inproc" else messages)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
