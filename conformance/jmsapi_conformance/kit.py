"""What requirement tests do again and again: receive with a deadline, prove that nothing comes, listen, wait for a state."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, TypeVar

import pytest

from jmsapi import (
    Destination,
    JMSConsumer,
    JMSException,
    Message,
    MessageConsumer,
    Session,
    TextMessage,
)
from jmsapi.spi import Level
from jmsapi_conformance.backend import Backend

__all__ = [
    "PATIENCE_MS",
    "QUIET_MS",
    "Completions",
    "HeldRecorder",
    "Problems",
    "Recorder",
    "eventually",
    "expect_nothing",
    "expect_nothing_for",
    "finish",
    "in_second_process",
    "in_thread",
    "must_wait",
    "outcome_of",
    "own_names",
    "receive",
    "receive_all",
    "receive_text",
    "receive_texts",
    "send_texts",
    "skip_unless_native",
    "text_of",
]

T = TypeVar("T")
PATIENCE_MS: Final = float(os.environ.get("JMSAPI_CONFORMANCE_PATIENCE_MS", "10000"))
"""Longest wait for what must come, in milliseconds."""
QUIET_MS: Final = 150.0
"""How long to look, in milliseconds, where only time can show that nothing comes."""
_markers = itertools.count(1)


def receive(consumer: MessageConsumer | JMSConsumer, timeout_ms: float = PATIENCE_MS) -> Message:
    """Return the consumer's next message, which must come."""
    message = consumer.receive(timeout_ms)
    assert message is not None, f"no message within {timeout_ms:g} ms"
    return message


def receive_all(consumer: MessageConsumer | JMSConsumer, count: int) -> list[Message]:
    """Return the next ``count`` messages, in order."""
    return [receive(consumer) for _ in range(count)]


def own_names(message: Message) -> set[str]:
    """Return the names of a message's properties, but those that JMS defines: who sets these and when is 3.5.9's affair."""
    return {name for name in message.property_names if not name.startswith("JMSX")}


def text_of(message: Message | None) -> str | None:
    """Return the text of a TextMessage."""
    assert isinstance(message, TextMessage), f"a TextMessage was expected, not {message!r}"
    return message.text


def receive_text(consumer: MessageConsumer | JMSConsumer) -> str | None:
    """Return the text of the next message, which must be a TextMessage."""
    return text_of(receive(consumer))


def receive_texts(consumer: MessageConsumer | JMSConsumer, count: int) -> list[str | None]:
    """Return the texts of the next ``count`` messages, in order."""
    return [receive_text(consumer) for _ in range(count)]


def send_texts(session: Session, destination: Destination, *texts: str, **properties: object) -> None:
    """Send a TextMessage for each text, with properties, through a producer of its own."""
    with session.create_producer(destination) as producer:
        for text in texts:
            message = session.create_text_message(text)
            for name, value in properties.items():
                message.set_object_property(name, value)
            producer.send(message)


def expect_nothing(
    consumer: MessageConsumer | JMSConsumer, session: Session, destination: Destination, **properties: object
) -> None:
    """Prove that nothing is waiting for a consumer: send a marker behind it, and see the marker first.

    Args:
        consumer: Who must have nothing; takes the marker.
        session: Sends the marker. Not transacted.
        destination: What the consumer consumes from.
        properties: Of the marker, where the consumer has a selector.
    """
    marker = f"marker {next(_markers)}"
    send_texts(session, destination, marker, **properties)
    message = receive(consumer)
    assert isinstance(message, TextMessage), f"nothing was expected, yet {message!r} came"
    assert message.text == marker, f"nothing was expected, yet {message.text!r} came"


def expect_nothing_for(consumer: MessageConsumer | JMSConsumer, ms: float = QUIET_MS) -> None:
    """See that nothing comes for a while; for where a marker cannot pass either, such as a stopped connection."""
    message = consumer.receive(ms)
    assert message is None, f"nothing was expected, yet {message!r} came"


def skip_unless_native(backend: Backend, quality: str) -> None:
    """Leave a test whose quality this library supplies by itself, where only a broker can keep it: in a crash, among strangers.

    Args:
        backend: Whose.
        quality: By its name in ``Capabilities``; NONE is the business of ``needs``.
    """
    support = backend.capabilities.of(quality)
    if support.level is Level.EMULATED:
        pytest.skip(f"{quality}: {support.note}")


def eventually(condition: Callable[[], object], what: str, timeout_ms: float = PATIENCE_MS) -> None:
    """Wait until a condition holds.

    Args:
        condition: Called again and again, a few milliseconds apart; anything true will do.
        what: Says what was waited for, when it does not come.
    """
    end = time.monotonic() + timeout_ms / 1000
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_ms:g} ms: {what}"
        time.sleep(0.005)


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Run a call in a thread of its own; ``finish`` gives its result."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            # Whatever it is, it belongs to the thread that asks for the result.
            future.set_exception(error)

    threading.Thread(target=run, name="conformance-aside", daemon=True).start()
    return future


def finish(future: Future[T], timeout_ms: float = PATIENCE_MS) -> T:
    """Return the result of ``in_thread``, or raise what it raised."""
    return future.result(timeout_ms / 1000)


def must_wait(call: Callable[[], T], ms: float = QUIET_MS) -> Future[T]:
    """Make a call in a thread of its own, and see that it does not return for a while; ``finish`` gives its result."""
    pending = in_thread(call)
    done, _ = concurrent.futures.wait([pending], ms / 1000)
    assert not done, "the call was to wait, and has returned"
    return pending


