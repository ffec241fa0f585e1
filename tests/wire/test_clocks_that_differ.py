"""A consumer whose clock is an hour ahead, on each broker: what the broker calls alive is not destroyed unasked."""

from __future__ import annotations

import logging
import time
import uuid

import pytest

import jmsapi
from jmsapi.spi import SystemClock
from jmsapi_conformance.brokers import Broker

LIFE_MS = 600_000


@pytest.fixture(params=["stomp", "amqp"])
def factory(each_broker: Broker, request: pytest.FixtureRequest) -> jmsapi.ConnectionFactory:
    """A factory for each wire of each broker."""
    if request.param not in each_broker.wires:
        pytest.skip("the broker was given without this wire")
    return jmsapi.connection_factory(each_broker.url(request.param), user=each_broker.user, password=each_broker.password)


def expires(each_broker: Broker) -> bool:
    """Whether the broker expires messages wherever they are in a queue."""
    return each_broker.kind != "rabbitmq"


def sent(factory: jmsapi.ConnectionFactory) -> str:
    """Send a message that lives for ten minutes; return its queue."""
    name = f"clocks-{uuid.uuid4()}"
    with factory.create_context() as context:
        queue = context.create_queue(name)
        context.create_consumer(queue).close()
        producer = context.create_producer()
        producer.time_to_live = LIFE_MS
        producer.send(queue, "alive")
    return name


def an_hour_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: int(time.time() * 1000) + 3_600_000)


def test_a_living_message_is_received_where_the_broker_expires_them_and_what_is_discarded_elsewhere_is_logged(
    each_broker: Broker, factory: jmsapi.ConnectionFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jmsapi.expiry")
    name = sent(factory)
    an_hour_ahead(monkeypatch)
    with factory.create_context() as context:
        body = context.create_consumer(context.create_queue(name)).receive_body(str, 3000)
    logged = " ".join(record.getMessage() for record in caplog.records)
    assert body == ("alive" if expires(each_broker) else None)
    assert ("local_expiry" if expires(each_broker) else "expired") in logged


@pytest.mark.parametrize("local", [True, False])
def test_the_option_says_whose_clock_decides(
    each_broker: Broker,
    factory: jmsapi.ConnectionFactory,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    local: bool,
) -> None:
    name = sent(factory)
    an_hour_ahead(monkeypatch)
    wire = request.node.callspec.params["factory"]
    own = jmsapi.connection_factory(
        each_broker.url(wire), user=each_broker.user, password=each_broker.password, local_expiry=local
    )
    with own.create_context() as context:
        assert context.create_consumer(context.create_queue(name)).receive_body(str, 2000) == (None if local else "alive")
