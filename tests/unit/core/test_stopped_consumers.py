"""A consumer that ends needs no proof that its queue is empty, and a receive that finds nothing does."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import Future

import pytest

import jmsapi
import jmsapi.aio
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import Handle, Provider


class Noting(Forwarding):
    """Notes which way credit is taken back."""

    def __init__(self, below: Provider) -> None:
        super().__init__(below)
        self.asked: list[str] = []

    def drain(self, consumer: Handle) -> Future[None]:
        self.asked.append("drain")
        return super().drain(consumer)

    def stop(self, consumer: Handle) -> Future[None]:
        self.asked.append("stop")
        return super().stop(consumer)


def url() -> str:
    return f"inproc://stopped-{uuid.uuid4().hex}"


@pytest.mark.parametrize("close", [lambda consumer, _: consumer.close(), lambda _, session: session.close()])
def test_a_close_stops_and_a_receive_that_finds_nothing_drains(
    close: Callable[[jmsapi.MessageConsumer, jmsapi.Session], None],
) -> None:
    with jmsapi.connection_factory(url()).create_connection() as connection:
        connection.start()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("q"))
        link = connection.link  # type: ignore[attr-defined]
        link.provider = noting = Noting(link.provider)
        assert consumer.receive_no_wait() is None
        assert noting.asked == ["drain"]
        consumer.receive(1)  # gives the credit again
        noting.asked.clear()
        producer = session.create_producer(session.create_queue("q"))
        producer.send(session.create_text_message("asks for more"))
        assert consumer.receive(30_000) is not None
        close(consumer, session)
        assert "drain" not in noting.asked


def test_a_consumer_of_asyncio_is_stopped_as_well() -> None:
    async def program() -> list[str]:
        async with jmsapi.aio.connection_factory(url()).create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            link = context.connection.link
            link.provider = noting = Noting(link.provider)
            await consumer.close()
            return noting.asked

    assert asyncio.run(program()) == ["stop"]
