"""Metrics: those of the conventions, and what is counted besides."""

from __future__ import annotations

import uuid
from importlib.metadata import entry_points

import pytest

import jmsapi
import jmsapi.otel
from jmsapi import JMSContext, Message
from jmsapi._core.telemetry import installed
from jmsapi.listener import JMSListenerProperty, JMSQueueListener, deploy
from jmsapi.testing import FaultProxy, LoopbackServer

from ..listener.bench import wait_until
from .watching import watching


def test_messages_and_durations_are_counted_by_operation_and_destination() -> None:
    with watching() as watched, jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}").create_context() as jms:
        queue = jms.create_queue("q")
        jms.create_producer().send(queue, "text").send(queue, "text")
        consumer = jms.create_consumer(queue)
        assert consumer.receive(20_000) is not None
        assert consumer.receive(20_000) is not None
        assert consumer.receive_no_wait() is None
        assert watched.numbers("messaging.client.sent.messages") == {"send q": 2}
        assert watched.numbers("messaging.client.consumed.messages") == {"receive q": 2}
        assert watched.numbers("messaging.client.operation.duration") == {"send q": 2, "receive q": 2}


def test_what_a_connection_holds_is_observed() -> None:
    with watching() as watched:
        factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}", prefetch=10)
        with factory.create_context(JMSContext.CLIENT_ACKNOWLEDGE) as jms:
            queue = jms.create_queue("q")
            jms.create_producer().send(queue, "text").send(queue, "text")
            message = jms.create_consumer(queue).receive(20_000)
            assert message is not None
            assert watched.numbers("jmsapi.client.in_flight") == {"receive": 2, "send": 0}
            assert watched.numbers("jmsapi.client.credit") == {"": 8}
            message.acknowledge()
            assert watched.numbers("jmsapi.client.in_flight") == {"receive": 1, "send": 0}
        assert watched.numbers("jmsapi.client.in_flight") == {"receive": 0, "send": 0}


def test_delayed_redeliveries_and_dead_letters_are_counted() -> None:
    factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")

    @JMSQueueListener()
    @JMSListenerProperty("destination", "awaiting_redelivery")
    @JMSListenerProperty("redeliveryDelayMs", "600000")
    def delays(message: Message) -> None:
        raise ValueError("later")

    @JMSQueueListener()
    @JMSListenerProperty("destination", "dying")
    @JMSListenerProperty("redeliveryLimit", "1")
    @JMSListenerProperty("deadLetterDestination", "dead")
    def dies(message: Message) -> None:
        raise ValueError("never")

    with watching() as watched, deploy(delays, dies, factory=factory, on_error=lambda name, error: None):
        with factory.create_context() as jms:
            jms.create_producer().send(jms.create_queue("awaiting_redelivery"), "text").send(jms.create_queue("dying"), "text")
            assert jms.create_consumer(jms.create_queue("dead")).receive(20_000) is not None
        wait_until(lambda: watched.numbers("jmsapi.client.awaiting_redelivery") == {"": 1}, "a message waits for its delay")
        assert watched.numbers("jmsapi.client.redeliveries") == {"process dying": 1}
        wait_until(lambda: watched.numbers("jmsapi.client.dead_letters") == {"forward dying": 1}, "one was given up")


def test_what_the_broker_is_told_to_put_away_is_a_dead_letter() -> None:
    with watching() as watched:
        factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}", max_redeliveries=0)
        with factory.create_context() as jms:

            def refuse(message: Message) -> None:
                raise ValueError("never")

            jms.create_consumer(jms.create_queue("q")).message_listener = refuse
            jms.create_producer().send(jms.create_queue("q"), "text")
            wait_until(lambda: watched.numbers("jmsapi.client.dead_letters") == {"reject": 1}, "it was rejected")


def test_a_link_that_is_made_again_is_counted() -> None:
    with LoopbackServer() as server, FaultProxy(server.url) as proxy, watching() as watched:
        url = f"failover:({proxy.url})?initialReconnectDelay=10"
        with jmsapi.connection_factory(url).create_context() as jms:
            jms.create_producer().send(jms.create_queue("q"), "text")
            proxy.cut()
            wait_until(lambda: watched.numbers("jmsapi.client.reconnects") == {"reconnect": 1}, "the link is made again")


def test_switched_on_again_it_goes_on_counting(recwarn: pytest.WarningsRecorder) -> None:
    with watching() as watched:
        factory = jmsapi.connection_factory(f"inproc://{uuid.uuid4().hex}")
        for _ in range(2):
            with factory.create_context() as jms:
                jms.create_producer().send(jms.create_queue("q"), "text")
            jmsapi.otel.uninstrument()
            jmsapi.otel.instrument(watched.tracers, watched.meters)
        assert watched.numbers("messaging.client.sent.messages") == {"send q": 2}


def test_the_command_that_instruments_finds_it_by_its_entry_point() -> None:
    (found,) = (one for one in entry_points(group="opentelemetry_instrumentor") if one.name == "jmsapi")
    instrumentor = found.load()()
    try:
        # As the command does.
        instrumentor.instrument(skip_dep_check=True)
        assert installed() is not None
        assert list(instrumentor.instrumentation_dependencies()) == []
    finally:
        instrumentor.uninstrument()
    assert installed() is None
