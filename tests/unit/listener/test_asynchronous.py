"""Asynchronous callbacks: tasks of one event loop, with the transactions, limits and redelivery of callbacks in threads."""

from __future__ import annotations

import asyncio
import functools
import threading
import warnings
from collections import Counter
from collections.abc import Awaitable, Iterator
from typing import Annotated, Any

import pytest

from jmsapi import JMSContext, Message, MessageListener
from jmsapi.injection import Inject
from jmsapi.listener import (
    Deployment,
    JMSListenerProperty,
    JMSQueueListener,
    MessageDriven,
    MessageDrivenContext,
    MessageEndpoint,
    deploy,
    message_driven_context,
)

from .bench import WAIT_S, Bench, a_bench, ignore, wait_until


@pytest.fixture
def bench() -> Iterator[Bench]:
    with a_bench() as made:
        yield made


def deployed(bench: Bench, target: Any, **terms: Any) -> Deployment:
    """Deploy a callback on the queue ``q``; ``terms`` are activation properties."""
    of_deploy: dict[str, Any] = {name: terms.pop(name) for name in ("on_error", "start", "wrap") if name in terms}
    if not isinstance(target, type):
        target = JMSQueueListener()(target)
    driven = MessageDriven({"destination": "q", **terms}, name="listener")(target)
    of_deploy.setdefault("on_error", ignore)
    return deploy(driven, factory=bench.factory, **of_deploy)


def test_many_callbacks_run_at_once_up_to_the_limit_and_need_no_thread_each(bench: Bench) -> None:
    inside: list[str] = []
    most: list[int] = []
    go_on = threading.Event()
    threads: set[str] = set()

    async def on_message(text: str) -> None:
        inside.append(text)
        threads.add(threading.current_thread().name)
        most.append(len(inside))
        while not go_on.is_set():
            await asyncio.sleep(0.002)
        inside.remove(text)

    before = threading.active_count()
    with deployed(bench, on_message, concurrency="50", prefetch="1") as deployment:
        bench.send(*map(str, range(120)))
        wait_until(lambda: len(inside) == 50, "fifty callbacks run")
        assert threading.active_count() - before < 15
        go_on.set()
        wait_until(lambda: deployment.health.endpoints[0].delivered == 120, "all are delivered")
    assert max(most) == 50
    assert threads == {"jmsapi-listener-loop"}
    assert bench.left() == []
    wait_until(lambda: threading.active_count() <= before, "its threads have ended")


def test_what_is_sent_and_what_is_received_are_one_transaction(bench: Bench) -> None:
    tries: Counter[str] = Counter()

    async def on_message(text: str, container: MessageDrivenContext) -> None:
        session = container.session

        def send() -> None:
            with session.create_producer(session.create_queue("out")) as producer:
                producer.send(session.create_text_message(text))

        await asyncio.to_thread(send)
        tries[text] += 1
        if text == "marked" and tries[text] == 1:
            message_driven_context().set_rollback_only()
        if text == "failing" and tries[text] < 3:
            raise ValueError(text)
        if text == "poison":
            raise ValueError(text)

    terms = {"redeliveryLimit": "4", "deadLetterDestination": "dead", "concurrency": "3"}
    with deployed(bench, on_message, **terms) as deployment:
        bench.send("plain", "marked", "failing", "poison")
        wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "the poison is given up")
        wait_until(lambda: tries["failing"] == 3 and tries["marked"] == 2, "the others have succeeded")
    assert sorted(text for text, _ in bench.left("out")) == ["failing", "marked", "plain"]
    assert [text for text, _ in bench.left("dead")] == ["poison"]
    assert bench.left() == []
    assert tries["poison"] == 5


def test_plain_and_asynchronous_callbacks_live_in_one_deployment_and_one_class(bench: Bench) -> None:
    class Both:
        def __init__(self) -> None:
            self.seen = seen

        @JMSQueueListener()
        def plain(self, text: str) -> None:
            self.seen.append(("plain", text, threading.current_thread().name))

        @JMSQueueListener()
        async def later(self, text: str) -> None:
            await asyncio.sleep(0)
            self.seen.append(("later", text, threading.current_thread().name))

    seen: list[tuple[str, str, str]] = []
    descriptor = {"both.plain": {"destination": "p"}, "both.later": {"destination": "l"}}
    with deploy(MessageDriven(name="both")(Both), factory=bench.factory, descriptor=descriptor):
        bench.send("1", queue="p")
        bench.send("2", queue="l")
        wait_until(lambda: len(seen) == 2, "both are called")
    assert {(kind, text) for kind, text, _ in seen} == {("plain", "1"), ("later", "2")}
    assert {name for kind, _, name in seen if kind == "later"} == {"jmsapi-listener-loop"}


def test_a_batch_is_one_call(bench: Bench) -> None:
    seen: list[list[str]] = []

    async def on_batch(texts: list[str]) -> None:
        await asyncio.sleep(0)
        seen.append(texts)

    bench.send(*map(str, range(10)))
    with deployed(bench, on_batch, batchSize="4", batchWaitMs="200", concurrency="1"):
        wait_until(lambda: sum(map(len, seen)) == 10, "all are seen")
    assert [len(one) for one in seen] == [4, 4, 2]
    assert [text for one in seen for text in one] == list(map(str, range(10)))


