"""What becomes of a call that is cancelled: one test for each line of the table in docs/asyncio.md."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

import jmsapi.aio
from jmsapi import IllegalStateRuntimeException, Message
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.aio import (
    AsyncConnectionFactory,
    AsyncJMSContext,
    CancelledBeforehand,
    CancelledCall,
    CancelledInDoubt,
    CancelledTooLate,
    cancelled_call,
)
from jmsapi.spi import Address, ConsumerSpec, Envelope, Handle, Outcome, Provider, Tag, failed

WAIT_S = 20.0
WAIT_MS = 20_000
TRANSACTED = AsyncJMSContext.SESSION_TRANSACTED
CLIENT = AsyncJMSContext.CLIENT_ACKNOWLEDGE


class Silent(Forwarding):
    """Passes calls down, and keeps the answers back of those that are named.

    Args:
        provider: The one below.
        calls: Names of its calls.
    """

    def __init__(self, provider: Provider, *calls: str) -> None:
        super().__init__(provider)
        self.calls = set(calls)
        self.kept: list[Future[Any]] = []
        self.asked: list[str] = []
        self.released: list[Handle] = []
        self.removed: list[Address | str] = []
        self.reached = asyncio.Event()

    def _answer(self, call: str, answer: Future[Any]) -> Future[Any]:
        self.asked.append(call)
        if call not in self.calls:
            return answer
        late: Future[Any] = Future()
        self.kept.append(late)
        self.reached.set()
        return late

    def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
        self.asked.append("send")
        if "send" in self.calls:
            self.reached.set()
        else:
            super().send(producer, envelope, tx, token)

    def take_back(self, token: object) -> None:
        self.asked.append("take_back")

    def end(self, tx: Handle, *, commit: bool) -> Future[None]:
        return self._answer("end", super().end(tx, commit=commit))

    def begin(self, session: Handle) -> Future[Handle]:
        return self._answer("begin", super().begin(session))

    def close(self) -> Future[None]:
        return self._answer("close", super().close())

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        return self._answer("settle", super().settle(tags, outcome, tx, failures))

    def open_consumer(self, session: Handle, spec: ConsumerSpec) -> Future[Handle]:
        opened = super().open_consumer(session, spec)
        if "open_consumer" not in self.calls:
            return opened
        late: Future[Handle] = Future()
        self.kept.append(late)
        self.reached.set()
        self.opened = opened.result(0)
        return late

    def create_temporary(self, session: Handle, *, topic: bool) -> Future[Address]:
        created = super().create_temporary(session, topic=topic)
        if "create_temporary" in self.calls:
            self.created = created.result(0)
        return self._answer("create_temporary", created)

    def remove(self, session: Handle, what: Address | str) -> Future[None]:
        self.removed.append(what)
        return self._answer("remove", super().remove(session, what))

    def release(self, handle: Handle) -> Future[None]:
        self.released.append(handle)
        return super().release(handle)


def a_factory(**options: object) -> AsyncConnectionFactory:
    return jmsapi.aio.connection_factory(f"inproc://cancelled-{uuid.uuid4().hex}", checked=True, **options)


def silence(context: AsyncJMSContext, *calls: str) -> Silent:
    """Keep the broker's answers to these calls back."""
    link = context.connection.link
    silent = Silent(link.provider, *calls)
    link.provider = silent
    return silent


def text(message: Message | None) -> str | None:
    return None if message is None else message.get_body(str)


async def cancelled(call: Coroutine[Any, Any, object], reached: asyncio.Event | None = None) -> CancelledCall | None:
    """Cancel a call that waits, and return what its error says."""
    task = asyncio.create_task(call)
    if reached is None:
        await asyncio.sleep(0.05)
    else:
        await asyncio.wait_for(reached.wait(), WAIT_S)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asyncio.wait_for(task, WAIT_S)
    assert type(caught.value) is asyncio.CancelledError
    return cancelled_call(caught.value)


