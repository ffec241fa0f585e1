"""Callbacks on an in-process broker: what the tests of the runtime share."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import jmsapi
import jmsapi_inproc
from jmsapi import Connection, ConnectionFactory, Message, Session
from jmsapi.listener import Deployment, JMSListener, MessageDriven, deploy

WAIT_S = 20.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S:g} s: {what}"
        time.sleep(0.002)


class Bench:
    """An in-process broker with a session of its own to send by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.factory: ConnectionFactory = jmsapi.connection_factory(f"inproc://{name}", checked=True)
        self.connection: Connection = self.factory.create_connection()
        self.session: Session = self.connection.create_session()
        self.connection.start()

    def send(self, *texts: str, queue: str = "q", **properties: object) -> None:
        """Send texts."""
        with self.session.create_producer(self.session.create_queue(queue)) as producer:
            for text in texts:
                message = self.session.create_text_message(text)
                for key, value in properties.items():
                    message.set_object_property(key, value)
                producer.send(message)

    def left(self, queue: str = "q") -> list[tuple[str, int]]:
        """Take what is on a queue: texts and delivery counts."""
        found: list[tuple[str, int]] = []
        with self.session.create_consumer(self.session.create_queue(queue)) as consumer:
            while (message := consumer.receive_no_wait()) is not None:
                found.append((str(message.get_body(str)), message.get_int_property("JMSXDeliveryCount")))
        return found

    @contextmanager
    def listening(self, call: Callable[[Any], object], *, batch: bool = False, **terms: Any) -> Generator[Deployment]:
        """Deploy a function on the queue ``q``; ``terms`` are of ``deploy``, or activation properties."""
        of_deploy = {name: terms.pop(name) for name in ("on_error", "factory", "fail_fast", "start", "wrap") if name in terms}

        def on_message(message: Message) -> None:
            call(message)

        def on_batch(messages: list[Message]) -> None:
            call(messages)

        target: Any = JMSListener(type=JMSListener.Type.QUEUE)(on_batch if batch else on_message)
        terms = {"destination": "q", "transactionAttribute": "NotSupported", **terms}
        target = MessageDriven(terms, name="listener")(target)
        deployment = deploy(target, **{"factory": self.factory, "on_error": ignore, **of_deploy})
        try:
            yield deployment
        finally:
            deployment.stop(WAIT_S * 1000)


def ignore(name: str, error: BaseException) -> None:
    """Be an error handler that expects what comes."""


@contextmanager
def a_bench() -> Generator[Bench]:
    """Give a broker that ends with the block."""
    name = f"listener-{uuid.uuid4().hex}"
    bench = Bench(name)
    try:
        yield bench
    finally:
        bench.connection.close()
        jmsapi_inproc.discard(name)


class Gate:
    """A callback that waits until it is let go, and says how many are in it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.inside: list[str] = []
        self.seen: list[str] = []
        self.most = 0
        self.open = threading.Event()

    def __call__(self, message: Message) -> None:
        """Be called with a message."""
        text = str(message.get_body(str))
        with self._changed:
            self.inside.append(text)
            self.seen.append(text)
            self.most = max(self.most, len(self.inside))
        self.open.wait(WAIT_S)
        with self._changed:
            self.inside.remove(text)