def in_second_process(url: str, program: str, *arguments: str) -> str:
    """Run a Python program in a process of its own, and return what it printed; how it ends is its own affair.

    Args:
        url: In the environment of the program as ``CONFORMANCE_URL``: command lines are for everybody to see.
        program: Its text.
        arguments: For its ``sys.argv``.
    """
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "CONFORMANCE_URL": url},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_MS / 1000,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stdout


def outcome_of(call: Callable[[], object]) -> BaseException | None:
    """Return what a call raised, or None; for calls in a listener, where raising would mean something."""
    try:
        call()
    except Exception as error:
        return error
    return None


class _Log(Generic[T]):
    """A list that threads fill and the test waits for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Append, and wake who waits."""
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def all(self) -> list[T]:
        """Return what is there now."""
        with self._changed:
            return list(self._items)

    def wait_for(self, count: int, timeout_ms: float) -> list[T]:
        """Return everything as soon as there are ``count``."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self._items) >= count, timeout_ms / 1000)
            assert arrived, f"{len(self._items)} of {count} within {timeout_ms:g} ms: {self._items!r}"
            return list(self._items)


class Recorder:
    """A MessageListener that keeps what it is given.

    Args:
        then: Called with each message, in the listener's thread, once it is kept. What it raises, the listener raises.
    """

    def __init__(self, then: Callable[[Message], object] | None = None) -> None:
        self._then = then
        self._log = _Log[tuple[Message, int]]()

    def on_message(self, message: Message) -> None:
        """Keep the message, and do what the test asked for."""
        self._log.add((message, threading.get_ident()))
        if self._then is not None:
            self._then(message)

    @property
    def messages(self) -> list[Message]:
        """What has come so far."""
        return [message for message, _ in self._log.all()]

    @property
    def texts(self) -> list[str | None]:
        """The texts of what has come so far."""
        return [text_of(message) for message in self.messages]

    @property
    def threads(self) -> set[int]:
        """The threads in which it was called."""
        return {thread for _, thread in self._log.all()}

    def wait_for(self, count: int, timeout_ms: float = PATIENCE_MS) -> list[Message]:
        """Return all messages as soon as there are ``count``; they must come."""
        return [message for message, _ in self._log.wait_for(count, timeout_ms)]

    def wait_for_texts(self, count: int, timeout_ms: float = PATIENCE_MS) -> list[str | None]:
        """Return all texts as soon as there are ``count``; they must come."""
        return [text_of(message) for message in self.wait_for(count, timeout_ms)]


class HeldRecorder(Recorder):
    """A MessageListener that waits in its first call until the test lets it go on, and then makes a call of its own.

    Args:
        call: Made in the listener's thread; what becomes of it is in ``outcomes``.
    """

    def __init__(self, call: Callable[[], object] = lambda: None) -> None:
        super().__init__(self._hold)
        self._call = call
        self._going = threading.Event()
        self.outcomes: list[BaseException | None] = []

    def started(self) -> None:
        """Wait until it has been called."""
        self.wait_for(1)

    def go_on(self) -> None:
        """Let it make its call, and return."""
        self._going.set()

    def _hold(self, _: Message) -> None:
        self._going.wait(PATIENCE_MS / 1000)
        self.outcomes.append(outcome_of(self._call))


class Completions:
    """A CompletionListener that keeps what it is told.

    Args:
        then: Called with each message, in the listener's thread, once it is kept.
    """

    def __init__(self, then: Callable[[Message], object] | None = None) -> None:
        self._then = then
        self._log = _Log[tuple[Message, Exception | None, int]]()

    def on_completion(self, message: Message) -> None:
        """Keep a message that was sent."""
        self._keep(message, None)

    def on_exception(self, message: Message, exception: Exception) -> None:
        """Keep a message that was not sent, and why."""
        self._keep(message, exception)

    def _keep(self, message: Message, exception: Exception | None) -> None:
        self._log.add((message, exception, threading.get_ident()))
        if self._then is not None:
            self._then(message)

    @property
    def completed(self) -> list[Message]:
        """Messages of ``on_completion``, in the order of the calls."""
        return [message for message, exception, _ in self._log.all() if exception is None]

    @property
    def failed(self) -> list[tuple[Message, Exception]]:
        """Messages and exceptions of ``on_exception``, in the order of the calls."""
        return [(message, exception) for message, exception, _ in self._log.all() if exception is not None]

    @property
    def threads(self) -> set[int]:
        """The threads in which it was called."""
        return {thread for _, _, thread in self._log.all()}

    def wait_for(self, count: int, timeout_ms: float = PATIENCE_MS) -> list[Message]:
        """Return the messages of both kinds of call as soon as there are ``count``; they must come."""
        return [message for message, _, _ in self._log.wait_for(count, timeout_ms)]


class Problems:
    """An ExceptionListener that keeps what it is told."""

    def __init__(self) -> None:
        self._log = _Log[JMSException]()

    def on_exception(self, exception: JMSException) -> None:
        """Keep the exception."""
        self._log.add(exception)

    @property
    def exceptions(self) -> list[JMSException]:
        """What has come so far."""
        return self._log.all()

    def wait_for(self, count: int, timeout_ms: float = PATIENCE_MS) -> list[JMSException]:
        """Return all exceptions as soon as there are ``count``; they must come."""
        return self._log.wait_for(count, timeout_ms)