# ---- receive ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prefetch", [0, 10])
def test_a_cancelled_receive_loses_nothing(prefetch: int) -> None:
    async def program() -> list[object]:
        async with a_factory(prefetch=prefetch).create_context() as context:
            queue = context.create_queue("q")
            consumer = await context.create_consumer(queue)
            assert await cancelled(consumer.receive()) is None
            await context.create_producer().send(queue, "kept")
            message = await consumer.receive(WAIT_MS)
            assert message is not None
            return [text(message), message.jms_redelivered, message.get_int_property("JMSXDeliveryCount")]

    assert asyncio.run(program()) == ["kept", False, 1]


@pytest.mark.parametrize("prefetch", [0, 10])
def test_a_receive_that_is_cancelled_when_its_message_is_there_leaves_it_to_the_next(prefetch: int) -> None:
    async def program() -> list[object]:
        async with a_factory(prefetch=prefetch).create_context() as context:
            queue = context.create_queue("q")
            consumer = await context.create_consumer(queue)
            producer = context.create_producer().set_delivery_mode(1)
            await producer.send(queue, "first")
            assert text(await consumer.receive(WAIT_MS)) == "first"
            receiving = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0.05)
            # Neither waits for the loop: the message is here and the task about to be woken when it is cancelled.
            await producer.send(queue, "kept")
            receiving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await receiving
            message = await consumer.receive(WAIT_MS)
            assert message is not None
            return [text(message), message.jms_redelivered, message.get_int_property("JMSXDeliveryCount")]

    assert asyncio.run(program()) == ["kept", False, 1]


def test_an_iteration_that_is_cancelled_can_be_taken_up_again() -> None:
    async def program() -> list[str | None]:
        async with a_factory().create_context() as context:
            queue = context.create_queue("q")
            consumer = await context.create_consumer(queue)
            producer = context.create_producer()
            seen: list[str | None] = []

            async def iterate() -> None:
                async for message in consumer:
                    seen.append(text(message))
                    if len(seen) == 2:
                        return

            await producer.send(queue, "0")
            assert await cancelled(iterate()) is None
            await producer.send(queue, "1")
            await asyncio.wait_for(iterate(), WAIT_S)
            return seen

    assert asyncio.run(program()) == ["0", "1"]


# ---- send ---------------------------------------------------------------------------------------------------------------
def test_a_send_that_is_cancelled_before_it_was_made_says_so() -> None:
    async def program() -> tuple[CancelledCall | None, list[str]]:
        async with a_factory(max_in_flight=1, close_timeout_ms=200).create_context() as context:
            queue = context.create_queue("q")
            producer = context.create_producer()
            await producer.send(queue, "opens the producer")
            silent = silence(context, "send")
            first = asyncio.create_task(producer.send(queue, "takes the only place"))
            await asyncio.wait_for(silent.reached.wait(), WAIT_S)
            told = await cancelled(producer.send(queue, "has no place"))
            first.cancel()
            await asyncio.wait([first])
            return told, silent.asked

    told, asked = asyncio.run(program())
    assert isinstance(told, CancelledBeforehand)
    assert asked.count("send") == 1


def test_a_send_that_is_cancelled_before_its_answer_is_in_doubt() -> None:
    async def program() -> CancelledCall | None:
        async with a_factory(close_timeout_ms=200).create_context() as context:
            producer = context.create_producer()
            await producer.send(context.create_queue("q"), "opens the producer")
            silent = silence(context, "send")
            told = await cancelled(producer.send(context.create_queue("q"), "unanswered"), silent.reached)
            assert "take_back" in silent.asked
            return told

    told = asyncio.run(program())
    assert isinstance(told, CancelledInDoubt)
    assert told.error_code == "in-doubt"


