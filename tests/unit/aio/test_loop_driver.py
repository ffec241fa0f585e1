"""The driver for event loops: hand-overs from the threads of providers, turns of other tasks, many that wait."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

import jmsapi
import jmsapi.aio
from jmsapi import Message
from jmsapi._core.acknowledgement.ledger import Inbox, Ledger
from jmsapi._core.pending_sends import PendingSend, PendingSends
from jmsapi._core.waiting import AnswerWait, Deadline, PendingWait, StateCondition, Steps, Window
from jmsapi.aio.loop_driver import LoopDriver

WAIT_MS = 60_000


def waits_for(answer: Future[int]) -> Steps[int]:
    return (yield AnswerWait(answer, 30.0, "ask"))


def test_a_batch_of_answers_is_handed_over_to_the_loop_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> tuple[int, list[int]]:
        loop = asyncio.get_running_loop()
        driver = LoopDriver(loop)
        answers: list[Future[int]] = [Future() for _ in range(100)]
        tasks = [asyncio.create_task(driver.run(waits_for(answer))) for answer in answers]
        await asyncio.sleep(0)
        calls: list[object] = []
        hand_over = loop.call_soon_threadsafe

        def counted(call: Callable[..., object], *arguments: Any) -> asyncio.Handle:
            calls.append(call)
            return hand_over(call, *arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        thread = threading.Thread(target=lambda: [answer.set_result(n) for n, answer in enumerate(answers)])
        thread.start()
        # The loop stands still meanwhile, as under load.
        thread.join()
        results = await asyncio.gather(*tasks)
        return len(calls), results

    calls, results = asyncio.run(program())
    assert calls == 1
    assert results == list(range(100))


def test_what_the_loop_itself_ends_wakes_its_task_without_waking_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> int:
        loop = asyncio.get_running_loop()
        answer: Future[int] = Future()
        task = asyncio.create_task(LoopDriver(loop).run(waits_for(answer)))
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "call_soon_threadsafe", None)
        answer.set_result(7)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(program()) == 7


def test_a_send_that_the_broker_answers_in_the_call_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[PendingWait[Any]] = []
    begin = LoopDriver.begin

    def noted(driver: LoopDriver, wait: PendingWait[Any]) -> asyncio.Future[bool] | None:
        waits.append(wait)
        return begin(driver, wait)

    async def program() -> Message | None:
        async with jmsapi.aio.connection_factory(f"inproc://at-once-{uuid.uuid4().hex}").create_context() as context:
            queue, producer = context.create_queue("q"), context.create_producer()
            await producer.send(queue, "opens the producer")
            monkeypatch.setattr(LoopDriver, "begin", noted)
            monkeypatch.setattr(Window, "place", lambda _: pytest.fail("a place is free, and nobody stands in line"))
            for _ in range(10):
                await producer.send(queue, "x")
            monkeypatch.undo()
            return await (await context.create_consumer(queue)).receive(WAIT_MS)

    assert asyncio.run(program()) is not None
    assert waits == []


def test_a_place_that_is_free_goes_to_who_stands_in_line_first() -> None:
    window = Window(1)
    assert window.enter_at_once()
    assert not window.enter_at_once()
    place = window.place()
    window.leave()
    assert place.done()
    assert not window.enter_at_once()
    window.leave()
    assert window.enter_at_once()


def test_an_answer_after_the_end_of_the_loop_disturbs_nobody() -> None:
    answer: Future[int] = Future()

    async def program() -> None:
        task = asyncio.create_task(LoopDriver(asyncio.get_running_loop()).run(waits_for(answer)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(program())
    answer.set_result(1)


def test_other_tasks_have_their_turn_while_messages_are_at_hand() -> None:
    async def program() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async with jmsapi.aio.connection_factory(f"inproc://turns-{uuid.uuid4().hex}").create_context() as context:
            queue = context.create_queue("q")
            producer = context.create_producer().set_delivery_mode(1)
            ticking = asyncio.create_task(tick())
            for _ in range(500):
                await producer.send(queue, "x")
            sent = ticks
            consumer = await context.create_consumer(queue)
            for _ in range(500):
                assert await consumer.receive(WAIT_MS)
            ticking.cancel()
            assert sent >= 5
            return ticks - sent

    assert asyncio.run(program()) >= 5


@pytest.mark.timeout(180)
def test_ten_thousand_consumers_that_wait_cost_no_thread() -> None:
    many = 10_000

    async def program() -> tuple[int, int]:
        async with jmsapi.aio.connection_factory(f"inproc://many-{uuid.uuid4().hex}").create_context() as context:
            before = threading.active_count()
            names = [str(n) for n in range(many)]
            consumers = [await context.create_consumer(context.create_queue(name)) for name in names]
            waiting = [asyncio.create_task(consumer.receive()) for consumer in consumers]
            await asyncio.sleep(0)
            threads = threading.active_count() - before
            producer = context.create_producer()
            for name in names[::10]:
                await producer.send(context.create_queue(name), name)
            received: list[Message | None] = await asyncio.gather(*waiting[::10])
            right = sum(
                1 for name, message in zip(names[::10], received, strict=True) if message and message.get_body(str) == name
            )
        assert await asyncio.gather(*(task for n, task in enumerate(waiting) if n % 10)) == [None] * (many - many // 10)
        return threads, right

    assert asyncio.run(program()) == (0, many // 10)


def test_a_close_that_ends_many_receives_does_not_look_at_all_of_them_after_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    count = Ledger.in_flight

    def counted(ledger: Ledger, inboxes: Iterable[Inbox], lent: int) -> int:
        looks.append(lent)
        return count(ledger, inboxes, lent)

    async def program() -> None:
        async with jmsapi.aio.connection_factory(f"inproc://many-{uuid.uuid4().hex}").create_context() as context:
            consumers = [await context.create_consumer(context.create_queue(str(n))) for n in range(50)]
            waiting = [asyncio.create_task(consumer.receive()) for consumer in consumers]
            await asyncio.sleep(0)
            monkeypatch.setattr(Ledger, "in_flight", counted)
        assert await asyncio.gather(*waiting) == [None] * 50

    asyncio.run(program())
    assert 1 <= len(looks) < 10


def test_a_change_that_concerns_one_asks_no_other() -> None:
    changed = StateCondition(threading.Lock())
    asked: list[str] = []

    def asks(name: str) -> Callable[[], bool]:
        return lambda: bool(asked.append(name))

    one, other = object(), object()
    with changed:
        changed.call_once(asks("one"), lambda: None, one)
        changed.call_once(asks("other"), lambda: None, other)
        changed.call_once(asks("all"), lambda: None)
        asked.clear()
        changed.notify_all(one)
        assert asked == ["one"]
        changed.notify_all()
    assert asked == ["one", "one", "other", "all"]


# ---- the blocking API in an event loop -------------------------------------------------------------------------------------
def test_a_blocking_call_in_an_event_loop_is_warned_of_once_by_name() -> None:
    async def program() -> list[str]:
        factory = jmsapi.connection_factory(f"inproc://blocking-{uuid.uuid4().hex}")
        with pytest.warns(RuntimeWarning) as caught, factory.create_context() as context:
            queue = context.create_queue("q")
            producer = context.create_producer()
            consumer = context.create_consumer(queue)
            for _ in range(3):
                producer.send(queue, "x")
                consumer.receive(timeout_ms=WAIT_MS)
        assert {warning.filename for warning in caught} == {__file__}
        return [str(warning.message) for warning in caught]

    told = asyncio.run(program())
    assert all("jmsapi.aio" in one for one in told)
    for name in ("ConnectionFactory.create_context", "JMSProducer.send", "JMSConsumer.receive", "JMSContext.close"):
        assert sum(one.startswith(f"{name} blocks the event loop") for one in told) == 1, told


def test_a_blocking_call_in_a_thread_beside_the_loop_is_not_warned_of() -> None:
    def work() -> str | None:
        with jmsapi.connection_factory(f"inproc://beside-{uuid.uuid4().hex}").create_context() as context:
            context.create_producer().send(context.create_queue("q"), "x")
            return context.create_consumer(context.create_queue("q")).receive_body(str, WAIT_MS)

    async def program() -> str | None:
        return await asyncio.to_thread(work)

    assert asyncio.run(program()) == "x"


def test_async_with_on_a_blocking_context_says_where_to_find_the_other() -> None:
    async def program() -> None:
        async with context:
            raise AssertionError("entered")

    factory = jmsapi.connection_factory(f"inproc://wrong-{uuid.uuid4().hex}")
    with factory.create_context() as context, pytest.raises(TypeError, match=r"jmsapi\.aio\.connection_factory"):
        asyncio.run(program())


def test_the_refusal_of_a_coroutine_function_names_the_api_for_asyncio() -> None:
    async def on_message(message: Message) -> None:
        raise AssertionError(message)

    with jmsapi.connection_factory(f"inproc://refused-{uuid.uuid4().hex}").create_context() as context:
        consumer = context.create_consumer(context.create_queue("q"))
        with pytest.raises(jmsapi.IllegalArgumentException, match=r"jmsapi\.aio"):
            consumer.message_listener = on_message  # pyright: ignore[reportAttributeAccessIssue]


def test_an_answer_to_one_send_of_many_asks_for_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> None:
        state = StateCondition(threading.Lock())
        sends = PendingSends(cast("Any", SimpleNamespace(lock=state.lock, changed=state)), lambda _: None)
        producer: Any = SimpleNamespace(pending=0)
        made = [PendingSend(sends, producer, cast("Message", None), None, True) for _ in range(50)]
        with state:
            for each in made:
                sends.register(each)
        driver = LoopDriver(asyncio.get_running_loop())
        tasks = [asyncio.create_task(driver.run(sends.answer_steps(each, 30, lambda _: None))) for each in made]
        await asyncio.sleep(0)
        with monkeypatch.context() as patched:
            patched.setattr(state, "notify_all", lambda _=None: pytest.fail("its own task is called, and nobody else asked"))
            made[7].answered(None)
            await asyncio.wait_for(tasks[7], 30)
        assert not any(task.done() for n, task in enumerate(tasks) if n != 7)
        quiet = asyncio.create_task(driver.run(sends.quiet_steps(Deadline(30_000))))
        await asyncio.sleep(0)
        for each in made:
            each.answered(None)
        assert await asyncio.wait_for(quiet, 30)
        await asyncio.gather(*tasks)

    asyncio.run(program())


def test_who_waits_for_an_answer_is_called_without_the_lock_that_its_next_send_takes() -> None:
    state = StateCondition(threading.Lock())
    sends = PendingSends(cast("Any", SimpleNamespace(lock=state.lock, changed=state)), lambda _: None)
    send = PendingSend(sends, cast("Any", SimpleNamespace(pending=0)), cast("Message", None), None, True)
    with state:
        sends.register(send)
    calls: list[tuple[str, bool]] = []
    assert send.subscribe(lambda token: calls.append((token, state.lock.locked())), "woken")
    send.answered(None)
    send.answered(None)
    assert calls == [("woken", False)]
    assert not send.subscribe(lambda token: calls.append((token, True)), "answered already")
