"""Listeners that hang or raise whatever they like: the others are told, and closing keeps its time."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

import jmsapi
from jmsapi import Connection, JMSException
from jmsapi._core.dispatch import Dispatcher
from jmsapi._core.listener_notifier import ListenerNotifier
from jmsapi._core.waiting import StateCondition
from jmsapi_conformance.kit import PATIENCE_MS, Completions, finish, in_thread

if TYPE_CHECKING:
    from jmsapi._core.session_state import SessionState

CLOSE_MS = 500


class Held:
    """A completion listener that does not return until it is let go."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.let_go = threading.Event()

    def on_completion(self, message: object) -> None:
        self.called.set()
        self.let_go.wait(PATIENCE_MS / 1000)

    def on_exception(self, message: object, exception: object) -> None:
        raise AssertionError(exception)


def connect(name: str) -> Connection:
    return jmsapi.connection_factory(f"inproc://{name}?close_timeout_ms={CLOSE_MS}").create_connection()


def test_closing_takes_its_time_once_however_many_completion_listeners_hang(caplog: pytest.LogCaptureFixture) -> None:
    connection = connect("hanging completions")
    held = [Held() for _ in range(4)]
    for listener in held:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("queue"))
        producer.send(session.create_text_message("text"), completion_listener=listener)
        assert listener.called.wait(PATIENCE_MS / 1000)
    begun = time.monotonic()
    try:
        with caplog.at_level(logging.WARNING, "jmsapi"):
            connection.close()
        # Each of the four used to add a second of its own.
        assert time.monotonic() - begun < CLOSE_MS / 1000 + 2.0
        assert caplog.text.count("still under way") == 4
    finally:
        for listener in held:
            listener.let_go.set()


@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_completion_listener_may_raise_anything_and_the_next_is_called(what: type[BaseException]) -> None:
    def fail(_: object) -> None:
        raise what

    failing, good = Completions(then=fail), Completions()
    with connect("raising completions") as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("queue"))
        for listener in (failing, good):
            producer.send(session.create_text_message("text"), completion_listener=listener)
        good.wait_for(1)


@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_listener_may_raise_anything_and_is_called_again(what: type[BaseException]) -> None:
    told: list[str] = []
    twice = threading.Event()

    def listen(error: JMSException) -> None:
        told.append(str(error))
        if len(told) == 2:
            twice.set()
        raise what

    notifier = ListenerNotifier()
    notifier.listener = listen
    for text in ("first", "second"):
        notifier.problem(JMSException(text), "notifier")
    assert twice.wait(PATIENCE_MS / 1000), told
    notifier.close()
    assert told == ["first", "second"]


def test_a_thread_that_got_the_ident_of_an_ended_listener_thread_is_not_taken_for_it() -> None:
    lock = threading.Lock()
    dispatcher = Dispatcher(cast("SessionState", _State(lock)))
    with lock:
        dispatcher.start()
    ended: Any = next(thread for thread in threading.enumerate() if thread.name == "ended")
    with lock:
        dispatcher.stop()
    ended.join(PATIENCE_MS / 1000)

    def look() -> tuple[bool, bool]:
        return threading.get_ident() == ended.ident, dispatcher.is_own_thread

    seen = {finish(in_thread(look)) for _ in range(200)}
    assert any(reused for reused, _ in seen), "no thread got the ident, so nothing was tried"
    assert not any(own for _, own in seen)


class _State:
    name = "ended"
    flowing = True

    def __init__(self, lock: threading.Lock) -> None:
        self.changed = StateCondition(lock)

    def next_ready(self) -> None:
        """Nobody is in line."""