def test_a_send_that_could_be_taken_back_was_not_made() -> None:
    class TakingBack(Silent):
        def take_back(self, token: object) -> None:
            link.on_sent([(token, failed(jmsapi.spi.ProviderError(jmsapi.spi.ErrorKind.TIMEOUT, "taken back")).exception())])  # type: ignore[list-item]

    async def program() -> CancelledCall | None:
        nonlocal link
        async with a_factory(close_timeout_ms=200).create_context() as context:
            producer = context.create_producer()
            await producer.send(context.create_queue("q"), "opens the producer")
            link = context.connection.link
            link.provider = silent = TakingBack(link.provider, "send")
            return await cancelled(producer.send(context.create_queue("q"), "taken back"), silent.reached)

    link: Any = None
    assert isinstance(asyncio.run(program()), CancelledBeforehand)


def test_a_send_whose_answer_comes_while_it_is_cancelled_was_made() -> None:
    class Late(Silent):
        def send(self, producer: Handle, envelope: Envelope, tx: Handle | None, token: object) -> None:
            self.late = (producer, envelope, tx, token)
            self.reached.set()

        def take_back(self, token: object) -> None:
            self.below.send(*self.late)

    async def program() -> CancelledCall | None:
        async with a_factory().create_context() as context:
            producer = context.create_producer()
            queue = context.create_queue("q")
            await producer.send(queue, "opens the producer")
            link = context.connection.link
            link.provider = late = Late(link.provider)
            told = await cancelled(producer.send(queue, "late"), late.reached)
            consumer = await context.create_consumer(queue)
            assert [text(await consumer.receive(WAIT_MS)) for _ in range(2)] == ["opens the producer", "late"]
            return told

    assert isinstance(asyncio.run(program()), CancelledTooLate)


def test_a_timeout_says_what_became_of_the_send() -> None:
    async def program() -> CancelledCall | None:
        async with a_factory(close_timeout_ms=200).create_context() as context:
            producer = context.create_producer()
            await producer.send(context.create_queue("q"), "opens the producer")
            silence(context, "send")
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.1):
                    await producer.send(context.create_queue("q"), "unanswered")
            return cancelled_call(caught.value)

    assert isinstance(asyncio.run(program()), CancelledInDoubt)


# ---- transactions -------------------------------------------------------------------------------------------------------
def test_a_cancelled_commit_is_in_doubt() -> None:
    async def program() -> CancelledCall | None:
        async with a_factory(close_timeout_ms=200).create_context(TRANSACTED) as context:
            await context.create_producer().send(context.create_queue("q"), "x")
            silent = silence(context, "end")
            return await cancelled(context.commit(), silent.reached)

    assert isinstance(asyncio.run(program()), CancelledInDoubt)


def test_a_commit_that_is_cancelled_while_it_waits_for_sends_leaves_the_transaction_as_it_was() -> None:
    async def program() -> list[str | None]:
        async with a_factory().create_context(TRANSACTED) as context:
            queue = context.create_queue("q")
            producer = context.create_producer()
            await producer.send(queue, "first")
            link = context.connection.link
            below, link.provider = link.provider, (silent := Silent(link.provider, "send"))
            tokens: list[tuple[Any, ...]] = []
            silent.send = lambda *call: tokens.append(call)  # type: ignore[method-assign]
            await producer.send(queue, "second")
            told = await cancelled(context.commit())
            assert isinstance(told, CancelledBeforehand)
            for call in tokens:
                below.send(*call)
            await context.commit()
            consumer = await context.create_consumer(queue)
            return [text(await consumer.receive(WAIT_MS)) for _ in range(2)]

    assert asyncio.run(program()) == ["first", "second"]


