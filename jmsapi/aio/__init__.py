"""JMS 2.0 for asyncio: the simplified API with ``await``.

    import asyncio
    import jmsapi.aio

    async def main() -> None:
        factory = jmsapi.aio.connection_factory("inproc://demo")
        async with factory.create_context() as context:
            queue = context.create_queue("greetings")
            await context.create_producer().send(queue, "hello")
            consumer = await context.create_consumer(queue)
            print(await consumer.receive_body(str, 1000))

    asyncio.run(main())

Names, errors, values and messages are those of the simplified API; docs/asyncio.md says what else there is to know.
"""

from __future__ import annotations

from jmsapi.aio.browser import AsyncQueueBrowser
from jmsapi.aio.cancellation import CancelledBeforehand, CancelledCall, CancelledInDoubt, CancelledTooLate, cancelled_call
from jmsapi.aio.consumer import AsyncJMSConsumer
from jmsapi.aio.context import AsyncJMSContext
from jmsapi.aio.factory import AsyncConnectionFactory, capabilities, connection_factory, lookup
from jmsapi.aio.producer import AsyncJMSProducer

__all__ = [
    "AsyncConnectionFactory",
    "AsyncJMSConsumer",
    "AsyncJMSContext",
    "AsyncJMSProducer",
    "AsyncQueueBrowser",
    "CancelledBeforehand",
    "CancelledCall",
    "CancelledInDoubt",
    "CancelledTooLate",
    "cancelled_call",
    "capabilities",
    "connection_factory",
    "lookup",
]
