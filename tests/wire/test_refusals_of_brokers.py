"""What each broker refuses when a connection opens is final, of the kind that it is, and leaves nothing open."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import jmsapi
from jmsapi import InvalidClientIDException, JMSException, JMSSecurityException
from jmsapi_conformance.brokers import Broker

SETTLE_S = 10.0


def open_things() -> tuple[int, int]:
    return threading.active_count(), sum(1 for _ in Path("/proc/self/fd").iterdir())


def settled(before: tuple[int, int]) -> tuple[int, int]:
    """The threads and descriptors when no more of them end."""
    deadline = time.monotonic() + SETTLE_S
    while open_things() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    return open_things()


def refused(url: str, **options: object) -> JMSException:
    """Fail to connect with failover, which does not try again, three times over."""
    before = open_things()
    for _ in range(3):
        with pytest.raises(JMSException) as caught:
            jmsapi.connection_factory(f"failover:({url})?startupTimeout=20000", **options).create_connection()
        assert "times without success" not in str(caught.value), "a final refusal is not tried again"
    assert settled(before) <= before
    return caught.value


@pytest.fixture(params=["stomp", "amqp"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_client_id_in_use_is_refused_and_leaves_nothing(each_broker: Broker, wire: str) -> None:
    if wire not in each_broker.wires:
        pytest.skip("the broker was given without this wire")
    url = each_broker.url(wire)  # type: ignore[arg-type]
    client_id = f"taken-{uuid.uuid4()}"
    options = {"user": each_broker.user, "password": each_broker.password, "client_id": client_id}
    with jmsapi.connection_factory(url, **options).create_connection():
        assert isinstance(refused(url, **options), InvalidClientIDException)


def test_a_wrong_password_is_refused_and_leaves_nothing(each_broker: Broker, wire: str) -> None:
    if wire not in each_broker.wires:
        pytest.skip("the broker was given without this wire")
    parts = urlsplit(each_broker.url(wire))  # type: ignore[arg-type]
    error = refused(f"{parts.scheme}://{parts.hostname}:{parts.port}", user=each_broker.user, password="wrong word")
    assert isinstance(error, JMSSecurityException)


def test_a_virtual_host_that_does_not_exist_is_named_and_leaves_nothing(rabbitmq: Broker, wire: str) -> None:
    if wire not in rabbitmq.wires:
        pytest.skip("the broker was given without this wire")
    before = open_things()
    options = {"user": rabbitmq.user, "password": rabbitmq.password, "vhost": "nosuch"}
    with pytest.raises(JMSException, match="nosuch") as caught:
        jmsapi.connection_factory(rabbitmq.url(wire), **options).create_connection()  # type: ignore[arg-type]
    # Over AMQP RabbitMQ closes without a word, as it does when it stops: nothing tells the two apart, so it is no refusal.
    assert isinstance(caught.value, JMSSecurityException) is (wire == "stomp")
    assert settled(before) <= before
