"""Close and stop wait for a receive that is on its way out, however long its thread takes (4.3.4-5, 4.3.5-3, 4.4.1)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

import jmsapi
import jmsapi_inproc
from jmsapi._emulation.forwarding import Forwarding
from jmsapi.spi import VERSION, Clock, Handle, Outcome, Provider, Tag
from jmsapi.spi.options import ProviderOptions

LINGERS_S = 0.3


@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_close_returns_after_a_pending_receive_whose_thread_is_slow(closed: str) -> None:
    connection = jmsapi.connection_factory("inproc://slow").create_connection()
    connection.start()
    session = connection.create_session()
    consumer = session.create_consumer(session.create_queue("q"))
    closing, over = threading.Event(), threading.Event()

    def slow(frame: FrameType, event: str, argument: Any) -> None:
        # At the first step that the thread takes when it is woken, which is within the receive.
        if event == "c_return" and closing.is_set() and not over.is_set():
            time.sleep(LINGERS_S)
            over.set()

    def receive() -> None:
        sys.setprofile(slow)
        assert consumer.receive() is None
        sys.setprofile(None)

    thread = threading.Thread(target=receive)
    thread.start()
    time.sleep(0.1)
    close: Callable[[], None] = {"consumer": consumer, "session": session, "connection": connection}[closed].close
    closing.set()
    close()
    assert over.is_set(), "close has returned while the receive was still on its way"
    thread.join(10)
    assert not thread.is_alive()
    connection.close()


class SlowToAcknowledge(Forwarding):
    """Takes an acknowledgement only when the test lets it."""

    asked, go_on = threading.Event(), threading.Event()

    def settle(
        self, tags: Sequence[Tag], outcome: Outcome, tx: Handle | None = None, failures: Sequence[int] = ()
    ) -> Future[None]:
        self.asked.set()
        assert self.go_on.wait(60)
        return super().settle(tags, outcome, tx, failures)


class Entry:
    """Its entry."""

    spi_version = VERSION
    name = "slow-to-acknowledge"
    schemes = ("slow-to-acknowledge",)
    extra = None

    def options(self) -> type[ProviderOptions]:
        return jmsapi_inproc.entry.options()

    def create(self, options: ProviderOptions, clock: Clock) -> Provider:
        return SlowToAcknowledge(jmsapi_inproc.entry.create(options, clock))


@pytest.fixture
def url() -> Iterator[str]:
    jmsapi.register_provider(Entry())
    SlowToAcknowledge.asked.clear()
    SlowToAcknowledge.go_on.clear()
    yield "slow-to-acknowledge://stop"
    SlowToAcknowledge.go_on.set()
    jmsapi_inproc.discard("stop")


def test_stop_returns_after_a_receive_that_has_its_message_and_is_acknowledging(url: str) -> None:
    with jmsapi.connection_factory(url).create_connection() as connection, ThreadPoolExecutor() as threads:
        connection.start()
        session = connection.create_session()
        queue = session.create_queue("q")
        consumer = session.create_consumer(queue)
        receiving = threads.submit(consumer.receive, 60_000)
        sender = connection.create_session()
        sender.create_producer(queue).send(sender.create_text_message("taken"))
        assert SlowToAcknowledge.asked.wait(30)
        stopping = threads.submit(connection.stop)
        with pytest.raises(TimeoutError):
            stopping.result(LINGERS_S)
        assert not receiving.done()
        SlowToAcknowledge.go_on.set()
        stopping.result(30)
        message = receiving.result(30)
        assert message is not None
        assert message.get_body(str) == "taken"
        sender.create_producer(queue).send(sender.create_text_message("left"))
        assert consumer.receive(50) is None
