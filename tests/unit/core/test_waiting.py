"""Operations that wait run by a driver that does not block, as an event loop's would be."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NoReturn, TypeVar, cast

import pytest

import jmsapi
from jmsapi import Connection, IllegalStateException, JMSException, Session
from jmsapi._core.connection import ConnectionImpl
from jmsapi._core.consumer import ConsumerImpl
from jmsapi._core.destination import QueueImpl, address_of
from jmsapi._core.producer import ProducerImpl, SendOptions
from jmsapi._core.session import SessionImpl
from jmsapi._core.waiting import AnswerWait, ConditionWait, PendingWait, StateCondition, Steps, Window, run
from jmsapi_conformance.kit import PATIENCE_MS, finish, in_thread

T = TypeVar("T")


async def drive(steps: Steps[T]) -> T:
    """Run an operation in an event loop, with nothing but what waits offer to such a driver."""
    try:
        wait: PendingWait[Any] = next(steps)
        while True:
            over = asyncio.Event()
            if wait.subscribe(asyncio.get_running_loop().call_soon_threadsafe, over.set):
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), wait.timeout)
            wait.give_up()
            try:
                outcome = wait.outcome()
            except BaseException as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(outcome)
    except StopIteration as end:
        return cast("T", end.value)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    with jmsapi.connection_factory(f"inproc://waiting-{uuid.uuid4().hex}").create_connection() as connection:
        connection.start()
        with monkeypatch.context() as patched:
            patched.setattr(AnswerWait, "block", block)
            patched.setattr(ConditionWait, "block", block)
            yield connection


def block(wait: object) -> NoReturn:
    raise AssertionError(f"{wait!r} would block the event loop")


async def a_session(connection: Connection, mode: int) -> SessionImpl:
    assert isinstance(connection, ConnectionImpl)
    return await drive(connection.add_session_steps(SessionImpl, mode))


async def a_consumer(session: SessionImpl, name: str = "in") -> ConsumerImpl:
    return await drive(session.add_plain_steps(ConsumerImpl, session.create_queue(name), None, no_local=False))


async def send(session: SessionImpl, text: str, name: str = "in") -> None:
    queue = QueueImpl(name)
    producer = await drive(session.add_producer_steps(ProducerImpl, queue))
    message = session.create_text_message(text)
    envelope = producer.stamped(queue, address_of(queue), message, SendOptions())
    await drive(session.parts.send_steps(producer, envelope, message, None))
    await drive(session.parts.close_producer_steps(producer))


async def receive(consumer: ConsumerImpl, timeout_ms: float | None) -> str | None:
    entry = await drive(consumer.pull_steps(timeout_ms, finish=True))
    return None if entry is None else consumer.session.message(entry).get_body(str)


def test_an_event_loop_runs_transactions_and_closes_what_it_made(connection: Connection) -> None:
    async def program() -> list[str | None]:
        session = await a_session(connection, Session.SESSION_TRANSACTED)
        consumer = await a_consumer(session)
        await send(session, "rolled back")
        await drive(session.rollback_steps())
        await send(session, "committed")
        await drive(session.commit_steps())
        seen = [await receive(consumer, PATIENCE_MS)]
        await drive(session.rollback_steps())
        seen.append(await receive(consumer, PATIENCE_MS))
        await drive(session.commit_steps())
        seen.append(await receive(consumer, 0))
        await drive(consumer.close_steps())
        await drive(session.close_steps())
        with pytest.raises(IllegalStateException):
            session.create_message()
        return seen

    assert asyncio.run(program()) == ["committed", "committed", None]


def test_an_event_loop_waits_for_a_message_that_comes_later(connection: Connection) -> None:
    async def program() -> list[str | None]:
        receiving, sending = (
            await a_session(connection, Session.AUTO_ACKNOWLEDGE),
            await a_session(connection, Session.AUTO_ACKNOWLEDGE),
        )
        consumer = await a_consumer(receiving)
        waiting = asyncio.create_task(receive(consumer, None))
        while not consumer.receiving:
            await asyncio.sleep(0)
        await send(sending, "late")
        return [await waiting, await receive(consumer, 1)]

    assert asyncio.run(program()) == ["late", None]


def test_what_waits_in_an_event_loop_comes_back_when_the_session_is_closed(connection: Connection) -> None:
    async def program() -> str | None:
        session = await a_session(connection, Session.AUTO_ACKNOWLEDGE)
        consumer = await a_consumer(session)
        waiting = asyncio.create_task(receive(consumer, None))
        while not consumer.receiving:
            await asyncio.sleep(0)
        await drive(session.close_steps())
        return await waiting

    assert asyncio.run(asyncio.wait_for(program(), PATIENCE_MS / 1000)) is None


def test_an_event_loop_acknowledges_and_recovers(connection: Connection) -> None:
    async def program() -> list[str | None]:
        session = await a_session(connection, Session.CLIENT_ACKNOWLEDGE)
        consumer = await a_consumer(session)
        await send(session, "seven")
        seen = [await receive(consumer, PATIENCE_MS)]
        await drive(session.recover_steps())
        seen.append(await receive(consumer, PATIENCE_MS))
        await drive(session.parts.client.acknowledge_steps())
        await drive(session.recover_steps())
        seen.append(await receive(consumer, 0))
        return seen

    assert asyncio.run(program()) == ["seven", "seven", None]


def test_an_answer_that_does_not_come_in_time_is_an_error_for_every_driver() -> None:
    def steps() -> Steps[None]:
        yield AnswerWait(Future[None](), 0.01, "commit")

    for ask in (lambda: run(steps()), lambda: asyncio.run(drive(steps()))):
        with pytest.raises(JMSException, match=r"commit: no answer within 0\.0 s") as caught:
            ask()
        assert caught.value.error_code == "timeout"


def test_what_a_wait_raises_is_raised_inside_the_operation() -> None:
    answer: Future[None] = Future()
    answer.set_exception(OSError("gone"))

    def steps() -> Steps[str]:
        try:
            yield AnswerWait(answer, 1.0, "commit")
        except JMSException as error:
            return str(error)
        return "no error"

    assert "gone" in run(steps())
    assert "gone" in asyncio.run(drive(steps()))


def test_a_condition_calls_once_and_not_after_it_was_cancelled() -> None:
    lock = threading.Lock()
    changed = StateCondition(lock)
    state: set[str] = set()
    calls: list[str] = []

    def first() -> None:
        calls.append("first")

    def second() -> None:
        calls.append("second")

    with changed:
        changed.call_once(lambda: "ready" in state, first)
        changed.call_once(lambda: "ready" in state, second)
        changed.notify_all()
        changed.cancel(second)
        state.add("ready")
        changed.notify_all()
        changed.notify_all()
        changed.call_once(lambda: True, second)
    assert calls == ["first", "second"]


def test_threads_and_callers_wait_for_the_same_condition() -> None:
    changed = StateCondition(threading.Lock())
    state: set[str] = set()
    blocked = in_thread(lambda: ConditionWait(changed, lambda: "ready" in state, PATIENCE_MS / 1000).block())
    wait = ConditionWait(changed, lambda: "ready" in state, None)
    calls: list[str] = []
    assert wait.subscribe(calls.append, "over")
    assert calls == []
    with changed:
        state.add("ready")
        changed.notify_all()
        state.clear()
        changed.notify_all()
    assert calls == ["over"]
    # It was true when that was called, which counts.
    assert wait.outcome()
    with changed:
        state.add("ready")
        changed.notify_all()
    assert finish(blocked)
    assert not ConditionWait(changed, lambda: "ready" in state, None).subscribe(calls.append, "not to be called")
    assert calls == ["over"]


def test_a_wait_that_is_given_up_calls_nobody() -> None:
    changed = StateCondition(threading.Lock())
    state: set[str] = set()
    wait = ConditionWait(changed, lambda: "ready" in state, None)
    calls: list[str] = []
    assert wait.subscribe(calls.append, "over")
    wait.give_up()
    with changed:
        state.add("ready")
        changed.notify_all()
    assert calls == []
    assert wait.outcome()


def test_places_of_the_window_go_to_threads_and_to_those_who_queue() -> None:
    window = Window(1)
    first, given_up, second = window.place(), window.place(), window.place()
    assert first.done()
    assert given_up.cancel()
    assert not second.done()
    window.leave()
    assert second.done()
    assert not window.enter(0)
    window.leave()
    assert window.enter(0)
