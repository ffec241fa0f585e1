"""Deployments that an event loop starts and stops: its tasks go on meanwhile, and a cancelled one leaves nothing running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from jmsapi import JMSContext, Message
from jmsapi.injection import Inject, Injector
from jmsapi.listener import DeploymentException, EndpointState, JMSListenerProperty, JMSQueueListener, deploy

from .bench import WAIT_S, Bench, Gate, a_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with a_bench() as made:
        yield made


async def ticks(while_running: asyncio.Task[Any]) -> int:
    """Count how often the loop has its turn while a task runs."""
    count = 0
    while not while_running.done():
        await asyncio.sleep(0.005)
        count += 1
    return count


def test_a_deployment_lives_as_long_as_an_async_with_block(bench: Bench) -> None:
    handled = threading.Event()

    async def main() -> None:
        with bench.listening(lambda _: handled.set(), start=False) as deployment:
            async with deployment as entered:
                assert entered is deployment
                await asyncio.to_thread(bench.send, "text")
                assert await asyncio.to_thread(handled.wait, WAIT_S)
            assert {one.state for one in deployment.health.endpoints} == {EndpointState.STOPPED}

    asyncio.run(main())


def test_the_loop_goes_on_while_a_deployment_waits_for_a_callback_to_end(bench: Bench) -> None:
    gate = Gate()

    async def main() -> None:
        with bench.listening(gate, start=False) as deployment:
            await deployment.start_async()
            await asyncio.to_thread(bench.send, "text")
            while not gate.inside:
                await asyncio.sleep(0.002)
            stopping = asyncio.create_task(deployment.stop_async(WAIT_S * 1000))
            asyncio.get_running_loop().call_later(0.2, gate.open.set)
            assert await ticks(stopping) > 3
            assert stopping.result() is True

    asyncio.run(main())


def test_what_start_raises_comes_out_of_the_async_with_block(bench: Bench) -> None:
    @JMSQueueListener()
    @JMSListenerProperty("destination", "q")
    @JMSListenerProperty("messageSelector", "no selector at all (")
    def on_message(message: Message) -> None:
        """Be never called."""

    async def main() -> None:
        async with deploy(on_message, factory=bench.factory, start=False):
            raise AssertionError("it cannot be activated")

    with pytest.raises(DeploymentException):
        asyncio.run(main())


def test_a_start_that_is_cancelled_leaves_nothing_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    connecting, go_on = threading.Event(), threading.Event()
    connect = type(bench.factory).create_connection

    def slowly(factory: Any, *args: Any) -> Any:
        connecting.set()
        go_on.wait(WAIT_S)
        return connect(factory, *args)

    async def main() -> None:
        with bench.listening(lambda _: None, start=False) as deployment:
            monkeypatch.setattr(type(bench.factory), "create_connection", slowly)
            starting = asyncio.create_task(deployment.start_async())
            assert await asyncio.to_thread(connecting.wait, WAIT_S)
            starting.cancel()
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await starting
            assert {one.state for one in deployment.health.endpoints} == {EndpointState.STOPPED}

    asyncio.run(main())


def test_contexts_of_an_injected_coroutine_are_closed_beside_the_loop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    closed_on: list[threading.Thread] = []
    made: list[JMSContext] = []
    create = bench.factory.create_context

    def noting(**terms: Any) -> JMSContext:
        context = create(**terms)
        close = context.close

        def noted() -> None:
            closed_on.append(threading.current_thread())
            close()

        monkeypatch.setattr(context, "close", noted)
        made.append(context)
        return context

    monkeypatch.setattr(bench.factory, "create_context", noting)
    injector = Injector(bench.factory)

    @injector.inject
    async def place(jms: Annotated[JMSContext, Inject()]) -> None:
        await asyncio.to_thread(jms.create_message)

    asyncio.run(place())
    assert len(made) == len(closed_on) == 1
    assert closed_on[0] is not threading.current_thread()


def test_an_injected_coroutine_that_uses_no_context_makes_none(bench: Bench) -> None:
    injector = Injector("no such factory")

    @injector.inject
    async def place(jms: Annotated[JMSContext, Inject()]) -> str:
        return "done"

    assert asyncio.run(place()) == "done"