def test_a_block_of_a_transaction_that_is_cancelled_is_rolled_back() -> None:
    async def program() -> list[str | None]:
        async with a_factory().create_context(TRANSACTED) as context:
            queue = context.create_queue("q")
            inside = asyncio.Event()

            async def block() -> None:
                async with context.transaction():
                    await context.create_producer().send(queue, "rolled back")
                    inside.set()
                    await asyncio.sleep(WAIT_S)

            assert await cancelled(block(), inside) is None
            async with context.transaction():
                await context.create_producer().send(queue, "committed")
            consumer = await context.create_consumer(queue)
            return [text(await consumer.receive(WAIT_MS)), text(await consumer.receive_no_wait())]

    assert asyncio.run(program()) == ["committed", None]


def test_a_cancelled_rollback_is_done_before_the_task_goes_on() -> None:
    async def program() -> list[str | None]:
        async with a_factory().create_context(TRANSACTED) as context:
            queue = context.create_queue("q")
            producer = context.create_producer()
            await producer.send(queue, "again")
            await context.commit()
            consumer = await context.create_consumer(queue)
            seen = [text(await consumer.receive(WAIT_MS))]
            await producer.send(queue, "rolled back")
            silent = silence(context, "end")
            rolling_back = asyncio.create_task(context.rollback())
            await asyncio.wait_for(silent.reached.wait(), WAIT_S)
            rolling_back.cancel()
            await asyncio.sleep(0.05)
            assert not rolling_back.done()
            silent.kept[0].set_result(None)
            await asyncio.wait([rolling_back], timeout=WAIT_S)
            assert rolling_back.cancelled()
            silent.calls.clear()
            seen.append(text(await consumer.receive(WAIT_MS)))
            return seen

    assert asyncio.run(program()) == ["again", "again"]


def test_a_cancelled_acknowledge_is_in_doubt() -> None:
    async def program() -> CancelledCall | None:
        async with a_factory(close_timeout_ms=200).create_context(CLIENT) as context:
            queue = context.create_queue("q")
            await context.create_producer().send(queue, "x")
            consumer = await context.create_consumer(queue)
            await consumer.receive(WAIT_MS)
            silent = silence(context, "settle")
            return await cancelled(context.acknowledge(), silent.reached)

    assert isinstance(asyncio.run(program()), CancelledInDoubt)


# ---- opening, closing ---------------------------------------------------------------------------------------------------
def test_what_is_opened_for_a_cancelled_call_is_closed_as_soon_as_it_is_open() -> None:
    async def program() -> None:
        async with a_factory().create_context() as context:
            queue = context.create_queue("q")
            await context.create_producer().send(queue, "opens the session")
            silent = silence(context, "open_consumer")
            await cancelled(context.create_consumer(queue), silent.reached)
            silent.kept[0].set_result(silent.opened)
            async with asyncio.timeout(WAIT_S):
                while silent.opened not in silent.released:
                    await asyncio.sleep(0.01)

    asyncio.run(program())


@pytest.mark.parametrize("topic", [False, True])
def test_a_temporary_destination_that_is_made_for_a_cancelled_call_is_deleted(topic: bool) -> None:
    async def program() -> None:
        async with a_factory().create_context() as context:
            await context.create_producer().send(context.create_queue("q"), "opens the session")
            silent = silence(context, "create_temporary")
            create = context.create_temporary_topic if topic else context.create_temporary_queue
            await cancelled(create(), silent.reached)
            silent.kept[0].set_result(silent.created)
            async with asyncio.timeout(WAIT_S):
                while silent.created not in silent.removed:
                    await asyncio.sleep(0.01)
            assert silent.created not in context.connection.temporaries

    asyncio.run(program())


