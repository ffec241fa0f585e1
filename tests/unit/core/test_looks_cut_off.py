"""A look at a queue whose link breaks between two steps: it is not over, it is cut off."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import Future

import pytest

import jmsapi
import jmsapi.aio
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import ErrorKind, Events, Handle, Provider, ProviderError

CAUSE = ProviderError(ErrorKind.CONNECTION, "the broker went away", fatal=True)


class Breaking(Forwarding):
    """Loses its link as a drain is asked for, and answers that nothing is on its way any more, which is so.

    Args:
        below: The provider.
        told: Hears of the loss.
        whole: How many drains are answered before.
    """

    def __init__(self, below: Provider, told: Events, whole: int) -> None:
        super().__init__(below)
        self._told = told
        self._whole = whole

    def credit(self, consumer: Handle, n: int) -> Future[None]:
        return super().credit(consumer, n) if self._whole else done()

    def drain(self, consumer: Handle) -> Future[None]:
        if self._whole:
            self._whole -= 1
            return super().drain(consumer)
        self._told.on_lost(CAUSE)
        return done()


def done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


def place_of_its_own() -> str:
    return f"inproc://looks-{uuid.uuid4().hex}"


def fill(connection: jmsapi.Connection) -> None:
    """Send more messages than two steps of a look bring."""
    session = connection.create_session(jmsapi.Session.SESSION_TRANSACTED)
    producer = session.create_producer(session.create_queue("q"))
    for number in range(600):
        producer.send(session.create_text_message(str(number)))
    session.commit()


@pytest.mark.parametrize("whole", [0, 1, 2])
def test_a_look_that_a_broken_link_cuts_off_does_not_end_as_if_that_were_all(whole: int) -> None:
    with jmsapi.connection_factory(place_of_its_own()).create_connection() as connection:
        fill(connection)
        session = connection.create_session()
        browser = session.create_browser(session.create_queue("q"))
        link = connection.link  # type: ignore[attr-defined]
        link.provider = Breaking(link.provider, link, whole)
        seen = 0
        with pytest.raises(jmsapi.JMSException, match="the broker went away") as caught:
            for _ in browser:
                seen += 1
        assert caught.value.error_code == "connection"
        assert seen <= 256 * whole


def test_nor_does_one_of_asyncio() -> None:
    async def look() -> int:
        seen = 0
        async with jmsapi.aio.connection_factory(place).create_context() as context:
            link = context.connection.link
            link.provider = Breaking(link.provider, link, 1)
            async for _ in await context.create_browser(context.create_queue("q")):
                seen += 1
        return seen

    place = place_of_its_own()
    with jmsapi.connection_factory(place).create_connection() as connection:
        fill(connection)
        with pytest.raises(jmsapi.JMSRuntimeException, match="the broker went away"):
            asyncio.run(look())
