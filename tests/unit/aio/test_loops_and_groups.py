"""``jmsapi.aio`` in other loops, in groups of tasks and under timeouts; and whoever calls from where they should not."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

import jmsapi.aio
from jmsapi import IllegalStateRuntimeException, JMSRuntimeException
from jmsapi.aio import AsyncConnectionFactory, AsyncJMSContext, CancelledBeforehand, cancelled_call

WAIT_MS = 20_000
TRANSACTED, CLIENT, AUTO = (
    AsyncJMSContext.SESSION_TRANSACTED,
    AsyncJMSContext.CLIENT_ACKNOWLEDGE,
    AsyncJMSContext.AUTO_ACKNOWLEDGE,
)


def a_factory(**options: object) -> AsyncConnectionFactory:
    return jmsapi.aio.connection_factory(f"inproc://loops-{uuid.uuid4().hex}", checked=True, **options)


def eager(program: Any) -> Any:
    """Run a program in a loop whose tasks begin at once, in the call that makes them."""
    factory = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        program.close()
        pytest.skip("tasks begin at once from Python 3.12 on")
    with asyncio.Runner() as runner:
        runner.get_loop().set_task_factory(factory)
        return runner.run(program)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run, eager], ids=["asyncio", "uvloop", "eager tasks"])
def test_groups_of_tasks_send_and_receive_side_by_side(run: Callable[[Any], Any]) -> None:
    async def program() -> list[str]:
        got: list[str] = []
        async with a_factory().create_context(TRANSACTED) as context:
            queue = context.create_queue("q")

            async def take() -> None:
                async with context.create_context(AUTO) as own:
                    consumer = await own.create_consumer(queue)
                    while (text := await consumer.receive_body(str, WAIT_MS)) != "end":
                        got.append(str(text))

            async with asyncio.timeout(WAIT_MS / 1000), asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(take())
                async with context.transaction():
                    await asyncio.gather(*[context.create_producer().send(queue, str(n)) for n in range(30)])
                async with context.transaction():
                    for _ in range(3):
                        await context.create_producer().send(queue, "end")
        return sorted(got, key=int)

    assert run(program()) == [str(n) for n in range(30)]


def test_a_group_tells_what_became_of_the_sends_that_a_failure_cancelled() -> None:
    told: list[object] = []

    async def program() -> None:
        async with a_factory(max_in_flight=1).create_context() as context:
            producer = context.create_producer()
            queue = context.create_queue("q")

            async def send() -> None:
                try:
                    await producer.send(queue, "x")
                except asyncio.CancelledError as error:
                    told.append(cancelled_call(error))
                    raise

            async def fail() -> None:
                raise ZeroDivisionError

            with pytest.raises(ExceptionGroup) as caught:
                async with asyncio.TaskGroup() as group:
                    group.create_task(fail())
                    for _ in range(5):
                        group.create_task(send())
            assert caught.group_contains(ZeroDivisionError)

    asyncio.run(program())
    assert all(isinstance(one, CancelledBeforehand) for one in told)


def test_a_timeout_of_a_receive_is_of_asyncio_and_takes_nothing() -> None:
    async def program() -> str | None:
        async with a_factory().create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await consumer.receive()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.receive(), 0.02)
            await context.create_producer().send(context.create_queue("q"), "kept")
            return await consumer.receive_body(str, WAIT_MS)

    assert asyncio.run(program()) == "kept"


# ---- from where they should not be called -------------------------------------------------------------------------------
CALLS: dict[str, Callable[[AsyncJMSContext, Any, Any], Awaitable[object]]] = {
    "send": lambda context, _, __: context.create_producer().send(context.create_queue("q"), "x"),
    "create_consumer": lambda context, _, __: context.create_consumer(context.create_queue("q")),
    "create_browser": lambda context, _, __: context.create_browser(context.create_queue("q")),
    "create_temporary_queue": lambda context, _, __: context.create_temporary_queue(),
    "receive": lambda _, consumer, __: consumer.receive(1),
    "receive_no_wait": lambda _, consumer, __: consumer.receive_no_wait(),
    "anext": lambda _, consumer, __: anext(consumer),
    "commit": lambda context, _, __: context.commit(),
    "rollback": lambda context, _, __: context.rollback(),
    "unsubscribe": lambda context, _, __: context.unsubscribe("name"),
    "start": lambda context, _, __: context.start(),
    "stop": lambda context, _, __: context.stop(),
    "close": lambda context, _, __: context.close(),
    "close the consumer": lambda _, consumer, __: consumer.close(),
    "look": lambda _, __, browser: anext(aiter(browser)),
    "close the browser": lambda _, __, browser: browser.close(),
    "a further context": lambda context, _, __: context.create_context(AUTO).__aenter__(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_from_another_loop_in_a_thread_is_refused_by_name_and_harms_nothing(call: str) -> None:
    raised: list[BaseException] = []

    async def elsewhere(objects: tuple[Any, Any, Any]) -> None:
        await CALLS[call](*objects)

    def in_thread(objects: tuple[Any, Any, Any]) -> None:
        try:
            asyncio.run(elsewhere(objects))
        except BaseException as error:
            raised.append(error)

    async def program() -> list[str | None]:
        async with a_factory().create_context(TRANSACTED) as context:
            queue = context.create_queue("q")
            await context.create_producer().send(queue, "first")
            await context.commit()
            consumer, browser = await context.create_consumer(queue), await context.create_browser(context.create_queue("b"))
            thread = threading.Thread(target=in_thread, args=[(context, consumer, browser)])
            thread.start()
            await asyncio.to_thread(thread.join, WAIT_MS / 1000)
            # Whatever the other thread tried, all of it goes on here.
            return [await consumer.receive_body(str, WAIT_MS)]

    assert asyncio.run(program()) == ["first"]
    (error,) = raised
    assert isinstance(error, IllegalStateRuntimeException)
    assert error.error_code == "wrong-loop"


def test_a_loop_that_ends_before_its_context_is_closed_leaves_nothing_that_hangs() -> None:
    contexts: list[AsyncJMSContext] = []

    async def program() -> None:
        context = await a_factory().create_context()
        contexts.append(context)
        consumer = await context.create_consumer(context.create_queue("q"))
        context.create_producer()
        asyncio.create_task(consumer.receive())  # noqa: RUF006  nobody waits for it
        await asyncio.sleep(0.01)

    before = threading.active_count()
    asyncio.run(program())
    with pytest.raises(JMSRuntimeException, match="another event loop"):
        asyncio.run(sent(contexts[0]))
    asyncio.run(contexts[0].close())
    assert threading.active_count() <= before
    with pytest.raises(JMSRuntimeException, match="closed"):
        contexts[0].create_queue("q")


async def sent(context: AsyncJMSContext) -> None:
    await context.create_producer().send(context.create_queue("q"), "x")


def test_a_context_that_is_closed_while_its_session_opens_leaves_no_session() -> None:
    async def program() -> int:
        async with a_factory().create_context() as context:
            own = await context.create_context(AUTO)
            opening = asyncio.create_task(own.open_session())
            await asyncio.sleep(0)
            await own.close()
            with pytest.raises(IllegalStateRuntimeException, match="closed"):
                await opening
            return len(list(context.connection.session_parts()))

    assert asyncio.run(program()) == 0
