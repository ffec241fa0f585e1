"""In AUTO mode no message is handed out before the acknowledgement of the one before it has left (4.4.12-2)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import jmsapi.aio
import jmsapi_inproc
from jmsapi import Connection, Message, Session
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import VERSION, Clock, Handle, Outcome, Provider, Tag
from jmsapi.spi.options import ProviderOptions

URL = "acknowledges-late://late"
WHILE_S = 0.3


class AcknowledgesLate(Forwarding):
    """Keeps each acknowledgement until the test says that it has left."""

    leaving: list[Future[None]] = []  # noqa: RUF012

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        done = super().settle(tags, outcome, tx, failures)
        if outcome is not Outcome.ACCEPTED:
            return done
        self.leaving.append(Future())
        return self.leaving[-1]


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "acknowledges-late"
    schemes = ("acknowledges-late",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return AcknowledgesLate(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def connection() -> Iterator[Connection]:
    jmsapi.register_provider(Entry())
    AcknowledgesLate.leaving.clear()
    with jmsapi.connection_factory(URL).create_connection() as one:
        one.start()
        session = one.create_session()
        producer = session.create_producer(session.create_queue("q"))
        for text in ("first", "second"):
            producer.send(session.create_text_message(text))
        yield one
        for late in AcknowledgesLate.leaving:
            if not late.done():
                late.set_result(None)
    jmsapi_inproc.discard("late")


def text(message: Message | None) -> str:
    assert message is not None
    return message.get_body(str)


def test_a_receive_waits_for_the_acknowledgement_of_the_message_before(connection: Connection) -> None:
    session = connection.create_session()
    consumer = session.create_consumer(session.create_queue("q"))
    assert text(consumer.receive(30_000)) == "first"
    with ThreadPoolExecutor() as threads:
        second = threads.submit(consumer.receive, 60_000)
        with pytest.raises(TimeoutError):
            second.result(WHILE_S)
        AcknowledgesLate.leaving[0].set_result(None)
        assert text(second.result(30)) == "second"


def test_a_listener_waits_for_the_acknowledgement_of_the_message_before(connection: Connection) -> None:
    session = connection.create_session(Session.AUTO_ACKNOWLEDGE)
    heard: list[str] = []
    first, second = threading.Event(), threading.Event()

    def listen(message: Message) -> None:
        heard.append(text(message))
        (second if len(heard) == 2 else first).set()

    session.create_consumer(session.create_queue("q")).message_listener = listen
    assert first.wait(30)
    assert not second.wait(WHILE_S)
    AcknowledgesLate.leaving[0].set_result(None)
    assert second.wait(30)
    assert heard == ["first", "second"]


def test_a_receive_that_is_awaited_waits_for_the_acknowledgement_of_the_message_before(connection: Connection) -> None:
    async def receive_both() -> list[str]:
        async with jmsapi.aio.connection_factory(URL).create_context() as context:
            consumer = await context.create_consumer(context.create_queue("q"))
            texts = [text(await consumer.receive(timeout_ms=30_000))]
            second = asyncio.create_task(consumer.receive(timeout_ms=60_000))
            done, _ = await asyncio.wait([second], timeout=WHILE_S)
            assert not done
            AcknowledgesLate.leaving[0].set_result(None)
            texts.append(text(await second))
            AcknowledgesLate.leaving[1].set_result(None)
            return texts

    assert asyncio.run(receive_both()) == ["first", "second"]