async def _noted(seen: list[str], text: str) -> None:
    await asyncio.sleep(0)
    seen.append(text)


def forms(seen: list[str]) -> dict[str, Any]:
    """Return callbacks that are asynchronous in one way or another."""

    def returns(text: str) -> Any:
        return _noted(seen, text)

    def says_so(text: str) -> Awaitable[None]:
        return _noted(seen, text)

    class Called:
        @JMSQueueListener()
        async def __call__(self, text: str) -> None:
            await _noted(seen, text)

    class Driven(MessageListener):
        async def on_message(self, message: Message) -> None:  # type: ignore[override]
            await _noted(seen, str(message.get_body(str)))

    return {"returns": returns, "says so": says_so, "__call__": Called, "on_message": Driven}


@pytest.mark.parametrize("form", ["returns", "says so", "__call__", "on_message"])
def test_every_form_is_awaited_before_its_message_is_acknowledged(bench: Bench, form: str) -> None:
    seen: list[str] = []
    with deployed(bench, forms(seen)[form], destinationType="javax.jms.Queue"):
        bench.send("a", "b")
        wait_until(lambda: len(seen) == 2, "both are awaited")
    assert sorted(seen) == ["a", "b"]
    assert bench.left() == []


def test_a_failure_of_what_a_plain_function_returned_is_its_own(bench: Bench) -> None:
    tries: list[str] = []

    async def fails_once(text: str) -> None:
        await asyncio.sleep(0)
        tries.append(text)
        if len(tries) == 1:
            raise ValueError(text)

    def on_message(text: str) -> Any:
        return fails_once(text)

    with deployed(bench, on_message):
        bench.send("a")
        wait_until(lambda: len(tries) == 2, "it comes again")
    assert bench.left() == []


def test_contexts_that_are_injected_join_the_transaction(bench: Bench) -> None:
    tries: list[str] = []

    async def on_message(text: str, jms: Annotated[JMSContext, Inject()]) -> None:
        await asyncio.to_thread(lambda: jms.create_producer().send(jms.create_queue("out"), text))
        tries.append(text)
        if len(tries) == 1:
            raise ValueError(text)

    with deployed(bench, on_message):
        bench.send("a")
        wait_until(lambda: len(tries) == 2, "it comes again")
    assert [text for text, _ in bench.left("out")] == ["a"]


def test_instances_are_bounded_without_blocking_the_loop(bench: Bench) -> None:
    inside: list[object] = []
    most: list[int] = []

    class Few:
        @JMSQueueListener()
        async def on_message(self, text: str) -> None:
            inside.append(self)
            most.append(len(inside))
            await asyncio.sleep(0.01)
            inside.remove(self)

    with deployed(bench, Few, maxInstances="2", concurrency="6") as deployment:
        bench.send(*map(str, range(12)))
        wait_until(lambda: deployment.health.endpoints[0].delivered == 12, "all are delivered")
    assert max(most) == 2


def test_a_callback_that_runs_at_the_end_of_the_deadline_is_cancelled_and_its_message_comes_again(bench: Bench) -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def on_message(text: str) -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    deployment = deployed(bench, on_message, redeliveryLimit="0", deadLetterDestination="dead")
    bench.send("a")
    assert began.wait(WAIT_S)
    assert deployment.stop(400) is False
    assert cancelled.is_set()
    assert deployment.wait(WAIT_S * 1000)
    assert [text for text, _ in bench.left()] == ["a"]
    assert bench.left("dead") == []


def test_a_callback_that_never_awaits_holds_up_neither_connections_nor_plain_callbacks_nor_the_stop(bench: Bench) -> None:
    inside, over = threading.Event(), threading.Event()
    seen: list[str] = []

    async def on_message(_: str) -> None:
        inside.set()
        while not over.is_set():
            pass

    @JMSQueueListener()
    @JMSListenerProperty("destination", "plain")
    def plain(text: str) -> None:
        seen.append(text)

    with deploy(plain, factory=bench.factory, on_error=ignore):
        deployment = deployed(bench, on_message)
        try:
            bench.send("x")
            assert inside.wait(WAIT_S)
            bench.send("y", queue="plain")
            wait_until(lambda: seen == ["y"], "a plain callback has its message")
            assert not deployment.stop(300)
            wait_until(lambda: bench.left() == [("x", 2)], "its message comes again")
        finally:
            over.set()


def test_a_callback_that_cancels_itself_has_failed(bench: Bench) -> None:
    tries: list[str] = []

    async def on_message(text: str) -> None:
        tries.append(text)
        if len(tries) == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)

    with deployed(bench, on_message):
        bench.send("a")
        wait_until(lambda: len(tries) == 2, "it comes again")
    assert bench.left() == []


