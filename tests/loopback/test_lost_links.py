"""What a consumer holds when its connection is lost for good: what comes again is handed out by the next connection alone."""

from __future__ import annotations

import threading

import pytest

import jmsapi
from jmsapi import Destination, JMSContext, Message
from jmsapi.testing import FaultProxy, LoopbackServer

WAIT_S = 30.0


@pytest.mark.parametrize("mode", [JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE, JMSContext.CLIENT_ACKNOWLEDGE])
def test_a_listener_gets_nothing_of_a_lost_connection_that_comes_again(mode: int) -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        taken = listen_over_a_loss(server, proxy, mode, topic=False)
        with jmsapi.connection_factory(server.url).create_context() as context:
            consumer = context.create_consumer(context.create_queue("q"))
            again = [consumer.receive_body(str, WAIT_S * 1000) for _ in range(50)]
        assert again == [str(number) for number in range(50)]
        assert taken == ["0"]


def test_what_comes_to_nobody_again_is_handed_out_all_the_same() -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        taken = listen_over_a_loss(server, proxy, JMSContext.AUTO_ACKNOWLEDGE, topic=True)
        assert taken == [str(number) for number in range(50)]


@pytest.mark.parametrize("timeout_ms", [0, 1000])
def test_a_receive_after_the_loss_raises(timeout_ms: int) -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy:
        send(server, 3, topic=False)
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


def where(context: JMSContext, *, topic: bool) -> Destination:
    return context.create_topic("t") if topic else context.create_queue("q")


def send(server: LoopbackServer, count: int, *, topic: bool) -> None:
    with jmsapi.connection_factory(server.url).create_context() as context:
        for number in range(count):
            context.create_producer().send(where(context, topic=topic), str(number))


def listen_over_a_loss(server: LoopbackServer, proxy: FaultProxy, mode: int, *, topic: bool) -> list[str]:
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
    destination = session.create_topic("t") if topic else session.create_queue("q")
    session.create_consumer(destination).message_listener = on_message
    connection.start()
    send(server, 50, topic=topic)
    assert began.wait(WAIT_S)
    proxy.cut()
    assert lost.wait(WAIT_S)
    over.wait(WAIT_S if topic else 0.5)
    connection.close()
    return taken
