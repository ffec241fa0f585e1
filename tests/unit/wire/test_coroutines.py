"""Coroutines that whoever ends their wait runs on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from jmsapi.testing import HandClock
from jmsapi.wire import Promise, Waits, answer_of, run, spawn


async def doubled(promise: Promise[int]) -> int:
    return 2 * await promise


def test_a_coroutine_goes_on_when_its_promise_is_resolved() -> None:
    promise: Promise[int] = Promise()
    future: Future[int] = Future()
    run(doubled(promise), future)
    assert not future.done()
    promise.resolve(4)
    promise.resolve(5)
    assert (future.result(0), promise.done) == (8, True)


def test_the_error_of_a_promise_is_raised_where_it_is_awaited() -> None:
    promise: Promise[int] = Promise()
    future: Future[int] = Future()
    run(doubled(promise), future)
    error = ValueError("refused")
    promise.fail(error)
    promise.resolve(5)
    assert future.exception(0) is error


def test_ten_thousand_promises_that_are_done_already_need_no_stack() -> None:
    async def many() -> int:
        total = 0
        for number in range(10_000):
            promise: Promise[int] = Promise()
            promise.when_done(lambda: None)
            promise.resolve(number)
            total += await promise
            total += await promise
        return total

    future: Future[int] = Future()
    run(many(), future)
    assert future.result(0) == 2 * sum(range(10_000))


def test_a_wait_that_ends_while_it_is_subscribed_to_needs_no_stack() -> None:
    class AtOnce:
        def subscribe(self, resume: Callable[[], None]) -> bool:
            return False

        def __await__(self):  # type: ignore[no-untyped-def]
            yield self

    async def many() -> int:
        for _ in range(10_000):
            await AtOnce()
        return 1

    future: Future[int] = Future()
    run(many(), future)
    assert future.result(0) == 1


def test_a_cancelled_future_keeps_its_coroutine_from_beginning() -> None:
    begun: list[int] = []

    async def steps() -> None:
        begun.append(1)

    future: Future[None] = Future()
    future.cancel()
    run(steps(), future)
    assert begun == []


def test_a_call_that_answers_by_callback_is_awaited() -> None:
    asked: list[Callable[[Exception | None], None]] = []

    async def steps() -> str:
        await answer_of(asked.append)
        try:
            await answer_of(asked.append)
        except ValueError as refused:
            return str(refused)
        return "granted"

    future: Future[str] = Future()
    run(steps(), future)
    asked[0](None)
    assert not future.done()
    asked[1](ValueError("no"))
    assert future.result(0) == "no"


def test_what_fails_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        raise ValueError("nobody waits for this")

    spawn(steps(), logging.getLogger("jmsapi.wire.test"))
    assert [record.getMessage() for record in caplog.records] == ["in the background: nobody waits for this"]


def test_a_wait_ends_with_its_future_with_time_or_when_it_is_interrupted() -> None:
    clock = HandClock()
    waits = Waits(clock)
    answer: Future[int] = Future()
    seen: list[bool] = []

    async def steps() -> None:
        seen.append(await waits.done(answer, 5.0))
        seen.append(await waits.done(Future(), 5.0))
        seen.append(await waits.done(Future(), None))

    future: Future[None] = Future()
    run(steps(), future)
    answer.set_result(1)
    assert seen == [True]
    clock.advance(seconds=5)
    assert seen == [True, False]
    waits.interrupt()
    future.result(0)
    assert seen == [True, False, False]