def test_callbacks_run_in_the_loop_that_starts_the_deployment(bench: Bench) -> None:
    async def main() -> None:
        loops: list[asyncio.AbstractEventLoop] = []
        done = asyncio.Event()

        async def on_message(text: str) -> None:
            loops.append(asyncio.get_running_loop())
            done.set()

        async with deployed(bench, on_message, start=False) as deployment:
            await asyncio.to_thread(bench.send, "a")
            async with asyncio.timeout(WAIT_S):
                await done.wait()
            assert loops == [asyncio.get_running_loop()]
        assert deployment.wait(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
    assert bench.left() == []


def test_a_stop_inside_of_a_callback_only_begins_it(bench: Bench) -> None:
    found: list[bool] = []

    async def on_message(text: str) -> None:
        found.append(await deployments[0].stop_async())

    deployments = [deployed(bench, on_message)]
    bench.send("a")
    assert deployments[0].wait(WAIT_S * 1000)
    assert found == [False]
    assert bench.left() == []


def test_a_loop_that_ends_without_a_stop_loses_nothing(bench: Bench) -> None:
    async def main() -> Deployment:
        began = asyncio.Event()

        async def on_message(text: str) -> None:
            began.set()
            await asyncio.sleep(3600)

        deployment = deployed(bench, on_message, start=False)
        await deployment.start_async()
        await asyncio.to_thread(bench.send, "a")
        async with asyncio.timeout(WAIT_S):
            await began.wait()
        return deployment

    deployment = asyncio.run(main())
    deployment.stop(2000)
    assert [text for text, _ in bench.left()] == ["a"]


class _Around:
    """Stands around an endpoint, and treats what its ``on_message`` returns in one of several ways."""

    def __init__(self, below: MessageEndpoint, way: str) -> None:
        self._below = below
        self._way = way

    def before_delivery(self) -> None:
        """Pass it on."""
        self._below.before_delivery()

    def on_message(self, message: Any) -> Any:
        """Return, await, or lose it."""
        returned = self._below.on_message(message)
        if self._way == "returns":
            return returned
        if self._way == "awaits":
            return self._awaits(returned)
        return None

    async def _awaits(self, returned: Any) -> None:
        await returned

    def after_delivery(self) -> None:
        """Pass it on."""
        self._below.after_delivery()


@pytest.mark.parametrize("way", ["returns", "awaits"])
def test_what_is_put_around_an_endpoint_returns_or_awaits(bench: Bench, way: str) -> None:
    seen: list[str] = []

    async def on_message(text: str) -> None:
        await _noted(seen, text)

    with deployed(bench, on_message, wrap=functools.partial(_Around, way=way)):
        bench.send("a")
        wait_until(lambda: seen, "it is called")
    assert bench.left() == []


class _Ending:
    """Put around an endpoint: ends what calls it, once, before or while it is called."""

    def __init__(self, below: MessageEndpoint, *, ends: list[BaseException], when: str) -> None:
        self._below, self._ends, self._when = below, ends, when

    def before_delivery(self) -> None:
        """End it, or pass it on."""
        self._end("before")
        self._below.before_delivery()

    def on_message(self, message: Any) -> Any:
        """End it, or pass it on, or end it when that is awaited."""
        self._end("call")
        returned = self._below.on_message(message)
        return self._awaits(returned) if self._when == "await" else returned

    async def _awaits(self, returned: Any) -> None:
        await returned
        self._end("await")

    def _end(self, when: str) -> None:
        if when == self._when and self._ends:
            raise self._ends.pop()

    def after_delivery(self) -> None:
        """Pass it on."""
        self._below.after_delivery()


@pytest.mark.parametrize("when", ["before", "call", "await"])
@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_is_put_around_an_endpoint_ends_no_loop(bench: Bench, end: type[BaseException], when: str) -> None:
    seen: list[str] = []
    errors: list[BaseException] = []

    async def on_message(text: str) -> None:
        await _noted(seen, text)

    def on_error(_: str, error: BaseException) -> None:
        errors.append(error)

    ends: list[BaseException] = [end()]
    with deployed(bench, on_message, wrap=functools.partial(_Ending, ends=ends, when=when), on_error=on_error):
        bench.send("a")
        wait_until(lambda: errors, "its failure is told")
        bench.send("b")
        wait_until(lambda: len(seen) >= 2 and "b" in seen, "callbacks go on")
    assert set(seen) == {"a", "b"}
    assert not ends
    assert bench.left() == []


def test_what_is_put_around_an_endpoint_and_does_not_await_has_failed(bench: Bench) -> None:
    errors: list[str] = []

    async def on_message(text: str) -> None:
        raise AssertionError("it is never awaited")

    def on_error(_: str, error: BaseException) -> None:
        errors.append(str(error))

    terms = {"redeliveryLimit": "1", "deadLetterDestination": "dead", "on_error": on_error}
    with deployed(bench, on_message, wrap=functools.partial(_Around, way="loses"), **terms) as deployment:
        bench.send("a")
        wait_until(lambda: deployment.health.endpoints[0].given_up == 1, "it is given up")
    assert "did not await" in errors[0]
    assert [text for text, _ in bench.left("dead")] == ["a"]
