"""What a consumer holds when its connection is lost for good: what comes again is handed out by the next connection alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, cast

import pytest

import jmsapi
from jmsapi import Destination, JMSContext, Message
from jmsapi._core.consumer import ConsumerImpl
from jmsapi.testing import FaultProxy, LoopbackServer

WAIT_S = 30.0
Kind = Literal["queue", "topic", "temporary queue"]


@pytest.mark.parametrize("mode", [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE, JMSContext.CLIENT_ACKNOWLEDGE])
def test_a_listener_gets_nothing_of_a_lost_connection_that_comes_again(mode: int) -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        taken = listen_over_a_loss(server, proxy, mode, "queue")
        with jmsapi.connection_factory(server.url).create_context() as context:
            consumer = context.create_consumer(context.create_queue("q"))
            again = [consumer.receive_body(str, WAIT_S * 1000) for _ in range(50)]
        assert again == [str(number) for number in range(50)]
        assert taken == ["0"]


@pytest.mark.parametrize("of", ["topic", "temporary queue"])
def test_what_comes_to_nobody_again_is_handed_out_all_the_same(of: Kind) -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        taken = listen_over_a_loss(server, proxy, JMSContext.AUTO_ACKNOWLEDGE, of)
        assert taken == [str(number) for number in range(50)]


@pytest.mark.parametrize("timeout_ms", [0, 1000])
def test_a_receive_after_the_loss_raises(timeout_ms: int) -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        send(server, 3)
        lost = threading.Event()
        connection = jmsapi.connection_factory(proxy.url).create_connection()
        connection.exception_listener = lambda error: lost.set()
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("q"))
        connection.start()
        first = consumer.receive(timeout_ms)
        assert first is not None
        proxy.cut()
        assert lost.wait(WAIT_S)
        with pytest.raises(jmsapi.JMSException, match="the connection is lost"):
            consumer.receive(1000)
        connection.close()


def send(server: LoopbackServer, count: int, destination: Destination | None = None) -> None:
    with jmsapi.connection_factory(server.url).create_context() as context:
        for number in range(count):
            context.create_producer().send(destination or context.create_queue("q"), str(number))


def listen_over_a_loss(server: LoopbackServer, proxy: FaultProxy, mode: int, of: Kind) -> list[str]:
    """Have a listener hold its first message until the connection is lost; return what it was given of 50."""
    taken: list[str] = []
    lost, began, over = threading.Event(), threading.Event(), threading.Event()

    def on_message(message: Message) -> None:
        taken.append(message.get_body(str))
        began.set()
        lost.wait(WAIT_S)
        if len(taken) == 50:
            over.set()

    def on_exception(error: jmsapi.JMSException) -> None:
        lost.set()

    connection = jmsapi.connection_factory(proxy.url).create_connection()
    connection.exception_listener = on_exception
    session = connection.create_session(mode)
    made: dict[Kind, Callable[[], Destination]] = {
        "queue": lambda: session.create_queue("q"),
        "topic": lambda: session.create_topic("t"),
        "temporary queue": session.create_temporary_queue,
    }
    destination = made[of]()
    consumer = session.create_consumer(destination)
    consumer.message_listener = on_message
    connection.start()
    send(server, 50, destination)
    assert began.wait(WAIT_S)
    fetched, end = cast("ConsumerImpl", consumer).inbox.buffer, time.monotonic() + WAIT_S
    while len(fetched) < 49:
        assert time.monotonic() < end, f"{len(fetched)} messages have come"
        time.sleep(0.01)
    proxy.cut()
    assert lost.wait(WAIT_S)
    over.wait(0.5 if of == "queue" else WAIT_S)
    connection.close()
    return taken
