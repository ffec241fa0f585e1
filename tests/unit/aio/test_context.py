"""The simplified API for asyncio, on every backend."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import NoReturn

import pytest

import jmsapi.aio
from jmsapi import (
    IllegalArgumentException,
    IllegalStateRuntimeException,
    InvalidDestinationRuntimeException,
    InvalidSelectorRuntimeException,
    Message,
    MessageFormatRuntimeException,
    Queue,
    TextMessage,
    UnsupportedFeatureRuntimeException,
)
from jmsapi._core.waiting import AnswerWait, ConditionWait
from jmsapi.aio import AsyncConnectionFactory, AsyncJMSConsumer, AsyncJMSContext

WAIT_MS = 20_000
TRANSACTED = AsyncJMSContext.SESSION_TRANSACTED
CLIENT = AsyncJMSContext.CLIENT_ACKNOWLEDGE


@pytest.fixture
def factory(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AsyncConnectionFactory]:
    """Give a factory for each backend; whatever blocks a thread fails."""
    with monkeypatch.context() as patched:
        patched.setattr(AnswerWait, "block", blocked)
        patched.setattr(ConditionWait, "block", blocked)
        yield jmsapi.aio.connection_factory(broker_url, checked=True)


def blocked(wait: object) -> NoReturn:
    raise AssertionError(f"{wait!r} would block the event loop")


def a_name(what: str = "aio") -> str:
    return f"{what}-{uuid.uuid4().hex}"


async def lasting_threads() -> int:
    """Count the threads once none has begun or ended for half a second."""
    count, since = threading.active_count(), time.monotonic()
    deadline = since + WAIT_MS / 1000
    while time.monotonic() < since + 0.5:
        await asyncio.sleep(0.01)
        if (now := threading.active_count()) != count:
            count, since = now, time.monotonic()
        assert time.monotonic() < deadline, "threads keep beginning and ending"
    return count


def text(message: Message | None) -> str | None:
    return None if message is None else message.get_body(str)


@asynccontextmanager
async def a_transacted(factory: AsyncConnectionFactory) -> AsyncGenerator[AsyncJMSContext]:
    async with factory.create_context() as first:
        if not jmsapi.aio.capabilities(first).transactions:
            with pytest.raises(UnsupportedFeatureRuntimeException):
                await first.create_context(TRANSACTED)
            pytest.skip("this backend has no transactions")
        async with first.create_context(TRANSACTED) as context:
            yield context


async def drained(context: AsyncJMSContext, queue: Queue) -> list[str | None]:
    consumer = await context.create_consumer(queue)
    seen: list[str | None] = []
    while (message := await consumer.receive_no_wait()) is not None:
        seen.append(text(message))
    await consumer.close()
    return seen


def test_a_message_is_sent_and_received(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[object]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())
            producer = context.create_producer().set_priority(7).set_property("colour", "red")
            assert await producer.send(queue, "hello") is producer
            consumer = await context.create_consumer(queue)
            message = await consumer.receive(WAIT_MS)
            assert isinstance(message, TextMessage)
            seen: list[object] = [message.text, message.jms_priority, message.get_string_property("colour")]
            seen.append(await consumer.receive(50))
            await consumer.close()
            return seen

    assert asyncio.run(program()) == ["hello", 7, "red", None]


def test_bodies_of_all_kinds_are_received_as_what_they_were(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[object]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())
            producer = context.create_producer()
            await producer.send(queue, "text")
            await producer.send(queue, b"bytes")
            await producer.send(queue, {"a": 1})
            async with await context.create_consumer(queue) as consumer:
                seen: list[object] = [
                    await consumer.receive_body(str, WAIT_MS),
                    await consumer.receive_body(bytes, WAIT_MS),
                ]
                with pytest.raises(MessageFormatRuntimeException):
                    await consumer.receive_body(str, WAIT_MS)
                seen.append(await consumer.receive_body(dict, WAIT_MS))  # pyright: ignore[reportUnknownArgumentType]
                seen.append(await consumer.receive_body_no_wait(str))
                return seen

    assert asyncio.run(program()) == ["text", b"bytes", {"a": 1}, None]


def test_transactions_commit_and_roll_back(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with a_transacted(factory) as context:
            queue = context.create_queue(a_name())
            producer = context.create_producer()
            async with context.transaction():
                await producer.send(queue, "committed")
            with pytest.raises(ZeroDivisionError):
                async with context.transaction():
                    await producer.send(queue, "rolled back")
                    raise ZeroDivisionError
            consumer = await context.create_consumer(queue)
            seen = [text(await consumer.receive(WAIT_MS))]
            await context.rollback()
            seen.append(text(await consumer.receive(WAIT_MS)))
            await context.commit()
            seen.append(text(await consumer.receive_no_wait()))
            return seen

    assert asyncio.run(program()) == ["committed", "committed", None]


def test_messages_are_acknowledged_and_recovered(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with factory.create_context(CLIENT) as context:
            queue = context.create_queue(a_name())
            await context.create_producer().send(queue, "seven")
            consumer = await context.create_consumer(queue)
            seen = [text(await consumer.receive(WAIT_MS))]
            await context.recover()
            seen.append(text(await consumer.receive(WAIT_MS)))
            await context.acknowledge()
            await context.recover()
            seen.append(text(await consumer.receive_no_wait()))
            return seen

    assert asyncio.run(program()) == ["seven", "seven", None]


def test_iteration_ends_when_the_consumer_is_closed(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())
            consumer = await context.create_consumer(queue)
            seen: list[str | None] = []
            third = asyncio.Event()

            async def iterate() -> None:
                async for message in consumer:
                    seen.append(text(message))
                    if len(seen) == 3:
                        third.set()

            reading = asyncio.create_task(iterate())
            producer = context.create_producer()
            for n in range(3):
                await producer.send(queue, str(n))
            await asyncio.wait_for(third.wait(), WAIT_MS / 1000)
            await consumer.close()
            await asyncio.wait_for(reading, WAIT_MS / 1000)
            return seen

    assert asyncio.run(program()) == ["0", "1", "2"]


def test_a_browser_shows_and_takes_nothing(factory: AsyncConnectionFactory) -> None:
    async def program() -> tuple[list[str | None], list[str | None]]:
        async with factory.create_context() as context:
            if not jmsapi.aio.capabilities(context).browser:
                pytest.skip("this backend has no browsers")
            queue = context.create_queue(a_name())
            producer = context.create_producer()
            for n in range(3):
                await producer.send(queue, str(n))
            async with await context.create_browser(queue) as browser:
                shown = [text(message) async for message in browser]
            return shown, await drained(context, queue)

    shown, had = asyncio.run(program())
    assert shown == had == ["0", "1", "2"]


def test_a_temporary_queue_serves_a_reply_and_is_deleted(factory: AsyncConnectionFactory) -> None:
    async def program() -> str | None:
        async with factory.create_context() as context:
            replies = await context.create_temporary_queue()
            consumer = await context.create_consumer(replies)
            await context.create_producer().send(replies, "reply")
            reply = text(await consumer.receive(WAIT_MS))
            with pytest.raises(IllegalStateRuntimeException):
                await context.delete_temporary(replies)
            await consumer.close()
            await context.delete_temporary(replies)
            with pytest.raises(InvalidDestinationRuntimeException):
                await context.create_producer().send(replies, "late")
            return reply

    assert asyncio.run(program()) == "reply"


def test_a_request_gets_its_reply(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())

            async def answer() -> None:
                async with context.create_context(AsyncJMSContext.AUTO_ACKNOWLEDGE) as own:
                    request = await (await own.create_consumer(queue)).receive(WAIT_MS)
                    assert request is not None
                    reply_to = request.jms_reply_to
                    assert reply_to is not None
                    await own.create_producer().send(reply_to, f"{text(request)} answered")

            answering = asyncio.create_task(answer())
            seen = [text(await context.request(queue, "asked", timeout_ms=WAIT_MS))]
            await answering
            seen.append(text(await context.request(queue, "nobody", timeout_ms=50)))
            return seen

    assert asyncio.run(program()) == ["asked answered", None]


def test_contexts_of_one_connection_share_it_until_the_last_is_closed(factory: AsyncConnectionFactory) -> None:
    async def program() -> str | None:
        first = await factory.create_context()
        second = await first.create_context(CLIENT)
        await first.close()
        with pytest.raises(IllegalStateRuntimeException, match="closed"):
            first.create_queue("q")
        queue = second.create_queue(a_name())
        await second.create_producer().send(queue, "still here")
        consumer = await second.create_consumer(queue)
        seen = text(await consumer.receive(WAIT_MS))
        await second.acknowledge()
        await second.close()
        await second.close()
        with pytest.raises(IllegalStateRuntimeException, match="closed"):
            await consumer.receive(1)
        return seen

    assert asyncio.run(program()) == "still here"


def test_stopped_delivery_hands_out_nothing_until_it_is_started(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())
            consumer = await context.create_consumer(queue)
            await context.stop()
            await context.create_producer().send(queue, "held")
            seen = [text(await consumer.receive(100))]
            await context.start()
            seen.append(text(await consumer.receive(WAIT_MS)))
            return seen

    assert asyncio.run(program()) == [None, "held"]


def test_many_sends_are_on_their_way_together(factory: AsyncConnectionFactory) -> None:
    async def program() -> list[str | None]:
        async with factory.create_context() as context:
            queue = context.create_queue(a_name())
            producer = context.create_producer()
            await asyncio.gather(*(producer.send(queue, str(n)) for n in range(100)))
            consumer: AsyncJMSConsumer = await context.create_consumer(queue)
            return [text(await consumer.receive(WAIT_MS)) for _ in range(100)]

    assert sorted(map(str, asyncio.run(program()))) == sorted(str(n) for n in range(100))


def test_errors_are_the_runtime_exceptions_of_the_simplified_api(factory: AsyncConnectionFactory) -> None:
    async def program() -> None:
        async with factory.create_context() as context:
            with pytest.raises(InvalidSelectorRuntimeException):
                await context.create_consumer(context.create_queue(a_name()), "colour ==")
            with pytest.raises(InvalidDestinationRuntimeException):
                await context.create_producer().send(None, "nowhere")  # type: ignore[arg-type]
            with pytest.raises(IllegalStateRuntimeException, match="not transacted"):
                await context.commit()
            with pytest.raises(IllegalStateRuntimeException, match="not transacted"):
                async with context.transaction():
                    raise AssertionError("a block that cannot be committed was entered")
            consumer = await context.create_consumer(context.create_queue(a_name()))
            with pytest.raises(IllegalArgumentException, match="timeout"):
                await consumer.receive(-1)

    asyncio.run(program())


def test_no_thread_is_made_for_contexts_consumers_or_calls(factory: AsyncConnectionFactory) -> None:
    async def program() -> int:
        async with factory.create_context() as context:
            before = await lasting_threads()
            others = [await context.create_context(AsyncJMSContext.AUTO_ACKNOWLEDGE) for _ in range(5)]
            queue = context.create_queue(a_name())
            consumers = [await other.create_consumer(queue) for other in others]
            waiting = [asyncio.create_task(consumer.receive()) for consumer in consumers]
            await asyncio.sleep(0.1)
            more = threading.active_count() - before
            for other in others:
                await other.close()
            assert await asyncio.gather(*waiting) == [None] * 5
            return more

    assert asyncio.run(program()) == 0


def test_a_transaction_block_within_another_or_of_another_task_is_refused(factory: AsyncConnectionFactory) -> None:
    """Its end would commit, or roll back, half of what the other block does."""

    async def program() -> None:
        async with a_transacted(factory) as context:
            queue, producer = context.create_queue(a_name()), context.create_producer()

            async def another() -> None:
                async with context.transaction():
                    await producer.send(queue, "of the other task")

            async with context.transaction():
                await producer.send(queue, "order")
                for attempt in (another(), asyncio.create_task(another())):
                    with pytest.raises(jmsapi.IllegalStateRuntimeException, match="create_context"):
                        await attempt
            with pytest.raises(ValueError, match="fails"):
                async with context.transaction():
                    raise ValueError("fails")
            async with context.transaction():
                pass
            consumer = await context.create_consumer(queue)
            assert text(await consumer.receive(WAIT_MS)) == "order"
            assert await consumer.receive_no_wait() is None
            await context.commit()

    asyncio.run(program())


def test_what_is_no_connection_has_no_capabilities_and_says_so() -> None:
    async def program() -> None:
        async with jmsapi.aio.connection_factory(f"inproc://told-{uuid.uuid4().hex}").create_context() as context:
            assert jmsapi.aio.capabilities(context).provider == "inproc"
            for wrong in (None, context.create_queue("q"), context.create_producer()):
                for told in (jmsapi.aio.capabilities, jmsapi.capabilities):
                    with pytest.raises(jmsapi.JMSException, match="no connection") as raised:
                        told(wrong)  # type: ignore[arg-type]
                    assert raised.value.error_code == "unsupported"

    asyncio.run(program())


def test_a_task_without_an_error_was_no_cancelled_call() -> None:
    assert jmsapi.aio.cancelled_call(None) is None


def test_a_message_listener_that_nobody_would_call_is_refused_and_names_the_way(factory: AsyncConnectionFactory) -> None:
    async def program() -> None:
        async with factory.create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            with pytest.raises(AttributeError, match="async for message in consumer"):
                consumer.message_listener = print  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
            assert not hasattr(consumer, "message_listener")

    asyncio.run(program())
