"""A user's program for asyncio, as type checkers see it.

Each ``ignore`` is of a wrong use, and is an error itself where that is not seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import assert_type

import jmsapi.aio
from jmsapi import Message, Queue, TemporaryQueue, TextMessage, Topic
from jmsapi.aio import (
    AsyncConnectionFactory,
    AsyncJMSConsumer,
    AsyncJMSContext,
    AsyncJMSProducer,
    AsyncQueueBrowser,
    CancelledCall,
    cancelled_call,
)
from jmsapi.spi import Capabilities


class Order:
    """An object that travels."""


async def right(factory: AsyncConnectionFactory) -> None:
    """Use everything as it is meant."""
    async with factory.create_context(AsyncJMSContext.SESSION_TRANSACTED) as context:
        assert_type(context, AsyncJMSContext)
        queue, topic = context.create_queue("q"), context.create_topic("t")
        assert_type(queue, Queue)
        assert_type(topic, Topic)
        producer = context.create_producer()
        assert_type(producer, AsyncJMSProducer)
        assert_type(producer.set_priority(7).set_time_to_live(1000), AsyncJMSProducer)
        assert_type(await producer.send(queue, {"a": 1}), AsyncJMSProducer)
        consumer = await context.create_consumer(queue, "a = 1")
        assert_type(consumer, AsyncJMSConsumer)
        assert_type(await consumer.receive(timeout_ms=10), Message | None)
        assert_type(await consumer.receive_no_wait(), Message | None)
        assert_type(await consumer.receive_body(str, 10), str | None)
        assert_type(await consumer.receive_body_no_wait(Order), Order | None)
        async for message in consumer:
            assert_type(message, Message)
        async with await context.create_browser(queue) as browser:
            assert_type(browser, AsyncQueueBrowser)
            assert_type(browser.enumeration, AsyncIterator[Message])
            async for seen in browser:
                assert_type(seen, Message)
        async with context.transaction() as same:
            assert_type(same, AsyncJMSContext)
        assert_type(await context.create_temporary_queue(), TemporaryQueue)
        assert_type(await context.request(queue, "x", timeout_ms=10), Message | None)
        assert_type(context.create_text_message("x"), TextMessage)
        assert_type(jmsapi.aio.capabilities(context), Capabilities)
        assert_type(jmsapi.aio.lookup("q", Queue), Queue)
    try:
        async with asyncio.timeout(1), await factory.create_context() as context:
            await context.commit()
    except TimeoutError as error:
        assert_type(cancelled_call(error), CancelledCall | None)


async def wrong(factory: AsyncConnectionFactory, context: AsyncJMSContext, consumer: AsyncJMSConsumer) -> None:
    """Use it as the simplified API is used, or otherwise than it is meant."""
    context.commit()  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    with factory.create_context():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue]
        pass
    for _ in consumer:  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues, reportAttributeAccessIssue, reportUnknownVariableType]
        pass
    consumer.receive().get_body(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    (await consumer.receive()).get_body(str)  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    context.create_consumer(context.create_queue("q")).receive()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    await context.create_consumer("q")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await context.create_durable_consumer(context.create_queue("q"), "n")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await context.create_producer().send("q", "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await consumer.receive(timeout=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await context.create_queue("q")  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
    context.client_id = "c"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    consumer.message_listener = print  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    text: str = await consumer.receive_body(str)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(text)
