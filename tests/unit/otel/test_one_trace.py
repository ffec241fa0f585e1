"""One trace from the producer over the broker and a listener container to a dead letter, and over a link that is cut."""

from __future__ import annotations

import threading

import jmsapi
import jmsapi.otel
from jmsapi import Message
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, deploy
from jmsapi.testing import FaultProxy, LoopbackServer

from .watching import WAIT_S, watching


def test_the_trace_goes_on_when_the_link_is_cut_amid_a_callback() -> None:
    entered, leave, dead = threading.Event(), threading.Event(), threading.Event()

    @JMSQueueListener()
    @JMSListenerProperty("destination", "orders")
    @JMSListenerProperty("redeliveryLimit", "0")
    @JMSListenerProperty("deadLetterDestination", "orders.dead")
    def on_order(message: Message) -> None:
        first = not entered.is_set()
        entered.set()
        if first:
            assert leave.wait(WAIT_S)
            return
        raise ValueError("no such customer")

    @JMSQueueListener()
    @JMSListenerProperty("destination", "orders.dead")
    def on_dead(message: Message) -> None:
        dead.set()

    with LoopbackServer() as server, FaultProxy(server.url) as proxy, watching() as watched:
        factory = jmsapi.connection_factory(f"failover:({proxy.url})?initialReconnectDelay=10")
        with deploy(on_order, on_dead, factory=factory, on_error=lambda name, error: None):
            with jmsapi.connection_factory(server.url).create_context() as jms:
                jms.create_producer().send(jms.create_queue("orders"), "a kettle")
            assert entered.wait(WAIT_S)
            proxy.cut()
            leave.set()
            assert dead.wait(WAIT_S)
            watched.named("process orders.dead")
    lines = watched.tree().splitlines()
    assert lines[0] == "send orders (producer)"
    assert [line for line in lines if not line.startswith("    ")] == lines[:1], watched.tree()
    assert "    process orders (consumer, failed: jmsapi.errors.TransactionRolledBackException)" in lines
    assert "    process orders (consumer, failed: ValueError)" in lines
    assert "    send orders.dead (producer)" in lines
    assert "        process orders.dead (consumer)" in lines
