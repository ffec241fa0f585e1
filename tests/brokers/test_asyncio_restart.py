"""A broker is killed and started again while tasks of ``jmsapi.aio`` wait, and while a trace goes through it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable

import pytest

import jmsapi
import jmsapi.aio
from jmsapi import Message, TransactionRolledBackRuntimeException
from jmsapi.aio import AsyncJMSContext
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, deploy
from jmsapi_conformance.brokers import Broker, BrokerKind, Wire

from ..unit.otel.watching import watching

PAIRS: list[tuple[Wire, BrokerKind]] = [("amqp", "artemis"), ("stomp", "classic")]
WAIT_S = 240.0
WAIT_MS = WAIT_S * 1000
OPTIONS = f"maxReconnectDelay=500&send_timeout_ms={WAIT_MS:.0f}&request_timeout_ms={WAIT_MS:.0f}"
TRANSACTED, AUTO = AsyncJMSContext.SESSION_TRANSACTED, AsyncJMSContext.AUTO_ACKNOWLEDGE

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]
each_pair = pytest.mark.parametrize(
    ("wire", "kind"),
    [pytest.param(wire, kind, id=f"{wire}-{kind}", marks=pytest.mark.xdist_group(f"restarts of {kind}")) for wire, kind in PAIRS],
)


class Waiting:
    """Tasks that await each kind of call, and have done so once.

    Args:
        context: Its connection is that of all of them.
    """

    def __init__(self, context: AsyncJMSContext) -> None:
        name = uuid.uuid4().hex
        self._context = context
        self.asked, self.iterated = context.create_queue(f"asked.{name}"), context.create_queue(f"iterated.{name}")
        self._sent = context.create_queue(f"sent.{name}")
        self._under_way: list[asyncio.Event] = []
        self.tasks: dict[str, asyncio.Task[object]] = {}

    async def begin(self) -> None:
        """Start them, and return when all are under way."""
        for call in (self._send, self._commit, self._receive, self._iterate):
            under_way = asyncio.Event()
            self._under_way.append(under_way)
            self.tasks[call.__name__.lstrip("_")] = asyncio.create_task(call(under_way))
        for event in self._under_way:
            await asyncio.wait_for(event.wait(), WAIT_S)

    async def _send(self, under_way: asyncio.Event) -> None:
        producer = self._context.create_producer()
        while True:
            await producer.send(self._sent, "x")
            under_way.set()

    async def _commit(self, under_way: asyncio.Event) -> None:
        async with self._context.create_context(TRANSACTED) as own:
            producer = own.create_producer()
            while True:
                async with own.transaction():
                    await producer.send(self._sent, "x")
                under_way.set()

    async def _receive(self, under_way: asyncio.Event) -> Message | None:
        async with self._context.create_context(AUTO) as own, await own.create_consumer(self.asked) as consumer:
            under_way.set()
            return await consumer.receive(WAIT_MS)

    async def _iterate(self, under_way: asyncio.Event) -> Message | None:
        async with self._context.create_context(AUTO) as own, await own.create_consumer(self.iterated) as consumer:
            under_way.set()
            async for message in consumer:
                return message
            return None


def tells(error: BaseException | None) -> bool:
    """Return whether an error says what a killed broker may have done with what it was asked."""
    code = getattr(error, "error_code", None)
    return isinstance(error, TransactionRolledBackRuntimeException) or code in ("in-doubt", "connection")


@each_pair
def test_tasks_that_wait_are_told_when_their_broker_is_killed(
    wire: Wire, kind: BrokerKind, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = restarted_broker(kind)

    async def program() -> None:
        context = await jmsapi.aio.connection_factory(broker.url(wire), checked=True).create_context()
        try:
            waiting = Waiting(context)
            await waiting.begin()
            await asyncio.to_thread(broker.kill)
            await asyncio.wait(waiting.tasks.values(), timeout=WAIT_S)
            for name, task in waiting.tasks.items():
                assert task.done(), name
                assert tells(task.exception()), f"{name}: {task.exception()!r}"
        finally:
            await asyncio.wait_for(context.close(), WAIT_S)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        asyncio.run(program())
    finally:
        broker.restart(ready_s=240)


@each_pair
def test_tasks_that_wait_go_on_over_a_restart_of_their_broker(
    wire: Wire, kind: BrokerKind, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker = restarted_broker(kind)
    factory = jmsapi.aio.connection_factory(f"failover:({broker.url(wire)})?{OPTIONS}", checked=True)

    async def program() -> None:
        async with factory.create_context() as context:
            waiting = Waiting(context)
            await waiting.begin()
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.restart, ready_s=240)
            producer = context.create_producer()
            for queue in (waiting.asked, waiting.iterated):
                await asyncio.wait_for(producer.send(queue, "afterwards"), WAIT_S)
            for name in ("receive", "iterate"):
                message = await asyncio.wait_for(waiting.tasks.pop(name), WAIT_S)
                assert isinstance(message, Message)
                assert message.get_body(str) == "afterwards"
            # These have ended if an answer was on its way, and go on if not.
            for task in waiting.tasks.values():
                task.cancel()
            await asyncio.wait(waiting.tasks.values(), timeout=WAIT_S)
            for name, task in waiting.tasks.items():
                assert task.done(), name
                assert task.cancelled() or tells(task.exception()), f"{name}: {task.exception()!r}"
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(program())


@each_pair
def test_a_trace_stays_one_over_a_killed_broker(
    wire: Wire, kind: BrokerKind, restarted_broker: Callable[[BrokerKind], Broker]
) -> None:
    broker, name = restarted_broker(kind), f"traced.{uuid.uuid4().hex}"
    url = f"failover:({broker.url(wire)})?{OPTIONS}"
    entered, leave, again = threading.Event(), threading.Event(), threading.Event()

    @JMSQueueListener()
    @JMSListenerProperty("destination", name)
    def on_order(message: Message) -> None:
        if entered.is_set():
            again.set()
            return
        entered.set()
        assert leave.wait(WAIT_S)

    async def send() -> None:
        async with jmsapi.aio.connection_factory(url).create_context() as context:
            await context.create_producer().send(context.create_queue(name), "a kettle")

    with watching() as watched:
        with deploy(on_order, factory=jmsapi.connection_factory(url), on_error=lambda name, error: None):
            asyncio.run(send())
            assert entered.wait(WAIT_S)
            broker.kill()
            leave.set()
            broker.restart(ready_s=240)
            # The broker forgot that it had handed the message out, or hands it out again because its client was gone.
            assert again.wait(WAIT_S)
        spans = [span for span in watched.spans if span.name.endswith(name)]
        assert watched.tree().splitlines()[0] == f"send {name} (producer)"
    processed = [span for span in spans if span.name == f"process {name}"]
    assert len(processed) >= 2, watched.tree()
    assert {span.context.trace_id for span in spans if span.context is not None} == {
        span.context.trace_id for span in spans[:1] if span.context is not None
    }, watched.tree()