@pytest.mark.parametrize("call", ["create_temporary", "open_consumer", "send", "remove"])
def test_a_request_that_is_cancelled_leaves_no_temporary_queue(call: str) -> None:
    async def program() -> None:
        async with a_factory(close_timeout_ms=2000).create_context() as context:
            silent = silence(context, call)
            asked = asyncio.create_task(context.request(context.create_queue("q"), "x", timeout_ms=1))
            await asyncio.wait_for(silent.reached.wait(), WAIT_S)
            asked.cancel()
            await asyncio.sleep(0)
            results = {"create_temporary": "created", "open_consumer": "opened"}
            for late in silent.kept:
                found = getattr(silent, results[call]) if call in results else None
                late.set_result(found.result(0) if isinstance(found, Future) else found)
            await asyncio.wait([asked], timeout=WAIT_S)
            assert asked.cancelled()
            async with asyncio.timeout(WAIT_S):
                while not silent.removed or context.connection.temporaries:
                    await asyncio.sleep(0.01)

    asyncio.run(program())


def test_a_client_id_that_is_set_by_a_cancelled_call_leaves_a_connection_that_hears_of_its_end() -> None:
    async def program() -> str | None:
        async with a_factory(close_timeout_ms=2000).create_context() as context:
            silent = silence(context, "close")
            await cancelled(context.set_client_id("named"), silent.reached)
            consumer = await context.create_consumer(context.create_queue("q"))
            waiting = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0.05)
            context.connection.link.on_lost(jmsapi.spi.ProviderError(jmsapi.spi.ErrorKind.CONNECTION, "gone", fatal=True))
            with pytest.raises(jmsapi.JMSRuntimeException, match="gone"):
                await asyncio.wait_for(waiting, WAIT_S)
            return context.connection.link.options.client_id

    assert asyncio.run(program()) == "named"


def test_leaving_by_cancellation_closes_the_context() -> None:
    async def program() -> None:
        inside = asyncio.Event()
        contexts: list[AsyncJMSContext] = []

        async def block() -> None:
            async with a_factory().create_context() as context:
                contexts.append(context)
                inside.set()
                await asyncio.sleep(WAIT_S)

        await cancelled(block(), inside)
        with pytest.raises(IllegalStateRuntimeException, match="closed"):
            contexts[0].create_queue("q")

    asyncio.run(program())


def test_a_close_that_is_cancelled_ends_within_the_close_timeout() -> None:
    async def program() -> float:
        context = await a_factory(close_timeout_ms=300).create_context()
        silent = silence(context, "close")
        closing = asyncio.create_task(context.close())
        await asyncio.wait_for(silent.reached.wait(), WAIT_S)
        started = time.monotonic()
        closing.cancel()
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing], timeout=WAIT_S)
        assert closing.cancelled()
        return time.monotonic() - started

    # The provider has a second in any case.
    assert asyncio.run(program()) < 5.0


def test_a_task_group_ends_its_other_tasks_when_one_fails() -> None:
    async def program() -> str | None:
        factory = a_factory()
        async with factory.create_context() as context:
            queue = context.create_queue("q")

            async def receive_for_ever() -> None:
                async with context.create_context(AsyncJMSContext.AUTO_ACKNOWLEDGE) as own:
                    async for _ in await own.create_consumer(queue):
                        raise AssertionError("there is no message")

            async def fail() -> None:
                await asyncio.sleep(0.05)
                raise ZeroDivisionError

            with pytest.raises(ExceptionGroup) as caught:
                async with asyncio.TaskGroup() as group:
                    for _ in range(3):
                        group.create_task(receive_for_ever())
                    group.create_task(fail())
            assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]
            await context.create_producer().send(queue, "for the next")
            consumer = await context.create_consumer(queue)
            return text(await consumer.receive(WAIT_MS))

    assert asyncio.run(program()) == "for the next"


def test_a_context_belongs_to_the_loop_that_it_was_opened_in() -> None:
    context = asyncio.run(opened())
    with pytest.raises(IllegalStateRuntimeException, match="another event loop"):
        asyncio.run(received(context))
    context.connection.close()


async def opened() -> AsyncJMSContext:
    return await a_factory().create_context()


async def received(context: AsyncJMSContext) -> None:
    consumer = await context.create_consumer(context.create_queue("q"))
    await consumer.receive()
